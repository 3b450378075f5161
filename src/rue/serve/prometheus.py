"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rue.serve.service import Service
from rue.serve.status import glance

__all__ = ["figures"]


def figures(service: Service) -> bytes:
    """What `/metrics` says: requests by kind and status, and of each model its risk, its certificate, what waits."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(service))
    return bytes(generate_latest(registry))


class _Collector:
    """Looks at a service when it is asked."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        answered = CounterMetricFamily("rue_requests", "Lines that were answered.", labels=["model", "kind", "status"])
        for key, count in self.service.counts.items():
            answered.add_metric(key.split("/"), count)
        yield answered
        yield GaugeMetricFamily("rue_queue", "Requests that wait for their turn.", self.service.waiting)
        yield CounterMetricFamily("rue_log_records", "Records of the log.", self.service.log.last)
        yield GaugeMetricFamily("rue_log_writable", "1 while the log can be written.", float(not self.service.full))
        yield from self._of_models()

    def _of_models(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        seen = {model.name: glance(model) for model in self.service.fold.models.values()}
        for field, words in _FIGURES.items():
            family = GaugeMetricFamily(f"rue_{field}", words, labels=["model"])
            for name, known in seen.items():
                if known[field] is not None:
                    family.add_metric([name], float(known[field]))
            yield family


_FIGURES = {
    "examples": "Examples that were scored and learnt.",
    "risk": "Mean loss of the predictions that were served.",
    "regret_at_most": "How much better a linear model could have done, in all, at most.",
    "pending": "Predictions that wait for their label.",
    "early": "Labels that wait for their prediction.",
    "expired": "Predictions whose label did not come in time.",
    "bad": "Labels that could not be used.",
}

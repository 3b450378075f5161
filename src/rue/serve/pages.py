"""Pages that are no model's: the live page, figures for Prometheus, and the description of the routes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from rue.serve import status
from rue.serve.model import ServedModel
from rue.serve.openapi import description
from rue.serve.prometheus import figures
from rue.serve.service import Service

__all__ = ["HEADERS", "event", "live_page", "page"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}


def live_page(path: str) -> tuple[str, bytes] | None:
    """The type and the content of a file of the live page, which says nothing of the models; None for another path."""
    if path not in _FILES:
        return None
    name, kind = _FILES[path]
    return kind, Path(__file__).with_name("page").joinpath(name).read_bytes()


def page(path: str, service: Service) -> tuple[str, bytes | Callable[[], bytes]] | None:
    """The type and the content of a page, or what makes the content between two groups of requests; None if there is
    none.
    """
    if path == "/openapi.json":
        return "application/json", msgspec.json.encode(description())
    if path == "/metrics":
        return "text/plain; version=0.0.4; charset=utf-8", lambda: figures(service)
    return None


def event(service: Service, model: ServedModel) -> dict[str, Any]:
    """What the page shows of a model each second."""
    counts = {key.split("/", 1)[1]: n for key, n in service.counts.items() if key.startswith(f"{model.name}/")}
    return {**status.glance(model), "requests": counts, "waiting": service.waiting, "errors": list(service.errors)}

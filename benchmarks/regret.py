"""What regret costs: certificates on top of a pass, the best point in hindsight in passes, and what witnesses close."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import rue
from benchmarks import data
from benchmarks.clock import best_of
from rue import best_in_hindsight
from rue.ledger import Silent, open_ledger
from rue.streams import blocks


def certificate_rows() -> list[tuple[str, float, str]]:
    """D1 fused into the pass against the same pass without it."""
    X, y = data.text_like()

    def run(loss: str, certified: bool) -> None:
        learner = rue.OGD(loss, "ball:100", "sqrt:5", d=X.shape[1])
        ledger: Any = open_ledger(learner.coordinates) if certified else Silent(0)
        for block in blocks(X, y):
            learner.run_block(block, ledger, np.empty(len(block)), 0)

    rows = []
    for loss in ("hinge", "logistic"):
        times = best_of({"alone": partial(run, loss, False), "certified": partial(run, loss, True)})
        share = times["certified"] / times["alone"] - 1.0
        rows.append((f"D1 on top of a sparse OGD pass, {loss}, in %", 100.0 * share, "≤ 40"))
    return rows


def witness_rows() -> list[tuple[str, float, str]]:
    """How much of the distance between D1 alone and the true regret witnesses close, for the default learner."""
    rows = []
    for name in ("elec2", "toxicity"):
        if (stream := getattr(data, name)()) is None:
            print(f"{name} is absent (../shared/data): its rows are left out")
            continue
        X, y = stream
        radii = (5.0, 20.0)
        run = rue.learn(X, y, witnesses=radii, units="largest", maps=None)
        scales = run.evidence.scales()[1:]
        scaled = X.multiply(1.0 / np.where(scales > 0.0, scales, 1.0)).tocsr()
        for best in rue.hindsight_path(scaled, run.y, radii, loss="logistic", tolerance=1e-4):
            shown = run.certificate(radius=best.domain.radius)
            true = run.loss - best.value
            closed = (shown.alone - shown.regret_at_most) / (shown.alone - true)
            print(
                f"  {name}, U = {best.domain.radius:g}: true regret {true:,.0f} (± {best.gap:.0f}), D1 alone "
                f"{shown.alone:,.0f}, with {shown.witnesses} witnesses {shown.regret_at_most:,.0f}"
            )
            rows.append((f"{name}, U = {best.domain.radius:g}, closed by witnesses, in %", 100.0 * closed, "≥ 60"))
    return rows


def comparator_rows() -> list[tuple[str, float, str]]:
    """Hindsight on a9a at three radii: its time over that of a pass, and its certified gap over the loss."""
    if (stream := data.a9a()) is None:
        print("a9a is absent (../shared/data): its rows are left out")
        return []
    X, y = stream
    one_pass = {"pass": lambda: rue.OGD("logistic", "ball:10").run(X, y)}
    rows = []
    for loss, wanted in (("logistic", "≤ 150"), ("hinge", "≤ 1000")):
        for radius in (1, 10, 100):
            found = []
            solve = {"hindsight": lambda: found.append(best_in_hindsight(X, y, loss=loss, radius=radius))}  # noqa: B023  # called before the loop goes on
            times = best_of(one_pass | solve)
            rows.append((f"a9a {loss}, U = {radius}, times a pass", times["hindsight"] / times["pass"], wanted))
            gap = max(best.gap / best.value for best in found)
            rows.append((f"a9a {loss}, U = {radius}, certified gap in 1e-6 of the loss", 1e6 * gap, "≤ 1"))
    return rows

"""How cost grows: with rows, with non-zeros a row, with columns, and with the size of the pool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import rue
from benchmarks.clock import best_of

PICTURE = Path(__file__).parents[1] / "docs" / "growth.svg"
LEARNERS: dict[str, Callable[[], Any]] = {
    "OGD": lambda: rue.OGD("logistic", "ball:10"),
    "AdaGrad": lambda: rue.AdaGrad("logistic"),
    "Mixture": lambda: rue.Mixture(),
}
AXES = {
    "rows": (2_000, 8_000, 32_000, 128_000),
    "non-zeros a row": (8, 32, 128, 512),
    "columns": (2**10, 2**14, 2**18, 2**22),
    "members": (24, 48, 96, 192),
}
WANTED = {"rows": "about 1", "non-zeros a row": "≤ 1", "columns": "about 0", "members": "≤ 1"}


def stream(rows: int = 20_000, nonzeros: int = 32, columns: int = 2**14) -> tuple[Any, Any]:
    """Random sparse rows with as many non-zeros each."""
    rng = np.random.default_rng(0)
    apart = columns // nonzeros
    places = np.arange(nonzeros) * apart + rng.integers(0, apart, (rows, nonzeros))
    X = csr_matrix((rng.random(places.size) + 0.5, places.ravel(), np.arange(rows + 1) * nonzeros), (rows, columns))
    return X, np.where(rng.random(rows) < 0.5, 1.0, -1.0)


def growth_rows() -> list[tuple[str, float, str]]:
    """Slopes of log cost against the logarithm of what grows; and the picture."""
    found: dict[tuple[str, str], list[float]] = {}
    for axis, sizes in AXES.items():
        for size in sizes:
            for name, seconds in _times(axis, size).items():
                found.setdefault((axis, name), []).append(seconds)
                print(f"  {axis} {size:,}, {name}: {seconds * 1e3:.1f} ms")
    _draw(found)
    return [
        (f"slope of {name}'s cost against {axis}", _slope(AXES[axis], seconds), WANTED[axis])
        for (axis, name), seconds in found.items()
    ]


def _times(axis: str, size: int) -> dict[str, float]:
    """Seconds of one pass by each learner, with one thing of some size and all else as usual."""
    arguments = {"rows": "rows", "non-zeros a row": "nonzeros", "columns": "columns"}
    X, y = stream(**({arguments[axis]: size} if axis in arguments else {}))
    if axis == "members":
        return best_of({"Mixture": lambda: rue.Mixture(budget=_budget(size)).run(X, y)}, rounds=3)
    return best_of({name: lambda make=make: make().run(X, y) for name, make in LEARNERS.items()}, rounds=3)


def _budget(members: int) -> int:
    """The bytes a feature takes with so many members of six kinds."""
    fewer, usual = rue.Mixture(budget=136).algorithm, rue.Mixture().algorithm
    a_rate = (usual.budget - fewer.budget) // (usual.rates - fewer.rates)
    return usual.budget + (members // 6 - usual.rates) * a_rate


def _slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _draw(found: dict[tuple[str, str], list[float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(AXES), figsize=(13, 3.4), sharey=True, layout="constrained")
    for panel, (axis, sizes) in zip(panels, AXES.items(), strict=True):
        for colour, name in enumerate(LEARNERS):
            if (seconds := found.get((axis, name))) is not None:
                panel.loglog(sizes, seconds, f"oC{colour}-", label=f"{name} (slope {_slope(sizes, seconds):.2f})")
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.minorticks_off()
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, frameon=False)
    panels[0].set_ylabel("seconds of one pass")
    figure.savefig(PICTURE)
    plt.close(figure)

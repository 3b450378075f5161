"""The curves of the columns that move a prediction most, and the tables of the strongest pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError
from rue.pictures.figures import BLUE, GREY, SIZE, new_figure, require_picture, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_effects"]

CURVES, PAIRS = 4, 2
"""How many of each are drawn."""


def draw_effects(effects: Any, path: Any = None) -> Figure:
    """The curves of the four columns that matter most, and the tables of the two strongest pairs."""
    if path is not None:
        require_picture(path)
    if not effects.curves:
        raise SettingsError("plot_effects: there is no column to draw.")
    curves, pairs = effects.curves[:CURVES], effects.pairs[:PAIRS]
    figure = new_figure(3)
    figure.set_size_inches(10.5, 6.4)
    panels = figure.subplots(2, 3).T.reshape(-1).tolist()
    for curve in curves:
        _draw_curve(curve, panels.pop(0))
    for pair in pairs:
        _draw_pair(pair, panels.pop(0))
    for ax in panels:
        ax.set_axis_off()
    figure.suptitle(
        f"Prediction, {effects.unit}, less its mean: tried on {effects.rows:,} of the rows learnt", fontsize=SIZE + 1
    )
    if path is not None:
        save(figure, path)
    return figure


def _draw_curve(curve: Any, ax: Axes) -> None:
    ax.axhline(0.0, color=GREY, lw=0.8)
    if curve.numeric:
        ax.plot(curve.points, curve.effect, color=BLUE, lw=1.4, marker="." if len(curve.points) <= 24 else "")
    else:
        ax.bar(range(len(curve.points)), curve.effect, color=BLUE, width=0.6)
        _name(ax.set_xticks, curve.points)
    _label(ax, f"{_short(curve.name, 30)}: moves it by {curve.spread:.3g}")


def _draw_pair(pair: Any, ax: Axes) -> None:
    rows, columns = pair.points
    most = float(np.abs(pair.effect).max()) or 1.0
    drawn = ax.imshow(pair.effect, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    ax.set_yticks(range(len(rows)), [_short(point) for point in rows])
    _name(ax.set_xticks, columns)
    ax.set_ylabel(_short(pair.names[0], 30), fontsize=SIZE)
    ax.set_xlabel(_short(pair.names[1], 30), fontsize=SIZE)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02)
    bar.ax.tick_params(labelsize=SIZE - 1.5)
    _label(ax, f"{pair.strength:.3g} more than the sum of two")


def _name(set_ticks: Any, points: Any) -> None:
    """Name the values below an axis, as many as there is room for."""
    every = -(-len(points) // 12)
    shown = range(0, len(points), every)
    set_ticks(list(shown), [_short(points[i]) for i in shown], rotation=30, ha="right")


def _label(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=SIZE + 0.5, loc="left")
    ax.tick_params(labelsize=SIZE - 1.0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _short(point: Any, most: int = 12) -> str:
    text = f"{point:.4g}" if isinstance(point, float) else str(point)
    return text if len(text) <= most else text[: most - 1] + "…"

"""Pictures of calibration: what was predicted against what happened, and the groups with the largest gaps (E3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError
from rue.pictures.figures import BLUE, GREY, ORANGE, SIZE, Panel, new_figure, require_picture, save
from rue.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_calibration", "plot_calibration"]

NAMED = 8
"""How many groups are drawn."""


def plot_calibration(run: Run, ax: Axes | None = None) -> Axes:
    """The reliability diagram: the share of positives against the mean probability, for each tenth of probabilities.

    A dot below the diagonal was promised more often than it happened; its area is the number of examples (E3).

    `run` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.plot_calibration(rue.learn(X[:1000], y[:1000])).get_xlabel()
    'probability that was predicted'
    """
    found, panel = _calibration_of(run), Panel(ax)
    if not found.bins:
        raise SettingsError("plot_calibration: there is a reliability diagram for probabilities alone.")
    says, happened, weights = (np.array([getattr(part, name) for part in found.bins]) for name in _COLUMNS)
    panel.line([0.0, 1.0], [0.0, 1.0], "as predicted", GREY, ls="--", lw=1.0, end_value=math.nan)
    panel.line(says, happened, "this learner", BLUE, lw=1.2, end_value=math.nan)
    panel.ax.scatter(says, happened, s=10.0 + 180.0 * weights / weights.max(), color=BLUE, alpha=0.7, zorder=3)
    panel.ax.set_xlim(0.0, 1.0)
    panel.ax.set_ylim(0.0, 1.0)
    panel.ax.set_xlabel("probability that was predicted", fontsize=SIZE + 0.5)
    return panel.finish("share that happened", f"Calibration error {100.0 * (found.error or 0.0):.1f} points")


_COLUMNS = ("says", "happened", "weight")


def _plot_groups(run: Run, ax: Axes) -> Axes:
    """Bars for the groups with the largest gaps."""
    found, panel = _calibration_of(run), Panel(ax)
    groups = found.groups[:NAMED][::-1]
    chances = found.of == "probability"
    ax.barh(range(len(groups)), [group.gap * (100.0 if chances else 1.0) for group in groups], color=ORANGE, height=0.6)
    ax.set_yticks(range(len(groups)), [f"{group.name[:28]}\n{group.weight:,.0f} rows" for group in groups])
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_xlabel("predicted minus happened, in points" if chances else "mean of prediction − label")
    panel.ends.clear()
    names = [label.get_text() for label in ax.get_yticklabels()]
    panel.finish("", "Groups with the largest gaps")
    ax.set_yticks(range(len(groups)), names, fontsize=SIZE)
    return ax


def draw_calibration(run: Run, path: Any = None) -> Figure:
    """The reliability diagram, of probabilities, and the groups, where there are any."""
    found = _calibration_of(run)
    if path is not None:
        require_picture(path)
    wanted: list[Any] = ([plot_calibration] if found.bins else []) + ([_plot_groups] if found.groups else [])
    if not wanted:
        raise SettingsError(f"plot_calibration: there are no groups to draw; in all, the run {found}.")
    figure = new_figure(len(wanted))
    for draw, ax in zip(wanted, np.atleast_1d(figure.subplots(1, len(wanted))), strict=True):
        draw(run, ax)
    if path is not None:
        save(figure, path)
    return figure


def _calibration_of(run: Any) -> Any:
    if not isinstance(run, Run):
        raise SettingsError(f"plot_calibration: give a run, not {type(run).__name__}.")
    return run.calibration()

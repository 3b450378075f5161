"""Pictures of prediction intervals: the last rounds with their bands, and coverage over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError
from rue.pictures.figures import BLUE, GREEN, GREY, RED, Panel, new_figure, require_picture, save
from rue.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_intervals", "plot_coverage", "plot_intervals"]

SHOWN = 150
"""How many of the last rounds are drawn one by one."""


def plot_intervals(run: Run, ax: Axes | None = None, rounds: int = SHOWN) -> Axes:
    """The labels, predictions and intervals of the last rounds; labels outside their interval are red.

    `run` is what to draw, `rounds` how many of them, and `ax` the matplotlib axes to draw it on; new ones if it is not
    given.

    >>> import numpy as np, rue
    >>> run = rue.learn(np.ones((5, 1)), [1.0, 2.0, 1.5, 1.0, 2.5], interval=0.8)
    >>> rue.plot_intervals(run).get_ylabel()
    'label'
    """
    if run.lower is None:
        raise SettingsError("plot_intervals: learn numbers with interval=0.9, or another level.")
    panel = Panel(ax)
    rows = np.flatnonzero(np.isfinite(run.y) & np.isfinite(run.predictions))[-rounds:]
    y, t = run.y[rows], rows + 1
    ends = [end[rows] if end.ndim == 2 else end[rows, None] for end in (run.lower, run.upper)]
    for k in reversed(range(ends[0].shape[1])):
        low, high = (end[:, k] for end in ends)
        low, high = (np.where(np.isinf(end), y, end) for end in (low, high))  # with one side
        panel.ax.fill_between(t, low, high, step="mid", color=BLUE, alpha=0.18, lw=0)
    outside = (y < ends[0][:, -1]) | (y > ends[1][:, -1])
    panel.line(t, run.predictions[rows], "prediction", BLUE, lw=1.0, end_value=float("nan"))
    panel.ax.plot(t[~outside], y[~outside], "o", ms=2.6, color=GREY)
    panel.ax.plot(t[outside], y[outside], "o", ms=3.4, color=RED)
    panel.ax.set_xlabel("row", fontsize=9.0)
    share = np.mean(~outside) if rows.size else float("nan")
    return panel.finish("label", f"The last {rows.size:,} rounds: {share:.1%} of the labels inside")


def plot_coverage(run: Run, ax: Axes | None = None) -> Axes:
    """The share of labels inside by window, with the level, and around it what is promised of all rounds up to the end.

    `run` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import numpy as np, rue
    >>> run = rue.learn(np.ones((5, 1)), [1.0, 2.0, 1.5, 1.0, 2.5], interval=0.8)
    >>> rue.plot_coverage(run).get_ylabel()
    'labels inside'
    """
    if run.watch.intervals is None:
        raise SettingsError("plot_coverage: learn with interval=0.9, or another level.")
    panel, found = Panel(ax), run.watch.intervals.summaries()
    last, lowest = max(2, found[0].examples), 1.0
    for summary, colour in zip(reversed(found), (BLUE, GREEN, GREY) * len(found), strict=False):
        edges = [window.first - 0.5 for window in summary.windows] + [last + 0.5]
        shares = [window.covered for window in summary.windows]
        panel.ax.stairs(shares, edges, color=colour, lw=1.5, baseline=None)
        low, high = summary.level - summary.promised_within, summary.level + summary.promised_within
        panel.ax.axhspan(max(0.0, low), min(1.0, high), color=colour, alpha=0.12, lw=0)
        panel.line([1, last], [summary.level] * 2, "asked for", colour, ls="--", lw=1.0)
        panel.ends.append((summary.covered, f"inside  {summary.covered:.4f}", colour))
        lowest = min([lowest, low, *shares])
    panel.ax.set_xlim(0, last + 1)
    panel.ax.set_ylim(max(0.0, lowest - 0.05), 1.01)
    panel.ax.set_xlabel("rounds t", fontsize=9.0)
    return panel.finish("labels inside", "Coverage by window; shaded is what is promised of the whole")


def draw_intervals(run: Run, path: Any = None) -> Figure:
    """The last rounds, and coverage by window; of classes coverage alone."""
    if path is not None:
        require_picture(path)
    wanted: list[Any] = [*[plot_intervals] * (run.lower is not None), plot_coverage]
    figure = new_figure(len(wanted))
    for draw, ax in zip(wanted, figure.subplots(1, len(wanted), squeeze=False).flat, strict=True):
        draw(run, ax)
    if path is not None:
        save(figure, path)
    return figure

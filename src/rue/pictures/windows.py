"""Pictures of windows: loss by window against what no linear model could have beaten there, and models that change.

>>> import rue
>>> X, y = rue.census()
>>> rue.plot_windows(rue.learn(X[:1000], y[:1000])).get_xlabel()
'rounds t'
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import DataError, SettingsError
from rue.pictures.figures import BLUE, GREY, PURPLE, RED, Panel, new_figure, require_picture, save
from rue.runs.certifying import changing_models_of
from rue.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_windows", "plot_changes", "plot_windows", "radius_of"]


def plot_windows(run: Run, ax: Axes | None = None, *, radius: float | None = None) -> Axes:
    """The mean loss of each window, with the best constant's and what no linear model of norm ≤ `radius` went below.

    Where the line of the linear models lies above the learner's, none of them could have matched it there
    (docs/theory.md, D6). By default the radius is the one that the windows' sums say most about.

    `run` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> run = rue.learn([[1.0], [-1.0], [2.0]], [1, -1, 1], learner=rue.OGD())
    >>> rue.plot_windows(run).get_title(loc="left")
    'Loss by window, against linear models of norm ≤ 10'
    """
    windows, panel = _windows_of(run, "plot_windows"), Panel(ax)
    edges = np.array([window.first - 1 for window in windows] + [windows[-1].last], dtype=np.float64)
    weights = np.array([window.weight for window in windows])
    constants = [math.nan if window.best_constant is None else window.best_constant for window in windows]
    mean = float(np.array([window.loss for window in windows]).sum() / weights.sum())
    _steps(panel, edges, np.array(constants) / weights, "best constant", GREY, ls="--", lw=1.2, end_value=math.nan)
    title = "Loss by window"
    if run.labels.task != "multiclass":
        U = radius_of(run, radius)
        asked = [run.certificate(radius=U, window=(window.first, window.last)) for window in windows]
        least = np.array([certificate.comparator_loss_at_least for certificate in asked]) / weights
        _steps(panel, edges, least, "linear models, at least", RED, lw=1.6, end_value=math.nan)
        title += f", against linear models of norm ≤ {U:.4g}"
    _steps(panel, edges, [window.risk for window in windows], "this learner, mean", BLUE, lw=2.2, end_value=mean)
    panel.ax.set_xlim(0.0, float(edges[-1]))
    panel.ax.set_xlabel("rounds t")
    if run.learner.loss.nonnegative:
        panel.ax.set_ylim(bottom=0.0)
    return panel.finish("mean loss", title)


def plot_changes(run: Run, ax: Axes | None = None, *, radius: float | None = None) -> Axes:
    """The share of the learner's loss that a linear model must lose, against how often it may change (D7).

    Changes are at borders of windows, of which there are at most 32. Above 100 % no such model could have matched the
    learner. `radius` is the largest norm of the models; by default the one that the windows' sums say most about.

    `run` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> X, y = rue.census()
    >>> rue.plot_changes(rue.learn(X[:1000], y[:1000])).get_xlabel()
    'changes of the model, at borders of windows'
    """
    windows, panel, U = _windows_of(run, "plot_changes"), Panel(ax), radius_of(run, radius)
    from matplotlib.ticker import MultipleLocator

    if run.loss <= 0.0 or not run.learner.loss.nonnegative:
        raise DataError("plot_changes: the share of a loss is drawn where losses are ≥ 0 and not all 0.")
    at = np.arange(len(windows))
    models = changing_models_of(run.learner, run.evidence, U)
    shares = [models.certificate(int(k)).comparator_loss_at_least / run.loss for k in at]
    panel.line(at, np.ones(at.size), "this learner", BLUE, lw=2.2, end_value=math.nan)
    panel.line(at, shares, "at least", PURPLE, lw=1.8, end_value=math.nan)
    panel.ax.fill_between(at, shares, 0.0, color=GREY, alpha=0.1, lw=0)
    panel.ax.set_ylim(0.0, 1.1 * max(1.0, max(shares)))
    panel.ax.set_xlim(0.0, max(1.0, float(at[-1])))
    panel.whole()
    panel.ax.yaxis.set_major_locator(MultipleLocator(0.2))
    panel.ax.set_xlabel("changes of the model, at borders of windows")
    return panel.finish("share of the learner's loss", f"What a model of norm ≤ {U:.4g} that changes must lose")


def draw_windows(run: Run, path: Any = None, *, radius: float | None = None) -> Figure:
    """Both side by side; of more than two classes the first alone."""
    if path is not None:
        require_picture(path)
    wanted = [plot_windows] if run.labels.task == "multiclass" else [plot_windows, plot_changes]
    figure = new_figure(len(wanted))
    for draw, ax in zip(wanted, np.atleast_1d(figure.subplots(1, len(wanted))), strict=True):
        draw(run, ax, radius=radius)
    if path is not None:
        save(figure, path)
    return figure


def radius_of(run: Run, radius: float | None) -> float:
    """The radius to compare at: the one given, or the one that the windows' own sums say most about."""
    own = run.certificate(window=(1, run.examples)).radius if radius is None else radius
    if own is None:
        raise SettingsError("give a radius: the learner's own set is no ball around 0.")
    return own


def _windows_of(run: Any, who: str) -> Any:
    if not isinstance(run, Run):
        raise SettingsError(f"{who}: give a run, not {type(run).__name__}.")
    if not len(run.windows):
        raise DataError("there is nothing to draw: the run learnt no example.")
    return run.windows


def _steps(panel: Panel, edges: Any, values: Any, label: str, colour: str, **more: Any) -> None:
    """A line that is level within each window."""
    values = np.asarray(values, dtype=np.float64)
    panel.line(np.repeat(edges, 2)[1:-1], np.repeat(values, 2), label, colour, **more)

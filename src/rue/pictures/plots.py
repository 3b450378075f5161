"""Pictures: regret, risk, mistakes and certificates, one call each (matplotlib, the extra `plot`).

Every `plot_…` draws on the axes given, or on new ones, and returns them; `Run.plot`, `Audit.plot` and `Game.plot` put
those that suit side by side.

>>> import rue
>>> X, y = rue.census()
>>> rue.plot_risk(rue.learn(X[:1000], y[:1000])).get_xlabel()
'rounds t'
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.audit import Audit
from rue.domains import Ball, Domain
from rue.errors import DataError, SettingsError
from rue.games import Game
from rue.pictures.curves import (
    AuditCurves,
    GameCurves,
    Rounds,
    best_constant,
    loss_per_mistake,
    range_of,
    risk_bounds_at,
    times,
)
from rue.pictures.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SIZE, Panel, new_figure, require_picture, save
from rue.pictures.windows import plot_windows
from rue.runs.certifying import norm_of_point
from rue.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_audit",
    "draw_game",
    "draw_run",
    "plot_certificate",
    "plot_metrics",
    "plot_mistakes",
    "plot_regret",
    "plot_risk",
]

FINE, COARSE, FEW = 500, 100, 25
"""How many points a curve has: one that is a running sum, one that takes work at each point, or much work."""
WINDOW = 50
"""The fewest rounds that the mean of recent losses is taken over."""
STRIP = 3
"""The fewest windows that are drawn below the risk."""
LOGARITHMIC = frozenset({"B8", "B10", "C5"})
"""Theorems whose bound grows like ln T."""


def plot_regret(source: Audit | Game, ax: Axes | None = None, *, hindsight: int | None = None) -> Axes:
    """Regret against t with the certificate, the bounds and a guide √t or 1 + ln t, on logarithmic axes.

    Of an audit it is R_t(u*) against the best in hindsight of the whole stream; dots compare with the best of the
    first t rounds, at `hindsight` many t (by default 20 where that takes a moment, else none). Of a game it is the
    regret after each round, with what the opponent must force (docs/theory.md, Q2, D1, section 5).

    `source` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=20)
    >>> rue.plot_regret(game).get_xlabel()
    'rounds t'
    """
    if isinstance(source, Game):
        return _regret_of_game(source, Panel(ax))
    if not isinstance(source, Audit):
        raise SettingsError("plot_regret: give rue.audit(run, X, y) or a game, which know the best in hindsight.")
    panel, curves = Panel(ax), AuditCurves(source)
    T, end, certificate = curves.T, source.regret[1], source.certificate
    fine, rough = times(T, FINE), times(T, COARSE)
    if curves.penalties is None:  # the points played are not known, so neither are the prefixes' losses
        panel.line([T], [end], "regret", BLUE)
        panel.line([T], [certificate.alone], "D2", RED)
    else:
        panel.line(fine, curves.regrets[fine - 1], "regret", BLUE, lw=2.2, end_value=end, zorder=3)
        if count := (20 if curves.quick else 0) if hindsight is None else hindsight:
            few = times(T, count)
            panel.dots(few, curves.best_regrets(few), "against the best so far", BLUE)
        panel.line(rough, curves.certificates(rough), "D2" if certificate.lambda_ else "D1", RED)
    if certificate.regret_at_most < certificate.alone and certificate.theorem in ("D3", "D4"):
        panel.line([T], [certificate.regret_at_most], certificate.theorem, RED, marker="D", clip_on=False)
    names = _bounds(panel, rough, curves.bounds(rough))
    panel.guide(T, end, bool(LOGARITHMIC & names))
    panel.rounds(T)
    panel.logarithmic()
    return panel.finish("regret", f"Regret against {_models(source.domain)}")


def _regret_of_game(game: Game, panel: Panel) -> Axes:
    """Regret, certificate, bounds, and what the opponent forces, which is not drawn where it equals another curve."""
    curves, T = GameCurves(game), game.T
    fine, rough = times(T, FINE), times(T, COARSE)
    name = "regret" if curves.closed else "regret, at least"
    panel.line(fine, curves.regrets[fine - 1], name, BLUE, lw=2.2, zorder=3)
    if not game.linear:  # of linear losses it is the regret
        panel.line(rough, curves.certificates(rough), "D1", RED)
    names = _bounds(panel, rough, curves.bounds(rough))
    claim, forced = game.forced, curves.forced(rough, "regret")
    drawn = [float(values[-1]) for values in panel.drawn[1:]]
    if claim is not None and forced is not None and not np.isclose(drawn, forced[-1]).any():
        words = "at most" if claim.relation == "at most" else "forced"
        words += " on average" if claim.in_expectation else ""
        panel.line(rough, forced, f"{claim.theorem}, {words}", ORANGE, ls="--")
        names |= {claim.theorem}
    known = curves.regrets[np.isfinite(curves.regrets)]
    panel.guide(T, float(known[-1]) if known.size else 0.0, bool(LOGARITHMIC & names))
    panel.rounds(T)
    panel.logarithmic()
    return panel.finish("regret", f"{game.name} against {game.opponent!r}")


def _bounds(panel: Panel, at: Any, bounds: dict[tuple[str, str], Any]) -> set[str]:
    """Draw the least bound, and the least that holds for all such data; the theorems drawn."""
    ending = {name: values for name, values in bounds.items() if math.isfinite(values[-1])}
    least = min(ending, key=lambda name: ending[name][-1], default=None)
    general = min((name for name in ending if name[1] != "data"), key=lambda name: ending[name][-1], default=None)
    for name, colour, dashes in ((least, GREEN, "-"), (general, PURPLE, "--")):
        if name is None or least is None:
            continue
        if name == least if colour == GREEN else not np.allclose(ending[name], ending[least], 1e-3, equal_nan=True):
            panel.line(at, ending[name], ", ".join(name), colour, ls=dashes)
    return {name[0] for name in (least, general) if name is not None}


def plot_risk(source: Run | Audit, ax: Axes | None = None, *, B: float | None = None, delta: float = 0.05) -> Axes:
    """The sequential risk against t, the mean of recent losses (the last tenth of the rounds), the best constant, B14.

    B14 bounds, at every t at once, the risk of the average of the points played, if the examples are independent draws;
    it asks for B, the range of the loss, which an audit knows (docs/theory.md, Q1, B14).

    `source` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given. δ is `delta`, the
    chance that the bound may fail with.

    >>> import rue
    >>> run = rue.learn([[1.0], [-1.0], [2.0]], [1, -1, 1], learner=rue.OGD())
    >>> rue.plot_risk(run).get_xlabel()
    'rounds t'
    """
    run = _run_of(source, "plot_risk")
    panel, rounds = Panel(ax), _rounds_of(run)
    T, loss = rounds.T, run.learner.loss
    fine, rough = times(T, FINE), times(T, COARSE)
    risks = rounds.risks[fine - 1]
    recent = rounds.recent(fine, 0.1, WINDOW)
    constant = best_constant(loss, rounds.labels, rounds.weights)
    if T > WINDOW:
        panel.line(fine, recent, "recent", GREEN, lw=0.9, alpha=0.8)
    panel.line(fine, risks, "risk", BLUE, lw=2.2)
    later = np.concatenate([values[fine >= (T**0.5 if T > WINDOW else 1)] for values in (risks, recent)])
    if constant is not None:
        constant /= float(rounds.weights.sum())
        panel.line([1, max(T, 2)], [constant] * 2, "best constant", GREY, ls="--", lw=1.2)
        later = np.append(later, constant)
    later = later[np.isfinite(later)]
    low, high = (float(later.min()), float(later.max())) if later.size else (0.0, 1.0)
    if (B := range_of(source) if B is None else B) is not None:
        ceiling = risk_bounds_at(rounds, rough, B, delta)
        panel.line(rough, ceiling, f"B14 ({1.0 - delta:.4g})", RED, lw=1.2)
        panel.ax.fill_between(rough, rounds.risks[rough - 1], ceiling, color=RED, alpha=0.08, lw=0)
        if ceiling[-1] < high + 2.0 * (high - min(low, 0.0)):
            high = max(high, float(ceiling[-1]))
    for change in run.alarms:  # B17
        panel.ax.axvline(change.round, color=ORANGE, lw=1.2, ls=":", zorder=1, label="alarm")
    if run.alarms:
        panel.ends.append((high, "┊ alarm", ORANGE))
    panel.rounds(T)
    room = 0.08 * (high - low) or 0.1 * abs(high) or 0.1
    panel.ax.set_ylim(max(low - room, 0.0) if low >= 0.0 else low - room, high + room)
    return panel.finish(f"mean {_called(loss)} loss", "Sequential risk: each example scored before it is learnt")


def plot_mistakes(source: Run | Audit | Game, ax: Axes | None = None) -> Axes:
    """Mistakes against t with what bounds them: B1 and B2 for an audited Perceptron, else the loss itself.

    A mistake is y·p ≤ 0 (docs/theory.md, Q4); a loss with ℓ ≥ c there bounds their number by Σℓ/c.

    `source` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> run = rue.learn([[1.0], [-1.0], [2.0]], [1, -1, 1], learner=rue.OGD())
    >>> rue.plot_mistakes(run).get_xlabel()
    'rounds t'
    """
    game = source if isinstance(source, Game) else None
    run = None if isinstance(source, Game) else _run_of(source, "plot_mistakes")
    if source.mistakes is None if isinstance(source, Game | Run) else source.run.mistakes is None:
        raise SettingsError("plot_mistakes: a regression makes no mistakes: plot_risk shows its loss.")
    panel = Panel(ax)
    if game is not None:
        ones = np.ones(game.T)
        rounds, loss = Rounds(game.losses, ones, game.labels, game.predictions), game.loss_named
    else:
        assert run is not None
        rounds, loss = _rounds_of(run), run.learner.loss
    T = rounds.T
    at = np.unique(np.rint(np.linspace(1, T, FINE)).astype(np.int64))
    panel.line(at, rounds.mistakes[at - 1], "mistakes", BLUE, lw=2.2)
    classes, counts = np.unique(rounds.labels, return_counts=True)
    rarer = rounds.labels != classes[np.argmax(counts)]
    panel.line(at, np.cumsum(rarer)[at - 1], "best constant", GREY, ls="--", lw=1.2)
    unit = loss_per_mistake(loss)
    if unit is not None:
        name = f"{_called(loss)} loss" + (" / ln 2" if unit < 1.0 else "")
        panel.line(at, np.cumsum(rounds.losses)[at - 1] / unit, name, RED)
    if isinstance(source, Audit):
        for theorem, values in AuditCurves(source).mistake_bounds().items():
            panel.line(at, values[at - 1], theorem, GREEN if theorem == "B1" else PURPLE)
    if game is not None and game.forced is not None:
        rough = times(T, COARSE)
        forced = GameCurves(game).forced(rough, "mistakes")
        if forced is not None:
            panel.line(rough, forced, f"{game.forced.theorem}, forced", ORANGE, ls="--")
    panel.ax.set_xlim(*((1, T) if T > 1 else (0.5, 1.5)))
    panel.ax.set_ylim(bottom=0.0)
    panel.whole()
    panel.ax.set_xlabel("rounds t", fontsize=SIZE + 0.5)
    return panel.finish("mistakes", "Mistakes")


_METRICS = {
    "accuracy": ("accuracy", BLUE),
    "balanced_accuracy": ("balanced", PURPLE),
    "auc": ("ROC AUC", RED),
    "precision": ("precision", GREY),
    "recall": ("recall", ORANGE),
    "f1": ("F1", GREEN),
    "mae": ("mean absolute error", BLUE),
    "rmse": ("root mean square error", RED),
}
"""What is drawn of the metrics, by name: what it is called, and its colour."""


def plot_metrics(source: Run | Audit, ax: Axes | None = None) -> Axes:
    """Accuracy, ROC AUC and the like of the predictions up to t, against t; of numbers their errors.

    `source` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> X, y = rue.census()
    >>> sorted(line.get_label() for line in rue.plot_metrics(rue.learn(X[:200], y[:200], learner="ogd")).lines)[:3]
    ['F1', 'ROC AUC', 'accuracy']
    """
    run = _run_of(source, "plot_metrics")
    course = run.metrics.over_time()
    at = course.pop("examples")
    if not at.size:
        raise DataError("there is nothing to draw: the run scored no example.")
    panel = Panel(ax)
    for name in [name for name in course if name in _METRICS]:
        panel.line(at, course[name], *_METRICS[name], lw=2.2 if name in ("accuracy", "mae") else 1.5)
    panel.rounds(run.metrics.examples)
    if "mae" not in course:
        panel.ax.set_ylim(0.0, 1.0)
    return panel.finish("error" if "mae" in course else "share", "Metrics: each example scored before it is learnt")


def plot_certificate(source: Run | Audit, ax: Axes | None = None, *, hindsight: int | None = None) -> Axes:
    """What a linear model could have lost at least, against its norm; with the learner's loss.

    Where the curve lies above the learner's loss, no model of that norm could have matched it. Of an audit also the
    best in hindsight, at `hindsight` many radii (by default 7 where that takes a moment, else at the audit's own). The
    curve is Σℓ less the certificate, D1 to D4 of docs/theory.md.

    `source` is what to draw, and `ax` the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> run = rue.learn([[1.0], [-1.0], [2.0]], [1, -1, 1], learner=rue.OGD())
    >>> rue.plot_certificate(run).get_xscale()
    'log'
    """
    run = _run_of(source, "plot_certificate")
    _rounds_of(run)
    panel, evidence = Panel(ax), run.evidence
    audited = source if isinstance(source, Audit) else None
    first = run.certificate() if audited is None else audited.certificate
    units, scales = first.units, run.learner.scales_in_places()
    middle = _radius(run, first.radius, units)
    ends = [middle / 100.0, 10.0 * middle]
    if evidence.pool is not None:
        ends += [float(evidence.pool.radii.min()) / 10.0, 3.0 * float(evidence.pool.radii.max())]
    slow = evidence.digest is not None and evidence.loss.smooth is None  # a program with kinks for every radius
    radii = np.geomspace(min(ends), max(ends), FEW if slow else COARSE)
    certificates = [evidence.certificate(Ball(float(U)), units, scales) for U in radii]
    loss, alone = first.loss_total, np.array([c.loss_total - c.alone for c in certificates])
    best = np.array([c.comparator_loss_at_least for c in certificates])
    if evidence.loss.nonnegative:
        alone = np.maximum(alone, 0.0)
    name = "D2" if evidence.lambda_ else "D1"
    panel.line(radii[[0, -1]], [loss, loss], "this learner", BLUE, lw=2.2)
    improved = {c.theorem for c in certificates} & {"D3", "D4"}
    nothing = math.nan
    panel.line(radii, alone, f"at least ({name})", RED, end_value=nothing, lw=1.2 if improved else 1.8)
    if improved:
        panel.line(radii, best, f"at least ({max(improved)})", PURPLE, end_value=nothing, lw=1.8)
    panel.ax.fill_between(radii, best, 0.0 if evidence.loss.nonnegative else best.min(), color=GREY, alpha=0.1, lw=0)
    most = max(3.0 * loss, 1e-300) if evidence.loss.nonnegative else math.inf
    if audited is not None:
        _hindsight(panel, audited, radii, hindsight, most)
    units_note = ", of features in units of their largest" if units == "largest" else ""
    panel.powers(f"norm of the model{units_note}", float(radii[0]), float(radii[-1]))
    if evidence.loss.nonnegative:
        panel.ax.set_ylim(0.0, 1.1 * min(most, max(float(y.max()) for y in panel.drawn) or 1.0))
    kind = "total loss" if not evidence.lambda_ else "total loss, regulariser included"
    return panel.finish(f"{kind} ({_called(run.learner.loss)})", "What linear models lost at least")


def _hindsight(panel: Panel, audit: Audit, radii: Any, count: int | None, most: float) -> None:
    """Dots for the best in hindsight at `count` radii and at the audit's own, as far as they lose at most `most`."""
    curves, own = AuditCurves(audit), audit.certificate.radius
    if audit.domain.whole_space:  # the best of all is the best of its size
        own = float(np.linalg.norm(audit.comparator.point))
    at, values = np.empty(0), np.empty(0)
    if count := (7 if curves.quick else 0) if count is None else count:
        at = np.geomspace(radii[0], radii[-1], count + 2)[1:-1]
        values = curves.path(at)
    if own is not None and radii[0] <= own <= radii[-1]:
        at, values = np.append(at, own), np.append(values, audit.comparator.value)
    order = [i for i in np.argsort(at) if values[i] <= most]
    panel.dots(at[order], values[order], "best in hindsight", GREEN)


def _radius(run: Run, radius: float | None, units: str) -> float:
    """The radius in the middle of the picture."""
    if radius is not None and radius > 0.0:
        return radius
    norm = norm_of_point(run.learner, units == "largest")
    return norm if 0.0 < norm < math.inf else 1.0


# Several in a row.


def draw_run(run: Run, path: Any = None) -> Figure:
    """Risk and certificate, and below them the loss by window; of more than two classes risk and mistakes."""
    second = plot_mistakes if run.labels.task == "multiclass" else plot_certificate
    if len(run.windows) < STRIP:
        return _drawn([plot_risk, second], run, _headline(run), path)
    if path is not None:
        require_picture(path)
    figure = new_figure(2)
    figure.set_size_inches(11.2, 6.2)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.75, 1.0])
    above, below = parts
    for draw, ax in zip((plot_risk, second), above.subplots(1, 2), strict=True):
        draw(run, ax)
    plot_windows(run, below.subplots())
    figure.suptitle(_headline(run), fontsize=9.0, color=GREY, x=0.01, ha="left")
    if path is not None:
        save(figure, path)
    return figure


def draw_audit(audit: Audit, path: Any = None) -> Figure:
    """Regret, risk, certificate, and mistakes of classes."""
    wanted: list[Any] = [plot_regret, plot_risk, plot_certificate] + [plot_mistakes] * (audit.run.mistakes is not None)
    return _drawn(wanted, audit, _headline(audit.run), path)


def draw_game(game: Game, path: Any = None) -> Figure:
    """Regret, and mistakes where the opponent is out for them."""
    wanted: list[Any] = [plot_regret] + [plot_mistakes] * (
        game.forced is not None and game.forced.quantity == "mistakes"
    )
    return _drawn(wanted, game, "", path)


def _drawn(wanted: list[Any], source: Any, title: str, path: Any) -> Figure:
    """A figure with one panel for each of the functions `wanted`, saved if there is a path."""
    if path is not None:
        require_picture(path)
    figure = new_figure(len(wanted))
    rows = 1 + len(wanted) // 4
    axes = figure.subplots(rows, math.ceil(len(wanted) / rows), squeeze=False)
    for draw, ax in zip(wanted, axes.flat, strict=True):
        draw(source, ax)
    if title:
        figure.suptitle(title, fontsize=9.0, color=GREY, x=0.01, ha="left")
    if path is not None:
        save(figure, path)
    return figure


# Words.


def _headline(run: Run) -> str:
    return f"{run.learner!r}, {run.examples:,} example{'s' * (run.examples != 1)}"


def _run_of(source: Any, who: str) -> Run:
    """The run behind a run or an audit; `who` asks."""
    if isinstance(source, Audit):
        return source.run
    if not isinstance(source, Run):
        raise SettingsError(f"{who}: give a run or an audit, not {type(source).__name__}.")
    return source


def _rounds_of(run: Run) -> Rounds:
    rounds = Rounds.of(run)
    if not rounds.T:
        raise DataError("there is nothing to draw: the run learnt no example.")
    return rounds


def _called(loss: Any) -> str:
    """A loss's name in words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(loss).__name__.removesuffix("Loss")).lower()


def _models(K: Domain) -> str:
    if K.centred_radius is not None:
        return f"models of norm ≤ {K.centred_radius:.4g}"
    return "all linear models" if K.whole_space else f"models in {K!r}"

"""Pictures of races: of the members of a mixture, and of learners on one stream."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import SettingsError
from rue.learners.mixture.standing import Member, Standing, standing
from rue.models.file import Model
from rue.pictures.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SIZE, Panel, new_figure, require_picture, save
from rue.race.entries import Race
from rue.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_members", "draw_race", "plot_members", "plot_race", "plot_shares"]

COLOURS = (BLUE, GREEN, ORANGE, PURPLE, RED, "#56B4E9")
"""Of the kinds of members, and of the learners of a race."""


def plot_members(run: Run | Model, ax: Axes | None = None) -> Axes:
    """What each member of a mixture has lost more than the mixture, against t.

    B15 bounds how far below 0 it can be (B12 without fixed share). The scale is linear as far as that bound, and
    logarithmic beyond. The best of each kind at the end is named.

    `ax` are the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> run = rue.learn([[1.0], [-1.0], [2.0]], [1, -1, 1])
    >>> rue.plot_members(run).get_xlabel()
    'rounds t'
    """
    mixture, t, losses, _ = _course_of(run)
    panel = Panel(ax)
    ahead = losses - np.array([*run.course.loss, mixture.loss])[:, None]
    for kind, own in enumerate(_kinds(mixture)):
        colour, running = COLOURS[kind % len(COLOURS)], mixture.members[own[0]].running
        for i in own:
            panel.ax.plot(t, ahead[:, i], color=colour, lw=0.6, alpha=0.35 if running else 0.2)
        if running:
            best = min(own, key=lambda i: mixture.members[i].loss)
            panel.line(t, ahead[:, best], _short(mixture.members[best]), colour, lw=1.8)
    within = mixture.price_at_most if mixture.price_at_most > 0.0 else 1.0
    panel.ax.axhline(0.0, color="black", lw=1.2, zorder=3)
    panel.ends.append((0.0, "the mixture  0", "black"))
    if mixture.price_at_most > 0.0:
        panel.line([1, max(int(t[-1]), 2)], [-within] * 2, f"{mixture.theorem}: never below", GREY, ls="--", lw=1.2)
    panel.rounds(int(t[-1]))
    _symmetric(panel.ax, within, float(np.nanmax(ahead, initial=within)))
    return panel.finish("loss more than the mixture's", "The race of the members")


def plot_shares(run: Run | Model, ax: Axes | None = None) -> Axes:
    """How the weight of a mixture is shared by the kinds of its members, against t."""
    mixture, t, _, weights = _course_of(run)
    panel, high = Panel(ax), np.zeros(t.size)
    for kind, own in enumerate(_kinds(mixture)):
        share, low, colour = weights[:, own].sum(axis=1), high, COLOURS[kind % len(COLOURS)]
        high = low + share
        panel.ax.fill_between(t, low, high, color=colour, alpha=0.75, lw=0)
        if share[-1] >= 0.005:
            name = _short(mixture.members[own[0]], rate=False)
            panel.ends.append((0.5 * float(low[-1] + high[-1]), f"{name}  {share[-1]:.0%}", colour))
    panel.rounds(int(t[-1]))
    panel.ax.set_ylim(0.0, 1.0)
    return panel.finish("share of the weight", "Who carries the weight")


def plot_race(race: Race, ax: Axes | None = None) -> Axes:
    """The risk of every learner against t, with the best constant's and that of saying the last label again.

    `ax` are the matplotlib axes to draw it on; new ones if it is not given.

    >>> import rue
    >>> race = rue.race([[1.0], [-1.0], [2.0]], [1, -1, 1], learners=["ogd"])
    >>> rue.plot_race(race).get_xlabel()
    'rounds t'
    """
    if not isinstance(race, Race):
        raise SettingsError(f"plot_race: give what rue.race(X, y) returns, not {type(race).__name__}.")
    panel, late = Panel(ax), []
    for i, entry in enumerate(race.entries):
        t = [*(at for at, _ in entry.course), race.examples]
        risks = [*(risk for _, risk in entry.course), math.nan if entry.risk is None else entry.risk]
        colour, dashes = COLOURS[i % len(COLOURS)], "-" if i < len(COLOURS) else "--"
        end_value = math.nan if entry.risk is None else entry.risk
        name = entry.name if entry.risk is not None else f"{entry.name}, broken off"
        panel.line(t, risks, name, colour, ls=dashes, end_value=end_value, lw=2.4 if i == 0 else 1.5, zorder=10 - i)
        late += [risk for at, risk in zip(t, risks, strict=True) if at >= race.examples**0.5 and math.isfinite(risk)]
    floor = [race.best_constant / race.mass, race.no_change / race.mass] if race.mass else []
    low = min([*late, *floor], default=0.0)
    high = min(max([*late, *floor], default=1.0), low + 4.0 * ((floor or [1.0])[0] - low or 1.0))
    for value, name in zip(floor, ("best constant", "last label again"), strict=False):
        if value <= high:
            panel.line([1, max(race.examples, 2)], [value] * 2, name, GREY, ls=":" if "last" in name else "--", lw=1.2)
    panel.rounds(race.examples)
    room = 0.06 * (high - low) or 0.1
    panel.ax.set_ylim(low - room, high + room)
    loss = "log" if race.task == "multiclass" else type(race.loss).__name__.lower()
    return panel.finish(f"mean {loss} loss so far", "The race: each example scored before it is learnt")


def draw_race(race: Race, path: Any = None) -> Figure:
    """The one picture of a race."""
    if path is not None:
        require_picture(path)
    figure = new_figure(1)
    plot_race(race, figure.subplots())
    if path is not None:
        save(figure, path)
    return figure


def _kinds(mixture: Standing) -> list[list[int]]:
    """The members' numbers, kind by kind."""
    names = dict.fromkeys(member.kind for member in mixture.members)
    return [[i for i, member in enumerate(mixture.members) if member.kind == name] for name in names]


def _short(member: Member, rate: bool = True) -> str:
    name = member.kind if len(member.kind) <= 40 else member.kind[:39] + "…"
    return f"{name}, rate {member.rate:.2g}" if rate and member.rate is not None else name


def _course_of(run: Any) -> tuple[Standing, Any, Any, Any]:
    """Of a mixture how it stands, then the rounds looked at, the losses and the weights, all with the last ones."""
    mixture = standing(run.learner) if isinstance(run, Run | Model) else None
    if mixture is None:
        raise SettingsError(
            "plot_members: give the run or the model of a mixture, such as rue.learn(X, y): others have no members."
        )
    if not run.learner.t:
        raise SettingsError("there is nothing to draw: no example was learnt.")
    course = run.course
    t = np.array([*course.t, run.learner.t])
    now = [member.loss if member.running else np.nan for member in mixture.members]
    losses = np.array([*course.losses, now])
    return mixture, t, losses, np.array([*course.weights, [member.weight for member in mixture.members]])


def _symmetric(ax: Any, within: float, highest: float) -> None:
    """A vertical axis that is linear as far as `within` on both sides of 0, and logarithmic up to `highest`."""
    from matplotlib.ticker import FuncFormatter, NullLocator, SymmetricalLogLocator

    from rue.pictures.figures import number

    ax.set_yscale("symlog", linthresh=within, linscale=1.0)
    ax.set_ylim(-1.5 * within, 1.5 * highest)
    ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=within))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def draw_members(run: Run | Model, path: Any = None) -> Figure:
    """The race of the members, and who carries the weight."""
    if path is not None:
        require_picture(path)
    figure = new_figure(2)
    for draw, ax in zip((plot_members, plot_shares), figure.subplots(1, 2), strict=True):
        draw(run, ax)
    figure.suptitle(f"{run.learner!r}, {run.learner.t:,} examples", fontsize=SIZE + 0.5, color=GREY, x=0.01, ha="left")
    if path is not None:
        save(figure, path)
    return figure

"""Pictures that a lecturer draws: losses of the margin, a projection, subgradients at a kink, paths on a disc.

Each is one call; it draws on the axes given, or on new ones, and returns them.

>>> import rue
>>> rue.plot_losses().get_xlabel()
'margin z = y·p'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.games import Game
from rue.losses import Loss
from rue.pictures.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SIZE, Panel, number
from rue.registry import make

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_losses", "plot_paths", "plot_projection", "plot_subgradients"]

COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, GREY)
MARGIN_LOSSES = ("zero-one", "hinge", "perceptron", "logistic", "square")


def plot_losses(
    losses: Iterable[Any] = MARGIN_LOSSES, ax: Axes | None = None, *, slopes: bool = False, reach: float = 2.5
) -> Axes:
    """Losses against the margin z = y·p: how the convex ones lie about the 0-1 loss; with `slopes` their slopes in z.

    Those of classes at the label +1, those of numbers as a function of z at the label 1, as (1 − z)². The hinge, and
    logistic loss divided by ln 2, lie above the 0-1 loss everywhere; the Perceptron's loss does not (docs/theory.md,
    section 2). A slope jumps at a kink, and is not drawn for what is not convex. `losses` are losses or specs, drawn
    for −`reach` ≤ z ≤ `reach` on `ax`, or on a new figure.

    >>> import rue
    >>> [line.get_label() for line in rue.plot_losses(["hinge", "logistic"]).get_lines()]
    ['hinge', 'logistic']
    """
    panel, z = Panel(ax), np.linspace(-reach, reach, 1001)
    for i, (name, colour) in enumerate(zip(losses, _cycle(), strict=False)):
        loss = make("loss", name)
        if not isinstance(loss, Loss) or not loss.accepts(1.0):
            raise SettingsError(f"plot_losses: give losses that take the label 1, or their specs, not {shown(name)}.")
        if slopes and not loss.convex:
            continue
        f = loss.slope if slopes else loss.value
        _pieces(panel, z, np.array([f(float(p), 1.0) for p in z]), _words(name), colour, max(1.4, 3.8 - 0.6 * i))
    panel.ax.set_xlim(-reach, reach)
    panel.ax.set_xlabel("margin z = y·p", fontsize=SIZE + 0.5)
    if slopes:
        panel.ax.set_ylim(-2.6, 1.1)
        return panel.finish("slope in z", "Slopes of losses")
    panel.ax.set_ylim(-0.15, 1.0 + reach)
    return panel.finish("loss", "Losses of the margin")


def _cycle() -> Iterable[str]:
    while True:
        yield from COLOURS


def _words(name: Any) -> str:
    return {"zero-one": "0-1"}.get(name, name) if isinstance(name, str) else repr(name)


def _pieces(panel: Panel, x: Any, y: Any, label: str, colour: str, width: float) -> None:
    """A curve, with a gap where it jumps; its name stands at the right end. Wider where later ones may lie upon it."""
    jumps = np.flatnonzero(np.abs(np.diff(y)) > 0.2) + 1
    for i, (a, b) in enumerate(zip(np.split(x, jumps), np.split(y, jumps), strict=True)):
        panel.ax.plot(a, b, color=colour, lw=width, label=label if i == 0 else "_" + label)
    panel.ends.append((float(y[-1]), label, colour))


def plot_subgradients(
    loss: Any = "hinge", p: float = 1.0, ax: Axes | None = None, *, y: float = 1.0, lines: int = 5
) -> Axes:
    """A loss about the prediction p, and the lines of all its subgradients there: a tangent, or a fan at a kink.

    Every line ℓ(p) + g·(q − p) with g between the slopes of both sides touches the loss at p and lies below it
    elsewhere (docs/theory.md, V5). The one drawn heavily is that which is learnt with. `ax` is where to draw.

    >>> import rue
    >>> len(rue.plot_subgradients("absolute", 0.0, y=0.0).get_lines())
    8
    """
    loss = make("loss", loss)
    if not isinstance(loss, Loss) or not loss.convex or not loss.accepts(y):
        raise SettingsError(f"plot_subgradients: give a convex loss that takes the label {y:g}, not {shown(loss)}.")
    panel, q = Panel(ax), p + np.linspace(-2.0, 2.0, 801)
    left, right = loss.subdifferential(p, y)
    here, chosen = loss.value(p, y), loss.slope(p, y)
    slopes = np.linspace(left, right, lines if right > left else 1)
    for g in slopes:
        panel.ax.plot(q, here + g * (q - p), color=GREY, lw=0.9, zorder=1, label=f"g = {number(float(g))}")
    values = np.array([loss.value(float(x), y) for x in q])
    panel.ax.plot(q, values, color=BLUE, lw=2.2, label="loss")
    panel.ax.plot(q, here + chosen * (q - p), color=RED, lw=1.6, label="chosen", zorder=3)
    panel.ax.plot([p], [here], "o", color=RED, ms=5, zorder=4)
    panel.ends += [(float(values[-1]), "the loss", BLUE), (here + chosen * 2.0, f"chosen: g = {number(chosen)}", RED)]
    if right > left:
        panel.ends += [(here + g * 2.0, f"g = {number(g)}", GREY) for g in (left, right) if g != chosen]
    room = 0.1 * max(float(values.max() - values.min()), 1.0)
    panel.ax.set_ylim(min(float(values.min()), here) - 6.0 * room, float(values.max()) + room)
    panel.ax.set_xlim(float(q[0]), float(q[-1]))
    panel.ax.set_xlabel("prediction p", fontsize=SIZE + 0.5)
    many = f"∂ℓ = [{number(left)}, {number(right)}]" if right > left else f"∂ℓ = {{{number(left)}}}"
    return panel.finish("loss", f"{type(loss).__name__} at p = {number(p)}: {many}")


def plot_projection(
    domain: Any = "ball:1", w: Any = (1.6, 1.1), ax: Axes | None = None, *, u: Any = (-0.3, 0.6)
) -> Axes:
    """A point w of the plane, its projection Πw onto a convex set, and a point u of the set, to which Πw is nearer.

    That the distance to no u of the set grows, ‖Πw − u‖ ≤ ‖w − u‖, is the step of every proof about projected gradient
    descent; it is so because the angle at Πw is not acute (docs/theory.md, A2). `domain` is the set, `ax` where to
    draw.

    >>> import rue
    >>> rue.plot_projection("simplex", (1.0, 1.5), u=(0.8, 0.2)).get_title(loc="left")
    '‖Πw − u‖ = 0.7778 ≤ 1.315 = ‖w − u‖'
    """
    K = make("domain", domain)
    if not isinstance(K, Domain) or K.dimension not in (None, 2):
        raise SettingsError(f"plot_projection: give a set of the plane, or its spec, not {shown(domain)}.")
    w, u = (np.asarray(v, dtype=np.float64) for v in (w, u))
    if w.shape != (2,) or u.shape != (2,):
        raise SettingsError("plot_projection: w and u are points of the plane, two numbers each.")
    if not K.contains(u):
        raise SettingsError(f"plot_projection: u must lie in {K!r}, and {shown(u.tolist())} does not.")
    there = _projected(K, w)
    panel = Panel(ax)
    reach = 1.25 * max(1.0, float(np.abs(np.array([w, u, there])).max()))
    _fill(panel.ax, K, reach)
    for a, b, colour, style in ((w, there, RED, "-"), (w, u, GREY, "--"), (there, u, BLUE, "-")):
        panel.ax.plot(*np.array([a, b]).T, color=colour, lw=1.6, ls=style, zorder=3)
    for point, name, colour, below in ((w, "w", RED, False), (there, "Πw", BLUE, True), (u, "u", GREEN, True)):
        _dot(panel.ax, point, name, colour, below)
    before, after = (number(float(np.linalg.norm(v - u))) for v in (w, there))
    _plane(panel.ax, reach)
    return panel.finish("", f"‖Πw − u‖ = {after} ≤ {before} = ‖w − u‖")


def plot_paths(games: Game | Mapping[str, Game], ax: Axes | None = None, *, last: int | None = None) -> Axes:
    """The points that learners played in the plane, one path for each game, on the learner's set.

    `games` is a game, or several by name, drawn on `ax`; `last` shows no more than so many rounds from the end.
    Against the orthogonal opponent every learner on a disc is driven round it: it stands where the round is steep
    (docs/theory.md, C2).

    >>> import rue
    >>> game = rue.play(rue.OGD(domain="ball:1"), rue.OrthogonalAdversary(d=2), rounds=50)
    >>> rue.plot_paths({"OGD": game}).get_aspect()
    1.0
    """
    named = {"": games} if isinstance(games, Game) else dict(games)
    if not named or any(not isinstance(one, Game) or one.points.shape[1] != 2 for one in named.values()):
        raise SettingsError("plot_paths: give games of the plane, by name: learners with a domain of two coordinates.")
    panel = Panel(ax)
    paths = {name: one.points[-(last or one.T) :] for name, one in named.items()}
    reach = 1.15 * max(1e-9, *(float(np.abs(path).max()) for path in paths.values()))
    domain = next(iter(named.values())).domain
    size = domain.diameter(2) / 2.0 if domain.bounded else reach
    reach = max(reach, 1.1 * size) if math.isfinite(size) else reach
    _fill(panel.ax, domain, reach)
    for (name, path), colour in zip(paths.items(), _cycle(), strict=False):
        panel.ax.plot(*path.T, "-", color=colour, lw=0.9, alpha=0.75, label=name or "points played", zorder=3)
        panel.ax.plot(*path[:1].T, "o", mfc="white", mec=colour, ms=5, zorder=4)
        panel.ax.plot(*path[-1:].T, "o", color=colour, ms=5, zorder=5)
    if any(named):
        panel.ax.legend(fontsize=SIZE, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _plane(panel.ax, reach)
    against = {repr(one.opponent) for one in named.values()}
    return panel.finish("", f"Points played against {against.pop() if len(against) == 1 else 'several opponents'}")


def _fill(ax: Axes, K: Domain, reach: float) -> None:
    """The part of a set of the plane that is seen: a far circle is projected onto its border, or lies in it."""
    angles = np.linspace(0.0, 2.0 * math.pi, 721)
    border = np.array([_projected(K, 4.0 * reach * np.array([math.cos(a), math.sin(a)])) for a in angles])
    ax.fill(*border.T, facecolor="#e8eef6", edgecolor=GREY, lw=1.2, zorder=0)


def _projected(K: Domain, w: Any) -> Any:
    """Πw, interpreted: a picture is not worth the seconds that compiling takes."""
    point = np.array(w, dtype=np.float64)
    K.onto(point, np.empty((K.scratch_rows, 2)))
    return point


def _dot(ax: Axes, point: Any, name: str, colour: str, below: bool) -> None:
    """A point and its name, above or below it."""
    ax.plot(*point, "o", color=colour, ms=6, zorder=5)
    offset = (-3, -16) if below else (7, 5)
    ax.annotate(name, point, xytext=offset, textcoords="offset points", fontsize=SIZE + 2.5, color=colour, zorder=6)


def _plane(ax: Axes, reach: float) -> None:
    """Equal axes about 0."""
    ax.set_aspect("equal")
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)

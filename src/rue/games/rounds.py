"""`play`: a learner against an opponent, round by round (docs/theory.md, Q5).

A convex round moves a learner exactly as a linear one does: a subgradient g at w_t is the example x = g, y = 1 under
the linear loss. So every learner plays every game for which its domain makes sense.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from rue.errors import DataError, SettingsError, shown
from rue.games.curved import curvature_of
from rue.games.game import Game
from rue.games.opponents import ExampleRound, LinearRound, Move, Opponent, Setting
from rue.games.players import Native, Player, player_of
from rue.learners import Learner
from rue.losses import Linear, Loss
from rue.registry import make

__all__ = ["enter", "play"]

_LOTS = 1
"""Beside the seed, so that a randomised learner and its opponent draw different lots."""
_CHECKED = 50
"""In so many rounds the subgradient inequality is checked, at w_1, at the point played before and at one drawn."""


def play(
    learner: Any,
    opponent: Opponent | str,
    rounds: int | None = None,
    *,
    seed: int = 0,
    domain: Any = None,
    loss: Any = None,
) -> Game:
    """Let a learner and an opponent play; the opponent sees each point before it chooses that round's loss.

    Both may be specs. The learner given is never changed. One of rue's plays afresh with its settings, without an
    intercept and with the opponent's losses; the step 'theory' takes its G from the opponent. The same seed gives the
    same game.

    A learner of your own is any object with `predict(x)` and `update(x, y)`; or with `point` (an attribute or a method)
    and `update(part)`, which is given the round, with its `value(w)` and `subgradient(w)`; or a function of the past:
    `f(past)` returns the point, past being the rounds so far, and `f(past, x)` the prediction, past being pairs (x, y).
    An object's `begin(setting)`, if it has one, comes first: `setting` has the `domain`, `d`, the `loss`, the number of
    `rounds`, and `rng`, from which randomised ones draw; a function asks for the argument `rng`. `domain` and `loss`
    are for learners of your own that do not have them: the set of the points, and what predictions are scored by. The
    opponent sees what was drawn in the round; `play_many` estimates expectations.

    >>> from rue.games import OrthogonalAdversary
    >>> from rue.learners import OGD
    >>> game = play(OGD(domain="ball:1"), OrthogonalAdversary(d=5), rounds=10_000)
    >>> round(float(game.forced), 6), game.regret >= float(game.forced)
    (100.0, True)
    >>> def nearest(past, x):  # the label of the nearest example so far: no linear model, and it errs all the same
    ...     return min(past, key=lambda one: abs(one[0] - x).sum())[1] if past else 1.0
    >>> play(nearest, "margin:25").mistakes
    25

    docs/theory.md, Q5 and section 5.
    """
    facing = make("opponent", opponent)
    if not isinstance(facing, Opponent):
        given = shown(opponent)
        raise SettingsError(f"play: opponent must be an opponent such as rue.FlipFlop(), or a spec, not {given}.")
    T = facing.usual_rounds if rounds is None else rounds
    if isinstance(T, bool) or not isinstance(T, int | np.integer) or T < 1:
        raise SettingsError(f"play: rounds must be a whole number, at least 1, not {shown(rounds)}.")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise SettingsError(f"play: seed must be a whole number ≥ 0, not {shown(seed)}.")
    player = _seated(make("learner", learner), facing, domain, loss)
    setting = Setting(player.domain, player.d, player.loss, int(T), np.random.default_rng(seed))
    facing.refuse(setting)
    player.begin(dataclasses.replace(setting, rng=np.random.default_rng([int(seed), _LOTS])))
    score = _Score(player, facing, setting)
    reveal, predict = facing.begin(setting), player.predict
    for t in range(int(T)):
        score.points[t] = w = player.point(t + 1)
        score.enter(t, score.points[t], reveal(Move(t + 1, w, predict)))
    return score.game()


def _seated(learner: Any, opponent: Opponent, domain: Any, loss: Any) -> Player:
    """The learner as a player; one of rue's has its domain and its loss already."""
    if not isinstance(learner, Learner):
        return player_of(learner, opponent, domain, loss)
    for name, value in (("domain", domain), ("loss", loss)):
        if value is not None:
            raise SettingsError(
                f"play: {name}= is for learners of your own; {learner.algorithm.name} is built with its {name}."
            )
    return Native(enter(learner, opponent))


def enter(learner: Learner, opponent: Opponent) -> Learner:
    """A fresh learner with the settings of the one given, in the opponent's coordinates and with its losses."""
    algorithm, domain = learner.algorithm, learner.domain
    d = opponent.d if opponent.d is not None else (domain.dimension or 1)
    own, wanted = algorithm.loss, opponent.loss
    against = f"{algorithm.name} against {opponent!r}"
    if domain.dimension not in (None, d):
        raise SettingsError(
            f"{against}: {domain!r} has {domain.dimension} coordinates and the game {d}: choose the same number."
        )
    if domain.dimension is None and learner.d not in (0, d):
        raise SettingsError(f"{against}: the learner was built for {learner.d} features and the game has {d}.")
    loss = Linear() if wanted is None else (own if wanted == "own" else make("loss", wanted))
    if not isinstance(loss, Loss):
        raise SettingsError(f"{opponent!r}: loss must be a rue.Loss, a spec, 'own' or None, not {shown(wanted)}.")
    changes: dict[str, Any] = {}
    if loss != own:
        if algorithm.own_loss or algorithm.regulariser > 0.0:
            what = (
                f"{algorithm.name} is made of its own loss"
                if algorithm.own_loss
                else "the regulariser belongs to the loss"
            )
            raise SettingsError(
                f"{against}: {what}, and this opponent brings {loss!r}: take OGD, AdaptiveOGD, AdaGrad or "
                "FollowTheLeader without one."
            )
        changes["loss"] = loss
    if wanted is None and algorithm.rescales:
        raise SettingsError(
            f"{against}: with scale='largest' the learner looks at x before it plays, and here a round is known only "
            "afterwards: take scale='raw'."
        )
    step, G = getattr(algorithm, "step", None), opponent.lipschitz_on(domain)
    if G is not None and step is not None and step.rule in ("theory", "horizon") and not (step.G or step.X):
        changes["step"] = dataclasses.replace(step, G=G)
    if changes:
        if not dataclasses.is_dataclass(algorithm):
            raise SettingsError(f"{against}: the algorithm must be a rue.parameter, to be given the game's loss.")
        algorithm = dataclasses.replace(algorithm, **changes)
    return Learner(algorithm.without_intercept(), intercept=False, d=d)


class _Score:
    """The record of a game while it is played, from which the `Game` is made."""

    def __init__(self, player: Player, opponent: Opponent, setting: Setting) -> None:
        T, d = setting.rounds, setting.d
        self.player, self.opponent, self.d = player, opponent, d
        self.loss: Any = None if opponent.loss is None else setting.loss
        self.points, self.gradients = np.empty((T, d)), np.empty((T, d))
        self.losses, self.products = np.empty(T), np.empty(T)
        self.predictions, self.labels = np.empty(T), np.empty(T)
        self.rounds: list[Any] = []

    def enter(self, t: int, w: Any, part: Any) -> None:
        """Score the round against the point, and let the learner learn it."""
        if self.loss is not None:
            self.example(t, part)
        elif isinstance(part, LinearRound):
            self.gradients[t] = self.vector(t, part.g, "gradient")
            self.losses[t] = self.products[t] = self.paid(t, self.gradients[t] @ w)
            self.rounds.append(LinearRound(self.gradients[t]))
            self.player.learn_round(self.rounds[-1], self.gradients[t])
        else:
            self.convex(t, w, part)

    def example(self, t: int, part: Any) -> None:
        """A round that is an example: scored by the loss of its prediction."""
        if not isinstance(part, ExampleRound):
            raise DataError(
                f"round {t + 1}: {self.opponent!r} names a loss, so it must reveal ExampleRounds, not {shown(part)}."
            )
        part = ExampleRound(self.vector(t, part.x, "example").copy(), float(part.y))
        p = self.player.predict(part.x)
        slope = self.loss.slope(p, part.y)
        self.predictions[t], self.labels[t] = p, part.y
        self.losses[t], self.products[t] = self.paid(t, self.loss.value(p, part.y)), slope * p
        self.gradients[t] = slope * part.x
        self.rounds.append(part)
        self.player.learn_example(part.x, part.y)

    def convex(self, t: int, w: Any, part: Any) -> None:
        """A round that is any convex function: the learner learns its linearisation at the point played."""
        if not (callable(getattr(part, "value", None)) and callable(getattr(part, "subgradient", None))):
            raise DataError(
                f"round {t + 1}: {self.opponent!r} must reveal a round with value(w) and subgradient(w), not "
                f"{shown(part)}."
            )
        if self.player.leads:
            raise SettingsError(
                f"FollowTheLeader against {self.opponent!r}: these rounds have no leader in closed form; linear losses "
                "and squares of one number have. OGD plays any convex round."
            )
        self.losses[t] = self.paid(t, part.value(w))
        self.gradients[t] = self.vector(t, part.subgradient(w), "subgradient")
        self.products[t] = self.gradients[t] @ w
        if t < _CHECKED:
            self.require_subgradient(t, w, part)
        self.rounds.append(part)
        self.player.learn_round(part, self.gradients[t])

    def require_subgradient(self, t: int, w: Any, part: Any) -> None:
        """Refuse a subgradient that is none: ℓ(u) ≥ ℓ(w) + ⟨g, u − w⟩ + (μ/2)‖u − w‖² at other points u of the set."""
        mu = curvature_of(t + 1, part) or 0.0
        for u in (self.points[0], self.points[max(t - 1, 0)], self.elsewhere(t, w)):
            there = float(part.value(u))
            line = float(self.losses[t] + self.gradients[t] @ (u - w) + 0.5 * mu * (u - w) @ (u - w))
            if there < line - 1e-7 * (1.0 + abs(line) + abs(self.losses[t])):
                below, wanted = ("the line", "convex") if mu == 0.0 else ("the parabola", "so strongly convex")
                raise DataError(
                    f"round {t + 1}: {self.opponent!r} gives a subgradient that is none: at {shown(u.tolist())} the "
                    f"loss is {there:g}, below {below} {line:g} through the point played. Check subgradient(w), and "
                    f"that the loss is {wanted}."
                )

    def elsewhere(self, t: int, w: Any) -> Any:
        """A point of the set near w, the same in every such game: a learner that never moves shows no other."""
        K, u = self.player.domain, w + np.random.default_rng(t).normal(size=self.d)
        K.onto(u, np.empty((K.scratch_rows, self.d)))
        return u

    def paid(self, t: int, value: Any) -> float:
        """What a round costs, refused if it is no finite number."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(
                f"round {t + 1}: the loss of {self.opponent!r} at the point played must be a finite number, "
                f"not {shown(value)}."
            )
        return number

    def vector(self, t: int, v: Any, what: str) -> Any:
        """An opponent's vector as an array, refused if it is not one of d finite numbers."""
        try:
            array = np.asarray(v, dtype=np.float64)
        except (TypeError, ValueError) as error:
            why = f"must be numbers, not {shown(v)}"
            raise DataError(f"round {t + 1}: the {what} of {self.opponent!r} {why}.") from error
        if array.shape != (self.d,) or not np.isfinite(array).all():
            why = f"must be {self.d} finite numbers, not {shown(array.tolist())}"
            raise DataError(f"round {t + 1}: the {what} of {self.opponent!r} {why}.")
        return array

    def game(self) -> Game:
        examples = self.loss is not None
        return Game(
            self.player.learner,
            self.opponent,
            self.loss,
            tuple(self.rounds),
            self.points,
            self.losses,
            self.gradients,
            self.products,
            self.predictions if examples else None,
            self.labels if examples else None,
            self.player,
        )

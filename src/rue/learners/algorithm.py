"""What an algorithm is: the frozen description of a learner, and what theorems may say of it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

from rue.declared import Declared

__all__ = ["Algorithm", "FrozenWeights"]


class FrozenWeights(NamedTuple):
    """Weights chosen by how well frozen copies did (`rue.learners.frozen`)."""

    point: Any
    """What predicts with them."""
    risk: float
    """What such copies lost on average, left alone for as long as they had learnt."""
    range: tuple[float, float]
    """What predictions are clipped to."""


class Algorithm(Declared):
    """What makes one learner differ from another: its settings, and how to start in any number of coordinates.

    A subclass is a parameter with at least the fields `name`, `loss` and `domain`. It refuses nonsense in
    `__post_init__`, and `start` makes what learns: a compiled rule, which never changes, and a point, which does.

    Facts belong to the class that declares them: a subclass that replaces a method begins again without them
    (`rue.declared`), so that no theorem about gradient descent is claimed of something else.
    """

    FACTS = frozenset(["family"])

    family: ClassVar[Literal["", "descent", "diagonal", "leader"]] = ""
    """Which algorithm of docs/theory.md it is: gradient descent (A1 to A6, A8), AdaGrad (A10), the leader (A7)."""

    name: Any
    loss: Any
    domain: Any

    @property
    def averaging(self) -> bool:
        """Whether it averages the points it plays."""
        return False

    @property
    def regulariser(self) -> float:
        """λ, where each round's loss has (λ/2)‖w‖² added."""
        return 0.0

    @property
    def own_loss(self) -> bool:
        """Whether it is what it is because of its loss, as the Perceptron is, and cannot be given another."""
        return False

    @property
    def mixes(self) -> bool:
        """Whether it mixes the predictions of members; then `member_names` and `bytes_per_feature` say more of them."""
        return False

    @property
    def proves_more(self) -> bool:
        """Whether, without being asked, its runs add up all that proves much and costs little (docs/decisions/0023)."""
        return False

    @property
    def rescales(self) -> bool:
        """Whether it looks at the features of a round before it plays, to measure them by the largest so far."""
        return False

    @property
    def wide(self) -> int | None:
        """From how many features on only those that occur get a place; None where every coordinate needs one."""
        return None

    @property
    def bytes_per_coordinate(self) -> int:
        """The memory that a coordinate takes."""
        raise NotImplementedError

    def step_in(self, size: int) -> Any:
        """The concrete step in so many coordinates; None where one number does not say how far a round moves."""
        return None

    def round_weights(self, weights: Any, t: Any) -> Any:
        """α_t: how much each round counts, from the examples' weights and the numbers of the rounds."""
        return weights

    def coordinate_squares(self, point: Any) -> Any:
        """Σg_j² of each coordinate over the rounds so far, as a copy; None where it has no such sums."""
        return None

    @property
    def tries_frozen(self) -> int | None:
        """After how many rounds it has tried frozen copies of its weights; None if it never does."""
        return None

    def frozen_weights(self, point: Any, intercept: bool) -> FrozenWeights | None:
        """What to predict with when learning stops, where that is neither the point nor its average; else None."""
        return None

    def without_intercept(self) -> Algorithm:
        """The same for a learner that has no intercept."""
        return self

    def member_names(self) -> list[str]:
        """What each of its members is called."""
        return []

    def stage_names(self) -> list[str]:
        """What each of its stages is called; none for most."""
        return []

    def bytes_per_feature(self, point: Any) -> int:
        """The memory that a feature takes in all of its members together."""
        return self.bytes_per_coordinate

    def describe(self) -> str:
        """The settings as one would type them."""
        return f"loss={self.loss!r}, domain={self.domain!r}"

    def explain(self, size: int) -> str:
        """What the step is in so many coordinates and why, in words."""
        raise NotImplementedError

    def start(self, size: int, first: Any = None, room: int | None = None) -> tuple[Any, Any]:
        """The compiled rule, and w_1 in `size` coordinates, made by `first(size)` or else by the domain.

        With `room` its arrays have places for so many of them only.
        """
        raise NotImplementedError

"""A loss with something added: a penalty, or the restriction to mistakes."""

from __future__ import annotations

import math
from typing import Any

from rue.compiled import parameter
from rue.domains import Domain
from rue.errors import SettingsError, shown
from rue.registry import make, register

__all__ = ["Indicator", "Regularised", "unregularised"]


@register("part", "regularised")
@parameter
class Regularised:
    """ℓ(p, y) + (λ/2)‖w‖², λ-strongly convex in w; the SVM of the notes is hinge and this.

    A learner splits it: the loss scores predictions, the regulariser shrinks the point. λ is `lambda_`.

    >>> from rue.learners import OGD
    >>> print(OGD(Regularised("hinge", 0.1), "ball:5").explain())
    step 1/(σt) with σ = λ = 0.1, because the rounds are strongly convex (A4, B8)

    docs/theory.md, section 2, A4 and A5.
    """

    loss: Any
    lambda_: float

    def __init_subclass__(cls) -> None:
        raise SettingsError(
            f"{cls.__name__}: Regularised cannot be subclassed, because learners read its loss and λ and nothing else; "
            "write a rue.Loss of your own."
        )

    def __post_init__(self) -> None:
        if not 0.0 < self.lambda_ < math.inf:
            raise SettingsError(f"Regularised: lambda_ must be positive and finite, not {self.lambda_}.")


@register("part", "indicator")
@parameter
class Indicator:
    """0 on a set, +∞ outside: how theory writes a constraint inside a loss. A function of the point, not of p.

    Learners take the set as their `domain` instead, and refuse this with a sentence that says so.

    >>> import rue
    >>> rue.Indicator(rue.Ball(1)).value([0.6, 0.8]), rue.Indicator(rue.Ball(1)).value([1.0, 1.0])
    (0.0, inf)
    """

    domain: Any

    def __post_init__(self) -> None:
        K = make("domain", self.domain)
        if not isinstance(K, Domain):
            raise SettingsError(f"Indicator: domain must be a set such as rue.Ball(1), or a spec, not {shown(K)}.")
        object.__setattr__(self, "domain", K)

    def value(self, w: Any, /) -> float:
        """0 if w lies in the set, up to 1e-9 of its size, and +∞ if not."""
        return 0.0 if self.domain.contains(w) else math.inf


def unregularised(loss: Any) -> tuple[Any, float]:
    """The loss of the prediction, and λ, which is 0 unless the loss or spec given is `Regularised`.

    >>> from rue.losses import Hinge
    >>> unregularised(Regularised("hinge", 0.1)), unregularised(Hinge())
    ((Hinge(), 0.1), (Hinge(), 0.0))
    """
    loss = make("loss", loss)
    return (make("loss", loss.loss), loss.lambda_) if isinstance(loss, Regularised) else (loss, 0.0)

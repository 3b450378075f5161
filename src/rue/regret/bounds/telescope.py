"""The proof of regret bounds on a real run, term by term (docs/theory.md, P1 to P3).

A term is an array with a number for each round, and has a name:

>>> import rue
>>> X, y = rue.census()
>>> proof = rue.trace(rue.OGD("hinge", "ball:2"), X[:200], y[:200], points=True).telescope()
>>> bool((proof["regret"] <= proof["linear"] + 1e-9).all()), proof.formula("linear")
(True, '⟨g_t, w_t − u⟩')
>>> proof.holds, bool(proof.sum("regret") <= proof.bound)
(True, True)
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from rue.errors import DataError, SettingsError, UnknownName, shown
from rue.regret.hindsight.comparator import best_in_hindsight

if TYPE_CHECKING:
    from rue.regret.bounds.trace import Trace

__all__ = ["ROUNDING", "Telescope", "Terms", "require_point", "squares", "traced_descent"]

ROUNDING = 1e-9
"""How much of the numbers compared rounding may take."""
FAR = 1e-6
"""How far, relative to its size, a point may be from Π_K(w_t − η_t g_t) and still count as that."""

TERMS = {
    "eta": "η_t",
    "regret": "ℓ_t(w_t) − ℓ_t(u)",
    "linear": "⟨g_t, w_t − u⟩",
    "sigma": "σ_t",
    "curvature": "(σ_t/2)‖w_t − u‖²",
    "distance": "‖w_t − u‖²",
    "unprojected_distance": "‖w'_{t+1} − u‖²",
    "next_distance": "‖w_{t+1} − u‖²",
    "moved": "‖w'_{t+1} − w_t‖²",
    "unprojected": "(‖w_t − u‖² − ‖w'_{t+1} − u‖² + ‖w'_{t+1} − w_t‖²)/(2η_t)",
    "projected": "(‖w_t − u‖² − ‖w_{t+1} − u‖² + ‖w'_{t+1} − w_t‖²)/(2η_t)",
    "gradient": "(η_t/2)‖g_t‖²",
    "telescoping": "‖w_t − u‖²/(2η_t) − ‖w_{t+1} − u‖²/(2η_{t+1})",
    "common": "½‖w_{t+1} − u‖²(1/η_{t+1} − 1/η_t)",
}
"""The terms of round t; η_{T+1}, which cancels, is η_T."""


class Terms:
    """Terms that are asked for by name."""

    terms: dict[str, Any]
    formulas: dict[str, str]

    @property
    def names(self) -> list[str]:
        """The names of the terms."""
        return list(self.formulas)

    def formula(self, name: str) -> str:
        """What a term is."""
        return self.formulas[self._known(name)]

    def __getitem__(self, name: str) -> Any:
        return self.terms[self._known(name)]

    def running(self, name: str) -> Any:
        """The sums of a term over the rounds so far, one for each round."""
        return np.cumsum(self[name])

    def sum(self, name: str) -> float:
        """The sum of a term over all rounds."""
        return float(self[name].sum())

    def _known(self, name: str) -> str:
        if name not in self.formulas:
            raise UnknownName(f"there is no term {shown(name)}: the terms are {', '.join(self.formulas)}.")
        return name


@dataclasses.dataclass(frozen=True, eq=False)
class Telescope(Terms):
    """The proof of a regret bound for projected gradient descent, on one run and against one u, term by term.

    Each round, ℓ_t(w_t) − ℓ_t(u) ≤ ⟨g_t, w_t − u⟩ − (σ_t/2)‖w_t − u‖² and ⟨g_t, w_t − u⟩ = `unprojected` ≤ `projected`
    = (‖w_t − u‖² − ‖w_{t+1} − u‖²)/(2η_t) + (η_t/2)‖g_t‖². Summed over the rounds the distances telescope, and what is
    left are the `pieces`. `proof[name]` is a term, round by round, `running` and `sum` add it up, `formula` says what
    it is, and `str()` is the whole chain; `terms` has them all. `rue.plot_proof` draws it.

    >>> import rue
    >>> trace = rue.trace(rue.OGD("hinge", "ball:1", "fixed:0.1", intercept=False), [[1.0]] * 3, [1, 1, 1], points=True)
    >>> proof = trace.telescope([1.0])
    >>> proof["distance"].round(2), proof["gradient"].round(3)
    (array([1.  , 0.81, 0.64]), array([0.05, 0.05, 0.05]))
    >>> round(proof.regret, 6), round(proof.sum("projected"), 6), round(proof.bound, 6)
    (2.7, 2.7, 5.15)

    docs/theory.md, P1, P2 and P3.
    """

    u: Any
    """The point compared with."""
    terms: dict[str, Any] = dataclasses.field(repr=False)
    diameter: float
    """D of the domain."""
    last: float
    """‖w_{T+1} − u‖²."""

    formulas = TERMS

    @classmethod
    def of(cls, trace: Trace, u: Any = None) -> Telescope:
        """The terms of a traced run; refused in a sentence where the proof is about something else.

        `trace` has points, and `u` is by default the best point in hindsight, as in `Trace.telescope`.

        >>> import rue
        >>> trace = rue.trace(rue.OGD("hinge", "ball:1", intercept=False), [[1.0]] * 3, [1, 1, 1], points=True)
        >>> Telescope.of(trace, [1.0]).holds
        True
        """
        W, X, etas = traced_descent(trace)
        K = trace.domain
        u = _best(trace, X) if u is None else require_point(u, W.shape[1])
        if not K.contains(u):
            raise SettingsError(f"telescope: u must lie in {K!r}, for then a projection does not move away from it.")
        scale = trace.alphas / trace.weights * trace.slopes
        g = scale[:, None] * X + (trace.alphas * trace.lambda_)[:, None] * W[:-1]
        moved = W[:-1] - etas[:, None] * g
        _require_descent(K, moved, W[1:])
        at_u = np.array([trace.loss.value(float(p), float(y)) for p, y in zip(X @ u, trace.labels, strict=True)])
        ridge = 0.5 * trace.lambda_ * (squares(W[:-1]) - float(u @ u))
        here, between, there = squares(W[:-1] - u), squares(moved - u), squares(W[1:] - u)
        step = squares(moved - W[:-1])
        inverse, following = 1.0 / etas, 1.0 / np.append(etas[1:], etas[-1])
        terms = {
            "eta": etas,
            "regret": trace.alphas * (trace.losses - at_u + ridge),
            "linear": np.einsum("td,td->t", g, W[:-1] - u),
            "sigma": trace.sigmas,
            "curvature": 0.5 * trace.sigmas * here,
            "distance": here,
            "unprojected_distance": between,
            "next_distance": there,
            "moved": step,
            "unprojected": 0.5 * inverse * (here - between + step),
            "projected": 0.5 * inverse * (here - there + step),
            "gradient": 0.5 * etas * squares(g),
            "telescoping": 0.5 * (inverse * here - following * there),
            "common": 0.5 * (following - inverse) * there,
        }
        return cls(u, terms, float(K.diameter(u.size)), float(there[-1]))

    @property
    def T(self) -> int:
        """How many rounds there were."""
        return int(self.terms["eta"].size)

    @property
    def regret(self) -> float:
        """R_T(u)."""
        return self.sum("regret")

    @property
    def pieces(self) -> dict[str, float]:
        """What the sum of `projected` less `curvature` is made of, once it has telescoped.

        `start` = ‖w_1 − u‖²/(2η_1), `drift` = ½Σ_{t<T} ‖w_{t+1} − u‖²(1/η_{t+1} − 1/η_t), `gradient` = ½Σ η_t‖g_t‖²,
        `end` = −‖w_{T+1} − u‖²/(2η_T), `curvature` = −½Σ σ_t‖w_t − u‖².
        """
        return {name: float(values[-1]) for name, values in self.running_pieces().items()}

    def running_pieces(self) -> dict[str, Any]:
        """The `pieces` of the first t rounds, for every t: only `start` stays as it is.

        >>> import rue
        >>> trace = rue.trace(rue.OGD("hinge", "ball:1", intercept=False), [[1.0]] * 3, [1, 1, 1], points=True)
        >>> "start" in trace.telescope([1.0]).running_pieces()
        True
        """
        inverse = 1.0 / self["eta"]
        drift = 0.5 * self["distance"] * np.diff(inverse, prepend=inverse[0])
        return {
            "start": np.full(self.T, 0.5 * inverse[0] * self["distance"][0]),
            "drift": np.cumsum(drift),
            "gradient": self.running("gradient"),
            "end": -0.5 * inverse * self["next_distance"],
            "curvature": -self.running("curvature"),
        }

    @property
    def bounds(self) -> Any:
        """`bound` after each round."""
        inverse = 1.0 / self["eta"]
        rise = np.diff(inverse, prepend=0.0) - self["sigma"]
        rises = rise > ROUNDING * inverse  # where K has no end, the others must not become 0·∞
        far = np.full(self.T, self.diameter**2)
        far[0] = self["distance"][0]  # w_1 is known
        return np.cumsum(np.where(rises, 0.5 * np.where(rises, rise, 1.0) * far, 0.0)) + self.running("gradient")

    @property
    def bound(self) -> float:
        """What the proof promises: `gradient`, and the distances from w_2 on at their largest, D.

        ½(1/η_1 − σ_1)‖w_1 − u‖² + ½D²Σ_{t≥2} [1/η_t − 1/η_{t−1} − σ_t]₊ + ½Σ η_t‖g_t‖²: at most B5 and B6, and B8
        where η_t = 1/Σσ_i.
        """
        return float(self.bounds[-1])

    @property
    def holds(self) -> bool:
        """Whether every step of the proof held in every round, up to rounding."""
        size = 1.0 + np.abs(self["linear"]) + (self["distance"] + self["moved"]) / self["eta"]
        room = ROUNDING * np.maximum(size, np.abs(self["regret"]))
        steps = (
            self["linear"] - self["curvature"] - self["regret"] >= -room,
            np.abs(self["unprojected"] - self["linear"]) <= room,
            self["projected"] - self["unprojected"] >= -room,
            np.abs(self["telescoping"] + self["common"] + self["gradient"] - self["projected"]) <= room,
        )
        left = self.sum("projected") - self.sum("curvature")
        total = abs(sum(self.pieces.values()) - left) <= float(room.sum())
        return total and left <= self.bound + float(room.sum()) and all(bool(step.all()) for step in steps)

    def __str__(self) -> str:
        curved = " − (σ_t/2)‖w_t − u‖²" if self.sum("curvature") else ""
        less = self.sum("curvature")
        shown = {name: value for name, value in self.pieces.items() if value or name != "curvature"}
        lines = [
            ("", "R_T(u) = Σ ℓ_t(w_t) − ℓ_t(u)", self.regret),
            ("≤", f"Σ ⟨g_t, w_t − u⟩{curved}", self.sum("linear") - less),
            ("=", f"Σ (‖w_t − u‖² − ‖w'_(t+1) − u‖²)/(2η_t) + (η_t/2)‖g_t‖²{curved}", self.sum("unprojected") - less),
            ("≤", f"Σ (‖w_t − u‖² − ‖w_(t+1) − u‖²)/(2η_t) + (η_t/2)‖g_t‖²{curved}", self.sum("projected") - less),
            ("=", " ".join(f"{'−' if v < 0 else '+'} {name} {abs(v):.6g}" for name, v in shown.items())[2:], None),
            ("≤", "the bound, with distances at most D", self.bound),
        ]
        return "\n".join(f"{sign:1} {text}" + ("" if v is None else f": {v:.6g}") for sign, text, v in lines)


def traced_descent(trace: Trace) -> tuple[Any, Any, Any]:
    """Points, rows and steps of a run of gradient descent; refused if it is none, or was not traced so."""
    if trace.algorithm.family != "descent":
        raise SettingsError(
            f"the proof is about gradient descent with one step for all coordinates, not about {trace.algorithm.name}."
        )
    if trace.points is None:
        raise SettingsError("the proof needs the points: rue.trace(…, points=True) writes them down.")
    if not trace.T:
        raise DataError("the proof needs at least one round, and the run learnt no example.")
    X = trace.features if isinstance(trace.features, np.ndarray) else trace.features.toarray()
    etas = trace.etas.copy()
    moving = np.flatnonzero(etas > 0.0)
    if not moving.size:
        raise DataError("the proof divides by the steps, and the run never took one: every gradient was 0.")
    etas[: moving[0]] = etas[moving[0]]  # before the first gradient a step of any length moves nothing
    return trace.points, X, etas


def _best(trace: Trace, X: Any) -> Any:
    """The best point of the domain in hindsight."""
    best = best_in_hindsight(
        X,
        trace.labels,
        loss=trace.loss,
        domain=trace.domain,
        lambda_=trace.lambda_,
        weights=trace.alphas,
        intercept=False,
    )
    return best.point


def require_point(u: Any, d: int) -> Any:
    """u as an array of d finite numbers."""
    try:
        array = np.atleast_1d(np.asarray(u, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (d,) or not np.isfinite(array).all():
        raise DataError(f"u must be {d} finite numbers, the intercept's first if there is one, not {shown(u)}.")
    return array


def _require_descent(K: Any, moved: Any, points: Any) -> None:
    """Refuse points that are not Π_K(w_t − η_t g_t)."""
    for t, (v, w) in enumerate(zip(moved, points, strict=True), 1):
        away = float(np.linalg.norm(K.project(v) - w))
        if away > FAR * (1.0 + float(np.linalg.norm(v))):
            raise DataError(
                f"round {t}: w_(t+1) is {away:.2g} away from Π_K(w_t − η_t g_t): this is another algorithm."
            )


def squares(A: Any) -> Any:
    """‖row‖² of every row."""
    return np.einsum("td,td->t", A, A)

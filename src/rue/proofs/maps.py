"""M1 and M2: learners over features made from features."""

from __future__ import annotations

import math

import numpy as np

from rue.learners import Mixture, Staged
from rue.maps import Pairs, Trees, map_rows
from rue.proofs.base import Comparison, Outcome, theorem, worst

__all__ = ["M1", "M2"]


@theorem(
    "M pools over M maps, mixed as in B12: total ≤ the best pool + ln M for log loss, at every round, so a richer map "
    "costs at most ln M where it does not help",
    source="none of the notes: B12, with pools for members",
)
def M1(rng: np.random.Generator) -> Outcome:
    """Labels that a product decides, labels that a line decides, and labels that nothing decides."""
    X = rng.normal(size=(1500, 3))
    labels = {
        "a product": np.sign(X[:, 0] * X[:, 1]),
        "a line": np.sign(X @ rng.normal(size=3)),
        "lots": rng.choice([-1.0, 1.0], 1500),
    }
    excesses, gains = [], {}
    for name, y in labels.items():
        staged, linear = (np.cumsum(np.logaddexp(0.0, -y * learner.run(X, y))) for learner in (Staged(), Mixture()))
        excesses.append((float(np.max(staged - linear)), math.log(4.0)))
        gains[name] = float(linear[-1] - staged[-1])
    words = (
        "Four stages, the linear mixture the first of them, learnt 1,500 examples whose labels were decided by a "
        f"product, by a line and by lots; they lost {gains['a product']:.0f}, {gains['a line']:.1f} and "
        f"{gains['lots']:.1f} less than the linear mixture, and never ln 4 more at any round."
    )
    return words, [
        worst("the most by which the stages were behind the linear mixture", "≤", excesses),
        Comparison("what they gained where a product decides", gains["a product"], ">", 100.0),
    ]


@theorem(
    "bins by rank: edges are quantiles of what was seen before, frozen between doublings; a strictly increasing change "
    "of a column leaves every bin, cross and leaf the same to the last bit",
    source="none of the notes: ranks do not depend on units",
)
def M2(rng: np.random.Generator) -> Outcome:
    """Logarithms, cubes and other units of columns."""
    X = np.column_stack([rng.exponential(size=300), rng.integers(1, 20, 300), np.round(rng.normal(size=300), 1) + 9.0])
    predictions, maps = rng.normal(size=300), (Pairs(), Trees())
    before = map_rows(maps, X, predictions)
    changes = (np.log, lambda x: 1e6 * x**3 - 7.0, lambda x: x / 3.0 + 1e4)
    different = [sum(a != b for a, b in zip(before, map_rows(maps, f(X), predictions), strict=True)) for f in changes]
    falling = sum(a != b for a, b in zip(before, map_rows(maps, 20.0 - X, predictions), strict=True))
    words = (
        "Three columns of 300 rows were mapped as they are, as logarithms, cubed, and in other units: no feature of "
        f"any row differed. Turned round, {falling} of the rows did."
    )
    return words, [
        Comparison("rows with another feature after an increasing change", float(max(different)), "=", 0.0),
        Comparison("rows with another feature after a decreasing one", float(falling), ">", 100.0),
    ]

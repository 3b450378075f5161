"""The theorems of docs/theory.md, each with its source, the notes' misprints, and an experiment that could refute it.

>>> import rue
>>> print(rue.theorems()["C4"].statement)
flip-flop on [−1, 1], slopes −½ at t = 1, +1 at even t, −1 at odd t ≥ 3: FTL pays T − 1 − w_1/2, while u = 0 pays 0; OGD
survives it (T = 1000: 43.9)
>>> proof = rue.theorems()["C4"].run()
>>> proof.holds, proof.observed == proof.claimed
(True, True)
"""

from rue.proofs import (
    algorithms,
    bounds,
    certificates,
    change,
    convexity,
    coverage,
    maps,
    opponents,
    optimisation,
    protocol,
    risks,
    steps,
)
from rue.proofs.base import Comparison, Proof, Theorem, Theorems

__all__ = ["Comparison", "Proof", "Theorem", "Theorems", "theorems"]


def theorems() -> Theorems:
    """Every identifier of docs/theory.md, in its order: definitions, convexity, algorithms, bounds and so on.

    Iterate over them, take one by its identifier, print them as a table; `run()` plays one out and says what was
    claimed, what was observed, and whether it holds.

    >>> import rue
    >>> len(rue.theorems()), rue.theorems()["B3"].source
    (68, 'notes 000, equation (8); 003, equation (7); 004, equation (3)')
    """
    first = (protocol, convexity, algorithms, bounds, risks, optimisation, opponents)
    rooms = (*first, certificates, change, coverage, steps, maps)
    return Theorems(getattr(room, name) for room in rooms for name in room.__all__)

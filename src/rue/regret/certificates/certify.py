"""`certify`: the regret of any model, from its predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rue.domains import Ball
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.losses.wrappers import unregularised
from rue.registry import make
from rue.regret.certificates.certificate import Certificate, require_domain
from rue.regret.certificates.evidence import open_evidence
from rue.streams import as_array, blocks, floats

__all__ = ["certify"]


def certify(
    X: Any,
    y: Any,
    predictions: Any,
    *,
    loss: Any = "logistic",
    radius: float | None = None,
    domain: Any = None,
    weights: Any = None,
    intercept: bool = True,
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
    penalty: float = 0.0,
) -> Certificate:
    """Certify the regret of any model from its predictions: `predictions[t]` made before example t was learnt.

    Predictions are scores as the loss takes them (for logistic loss the log-odds), labels −1 and +1 for margin losses.
    An example whose label is missing (None or NaN) counts for nothing; one whose prediction is NaN is left out.
    `units="largest"` measures models on features divided by their largest magnitude; `witnesses` (a radius or several;
    D3) and, for square loss, `curvature=True` (D4) prove more in the same pass. For a `Regularised` loss `penalty` is
    the regulariser's part of the model's own loss, Σ weight·(λ/2)‖w_t‖² (D2).

    >>> import numpy as np
    >>> print(certify(np.eye(2), [1, -1], [0.0, 0.0], loss="hinge", radius=1, intercept=False))
    no linear model of norm ≤ 1 could have had a mean loss below 0.2928 on this stream; this learner had 1, at most 3.5
    times the best there could have been. In sums: 0.6 at least against 2.0, so regret is at most +1.4 (D1).

    docs/theory.md, section 6.
    """
    plain, lambda_ = unregularised(loss)
    require_loss(plain, "certify")
    if not isinstance(intercept, int | np.bool_) or intercept not in (0, 1):
        raise SettingsError(f"certify: intercept must be True or False, not {shown(intercept)}.")
    if (radius is None) == (domain is None):
        raise SettingsError("certify: give radius=…, or a domain=…, to say against which models.")
    K = Ball(radius) if domain is None and radius is not None else require_domain(make("domain", domain))
    p = floats(as_array(predictions, "predictions"), "predictions")
    if p.ndim != 1:
        raise DataError(f"the predictions must have one dimension, not {p.ndim}: one number an example.")
    if not isinstance(penalty, int | float | np.number) or not 0.0 <= penalty < math.inf or (penalty and not lambda_):
        held = shown(penalty)
        raise SettingsError(f"certify: penalty is Σ weight·(λ/2)‖w_t‖² ≥ 0 of a Regularised loss, not {held}.")
    evidence = open_evidence(plain, units=units, witnesses=witnesses, curvature=curvature, lambda_=lambda_, domain=K)
    evidence.penalty = float(penalty)
    before, left_out = 0, 0
    for block in blocks(X, y, weights):
        part = p[before : before + len(block)]
        if part.size != len(block):
            raise DataError(f"there are {p.size} predictions, but more examples: one prediction an example.")
        missing = block.unlabelled
        left_out += evidence.enter(
            block.labelled(), part if missing is None else part[~missing], bool(intercept), before
        )
        before += len(block)
    if before != p.size:
        raise DataError(f"there are {p.size} predictions, but {before} examples: one prediction an example.")
    if p.size and np.isnan(p).all():
        raise DataError("every prediction is NaN: there is nothing to certify.")
    return evidence.certificate(K, units, left_out=left_out)

"""`certify`: the regret of any model, from its predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.domains import Ball
from rue.errors import DataError, SettingsError, shown
from rue.learners.gradient import require_loss
from rue.losses.wrappers import unregularised
from rue.registry import make
from rue.regret.certificates.certificate import Certificate, require_domain
from rue.regret.certificates.evidence import Evidence, open_evidence
from rue.regret.certificates.mapped import MappedSums, over_maps
from rue.regret.certificates.windows import certificate_of_window, changing_models
from rue.streams import Block, as_array, blocks, floats

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
    window: tuple[int, int] | str | None = None,
    changes: int | None = None,
    maps: Any = None,
) -> Certificate:
    """Certify the regret of any model from its predictions: `predictions[t]` made before example t was learnt.

    Predictions are scores as the loss takes them (for logistic loss the log-odds), labels −1 and +1 for margin losses.
    An example whose label is missing (None or NaN) counts for nothing; one whose prediction is NaN is left out.
    `units="largest"` measures models on features divided by their largest magnitude; `witnesses` (a radius or several;
    D3) and, for square loss, `curvature=True` (D4) prove more in the same pass. For a `Regularised` loss `penalty` is
    the regulariser's part of the model's own loss, Σ weight·(λ/2)‖w_t‖² (D2). `window` asks about some rounds alone
    (D6), and `changes` about models of a ball that change so many times (D7), as `Run.certificate` has them.
    With maps="auto", or a list of maps, the models are linear in the features and in the bins, pairs and trees that
    maps make of them and of the predictions, as redrawn (docs/theory.md, section 11).

    X and `y` are the stream, `weights` those of the examples, 1 if not given. Say a `radius`, or a `domain`, in which
    the models are that the certificate is about.

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
    if window is not None and changes is not None:
        raise SettingsError("certify: give a window or changes, not both.")
    K = Ball(radius) if domain is None and radius is not None else require_domain(make("domain", domain))
    p = floats(as_array(predictions, "predictions"), "predictions")
    if p.ndim != 1:
        raise DataError(f"the predictions must have one dimension, not {p.ndim}: one number an example.")
    if not isinstance(penalty, int | float | np.number) or not 0.0 <= penalty < math.inf or (penalty and not lambda_):
        held = shown(penalty)
        raise SettingsError(f"certify: penalty is Σ weight·(λ/2)‖w_t‖² ≥ 0 of a Regularised loss, not {held}.")
    evidence = open_evidence(plain, units=units, witnesses=witnesses, curvature=curvature, lambda_=lambda_, domain=K)
    evidence.penalty = float(penalty)
    mapped = None if maps is None else _mapped_sums(maps, radius, lambda_, window is not None or changes is not None)
    left_out = _entered(evidence, blocks(X, y, weights), p, bool(intercept), mapped)
    if mapped is not None and radius is not None:
        own = evidence.certificate(K, units, left_out=left_out, thorough=False)
        return over_maps(own, mapped.gradients, p.size, radius, plain.nonnegative)
    if window is not None:
        return certificate_of_window(evidence, window, lambda part: part.certificate(K, units))
    if changes is not None:
        return changing_models(evidence, K, units).certificate(changes, left_out)
    return evidence.certificate(K, units, left_out=left_out)


def _entered(evidence: Evidence, stream: Iterable[Block], p: Any, intercept: bool, mapped: Any) -> int:
    """Enter a stream with the predictions p, one for each example; how many examples could not be added up."""
    before, left_out = 0, 0
    for block in stream:
        part = p[before : before + len(block)]
        if part.size != len(block):
            raise DataError(f"there are {p.size} predictions, but more examples: one prediction an example.")
        missing = block.unlabelled
        own = part if missing is None else part[~missing]
        left_out += evidence.enter(block.labelled(), own, intercept, before, mapped)
        before += len(block)
    if before != p.size:
        raise DataError(f"there are {p.size} predictions, but {before} examples: one prediction an example.")
    if p.size and np.isnan(p).all():
        raise DataError("every prediction is NaN: there is nothing to certify.")
    return left_out


def _mapped_sums(maps: Any, radius: float | None, lambda_: float, parts: bool) -> MappedSums:
    """The sums of maps; refuses what cannot be asked about them."""
    if radius is None or lambda_ or parts:
        raise SettingsError("certify: with maps give a radius, no Regularised loss, and no window or changes.")
    return MappedSums(maps)

"""Estimators for River, which learn one example at a time by names; and certificates for any River model.

`learn_many` gives the same bits as `learn_one` in a loop. A feature that an example does not have counts as 0, and one
that was never learnt has no weight. A word is the feature `name=word` of value 1, and a missing value (None, NaN) the
feature `name=`, as in a table.

>>> from river import datasets, evaluate, metrics
>>> from rue.river import RueClassifier
>>> evaluate.progressive_val_score(datasets.Phishing(), RueClassifier(), metrics.Accuracy())
Accuracy: 90.55%
"""

try:
    import river  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError("rue.river needs River: pip install 'rue[river]'.") from error

from rue.river.certifying import certify, scores
from rue.river.estimators import RueClassifier, RueRegressor

__all__ = ["RueClassifier", "RueRegressor", "certify", "scores"]

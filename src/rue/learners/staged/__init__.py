"""A learner in stages: a pool over the raw features, pools over maps of them, and a pool over their predictions."""

from rue.learners.staged.classes import StagedSoftmax
from rue.learners.staged.staged import Staged

__all__ = ["Staged", "StagedSoftmax"]

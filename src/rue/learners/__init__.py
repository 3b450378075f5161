"""Learners: an algorithm, a loss, a domain, a step, and the state they have reached (docs/theory.md, section 3).

- `learner`: `Learner`; `algorithm`: what makes one differ from another; `loop`: the compiled loop over rows, and
  `one_example` the way without it; `points`: weights that are moved, projected and saved; `average`: means of them;
- `gradient`, `adaptive`, `leader`: the algorithms of the notes; `mixture/`, `softmax/`, `staged/`: the default learners
  of two classes and numbers, of several classes, and over maps;
- `frozen`: the model that stays when learning stops; `merging`: several learners as one; `lags`: the last labels as
  features; `bins`: columns put into bins by rank; `ensemble`: a learner and outside experts, mixed; `keyed`: many small
  learners, for fleets;
- `turns`: two threads cannot use one learner at once.
"""

from rue.learners.adaptive import AdaGrad
from rue.learners.average import Average, BySteps, ByTime, Uniform
from rue.learners.gradient import OGD, SVM, AdaptiveOGD, Perceptron
from rue.learners.leader import FollowTheLeader
from rue.learners.learner import Learner
from rue.learners.merging import merge
from rue.learners.mixture.mixture import Mixture
from rue.learners.softmax.classifier import ClassLearner, SoftmaxMixture
from rue.learners.staged import Staged, StagedSoftmax
from rue.registry import import_modules

__all__ = [
    "OGD",
    "SVM",
    "AdaGrad",
    "AdaptiveOGD",
    "Average",
    "BySteps",
    "ByTime",
    "ClassLearner",
    "FollowTheLeader",
    "Learner",
    "Mixture",
    "Perceptron",
    "SoftmaxMixture",
    "Staged",
    "StagedSoftmax",
    "Uniform",
    "merge",
]

import_modules(__name__, __path__)

"""Learners: an algorithm, a loss, a domain, a step, and the state they have reached (docs/theory.md, section 3)."""

from rue.learners.adaptive import AdaGrad
from rue.learners.average import Average, BySteps, ByTime, Uniform
from rue.learners.gradient import OGD, SVM, AdaptiveOGD, Perceptron
from rue.learners.leader import FollowTheLeader
from rue.learners.learner import Learner
from rue.learners.merging import merge
from rue.learners.mixture.mixture import Mixture
from rue.learners.softmax.classifier import ClassLearner, SoftmaxMixture
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
    "Uniform",
    "merge",
]

import_modules(__name__, __path__)

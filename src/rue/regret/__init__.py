"""Regret: what a run can prove about itself, what was best in hindsight, and what the theorems promise."""

from rue.regret.bounds import bounds
from rue.regret.certificate import Certificate
from rue.regret.certifying import certify
from rue.regret.comparator import Comparator, best_in_hindsight, hindsight_path
from rue.regret.evidence import Evidence
from rue.regret.experts import Mixed, mix
from rue.regret.perceptron import perceptron_bound, separable_bound
from rue.regret.ranges import loss_range
from rue.regret.risk import (
    RiskBound,
    risk_always,
    risk_at_end,
    risk_curve,
    risk_in_expectation,
    risk_of_ogd,
    risk_of_svm,
)
from rue.regret.statement import Assumption, Bound
from rue.regret.trace import Trace, trace

__all__ = [
    "Assumption",
    "Bound",
    "Certificate",
    "Comparator",
    "Evidence",
    "Mixed",
    "RiskBound",
    "Trace",
    "best_in_hindsight",
    "bounds",
    "certify",
    "hindsight_path",
    "loss_range",
    "mix",
    "perceptron_bound",
    "risk_always",
    "risk_at_end",
    "risk_curve",
    "risk_in_expectation",
    "risk_of_ogd",
    "risk_of_svm",
    "separable_bound",
    "trace",
]

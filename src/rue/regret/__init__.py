"""Regret: what a run can prove about itself, what was best in hindsight, and what the theorems promise."""

from rue.regret.bounds.mistakes import MistakeProof
from rue.regret.bounds.perceptron import perceptron_bound, separable_bound
from rue.regret.bounds.statement import Assumption, Bound
from rue.regret.bounds.telescope import Telescope
from rue.regret.bounds.trace import Trace
from rue.regret.bounds.upper import bounds
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.certify import certify
from rue.regret.certificates.evidence import Evidence
from rue.regret.hindsight.comparator import Comparator, best_in_hindsight, hindsight_path
from rue.regret.risk.bounds import (
    RiskBound,
    risk_always,
    risk_at_end,
    risk_curve,
    risk_in_expectation,
    risk_of_ogd,
    risk_of_svm,
)
from rue.regret.risk.excess import excess_always, excess_at_end
from rue.regret.risk.experts import Mixed, mix
from rue.regret.risk.ranges import loss_range

__all__ = [
    "Assumption",
    "Bound",
    "Certificate",
    "Comparator",
    "Evidence",
    "MistakeProof",
    "Mixed",
    "RiskBound",
    "Telescope",
    "Trace",
    "best_in_hindsight",
    "bounds",
    "certify",
    "excess_always",
    "excess_at_end",
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
]

"""Regret: what a run can prove about itself."""

from rue.regret.certificate import Certificate
from rue.regret.certifying import certify
from rue.regret.evidence import Evidence

__all__ = ["Certificate", "Evidence", "certify"]

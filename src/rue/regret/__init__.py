"""Regret: what a run can prove about itself."""

from rue.regret.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]

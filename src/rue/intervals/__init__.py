"""Prediction intervals whose coverage is promised on any sequence (docs/theory.md, E2)."""

from rue.intervals.accounts import Group, Window
from rue.intervals.learner import IntervalLearner
from rue.intervals.public import PredictionIntervals, prediction_intervals
from rue.intervals.sets import SetLearner
from rue.intervals.summary import Summary

__all__ = [
    "Group",
    "IntervalLearner",
    "PredictionIntervals",
    "SetLearner",
    "Summary",
    "Window",
    "prediction_intervals",
]

"""rue: online learning that needs no learning rate and carries a proof of how well it did."""

import _signal  # type: ignore[import-not-found, unused-ignore]

# Ctrl-C waits until the command has its handlers: in the milliseconds of this import it would be a traceback.
_before = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))
try:
    import rue._startup as _startup  # noqa: F401
finally:
    _signal.pthread_sigmask(_signal.SIG_SETMASK, _before)

from rue import checks, cluster
from rue.audit import Audit, audit
from rue.compiled import Vector, parameter
from rue.domains import (
    Ball,
    Box,
    Domain,
    Halfspace,
    Hyperplane,
    Intersection,
    Interval,
    L1Ball,
    Orthant,
    Reals,
    Simplex,
)
from rue.errors import BadExample, CheckFailed, DataError, NoRoom, RueError, SettingsError, UnknownName
from rue.exports import export
from rue.fleets import Fleet, fleet
from rue.games import (
    AbsoluteAdversary,
    ConvexRound,
    Estimate,
    ExampleRound,
    FlipFlop,
    Forced,
    Game,
    Games,
    LinearRound,
    MarginAdversary,
    Move,
    NumberFromDistribution,
    NumberGuessing,
    Opponent,
    OrthogonalAdversary,
    RandomSigns,
    SameFunction,
    Setting,
    Stochastic,
    play,
    play_many,
)
from rue.intervals import PredictionIntervals, prediction_intervals
from rue.intervals import Summary as IntervalSummary
from rue.learners import (
    OGD,
    SVM,
    AdaGrad,
    AdaptiveOGD,
    Average,
    BySteps,
    ByTime,
    FollowTheLeader,
    Learner,
    Mixture,
    Perceptron,
    SoftmaxMixture,
    Staged,
    StagedSoftmax,
    Uniform,
)
from rue.learners.mixture.standing import Member, Standing
from rue.losses import (
    Absolute,
    CountLoss,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Indicator,
    Linear,
    Logistic,
    Loss,
    MarginLoss,
    PerceptronLoss,
    Poisson,
    Quantile,
    Regularised,
    Square,
    SquaredHinge,
    ZeroOne,
)
from rue.losses.functions import Convexity, convexity
from rue.maps import Pairs, Trees
from rue.models.file import Model, load, save
from rue.pictures.calibrations import plot_calibration
from rue.pictures.intervals import plot_coverage, plot_intervals
from rue.pictures.lectures import plot_losses, plot_paths, plot_projection, plot_subgradients
from rue.pictures.plots import plot_certificate, plot_metrics, plot_mistakes, plot_regret, plot_risk
from rue.pictures.proofs import plot_proof
from rue.pictures.races import plot_members, plot_race
from rue.pictures.windows import plot_changes, plot_windows
from rue.proofs import Proof, Theorem, theorems
from rue.race.entries import Entry, Race
from rue.race.race import race
from rue.registry import make, names
from rue.registry import publish as _publish
from rue.regret import (
    Assumption,
    Bound,
    Certificate,
    Comparator,
    Evidence,
    MistakeProof,
    Mixed,
    RiskBound,
    Telescope,
    Trace,
    best_in_hindsight,
    bounds,
    certify,
    excess_always,
    excess_at_end,
    hindsight_path,
    loss_range,
    mix,
    perceptron_bound,
    risk_always,
    risk_at_end,
    risk_curve,
    risk_in_expectation,
    risk_of_ogd,
    risk_of_svm,
    separable_bound,
)
from rue.regret.certificates.windows import Window, Windows
from rue.regret.risk.alarms import Alarm, Change
from rue.reports.effects import Effects
from rue.reports.explaining import Explanation, Weights, effects_of, explain, weights_of
from rue.runs.calibration import Calibration
from rue.runs.evaluation import Evaluation
from rue.runs.learn import learn
from rue.runs.metrics import Metrics
from rue.runs.replay import trace
from rue.runs.run import Run
from rue.runs.sampling import Minimisation, minimise
from rue.serve.client import Client
from rue.steps import Adaptive, Fixed, Horizon, Sequence, Sqrt, Step, Strong, Theory
from rue.streams import Block, Labels, census
from rue.version import __version__

__all__ = [
    "OGD",
    "SVM",
    "Absolute",
    "AbsoluteAdversary",
    "AdaGrad",
    "Adaptive",
    "AdaptiveOGD",
    "Alarm",
    "Assumption",
    "Audit",
    "Average",
    "BadExample",
    "Ball",
    "Block",
    "Bound",
    "Box",
    "BySteps",
    "ByTime",
    "Calibration",
    "Certificate",
    "Change",
    "CheckFailed",
    "Client",
    "Comparator",
    "ConvexRound",
    "Convexity",
    "CountLoss",
    "DataError",
    "Domain",
    "Effects",
    "Entry",
    "EpsilonInsensitive",
    "Estimate",
    "Evaluation",
    "Evidence",
    "ExampleRound",
    "Explanation",
    "Fixed",
    "Fleet",
    "FlipFlop",
    "FollowTheLeader",
    "Forced",
    "Game",
    "Games",
    "Halfspace",
    "Hinge",
    "Horizon",
    "Huber",
    "Hyperplane",
    "Indicator",
    "Intersection",
    "Interval",
    "IntervalSummary",
    "L1Ball",
    "Labels",
    "Learner",
    "Linear",
    "LinearRound",
    "Logistic",
    "Loss",
    "MarginAdversary",
    "MarginLoss",
    "Member",
    "Metrics",
    "Minimisation",
    "MistakeProof",
    "Mixed",
    "Mixture",
    "Model",
    "Move",
    "NoRoom",
    "NumberFromDistribution",
    "NumberGuessing",
    "Opponent",
    "Orthant",
    "OrthogonalAdversary",
    "Pairs",
    "Perceptron",
    "PerceptronLoss",
    "Poisson",
    "PredictionIntervals",
    "Proof",
    "Quantile",
    "Race",
    "RandomSigns",
    "Reals",
    "Regularised",
    "RiskBound",
    "RueError",
    "Run",
    "SameFunction",
    "Sequence",
    "Setting",
    "SettingsError",
    "Simplex",
    "SoftmaxMixture",
    "Sqrt",
    "Square",
    "SquaredHinge",
    "Staged",
    "StagedSoftmax",
    "Standing",
    "Step",
    "Stochastic",
    "Strong",
    "Telescope",
    "Theorem",
    "Theory",
    "Trace",
    "Trees",
    "Uniform",
    "UnknownName",
    "Vector",
    "Weights",
    "Window",
    "Windows",
    "ZeroOne",
    "__version__",
    "audit",
    "best_in_hindsight",
    "bounds",
    "census",
    "certify",
    "checks",
    "cluster",
    "convexity",
    "effects_of",
    "excess_always",
    "excess_at_end",
    "explain",
    "export",
    "fleet",
    "hindsight_path",
    "learn",
    "load",
    "loss_range",
    "make",
    "minimise",
    "mix",
    "names",
    "parameter",
    "perceptron_bound",
    "play",
    "play_many",
    "plot_calibration",
    "plot_certificate",
    "plot_changes",
    "plot_coverage",
    "plot_intervals",
    "plot_losses",
    "plot_members",
    "plot_metrics",
    "plot_mistakes",
    "plot_paths",
    "plot_projection",
    "plot_proof",
    "plot_race",
    "plot_regret",
    "plot_risk",
    "plot_subgradients",
    "plot_windows",
    "prediction_intervals",
    "race",
    "risk_always",
    "risk_at_end",
    "risk_curve",
    "risk_in_expectation",
    "risk_of_ogd",
    "risk_of_svm",
    "save",
    "separable_bound",
    "theorems",
    "trace",
    "weights_of",
]

_publish(globals(), __all__)

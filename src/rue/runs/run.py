"""`Run`, what one pass over a stream leaves behind."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from rue import ledger as accounts
from rue.learners import Learner
from rue.learners.ensemble import Ensemble, EnsembleStanding
from rue.learners.mixture.standing import Course, Stages, Standing, stages, standing
from rue.ledger import Ledger
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.windows import Windows, windows_of
from rue.regret.risk.alarms import Change
from rue.runs.advice import Advised, advice_in, experts_in, experts_of, require_no_ensemble
from rue.runs.background import Background
from rue.runs.baselines import Baselines
from rue.runs.calibration import Calibration, calibration_of, require_calibration
from rue.runs.certifying import certificate_of, mapped_certificate, scales_and_units
from rue.runs.class_weights import ClassWeights
from rue.runs.evaluation import Evaluation, evaluate, score
from rue.runs.metrics import Metrics
from rue.runs.predicting import predict, predict_interval
from rue.runs.watching import Watch
from rue.streams import Labels
from rue.streams.chunk import Chunk

if TYPE_CHECKING:
    from rue.reports.report import Report

__all__ = ["Run"]


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One pass over a stream and what is known of it afterwards; `rue.learn` returns it.

    Each example was predicted before it was learnt, so `risk`, the mean loss Σ weight·ℓ(p_t, y_t) / Σ weight, is a fair
    score (docs/theory.md, Q1). `certificate` bounds how much better a linear model could have done (D1 to D4).

    >>> import rue
    >>> run = rue.learn([[1.0, 2.0], [3.0, -1.0]], [1, -1], learner=rue.Perceptron())
    >>> run.examples, run.mistakes, run.predictions
    (2, 2, array([0., 2.]))
    """

    learner: Learner
    """The learner, learnt."""
    labels: Labels
    """The task, and which class stands for −1 and which for +1, or all the classes."""
    predictions: Any
    """p_t, made before the update, one for each row that was read; NaN where the example was refused or skipped.

    Of more than two classes the probability of the one that came, negative where another had been given as much; NaN
    where the label is missing.
    """
    y: Any
    """The labels as the loss takes them; NaN where the label is missing or the example was skipped."""
    weights: Any
    """The examples' weights, those of their classes among them, or None."""
    evidence: Evidence
    """The sums from which regret is certified; those of several runs add up (`run.evidence.merged`)."""
    refused: int
    """Examples whose prediction, loss or step was not finite: neither scored nor learnt."""
    skipped: int
    """Unusable examples passed over with bad="skip"."""
    seconds: float
    """Time spent learning, without compilation if a kernel was compiled before."""
    features: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How files or tables become features; empty for arrays and blocks."""
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """What hashed features are called."""
    course: Course = dataclasses.field(default_factory=Course, repr=False)
    """How the members of a mixture have stood over time."""
    missing: int = 0
    """Values that were missing in the rows of tables: empty cells, nulls, NaN."""
    counts: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    """Counters and baselines as a model file stores them."""
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What was learnt when: `data`, `examples`, `date`, `rue`; the last entry is this run's."""
    baselines: Baselines = dataclasses.field(default_factory=Baselines, repr=False)
    """What the best constant prediction, and saying the last label again, would have lost."""
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    """Accuracy, AUC, F1, MAE and the like of `predictions`, and how they were over time."""
    holdout: Evaluation | None = None
    """How the finished model did on the last rows, which were not learnt, if `learn` was given a `holdout`."""
    test: Evaluation | None = None
    """How the finished model did on the examples that `learn` was given as `test`."""
    unlabelled: int = 0
    """Examples without a label (None or NaN): predicted, but neither scored nor learnt."""
    probabilities: Any = None
    """Of more than two classes, those of every class, made before the update: a column for each of `labels.classes`.

    0 for a class that had not been learnt yet, NaN in the row of an example that was refused or skipped; what a row
    lacks to 1 is the probability that a class never seen before comes. None for two classes, for numbers, and where the
    matrix would take an eighth of the memory or more.
    """
    class_weights: ClassWeights | None = None
    """What the examples' weights were multiplied by."""
    lower: Any = None
    """The lower ends of prediction intervals, made before each update; NaN where there is no prediction.

    With several levels a column for each, the levels rising. None if `learn` was given no `interval`, and for classes.
    """
    upper: Any = None
    """The upper ends, likewise."""
    sets: Any = None
    """Of classes, which ones are in the set of each row, a column for each: `labels.negative` and `labels.positive`,
    or `labels.classes`. None if `learn` was given no `interval`, and for numbers."""
    watch: Watch = dataclasses.field(default_factory=Watch, repr=False)
    """What made the intervals and the alarms."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """What was probably meant otherwise than it was learnt; `learn` warns of it too."""
    waiting: float = 0.0
    """Seconds spent waiting for the data."""
    ensemble: Ensemble | None = dataclasses.field(default=None, repr=False)
    """The learner and outside experts, mixed, if `learn` was given `experts`."""
    background: Background | None = dataclasses.field(default=None, repr=False)
    """Some of the rows, on which `effects` tries the predictions of a learner over maps; None for others."""

    @property
    def ledger(self) -> Ledger:
        """The accounts of the pass."""
        return self.evidence.ledger

    @property
    def examples(self) -> int:
        """How many examples were scored and learnt."""
        return int(self.ledger.sums[accounts.EXAMPLES])

    @property
    def loss(self) -> float:
        """Σ weight·ℓ(p_t, y_t), without the regulariser (which `learner.penalty` has)."""
        return float(self.ledger.sums[accounts.LOSS])

    @property
    def risk(self) -> float:
        """The sequential risk Σ weight·ℓ / Σ weight (Q1)."""
        mass = float(self.ledger.sums[accounts.WEIGHT])
        return self.loss / mass if mass else float("nan")

    @property
    def mistakes(self) -> int | None:
        """How many examples had y·p ≤ 0, a class that was not the most probable (Q4); None for a regression.

        Every example counts as one, whatever its weight; `metrics["accuracy"]` is weighted, as `risk` is.
        """
        return int(self.ledger.sums[accounts.MISTAKES]) if self.labels.task != "regress" else None

    @property
    def losses(self) -> Any:
        """ℓ(p_t, y_t) for each example; NaN where it was refused or skipped, or has no label."""
        out = np.empty(self.y.size)
        score(self.learner.loss, self.predictions, self.y, out)
        return np.where(np.isnan(self.y), np.nan, out)

    @property
    def scored(self) -> Any:
        """Which rows count: they have a label, a weight above 0 and a finite prediction."""
        weighty = True if self.weights is None else self.weights > 0.0
        return np.isfinite(self.predictions) & ~np.isnan(self.y) & weighty

    @property
    def stages(self) -> Stages | None:
        """How the stages of `rue.Staged` stand: what each has lost, what maps have gained (M1); None for others."""
        return stages(self.learner)

    @property
    def experts(self) -> EnsembleStanding | None:
        """How the learner and its outside experts stand, if `learn` was given `experts`: loss and weight of each."""
        return None if self.ensemble is None else self.ensemble.standing()

    @property
    def interval(self) -> Any:
        """What intervals, or sets, have covered and what is promised (E2), for each level; None if not asked for.

        One `IntervalSummary`, or with several levels a list of them.
        """
        if self.watch.intervals is None:
            return None
        found = self.watch.intervals.summaries()
        return found[0] if len(found) == 1 else found

    @property
    def alarms(self) -> list[Change]:
        """When the loss rose, if `learn` was given an `alarm` (B17)."""
        return list(self.watch.changes)

    @property
    def members(self) -> Standing | None:
        """How the members of a mixture stand: loss and weight of each, and the price of B12; None for others."""
        return standing(self.learner)

    @property
    def windows(self) -> Windows:
        """The stream in at most 32 windows of equal length, each with its loss and the sums that certify it (D6).

        >>> import rue
        >>> X, y = rue.census()
        >>> [(window.first, window.last) for window in rue.learn(X[:96], y[:96], learner=rue.OGD()).windows]
        [(1, 32), (33, 64), (65, 80), (81, 96)]
        """
        scales, _ = scales_and_units(self.learner, self.evidence, None)
        return windows_of(self.evidence, self.learner.intercept, scales)

    def certificate(
        self,
        radius: float | None = None,
        domain: Any = None,
        units: str | None = None,
        *,
        window: tuple[int, int] | str | None = None,
        changes: int | None = None,
    ) -> Certificate:
        """How much better any linear model could have done, of norm ≤ `radius` or in a `domain` (D1 to D4).

        By default against the learner's own domain, or where that is unbounded, and the rounds have no regulariser,
        against the largest ball about which the proof says much (`rue.regret.certificates.telling`). `units` is `raw`,
        or `largest` for models of features divided by their largest magnitude: the default for learners that do so too.

        `window` asks about some rounds alone (D6): a pair (r, s), both included and counted from 1, or "last:10000". It
        is rounded to the borders of `windows`, outwards; the answer's `window` says which. `changes` asks about models
        that may change so many times at those borders (D7). Both are about losses without a regulariser.

        >>> import rue
        >>> X, y = rue.census()
        >>> run = rue.learn(X[:4000], y[:4000], learner=rue.OGD("hinge", "ball:10"))
        >>> proved = run.certificate(radius=1)
        >>> proved.radius, proved.regret_at_most < run.loss
        (1.0, True)
        >>> run.certificate(radius=5, window="last:1000").window
        (2945, 4000)
        >>> at_least = [run.certificate(radius=5, changes=k).comparator_loss_at_least for k in (0, 1, 3, 7)]
        >>> at_least == sorted(at_least, reverse=True)
        True
        """
        left_out = self.refused + self.skipped
        return certificate_of(
            self.learner, self.evidence, left_out, radius, domain, units, window=window, changes=changes
        )

    def calibration(self) -> Calibration:
        """What was predicted on average and what came: overall, by tenths of the probability, and by group (E3).

        >>> import rue
        >>> X, y = rue.census()
        >>> print(rue.learn(X[:5000], y[:5000]).calibration())  # doctest: +ELLIPSIS
        says ... % on average, ... % happened; largest gap: feature ..., ... points too ... over ... rows
        """
        return require_calibration(calibration_of(self.learner, self.evidence, self.metrics, self.names))

    def plot_calibration(self, path: Any = None) -> Any:
        """The reliability diagram and the groups with the largest gaps; a Figure, as `plot` makes it.

        `path` also saves it.

        >>> import rue
        >>> X, y = rue.census()
        >>> run = rue.learn(X[:500], y[:500], learner=rue.OGD("logistic"))
        >>> run.plot_calibration().axes[0].get_xlabel()
        'probability that was predicted'
        """
        from rue.pictures.calibrations import draw_calibration

        return draw_calibration(self, path)

    def plot_effects(self, path: Any = None, *, frozen: bool = False) -> Any:
        """The curves of the columns that move predictions most, and the tables of the strongest pairs; a Figure.

        `path` also saves it. For a learner over maps; `rue.effects_of` has the numbers, and says what `frozen` means.

        >>> import numpy as np, rue
        >>> X = np.random.default_rng(0).normal(size=(3000, 2))
        >>> figure = rue.learn(X, np.sign(X[:, 0] * X[:, 1]), maps="auto").plot_effects()
        >>> figure.axes[1].get_xlabel()[:7]
        'feature'
        """
        from rue.pictures.effects import draw_effects
        from rue.reports.explaining import effects_of

        return draw_effects(effects_of(self, frozen), path)

    def plot_windows(self, path: Any = None, *, radius: float | None = None) -> Any:
        """Loss by window against what no linear model could have beaten there, and models that change; a Figure.

        `radius` is the largest norm of those models; by default the one that the windows say most about. `path` also
        saves it.

        >>> import rue
        >>> X, y = rue.census()
        >>> run = rue.learn(X[:500], y[:500], learner=rue.OGD("logistic"))
        >>> run.plot_windows(radius=1.0).axes[0].get_xlabel()
        'rounds t'
        """
        from rue.pictures.windows import draw_windows

        return draw_windows(self, path, radius=radius)

    def mapped_certificate(self, radius: float | None = None) -> Certificate:
        """How much better any model could have done that is linear in the features and in what maps make of them (D1).

        With φ_t the features of the maps in round t, hashed and redrawn as the learner saw them, and S the sum of g_t
        times all features, every u of norm ≤ `radius` has a regret of at most A + radius·‖S‖ (docs/theory.md, M1 and
        D1). The features of the data are in units of their largest magnitude, those of maps are 0 or 1. Without a
        radius it is the one about which most can be said.

        >>> import rue
        >>> X, y = rue.census()
        >>> run = rue.learn(X[:3000], y[:3000])
        >>> run.mapped_certificate(1.0).regret_at_most >= run.certificate(1.0).regret_at_most
        True
        """
        require_no_ensemble("mapped_certificate", self.ensemble)
        return mapped_certificate(self.learner, self.evidence, self.refused + self.skipped, radius)

    def evaluate(self, chunks: Iterable[Chunk], bad: str = "stop", experts: Advised | None = None) -> Evaluation:
        """How the learner as it stands does on examples that it does not learn.

        `chunks` are what a stream's `reads` gives; an unusable example stops it, or with `bad="skip"` is passed over.
        `experts` says what outside experts predict for them, if the run had any.

        >>> import rue
        >>> from rue.streams import read
        >>> X, y = rue.census()
        >>> run = rue.learn(X[:1000], y[:1000], learner="ogd")
        >>> run.evaluate(read(X[1000:1500], y[1000:1500]).reads()).examples
        500
        """
        return evaluate(self.learner, self.labels, self.baselines, chunks, bad, self.class_weights, experts=experts)

    def predict(self, X: Any, as_: str = "score", experts: Any = None, experts_as: str | None = None) -> Any:
        """Predictions for one example or many; they change nothing. As `rue predict` says them.

        X is what was learnt: arrays and sparse matrices, or tables and files, read as those that were learnt (labels
        may be missing). One example is a dict, a pandas Series or a one-dimensional array, and gets one prediction;
        several are rows of those, or a list of dicts. In a dict a word is a category, and None a missing value.

        `as_` is `score` (a number to predict, or what is above 0 for one class and below for the other),
        `probability` (of the class `labels.positive`, where the loss is logistic), or `label`. Of more than two classes
        `probability` is a matrix, a column for each of `labels.classes`; what a row lacks to 1 is the probability that
        a class never seen before comes. `score` has that in a column of its own, the first.

        A run with outside experts needs their predictions for these rows: `experts` and `experts_as` as in `learn`.

        >>> import pandas, rue
        >>> table = pandas.DataFrame({"sky": ["grey", "blue", "grey", "blue"], "umbrella": ["yes", "no", "yes", "no"]})
        >>> run = rue.learn(table, "umbrella")
        >>> run.predict({"sky": "grey"}, as_="label")
        'yes'
        """
        given = experts_of(self.ensemble, advice_in(experts, experts_as, experts_in(self.features)))
        known: dict[str, Any] = {"labels": self.labels, "features": self.features, "names": self.names}
        return predict(self.learner, X, **known, as_=as_, experts=given)

    def predict_interval(self, X: Any) -> Any:
        """Lower and upper ends for one example or many, by a model that stands still: so nothing is promised.

        What was learnt must have been learnt with an `interval`; X is as for `predict`. For classes a matrix says which
        are in the set of each row.

        >>> import numpy as np, rue
        >>> run = rue.learn(np.ones((5, 1)), [1.0, 2.0, 1.5, 1.0, 2.5], interval=0.8)
        >>> lower, upper = run.predict_interval([[1.0], [1.0]])
        >>> bool((lower <= upper).all())
        True
        """
        require_no_ensemble("predict_interval", self.ensemble)
        return predict_interval(self.learner, self.watch, X, features=self.features, names=self.names)

    def report(self, radius: float | None = None) -> Report:
        """All that `rue learn` prints, for people (`print(run.report())`), and in `fields` what `--report` writes.

        `radius` is the norm of the models that the certificate is about, as in `certificate`.

        >>> import rue
        >>> X, y = rue.census()
        >>> report = rue.learn(X[:2000], y[:2000]).report()
        >>> print(report)  # doctest: +ELLIPSIS
        examples     2,000
        ...
        >>> report.fields["examples"]
        2000
        """
        from rue.reports.report import report_of_run

        return report_of_run(self, radius)

    def plot(self, path: Any = None) -> Any:
        """Risk and certificate side by side as a matplotlib Figure; `path` (.png, .svg or .pdf) also saves it.

        Below them is a strip with the windows, where there are several.

        >>> import rue
        >>> X, y = rue.census()
        >>> len(rue.learn(X[:200], y[:200], learner="ogd").plot().axes)
        3
        """
        from rue.pictures.plots import draw_run

        return draw_run(self, path)

    def plot_intervals(self, path: Any = None) -> Any:
        """The last rounds with their intervals, and the share of labels inside by window; a Figure, as `plot` does.

        `path` also saves it.

        >>> import numpy as np, rue
        >>> run = rue.learn(np.ones((5, 1)), [1.0, 2.0, 1.5, 1.0, 2.5], interval=0.8)
        >>> len(run.plot_intervals().axes)
        2
        """
        from rue.pictures.intervals import draw_intervals

        return draw_intervals(self, path)

    def plot_members(self, path: Any = None) -> Any:
        """The race of a mixture's members, and who carried the weight, against time; a Figure, as `plot` makes it.

        `path` also saves it.

        >>> import rue
        >>> X, y = rue.census()
        >>> len(rue.learn(X[:200], y[:200]).plot_members().axes)
        2
        """
        from rue.pictures.races import draw_members

        return draw_members(self, path)

    def __repr__(self) -> str:
        wrong = "" if self.mistakes is None else f", mistakes={self.mistakes}"
        return f"Run(examples={self.examples}, risk={self.risk:.6g}{wrong}, learner={self.learner!r})"

"""What the estimators for scikit-learn have in common: a learner, its evidence, and scikit-learn's conventions."""

from __future__ import annotations

import threading
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from rue import ledger as accounts
from rue.errors import DataError, SettingsError, shown
from rue.learners import Learner
from rue.learners.points import owned
from rue.losses.wrappers import unregularised
from rue.models.file import Model
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.evidence import Evidence
from rue.runs.accounts import EvidenceAccounts
from rue.runs.certifying import certificate_of
from rue.runs.class_weights import BALANCED, ClassWeights
from rue.runs.driver import NO_CERTIFICATE, Driver, evidence_for
from rue.runs.resuming import history_entry
from rue.runs.watching import Watch
from rue.streams import Block, Labels

__all__ = ["Classifier", "Online", "Regressor", "gives_chances"]


def _canonical(X: Any) -> Any:
    """A sparse matrix in which each feature of a row stands once, in order; a dense one as it is."""
    if hasattr(X, "tocsr") and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _weights(sample_weight: Any, rows: int) -> Any:
    """One weight a row, or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, int | float):
        return np.full(rows, float(sample_weight))
    return check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")


class Online(BaseEstimator):
    """What all estimators share: one learner, its evidence, and what is read from them."""

    intercept: bool
    learner_: Any
    evidence_: Evidence
    refused_: int
    watch_: Watch

    def _begin(self, learner: Learner) -> None:
        """Forget everything and start with this learner."""
        self.learner_, self.evidence_ = learner, evidence_for(learner)
        self.refused_ = 0
        self.watch_ = Watch(getattr(self, "interval", None))
        self._turn = threading.Lock()  # a learner serves one thread at a time

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool, numeric: bool) -> tuple[Any, Any, Any]:
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, y_numeric=numeric)
        return _canonical(X), y, _weights(sample_weight, X.shape[0])

    def _learn(self, X: Any, y: Any, weights: Any) -> None:
        """Learn rows in order, each scored before it is learnt."""
        many = X.shape[0] >= 4096  # calls may be many and short: no thread for those
        accounts = EvidenceAccounts(self.evidence_, self.learner_, threads=many)
        driver = Driver.bare(self.learner_, accounts)
        driver.watch = self.watch_
        try:
            driver.learn_all(X, y, weights)
        finally:
            self.refused_ += driver.refused

    def _settled(self) -> Self:
        """Refuse a fit to rows that are all of weight 0; in `partial_fit`, a part of a stream may be."""
        if not self.learner_.t and not self.refused_:
            raise DataError("the sample weights are all zero: there is nothing to learn.")
        return self

    def _predictions(self, X: Any) -> Any:
        """The scores of rows, as `scores` gives them."""
        check_is_fitted(self, "learner_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        with self._turn:
            return self.learner_.frozen().predict_many(_canonical(X))

    def _ends_or_sets(self, X: Any) -> Any:
        """What `Watch.predict` says of rows."""
        check_is_fitted(self, "learner_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        block = Block(_canonical(X))
        with self._turn:
            return self.watch_.predict(self.learner_.loss, block, self.learner_.frozen().predict_many(block))

    @property
    def interval_(self) -> Any:
        """What intervals, or sets, have covered while it learnt and what was promised, as `rue.Run.interval` has it."""
        if self.watch_.intervals is None:
            raise AttributeError("interval_ is there after a fit with interval=0.9, or another level.")
        found = self.watch_.intervals.summaries()
        return found[0] if len(found) == 1 else found

    @property
    def _point(self) -> Any:
        return self.learner_.frozen().point

    @property
    def loss_(self) -> float:
        """Σ weight·ℓ, each example scored before it was learnt."""
        return float(self.evidence_.ledger.sums[accounts.LOSS])

    @property
    def risk_(self) -> float:
        """The sequential risk Σ weight·ℓ / Σ weight (Q1)."""
        mass = float(self.evidence_.ledger.sums[accounts.WEIGHT])
        return self.loss_ / mass if mass else float("nan")

    @property
    def certificate_(self) -> Certificate:
        """What `certificate()` says; more than two classes have none."""
        if self.learner_.loss.task == "multiclass":
            raise AttributeError(NO_CERTIFICATE)
        return self.certificate()

    def certificate(self, radius: float | None = None, domain: Any = None, units: str | None = None) -> Certificate:
        """How much better any linear model could have done, as `rue.Run.certificate` says it."""
        check_is_fitted(self, "learner_")
        return certificate_of(self.learner_, self.evidence_, self.refused_, radius, domain, units)

    def _labels(self) -> Labels:
        """What the numbers that were learnt stand for."""
        return Labels("regress")

    @property
    def model_(self) -> Model:
        """The learner with its evidence, labels and feature names, as `rue.save` takes it."""
        history = [history_entry(int(self.evidence_.ledger.sums[accounts.EXAMPLES]))]
        names = dict(enumerate(map(str, getattr(self, "feature_names_in_", ()))))
        counts = {"refused": self.refused_, "skipped": 0}
        known: dict[str, Any] = {"names": names, "counts": counts, "watch": self.watch_}
        return Model(self.learner_, self.evidence_, self._labels(), history, **known)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_turn"}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if hasattr(self, "evidence_"):
            for name, sums in vars(self.evidence_).items():  # kernels write to them: those of a mapped file are copied
                setattr(self.evidence_, name, owned(sums))
            self.watch_ = self.watch_.copy() if "watch_" in state else Watch()  # older pickles have none
            self._turn = threading.Lock()


class Regressor(RegressorMixin, Online):
    """A learner of numbers."""

    def _new_learner(self) -> Learner:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the beginning, in the order of the rows."""
        return self._fit_rows(X, y, sample_weight, True)._settled()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning."""
        return self._fit_rows(X, y, sample_weight, not hasattr(self, "learner_"))

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, anew: bool) -> Self:
        X, y, weights = self._checked(X, y, sample_weight, anew, True)
        if anew:
            learner = self._new_learner()
            if learner.loss.task != "regress":
                raise SettingsError(f"{type(self).__name__}: {learner.loss!r} is for classes, not for numbers.")
            self._begin(learner)
        self._learn(X, np.asarray(y, dtype=np.float64), weights)
        return self

    def predict(self, X: Any) -> Any:
        """Predictions for rows; for Poisson loss the mean e^p."""
        p = self._predictions(X)
        return np.exp(np.minimum(p, 700.0)) if self.learner_.loss.log_mean else p

    @property
    def coef_(self) -> Any:
        """The weights of the features."""
        return self._point[int(self.learner_.intercept) :]

    @property
    def intercept_(self) -> float:
        """The weight of the intercept, 0 without one."""
        return float(self._point[0]) if self.learner_.intercept else 0.0


def gives_chances(model: Any) -> bool:
    """Whether its loss is logistic, so that scores are log-odds."""
    try:
        return bool(unregularised(model.loss)[0].log_odds)
    except SettingsError:
        return False


class Classifier(ClassifierMixin, Online):
    """A learner of classes; of two, `classes_[1]` is the one that predictions above 0 mean.

    `class_weight` is what scikit-learn's classifiers have: a dictionary of weights by class, or "balanced", with which
    an example of class c weighs n/(k·n_c), n examples of k classes, n_c of them of class c. `fit` counts all of y, as
    scikit-learn does; `partial_fit` counts what has come so far, the example itself included.
    """

    classes_: Any
    class_weight: Any
    class_counts_: ClassWeights

    def _new_learner(self, classes: int) -> Learner:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the beginning, in the order of the rows."""
        return self._fit_rows(X, y, None, sample_weight, True, whole=True)._settled()

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning; the first call needs to know all the classes there will be."""
        anew = not hasattr(self, "learner_")
        if anew and classes is None:
            raise SettingsError("partial_fit: the first call needs all the classes there will be: give classes=….")
        return self._fit_rows(X, y, classes, sample_weight, anew)

    def _fit_rows(self, X: Any, y: Any, classes: Any, sample_weight: Any, anew: bool, *, whole: bool = False) -> Self:
        X, y, weights = self._checked(X, y, sample_weight, anew, False)
        check_classification_targets(y)
        if classes is not None:
            classes = np.unique(np.asarray(classes))
            if not anew and not np.array_equal(classes, self.classes_):
                first, given = shown(self.classes_.tolist()), shown(classes.tolist())
                raise SettingsError(f"partial_fit: the classes are {first}, as at first, not {given}.")
        if anew:
            known = np.unique(y) if classes is None else classes
            if len(known) < 2:
                only = shown(known[0])
                raise DataError(f"there is only one class, {only}: to classify needs two, so 1 class is too few.")
            learner = self._new_learner(len(known))
            if learner.loss.task == "regress":
                raise SettingsError(f"{type(self).__name__}: {learner.loss!r} is for numbers, not for classes.")
            self.classes_ = known
            self._begin(learner)
            self.class_counts_ = ClassWeights(BALANCED)
        numbers = self._numbers(y)
        if self.class_weight is not None:
            factors = self._class_factors(y, numbers, weights, whole)
            weights = factors if weights is None else factors * weights
        self._learn(X, numbers, weights)
        return self

    def _class_factors(self, y: Any, numbers: Any, weights: Any, whole: bool) -> Any:
        """What the weight of each example is multiplied by because of its class; those learnt so far are counted."""
        running = self.class_weight == BALANCED and not whole
        factors = (
            self.class_counts_.factors(numbers, weights)
            if running
            else compute_class_weight(self.class_weight, classes=self.classes_, y=y)[self._places(y)]
        )
        self.class_counts_.count(numbers, weights)
        return factors

    def _numbers(self, y: Any) -> Any:
        """Labels as the loss takes them: −1 and +1, or 1, 2, … in the order of `classes_`."""
        places = self._places(y)
        strange = np.flatnonzero(self.classes_[places] != y)
        if strange.size:
            label, classes = shown(y[strange[0]]), shown(self.classes_.tolist())
            raise DataError(f"row {strange[0]}: the label {label} is none of the classes {classes}.")
        return 2.0 * places - 1.0 if self._two else 1.0 + places

    def _places(self, y: Any) -> Any:
        """Where in `classes_` labels are."""
        return np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)

    @property
    def _two(self) -> bool:
        return bool(self.learner_.loss.task != "multiclass")

    def _labels(self) -> Labels:
        names = self.classes_.tolist()
        return Labels("classify", *names) if self._two else Labels("multiclass", classes=tuple(names))

    def decision_function(self, X: Any) -> Any:
        """The scores: one for each row, or of more than two classes the logarithms of their probabilities."""
        p = self._predictions(X)
        return p if self._two else np.log(np.maximum(self._shared(p), 1e-300))

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        p = self._predictions(X)
        return self.classes_[(p > 0.0).astype(np.int64) if self._two else self._shared(p).argmax(axis=1)]

    @available_if(gives_chances)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class."""
        p = self._predictions(X)
        if not self._two:
            return self._shared(p)
        from scipy.special import expit

        return np.column_stack((expit(-p), expit(p)))

    @available_if(gives_chances)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of the probability of each class."""
        p = self._predictions(X)
        if not self._two:
            return np.log(np.maximum(self._shared(p), 1e-300))
        return np.column_stack((-np.logaddexp(0.0, p), -np.logaddexp(0.0, -p)))

    def _shared(self, p: Any) -> Any:
        """Probabilities of `classes_`: what is reserved for a class never seen goes to those that have not come yet."""
        chances = np.zeros((len(p), len(self.classes_)))
        chances[:, : p.shape[1] - 1] = p[:, 1:]
        waiting = np.ones(len(self.classes_), dtype=bool)
        waiting[: p.shape[1] - 1] = ~self.learner_.seen
        chances[:, waiting] = p[:, :1] / max(1, waiting.sum())
        return chances / chances.sum(axis=1, keepdims=True)

    @property
    def mistakes_(self) -> int:
        """How many examples had been predicted wrongly before they were learnt (Q4)."""
        return int(self.evidence_.ledger.sums[accounts.MISTAKES])

    @property
    def _points(self) -> Any:
        """A row for each score."""
        if self._two:
            return self._point[None, :]
        point = np.zeros((len(self.classes_), self.learner_.coordinates))
        point[: self._point.shape[1]] = self._point.T
        return point

    @property
    def coef_(self) -> Any:
        """The weights of the features, a row for each score."""
        return self._points[:, int(self.learner_.intercept) :]

    @property
    def intercept_(self) -> Any:
        """The weights of the intercept, 0 without one."""
        points = self._points
        return points[:, 0] if self.learner_.intercept else np.zeros(len(points))

"""The estimators for scikit-learn: each a learner with its settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from rue.errors import SettingsError, shown
from rue.learners import OGD, SVM, Learner, Perceptron
from rue.runs.driver import default_learner
from rue.sklearn.base import Classifier, Regressor, gives_chances

__all__ = [
    "OGDClassifier",
    "OGDRegressor",
    "PerceptronClassifier",
    "RueClassifier",
    "RueRegressor",
    "SVMClassifier",
]


class _BinaryClassifier(Classifier):
    """A learner of two classes; `sklearn.multiclass.OneVsRestClassifier` makes more of it."""

    def _new_learner(self, classes: int) -> Learner:
        if classes > 2:
            raise SettingsError(
                "Only binary classification is supported. The type of the target is multiclass: RueClassifier learns "
                "more classes, or put this one into OneVsRestClassifier."
            )
        return self._new_binary_learner()

    def _new_binary_learner(self) -> Learner:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class RueClassifier(Classifier):
    """A classifier with no learning rate to choose: `rue.Staged`, `rue.SoftmaxMixture` for many classes (B12, M1).

    With maps=None the model of two classes is linear (`rue.Mixture`), with maps="auto" that of many is more
    (`rue.StagedSoftmax`). `budget` is the number of bytes a feature may take (for each class, if there are more than
    two). `class_weight` is None, a dictionary of weights by class, or "balanced": `fit` then counts the classes of all
    of y, as scikit-learn does, and `partial_fit` those that have come so far. With `interval`, a share such as 0.9,
    `predict_interval` gives sets of classes, and `interval_` says how many of the labels they held while it learnt,
    each made before its label.

    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array(["yes", "no", "yes", "no"])
    >>> RueClassifier().fit(X, y).predict(X[:2])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        loss: Any = "logistic",
        budget: int | None = None,
        intercept: bool = True,
        class_weight: Any = None,
        maps: Any = "default",
        interval: float | None = None,
    ) -> None:
        self.loss, self.budget, self.intercept, self.class_weight = loss, budget, intercept, class_weight
        self.maps, self.interval = maps, interval

    def predict_interval(self, X: Any) -> Any:
        """Which classes are in the set of each row, a column for each of `classes_`.

        By a model that stands still: nothing is promised of those.
        """
        sets = self._ends_or_sets(X)
        return np.pad(sets, ((0, 0), (0, len(self.classes_) - sets.shape[1])))

    def _new_learner(self, classes: int) -> Learner:
        settings = {"budget": self.budget, "intercept": self.intercept, "maps": self.maps}
        if classes == 2:
            return default_learner("classify", loss=self.loss, **settings)
        if not gives_chances(self):
            given = shown(self.loss)
            raise SettingsError(f"RueClassifier: more than two classes are learnt with log loss: loss={given}.")
        return default_learner("multiclass", **settings)


class RueRegressor(Regressor):
    """A regressor with no learning rate to choose: `rue.Staged` (docs/theory.md, B12 and M1).

    With maps=None the model is linear (`rue.Mixture`). `budget` is the number of bytes a feature may
    take. With `interval`, a share such as 0.9 or several, `predict_interval` gives lower and upper ends, and
    `interval_` says how many of the labels lay inside while it learnt, each interval made before its label, and what
    was promised (E2).

    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1.0, -1.0, 2.0, -2.0])
    >>> RueRegressor().fit(X, y).predict(X[:2]) > 0.0
    array([ True, False])
    """

    def __init__(
        self,
        loss: Any = "square",
        budget: int | None = None,
        intercept: bool = True,
        maps: Any = "default",
        interval: Any = None,
    ) -> None:
        self.loss, self.budget, self.intercept = loss, budget, intercept
        self.maps, self.interval = maps, interval

    def predict_interval(self, X: Any) -> tuple[Any, Any]:
        """Lower and upper ends for rows, by a model that stands still: nothing is promised of those."""
        lower, upper = self._ends_or_sets(X)
        return lower, upper

    def _new_learner(self) -> Learner:
        settings = {"budget": self.budget, "intercept": self.intercept, "maps": self.maps}
        return default_learner("regress", loss=self.loss, **settings)


class OGDClassifier(_BinaryClassifier):
    """A classifier of two classes: projected online gradient descent, `rue.OGD` (docs/theory.md, A2, A3).

    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1, 0, 1, 0])
    >>> OGDClassifier().fit(X, y).predict(X[:2])
    array([1, 0])
    """

    def __init__(
        self,
        loss: Any = "logistic",
        domain: Any = "ball:10",
        step: Any = "theory",
        average: Any = "none",
        intercept: bool = True,
        class_weight: Any = None,
    ) -> None:
        self.loss, self.domain, self.step, self.average, self.intercept = loss, domain, step, average, intercept
        self.class_weight = class_weight

    def _new_binary_learner(self) -> Learner:
        return OGD(self.loss, self.domain, self.step, average=self.average, intercept=self.intercept)


class OGDRegressor(Regressor):
    """A regressor: projected online gradient descent, `rue.OGD` (docs/theory.md, A2, A3).

    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1.0, -1.0, 2.0, -2.0])
    >>> OGDRegressor(step="sqrt:0.1").fit(X, y).predict(X[:2]) > 0.0
    array([ True, False])
    """

    def __init__(
        self,
        loss: Any = "square",
        domain: Any = "ball:10",
        step: Any = "theory",
        average: Any = "none",
        intercept: bool = True,
    ) -> None:
        self.loss, self.domain, self.step, self.average, self.intercept = loss, domain, step, average, intercept

    def _new_learner(self) -> Learner:
        return OGD(self.loss, self.domain, self.step, average=self.average, intercept=self.intercept)


class PerceptronClassifier(_BinaryClassifier):
    """A classifier of two classes: Rosenblatt's Perceptron, `rue.Perceptron` (docs/theory.md, A1).

    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1, 0, 1, 0])
    >>> PerceptronClassifier().fit(X, y).predict(X[:2])
    array([1, 0])
    """

    loss = "perceptron"

    def __init__(self, average: Any = "none", intercept: bool = True, class_weight: Any = None) -> None:
        self.average, self.intercept, self.class_weight = average, intercept, class_weight

    def _new_binary_learner(self) -> Learner:
        return Perceptron(average=self.average, intercept=self.intercept)


class SVMClassifier(_BinaryClassifier):
    """A classifier of two classes: the support vector machine, `rue.SVM`, predicting by the average of its points.

    It minimises the hinge loss plus (λ/2)‖w‖² (docs/theory.md, A5, and A6 with weighting="t"). `alpha` is λ, called as
    in `SGDClassifier`.

    >>> import numpy as np
    >>> X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1, 0, 1, 0])
    >>> SVMClassifier().fit(X, y).predict(X[:2])
    array([1, 0])
    """

    loss = "hinge"

    def __init__(
        self,
        alpha: float = 0.01,
        weighting: str = "uniform",
        project: bool = False,
        intercept: bool = True,
        class_weight: Any = None,
    ) -> None:
        self.alpha, self.weighting, self.project, self.intercept = alpha, weighting, project, intercept
        self.class_weight = class_weight

    def _new_binary_learner(self) -> Learner:
        return SVM(self.alpha, self.weighting, project=self.project, intercept=self.intercept)

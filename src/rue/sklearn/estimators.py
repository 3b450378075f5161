"""The estimators for scikit-learn: each a learner with its settings."""

from __future__ import annotations

from typing import Any

from rue.errors import SettingsError
from rue.learners import OGD, SVM, Learner, Mixture, Perceptron, SoftmaxMixture
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
    """Classes by the default learner, which has no learning rate to choose: `rue.Mixture`, for more than two classes
    `rue.SoftmaxMixture`.

    `budget` is the number of bytes a feature may take (for each class, if there are more than two).
    """

    def __init__(self, loss: Any = "logistic", budget: int | None = None, intercept: bool = True) -> None:
        self.loss, self.budget, self.intercept = loss, budget, intercept

    def _new_learner(self, classes: int) -> Learner:
        if classes == 2:
            return Mixture(self.loss, budget=self.budget, intercept=self.intercept)
        if not gives_chances(self):
            raise SettingsError(f"RueClassifier: more than two classes are learnt with log loss: loss={self.loss!r}.")
        return SoftmaxMixture(budget=self.budget, intercept=self.intercept)


class RueRegressor(Regressor):
    """Numbers by the default learner, `rue.Mixture`, which has no learning rate to choose."""

    def __init__(self, loss: Any = "square", budget: int | None = None, intercept: bool = True) -> None:
        self.loss, self.budget, self.intercept = loss, budget, intercept

    def _new_learner(self) -> Learner:
        return Mixture(self.loss, budget=self.budget, intercept=self.intercept)


class OGDClassifier(_BinaryClassifier):
    """Two classes by projected online gradient descent, `rue.OGD` (A2, A3)."""

    def __init__(
        self,
        loss: Any = "logistic",
        domain: Any = "ball:10",
        step: Any = "theory",
        average: Any = "none",
        intercept: bool = True,
    ) -> None:
        self.loss, self.domain, self.step, self.average, self.intercept = loss, domain, step, average, intercept

    def _new_binary_learner(self) -> Learner:
        return OGD(self.loss, self.domain, self.step, average=self.average, intercept=self.intercept)


class OGDRegressor(Regressor):
    """Numbers by projected online gradient descent, `rue.OGD` (A2, A3)."""

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
    """Two classes by Rosenblatt's Perceptron, `rue.Perceptron` (A1)."""

    loss = "perceptron"

    def __init__(self, average: Any = "none", intercept: bool = True) -> None:
        self.average, self.intercept = average, intercept

    def _new_binary_learner(self) -> Learner:
        return Perceptron(average=self.average, intercept=self.intercept)


class SVMClassifier(_BinaryClassifier):
    """Two classes by the support vector machine, `rue.SVM` (A5, and A6 with weighting="t"), predicting by its average.

    `alpha` is λ, called as in `SGDClassifier`.
    """

    loss = "hinge"

    def __init__(
        self, alpha: float = 0.01, weighting: str = "uniform", project: bool = False, intercept: bool = True
    ) -> None:
        self.alpha, self.weighting, self.project, self.intercept = alpha, weighting, project, intercept

    def _new_binary_learner(self) -> Learner:
        return SVM(self.alpha, self.weighting, project=self.project, intercept=self.intercept)

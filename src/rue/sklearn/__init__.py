"""Estimators for scikit-learn: rue's learners behind `fit`, `partial_fit` and `predict`, with their certificates.

They learn in the order of the rows and never shuffle, in one pass: `partial_fit` in pieces of any size gives the same
bits as one call. Once fitted, they have these attributes besides scikit-learn's own:

| attribute | what it is |
|---|---|
| `learner_`, `model_` | the learner, and what `rue.save` writes and `rue.explain` explains |
| `risk_`, `loss_`, `mistakes_` | each example scored before it was learnt (Q1, Q4) |
| `certificate_`, `certificate(radius=…)` | how much better any linear model could have done (D1 to D4) |
| `coef_`, `intercept_` | the point; of a mixture the posterior mean of its members' weights |

A mixture mixes predictions, not weights, so its predictions are near ⟨coef_, x⟩ + intercept_, not equal to it.

`rue.save(estimator, path)` writes the model of a fitted one; what `rue.load` reads predicts the same. `rue.weights_of`
takes a pipeline that ends with one, and names weights as the steps before it do (`get_feature_names_out`).

>>> import rue
>>> from rue.sklearn import RueClassifier
>>> X, y = rue.census()
>>> model = RueClassifier().fit(X, y)
>>> round(model.risk_, 3)
0.327
"""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError("rue.sklearn needs scikit-learn: pip install 'rue[sklearn]'.") from error

from rue.sklearn.estimators import (
    OGDClassifier,
    OGDRegressor,
    PerceptronClassifier,
    RueClassifier,
    RueRegressor,
    SVMClassifier,
)

__all__ = [
    "OGDClassifier",
    "OGDRegressor",
    "PerceptronClassifier",
    "RueClassifier",
    "RueRegressor",
    "SVMClassifier",
]

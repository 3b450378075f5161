"""Error messages show a user's value in a few characters, and an array by its shape."""

import inspect

import numpy as np
import pandas as pd
import pytest

import rue
import rue.sklearn
from rue.errors import LONGEST, shown

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
VALID = {
    "X": X,
    "y": Y,
    "learner": "ogd",
    "loss": "hinge",
    "domain": "ball:1",
    "predictions": Y,
    "opponent": "orthogonal:3",
    "rounds": 2,
    "losses": Y,
    "learners": ["ogd"],
    "kind": "loss",
    "spec": "hinge",
    "experts": X,
    "values": [1.0],
    "delta": 0.1,
}
"""What a parameter without a default gets while another one gets nonsense; 1.0 if it is not here."""
LARGE = {
    "an array": np.arange(10_000.0).reshape(100, 100),
    "a list": list(range(10_000)),
    "a table": pd.DataFrame(np.arange(10_000.0).reshape(100, 100)),
    "a text": "z" * 5000,
}
DATA = ("X", "y", "weights", "predictions", "x", "w", "losses", "path", "what", "source")
"""Parameters for which these are good values, or the name of a file, which is shown whole."""


def targets():
    """Everything public that takes settings, and the parameters that are settings."""
    run = rue.learn(X, Y, learner="ogd")
    functions = {name: getattr(rue, name) for name in rue.__all__ if callable(getattr(rue, name))}
    functions |= {f"run.{name}": getattr(run, name) for name in ("certificate", "predict")}
    functions |= {"learner.update": run.learner.update, "domain.project": rue.Ball(1.0).project}
    for name in rue.sklearn.__all__:
        estimator = getattr(rue.sklearn, name)

        def fit(*, made=estimator, **settings):
            made(**settings).fit(X, Y)

        fit.__signature__ = inspect.signature(estimator)
        functions[f"rue.sklearn.{name}"] = fit
    for name, function in functions.items():
        if not (inspect.isclass(function) and issubclass(function, BaseException)):
            yield name, function


@pytest.mark.usefixtures("interpreted")
def test_no_message_holds_an_array_or_a_long_text():
    refused = 0
    for name, function in targets():
        parameters = inspect.signature(function).parameters.values()
        takes = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        needed = {one.name: VALID.get(one.name, 1.0) for one in takes if one.default is one.empty}
        if name in ("learner.update", "domain.project"):
            needed, settings = {"x": X[0], "y": 1.0} if "update" in name else {}, [one.name for one in takes]
        else:
            settings = [one.name for one in takes if one.name not in DATA]
        for setting in settings:
            for kind, value in LARGE.items():
                try:
                    function(**{**needed, setting: value})
                except rue.RueError as error:
                    message = str(error)
                    assert len(message) < 420, f"{name}({setting}={kind}): {message[:300]}"
                    assert "\n" not in message, f"{name}({setting}={kind}): {message}"
                    assert "array(" not in message, f"{name}({setting}={kind}): {message}"
                    refused += 1
                except Exception:  # classes that check nothing, and names that Python refuses
                    pass
    assert refused > 300


def test_labels_and_classes_are_shortened_too():
    long = ["a" * 5000, "b" * 5000]
    for act in (
        lambda: rue.sklearn.RueClassifier().partial_fit(X[:2], long, classes=["x", "y"]),
        lambda: rue.sklearn.RueClassifier().fit(X[:2], long[:1] * 2),
        lambda: rue.learn(X[:4], [*long, "c" * 5000, "d" * 5000], learner="ogd"),
        lambda: rue.learn(pd.DataFrame(X), "e" * 5000),
        lambda: rue.make("loss", "f" * 5000),
        lambda: rue.load(X),
    ):
        with pytest.raises(rue.RueError) as refused:
            act()
        assert len(str(refused.value)) < 500, str(refused.value)[:200]


def test_a_value_is_shown_in_one_line():
    class Broken:
        def __repr__(self):
            raise ValueError("no")

    assert shown("square") == "'square'"
    assert shown(np.float64(0.5)) == repr(np.float64(0.5))
    assert shown(np.ones((3, 2))) == "an ndarray of shape (3, 2)"
    assert shown(pd.DataFrame({"a": [1]})) == "a DataFrame of shape (1, 1)"
    assert "Broken" in shown(Broken())
    box = rue.Box(np.zeros(1000), np.ones(1000))
    for value in ([X] * 5, {"a": X}, ["x\ny" * 100] * 100, box, range(10**9), 10**5000):
        assert len(shown(value)) <= LONGEST
        assert "\n" not in shown(value)
    assert len(repr(rue.Halfspace(np.ones(1000), 1.0))) < 120
    assert repr(rue.Halfspace([1.0, 2.0], 1.0)) == "Halfspace(normal=array([1., 2.]), offset=1.0)"

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import pickle
import sys

import numpy as np
import pytest

import rue
from rue.errors import RueError, SettingsError, UnknownName
from rue.registry import _known, own_classes, publish, register, registered

NAMES = {
    "loss": [
        "absolute",
        "epsilon-insensitive",
        "hinge",
        "huber",
        "linear",
        "logistic",
        "perceptron",
        "poisson",
        "quantile",
        "square",
        "squared-hinge",
        "zero-one",
    ],
    "domain": ["ball", "box", "halfspace", "hyperplane", "interval", "l1-ball", "orthant", "reals", "simplex"],
    "step": ["adaptive", "fixed", "horizon", "sequence", "sqrt", "strong", "theory"],
    "map": ["pairs", "trees"],
    "average": ["none", "steps", "t", "uniform"],
}


@pytest.mark.parametrize("kind", sorted(NAMES))
def test_names(kind):
    assert set(NAMES[kind]) <= set(rue.names(kind))
    assert rue.names(kind) == sorted(registered(kind))
    registered(kind).clear()  # a copy
    assert rue.names(kind) == sorted(registered(kind)) != []


def test_names_of_learners():
    assert {"ogd", "perceptron", "svm", "adaptive"} <= set(rue.names("learner"))


@pytest.mark.parametrize(
    ("kind", "spec", "made"),
    [
        ("domain", "ball:10", rue.Ball(10)),
        ("domain", "ball:1e-3", rue.Ball(0.001)),
        ("domain", "ball:radius=10", rue.Ball(10)),
        ("domain", " ball:10 ", rue.Ball(10)),
        ("domain", "ball: 10", rue.Ball(10)),
        ("domain", "box:-1,1", rue.Box(-1, 1)),
        ("domain", "box: -1 , 1", rue.Box(-1, 1)),
        ("domain", "box:-inf,1", rue.Box(-math.inf, 1)),
        ("domain", "box:lower=-1,upper=1", rue.Box(-1, 1)),
        ("domain", "box:-1,1,coordinates=3", rue.Box(-1, 1, 3)),
        ("domain", "interval:0,1", rue.Interval(0, 1)),
        ("domain", "reals", rue.Reals()),
        ("domain", "reals:", rue.Reals()),
        ("domain", "simplex", rue.Simplex(1)),
        ("domain", "simplex:3", rue.Simplex(3)),
        ("domain", "l1-ball:2", rue.L1Ball(2)),
        ("domain", "halfspace:1,0.5", rue.Halfspace([1], 0.5)),
        ("loss", "hinge", rue.Hinge()),
        ("loss", "quantile:0.9", rue.Quantile(0.9)),
        ("loss", "quantile:tau=0.9", rue.Quantile(0.9)),
        ("loss", "huber", rue.Huber(1.0)),
        ("loss", "huber:2", rue.Huber(2)),
        ("loss", "epsilon-insensitive:0", rue.EpsilonInsensitive(0)),
        ("step", "sqrt:0.5", rue.Sqrt(0.5)),
        ("step", "theory", rue.Theory()),
        ("step", "theory:X=2", rue.Theory(X=2)),
        ("step", "horizon:1000", rue.Horizon(1000)),
        ("step", "adaptive:factor=0.05", rue.Adaptive(0.05)),
        ("step", "sequence:0.5", rue.Sequence([0.5])),
        ("average", "uniform", rue.Uniform()),
        ("average", "t", rue.ByTime()),
    ],
)
def test_specs(kind, spec, made):
    assert rue.make(kind, spec) == made
    assert type(rue.make(kind, spec)) is type(made)


@pytest.mark.parametrize("thing", [rue.Ball(1), None, 3, rue.Hinge], ids=repr)
def test_what_is_no_string_is_returned_as_it_is(thing):
    assert rue.make("domain", thing) is thing


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ("ogd", "rue.OGD()"),
        ("ogd:average=uniform", "rue.OGD(average='uniform')"),
        ("ogd:hinge,reals,sqrt:0.5", "rue.OGD('hinge', 'reals', 'sqrt:0.5')"),
        ("ogd:loss=hinge,domain=ball:2,intercept=false", "rue.OGD('hinge', 'ball:2', intercept=False)"),
        ("ogd:d=3", "rue.OGD(d=3)"),
        ("perceptron:2", "rue.Perceptron(2)"),
        ("svm:0.1,t", "rue.SVM(0.1, 't')"),
        ("svm:0.1,project=true", "rue.SVM(0.1, project=True)"),
        ("adaptive:factor=0.5", "rue.AdaptiveOGD(factor=0.5)"),
        ("staged:maps=trees:8+pairs", "rue.Staged(maps=[rue.Trees(8), rue.Pairs()])"),
        ("staged:maps=auto", "rue.Staged(maps=['pairs', 'trees'])"),
    ],
)
def test_specs_of_learners(spec, same):
    made, expected = rue.make("learner", spec), eval(same)
    assert repr(made) == repr(expected)
    assert made.algorithm == expected.algorithm
    assert (made.intercept, made.d) == (expected.intercept, expected.d)


def test_defaults_give_way_to_the_spec():
    assert rue.make("domain", "ball", radius=3) == rue.Ball(3)
    assert rue.make("domain", "ball:radius=4", radius=3) == rue.Ball(4)
    assert rue.make("learner", "ogd:intercept=true", intercept=False).intercept


@pytest.mark.parametrize(
    ("kind", "spec", "sentence"),
    [
        (
            "domain",
            "bal:10",
            "there is no domain named 'bal': did you mean 'ball'? the names are " + ", ".join(NAMES["domain"]) + ".",
        ),
        ("domain", "Ball:3", "there is no domain named 'Ball': did you mean 'ball'? "),
        ("domain", "zzz", "there is no domain named 'zzz': the names are ball, "),
        ("domain", "", "there is no domain named '': the names are ball, "),
        ("loss", "logistik", "there is no loss named 'logistik': did you mean 'logistic'? "),
        ("loss", "squared_hinge", "there is no loss named 'squared_hinge': did you mean 'squared-hinge'? "),
        ("step", "theorie", "there is no step named 'theorie': did you mean 'theory'? "),
        ("average", "unifrom", "there is no average named 'unifrom': did you mean 'uniform'? "),
        ("learner", "percepton", "there is no learner named 'percepton': did you mean 'perceptron'? "),
        ("learner", "ogd:loss=hing", "there is no loss named 'hing': did you mean 'hinge'? "),
        ("learner", "staged:maps=pears", "there is no map named 'pears': did you mean 'pairs'? "),
    ],
)
def test_unknown_names(kind, spec, sentence):
    with pytest.raises(UnknownName) as caught:
        rue.make(kind, spec)
    assert str(caught.value).startswith(sentence)
    assert isinstance(caught.value, SettingsError | RueError | ValueError)


@pytest.mark.parametrize(
    ("kind", "spec", "part"),
    [
        ("domain", "ball", "ball takes radius, centre=()"),
        ("domain", "ball:1,2,3", "the domain 'ball:1,2,3' cannot be built ("),
        ("domain", "ball:r=3", "ball takes radius, centre=()"),
        ("domain", "ball:radius=1,2", "multiple values"),
        ("domain", "ball:wide", "Ball: radius must be a number, not 'wide'."),
        ("domain", "ball:nan", "Ball: radius must be a number, not nan."),
        ("domain", "ball:1e400", "Ball: radius must be positive and finite, not inf"),
        ("domain", "box:-1", "missing"),
        ("domain", "box:1,-1", "Box: lower must not exceed upper"),
        ("domain", "box:a,b", "Box: lower must be a number or a list of numbers, not 'a'."),
        ("domain", "reals:3", "cannot be built"),
        (
            "loss",
            "square:3",
            "the loss 'square:3' cannot be built (too many positional arguments): square takes no arg",
        ),
        ("loss", "hinge:3", "Hinge: at_kink must lie between 0 and 1, the slopes on both sides of the kink, not be 3."),
        ("loss", "quantile:2", "Quantile: tau must lie between 0 and 1"),
        ("step", "sqrt", "the step 'sqrt' cannot be built (missing a required argument: 'value'): sqrt takes value."),
        ("step", "sqrt:-1", "Sqrt: value must be positive and finite, not -1.0."),
        ("step", "sqrt:fast", "Sqrt: value must be a number, not 'fast'."),
        ("step", "horizon:0", "Horizon: T must be a number of rounds"),
        ("learner", "ogd:foo=1", "unexpected keyword argument 'foo'"),
        ("learner", "ogd:d=2.5", "OGD: d must be the number of features, not 2.5."),
        ("learner", "ogd:d=-1", "OGD: d must be the number of features, not -1."),
        ("learner", "ogd:domain=3", "OGD: domain must be a rue.Domain or a spec, not 3."),
        ("learner", "svm:0.1,often", "SVM: weighting must be 'uniform' (A5) or 't' (A6), not 'often'."),
        ("learner", "svm:many", "Regularised: lambda_ must be a number, not 'many'."),
        ("learner", "perceptron:0", "Fixed: value must be positive and finite, not 0.0."),
    ],
)
def test_wrong_arguments_are_settings_errors(kind, spec, part):
    with pytest.raises(SettingsError) as caught:
        rue.make(kind, spec)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_class_gets_a_name():
    @register("domain", "test-ball")
    @rue.parameter
    class TestBall(rue.Domain):
        radius: float

    try:
        assert rue.make("domain", "test-ball:3") == TestBall(3.0)
        assert "test-ball" in rue.names("domain")
    finally:
        del _known["domain"]["test-ball"]


def test_a_taken_name_is_refused_and_a_class_defined_again_is_not():
    def define(name):
        return register("domain", "test-twice")(type(name, (rue.Domain,), {}))

    try:
        define("One")
        again = define("One")
        with pytest.raises(SettingsError, match=r"the domain 'test-twice' is test_registry.One already: choose anoth"):
            define("Other")
        assert registered("domain")["test-twice"] is again
    finally:
        del _known["domain"]["test-twice"]


def test_every_module_of_a_folder_is_imported_in_the_order_of_names(tmp_path, monkeypatch):
    folder = tmp_path / "testfolder"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "from rue.registry import import_modules\norder = []\nimport_modules(__name__, __path__)\n"
    )
    for name in ("zeta", "alpha", "mid", "inner/__init__"):
        (folder / f"{name}.py").write_text("from testfolder import order\norder.append(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert importlib.import_module("testfolder").order == [
            f"testfolder.{name}" for name in ("alpha", "mid", "zeta")
        ]
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "testfolder"]:
            del sys.modules[name]


def test_what_is_registered_of_rues_own_is_public():
    own = rue.parameter(type("TestOwn", (rue.Step,), {"__module__": "rue.steps.test_own"}))
    users = rue.parameter(type("TestUsers", (rue.Step,), {"__module__": "mine"}))
    register("step", "test-own")(own)
    register("step", "test-users")(users)
    try:
        space, listed = {"Ball": rue.Ball}, ["Ball"]
        publish(space, listed)
        assert space["TestOwn"] is own
        assert set(space) == set(listed) <= {*rue.__all__, "TestOwn"}
        assert {"Hinge", "OGD", "Theory", "FlipFlop", "Interval"} <= set(listed)
        with pytest.raises(
            SettingsError, match=r"rue.steps.test_own.TestOwn needs another name: there is a rue.TestOwn"
        ):
            publish({"TestOwn": 3}, [])
        assert own_classes("step")["TestOwn"] is own
        assert "TestUsers" not in own_classes("step")
        assert "Interval" not in own_classes("domain")  # a function
    finally:
        del _known["step"]["test-own"], _known["step"]["test-users"]


# Parameters.

PARAMETERS = [
    rue.Ball(10),
    rue.Ball(1, [1, 2]),
    rue.Box(-1, 1),
    rue.Box([0, 1], [2, 3]),
    rue.Interval(0, 1),
    rue.Orthant(),
    rue.Reals(),
    rue.Simplex(),
    rue.L1Ball(3),
    rue.Halfspace([1, 2], 3),
    rue.Hyperplane([1, 2], 3),
    rue.Intersection(rue.Ball(1), rue.Orthant()),
    rue.Hinge(),
    rue.Logistic(),
    rue.Huber(2),
    rue.Quantile(0.9),
    rue.Regularised(rue.Hinge(), 0.1),
    rue.Indicator(rue.Ball(1)),
    rue.Fixed(1),
    rue.Sqrt(1),
    rue.Strong(1),
    rue.Sequence([1, 0.5]),
    rue.Adaptive(),
    rue.Theory(X=2),
    rue.Horizon(100),
    rue.Uniform(),
    rue.BySteps(),
]
each = pytest.mark.parametrize("thing", PARAMETERS, ids=repr)


@each
def test_parameters_are_values(thing):
    others = [other for other in PARAMETERS if other is not thing]
    assert all(thing != other for other in others)
    for same in (pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)):
        assert same == thing
        assert hash(same) == hash(thing)
        assert repr(same) == repr(thing)
        assert type(same) is type(thing)


@each
def test_the_repr_says_what_it_is(thing):
    assert eval(repr(thing), {**vars(rue), "array": np.array}) == thing


@each
def test_parameters_do_not_change(thing):
    for name in [field.name for field in dataclasses.fields(thing)] or ["anything"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, 1.0)
        if dataclasses.fields(thing):
            with pytest.raises(dataclasses.FrozenInstanceError):
                delattr(thing, name)


def vectors(thing):
    found = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    return [field for field in found if isinstance(field, np.ndarray)]


@pytest.mark.parametrize(
    "again",
    [lambda x: x, copy.copy, lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy],
    ids=["made", "copied", "unpickled", "copied deeply"],
)
def test_the_vectors_of_parameters_do_not_change(again):
    found = [vector for thing in PARAMETERS for vector in vectors(again(thing))]
    assert len(found) > 8
    for vector in found:
        assert vector.dtype == np.float64
        assert vector.ndim == 1
        assert not vector.flags.writeable


def test_parameters_keep_a_copy_of_what_they_are_given():
    centre = np.array([1.0, 2.0])
    ball = rue.Ball(1, centre)
    centre[0] = 9.0
    assert ball.centre.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (rue.Ball(10), rue.Ball(10.0)),
        (rue.Ball(10), rue.Ball(np.float32(10))),
        (rue.Ball(10), rue.Ball("10")),
        (rue.Ball(1, [0, 1]), rue.Ball(1, (0.0, 1.0))),
        (rue.Box(-1, 1), rue.Box([-1.0], np.ones(1))),
        (rue.Horizon(100), rue.Horizon(100.0)),
        (rue.Sequence([1, 2]), rue.Sequence(np.array([1, 2]))),
        (rue.Huber(), rue.Huber(1)),
    ],
    ids=repr,
)
def test_numbers_are_made_alike(one, other):
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (rue.Ball(10), rue.L1Ball(10)),
        (rue.Ball(10), rue.Ball(11)),
        (rue.Ball(1, [0, 1]), rue.Ball(1)),
        (rue.Hinge(), rue.Logistic()),
        (rue.Ball(10), 10),
        (rue.Halfspace([1, 2]), rue.Hyperplane([1, 2])),
        (rue.Box(-1, 1), rue.Interval(-1, 1)),
    ],
    ids=repr,
)
def test_different_parameters_differ(one, other):
    assert one != other


def test_reprs():
    assert repr(rue.Ball(10)) == "Ball(radius=10.0)"
    assert repr(rue.Ball(1, [0, 2])) == "Ball(radius=1.0, centre=[0.0, 2.0])"
    assert repr(rue.Box(-1, 1)) == "Box(lower=-1.0, upper=1.0)"
    assert repr(rue.Box([0, 1], 2)) == "Box(lower=[0.0, 1.0], upper=2.0)"
    assert repr(rue.Interval(0, 1)) == "Box(lower=0.0, upper=1.0, coordinates=1)"
    assert repr(rue.Quantile(0.9)) == "Quantile(tau=0.9)"


def test_parameters_serve_as_keys():
    found = {rue.Ball(10): "a", rue.Ball(1, [0.0, 1.0]): "b"}
    assert found[rue.Ball(10.0)] == "a"
    assert found[rue.Ball(1, [0, 1])] == "b"


def test_the_tree_of_errors():
    assert issubclass(UnknownName, SettingsError)
    assert issubclass(SettingsError, RueError)
    assert issubclass(SettingsError, ValueError)
    assert issubclass(rue.BadExample, rue.DataError)
    assert issubclass(rue.DataError, RueError)
    assert issubclass(rue.DataError, ValueError)
    assert issubclass(rue.CheckFailed, AssertionError)


def test_a_bad_example_says_its_row_and_can_be_pickled():
    error = pickle.loads(pickle.dumps(rue.BadExample(7, "it is odd.")))
    assert type(error) is rue.BadExample
    assert str(error) == "row 7 (counting from 0): it is odd."
    assert (error.row, error.why) == (7, "it is odd.")

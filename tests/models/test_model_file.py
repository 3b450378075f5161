"""The model file: what comes back is what went in, whatever happens on the way, and nothing else is ever believed."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import rue
from combinations import DOMAINS, LOSSES, STEPS, build, everything, pairwise, thinned
from conftest import many
from rue.learners import loop
from rue.models.file import MOST_NAMES, Model, load, load_model, save, save_model
from rue.models.schema import COUNTS, FEATURES, HISTORY, POSITION
from rue.models.settings import from_json, read_json, readable, to_json, write_json
from rue.regret.certificates.evidence import open_evidence
from rue.regret.certificates.witnesses import watch

SOURCE = Path(rue.__file__).parents[1]


def stream(learner, n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    if learner.loss.task == "classify":
        y = np.where(y > 0, 1.0, -1.0)
    if not learner.loss.accepts(-1.0):
        y = np.abs(y)
    return X, y


def learn_on(model, X, y):
    """One block, with all that the model keeps."""
    block = rue.Block(X, y)
    model.learner.widen(block)
    model.evidence.widen(model.learner.coordinates)
    out = np.empty(len(block))
    end, why = model.learner.run_block(block, model.evidence.ledger, out, 0)
    assert (end, why) == (len(block), "")
    model.evidence.watch(block, out, model.learner.intercept, model.learner.coordinates)
    return out


def fresh(learner, **kept):
    lambda_ = float(getattr(learner.algorithm, "lambda_", 0.0))
    return Model(learner, open_evidence(learner.loss, lambda_=lambda_, **kept))


def round_trip(model, path, known=()):
    save_model(model, path)
    return load_model(path, known)


def bits(evidence):
    """Everything evidence consists of, down to the bits."""
    parts = [evidence.loss, evidence.lambda_, evidence.penalty]
    for keeper in (evidence.ledger, evidence.largest, evidence.pool, evidence.curvature):
        fields = {} if keeper is None else keeper._asdict()
        for name in {"table", "largest"} & set(fields):  # not the room that is not in use
            fields[name] = fields[name][: keeper.places.size + 1]
        kept = {name for name, a in fields.items() if isinstance(a, np.ndarray)} - {
            "scratch",
            "spots",
            "notes",
            "waiting",
        }
        parts += [(name, a.shape, a.tobytes()) for name, a in fields.items() if name in kept]
    return parts


def same(a, b):
    assert a.learner == b.learner
    assert a.learner._rule == b.learner._rule
    assert repr(a.learner) == repr(b.learner)
    assert type(a.learner._point) is type(b.learner._point)
    assert a.learner.point.tobytes() == b.learner.point.tobytes()
    assert bits(a.evidence) == bits(b.evidence)


# What comes back.

COMBINATIONS = many(pairwise, thinned)(everything())


@pytest.mark.parametrize("parts", COMBINATIONS, ids="-".join)
def test_every_learner_goes_on_bit_for_bit(interpreted, tmp_path, parts):
    model = fresh(build(*parts))
    if "leader" in parts[0] and isinstance(model.learner.loss, rue.Square):
        model = fresh(rue.FollowTheLeader("square", model.learner.domain if parts[2] == "ball" else "reals"))
        X, y = np.empty((40, 0)), np.linspace(-1, 2, 40)
    else:
        X, y = stream(model.learner)
    learn_on(model, X[:23], y[:23])
    again = round_trip(model, tmp_path / "m")
    same(again, model)
    assert np.array_equal(learn_on(again, X[23:], y[23:]), learn_on(model, X[23:], y[23:]), equal_nan=True)
    same(again, model)
    if model.learner.algorithm.averaging:
        assert again.learner.average.tobytes() == model.learner.average.tobytes()
    for domain in (rue.Ball(2), rue.L1Ball(1)):
        assert again.evidence.certificate(domain) == model.evidence.certificate(domain)


def test_each_kind_of_learner_and_average_occurs_among_those():
    seen = {choice[0] for choice in COMBINATIONS}, {choice[4] for choice in COMBINATIONS}
    assert seen == ({choice[0] for choice in everything()}, set(rue.names("average")))
    assert {choice[2] for choice in COMBINATIONS} == set(DOMAINS)


KEPT = [
    {},
    {"units": "largest"},
    {"witnesses": [1.0, 3.0]},
    {"witnesses": 2.0, "units": "largest"},
    {"curvature": True},
]


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_evidence_goes_on_bit_for_bit(interpreted, tmp_path, kept):
    model = fresh(rue.OGD("square", "ball:3"), **kept)
    X, y = stream(model.learner, 60)
    learn_on(model, X[:31], y[:31])
    again = round_trip(model, tmp_path / "m")
    same(again, model)
    for one in (model, again):
        learn_on(one, X[31:], y[31:])
    same(again, model)
    units = kept.get("units", "raw")
    assert again.evidence.certificate(rue.Ball(3), units) == model.evidence.certificate(rue.Ball(3), units)


def test_the_regularisers_part_of_the_evidence_survives(interpreted, tmp_path):
    model = fresh(rue.SVM(0.1))
    model.evidence.penalty = 0.1 + 0.2
    learn_on(model, *stream(model.learner))
    again = round_trip(model, tmp_path / "m")
    assert (again.evidence.lambda_, again.evidence.penalty) == (0.1, 0.1 + 0.2)


def test_compiled_learners_go_on_too(tmp_path):
    model = fresh(rue.OGD("hinge", "ball:10", average="uniform"), witnesses=5.0)
    X, y = (part[:2000] for part in rue.census())
    learn_on(model, X[:900], y[:900])
    again = round_trip(model, tmp_path / "m")
    before = loop.run_rows.compiled(), watch.compiled()
    assert np.array_equal(learn_on(again, X[900:], y[900:]), learn_on(model, X[900:], y[900:]))
    assert (loop.run_rows.compiled(), watch.compiled()) == before  # the same types, so nothing new to compile
    same(again, model)


@pytest.mark.parametrize("d", [None, 0, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("make", [rue.OGD, rue.Perceptron, rue.AdaGrad, lambda **o: rue.OGD("hinge", "simplex", **o)])
def test_learners_that_have_not_begun_come_back(interpreted, tmp_path, make, intercept, d):
    if (d, intercept) == (0, False) and make not in (rue.OGD, rue.Perceptron, rue.AdaGrad):
        return  # a simplex without coordinates has no points
    model = Model(make(intercept=intercept, d=d))
    again = round_trip(model, tmp_path / "m").learner
    assert again == model.learner
    assert (again._point is None, again.d) == (d is None, d or 0)
    assert again.point.tobytes() == model.learner.point.tobytes()
    X, y = stream(again, d=d or 2)
    if d != 0:
        assert np.array_equal(again.run(X, y), model.learner.run(X, y))
        assert again == model.learner


def test_room_beyond_the_width_is_not_kept_and_makes_no_difference(interpreted, tmp_path):
    learner = rue.AdaGrad("hinge", average="uniform")
    X, y = stream(learner, d=9)
    for k in range(1, 10):
        learner.run(sparse.csr_matrix(X[:4, :k]), y[:4])
    assert learner._point.size() > learner.coordinates
    again = round_trip(Model(learner), tmp_path / "m").learner
    assert again._point.size() == learner.coordinates
    assert again == learner
    wider = sparse.csr_matrix(np.hstack([X, X]))
    assert np.array_equal(again.run(wider, y), learner.run(wider, y))
    assert again == learner


def test_minus_zero_is_not_zero(interpreted, tmp_path):
    learner = rue.Perceptron(d=1000)
    learner._point.v[[3, 500]] = -0.0, 5e-324
    again = round_trip(Model(learner), tmp_path / "m").learner
    assert again._point.v.tobytes() == learner._point.v.tobytes()


def test_names_come_back_with_their_types(interpreted, tmp_path):
    learner = rue.OGD("square", "ball:5")
    learner.update({"a": 1.0, 7: 2.0, None: 1.0, 2.5: 1.0, "ü\ud800\0": 3.0}, 1.0)
    again = round_trip(Model(learner), tmp_path / "m").learner
    assert [(type(k), k, j) for k, j in again.names.places.items()] == [
        (type(k), k, j) for k, j in learner.names.places.items()
    ]
    for one in (learner, again):
        one.update({"new": 1.0, "a": -1.0}, 2.0)
    assert again == learner
    assert again.predict({"a": 1.0, "unknown": 9.0}) == learner.predict({"a": 1.0, "unknown": 9.0})


def test_features_with_other_names_cannot_be_saved(interpreted, tmp_path):
    learner = rue.Perceptron()
    learner.update({("a", 1): 1.0}, 1.0)
    with pytest.raises(rue.SettingsError, match=r"the feature \('a', 1\) cannot be saved: name features by text"):
        save(learner, tmp_path / "m")
    assert not list(tmp_path.iterdir())


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


# Names that the file's schema knows have values of their own kinds.
free = st.text().filter(lambda name: name not in {*HISTORY, *COUNTS, *FEATURES, *POSITION})


@settings(max_examples=many(30, 2000))
@given(history=st.lists(st.dictionaries(free, plain), max_size=3), counts=st.dictionaries(free, plain))
def test_what_is_remembered_comes_back_bit_for_bit(tmp_path_factory, history, counts):
    path = tmp_path_factory.mktemp("m") / "m"
    model = Model(rue.OGD(), history=history, counts=counts, features=counts, position=counts)
    again = round_trip(model, path)
    assert repr((again.history, again.counts, again.features, again.position)) == repr(
        (history, counts, counts, counts)
    )


def test_numbers_that_json_has_no_word_for(tmp_path):
    counts = {"a": math.inf, "b": -math.inf, "c": math.nan, "d": np.float64(0.1), "e": (np.int64(3), -0.0)}
    again = round_trip(Model(rue.OGD(), counts=counts), tmp_path / "m").counts
    assert repr(again) == "{'a': inf, 'b': -inf, 'c': nan, 'd': 0.1, 'e': [3, -0.0]}"


@pytest.mark.parametrize("bad", [{1: 2}, {"a": {1, 2}}, {"a": b"x"}, {"a": [np.zeros(2)]}])
def test_what_is_not_json_is_refused_when_saved(tmp_path, bad):
    with pytest.raises(rue.SettingsError, match=r"^counts: .*\.$"):
        save(Model(rue.OGD(), counts=bad), tmp_path / "m")


@pytest.mark.parametrize(
    "labels",
    [
        None,
        rue.Labels("regress"),
        rue.Labels("classify", "ham", None),
        rue.Labels("classify", 0, 1),
        rue.Labels("classify", -1.0, 1.0),
        rue.Labels("classify", False, True),
    ],
    ids=str,
)
def test_labels_come_back(tmp_path, labels):
    again = round_trip(Model(rue.OGD(), labels=labels), tmp_path / "m").labels
    assert repr(again) == repr(labels)


def test_names_of_slots_come_back_the_first_65536(tmp_path):
    names = {j * 7: f"column={j}" for j in range(MOST_NAMES + 5)}
    again = round_trip(Model(rue.OGD(), names=names), tmp_path / "m").names
    assert again == dict(list(names.items())[:MOST_NAMES])


def test_runs_and_learners_can_be_saved_as_they_are(interpreted, tmp_path):
    run = rue.learn([[1.0], [2.0], [1e200], [1.0]], ["no", "yes", "no", "yes"], learner=rue.OGD("logistic"))
    save(run, tmp_path / "run")
    model = load(tmp_path / "run")
    assert model.learner == run.learner
    assert model.labels == run.labels
    assert model.counts == run.counts
    assert [model.counts[name] for name in ("refused", "skipped", "unlabelled", "missing")] == [1, 0, 0, 0]
    assert model.history[0]["examples"] == 3
    assert model.evidence.certificate(rue.Ball(1)) == run.evidence.certificate(rue.Ball(1))
    save(run.learner, tmp_path / "learner")
    assert load(tmp_path / "learner").learner == run.learner
    with pytest.raises(rue.SettingsError, match="give a run, a model, a learner or an estimator of rue's, not list"):
        save([], tmp_path / "x")


def test_a_wide_model_with_few_features_is_a_small_file(tmp_path, interpreted):
    d, used = 2**20, 500
    rng = np.random.default_rng(1)
    for learner in (rue.AdaGrad("logistic", scale="largest", average="uniform"), rue.OGD("hinge", average="uniform")):
        model = fresh(learner, units="largest")
        columns = rng.choice(d, used, replace=False)
        X = sparse.csr_matrix((np.ones(used), (np.arange(used) % 50, columns)), shape=(50, d))
        learn_on(model, X, np.where(rng.random(50) < 0.5, 1.0, -1.0))
        again = round_trip(model, tmp_path / "m")
        assert os.path.getsize(tmp_path / "m") < used * (7 * 8 + 4 * 4) + 6000
        same(again, model)


def test_the_same_model_is_the_same_file(tmp_path, interpreted):
    model = fresh(rue.OGD(average="uniform"), witnesses=1.0)
    learn_on(model, *stream(model.learner))
    for name in "ab":
        save_model(model, tmp_path / name)
    save_model(load_model(tmp_path / "a"), tmp_path / "c")
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1


# Settings.


@pytest.mark.parametrize("setting", [*DOMAINS.values(), *STEPS.values(), *LOSSES.values()], ids=repr)
def test_settings_are_json(setting):
    text = write_json(to_json(setting))
    assert from_json(read_json(text)) == setting


def test_infinite_settings_and_every_bit_of_a_float():
    for setting in (rue.Box([-math.inf, 0.1], [1e-320, math.inf]), rue.Fixed(0.1 + 0.2), rue.Ball(5e-324)):
        assert from_json(read_json(write_json(to_json(setting)))) == setting


def test_every_registered_class_can_be_read():
    from rue.registry import registered

    for kind in ("loss", "domain", "step", "average"):
        for made in registered(kind).values():
            assert not isinstance(made, type) or readable()[made.__name__] is made
    assert not any(name.startswith("_") or name.endswith("Rule") for name in readable())


@pytest.mark.parametrize(
    "value",
    [
        {"os.system": {"command": "true"}},
        {"Ball": {"radius": -1.0}},
        {"Ball": {"radius": "wide"}},
        {"Ball": {"radius": 1.0, "colour": 2}},
        {"Ball": [1.0]},
        {"Ball": 3},
        {"Ball": {}, "Box": {}},
        {},
        {"Intersection": [{"Ball": {"radius": 1.0}}]},
        {"Intersection": {"sets": 3}},
        {"Intersection": [1, 2]},
        {"Box": {"lower": 0, "upper": 1, "coordinates": 2**70}},
        {"GradientRule": {}},
        {"Learner": {}},
        {"_End": {}},
    ],
    ids=str,
)
def test_settings_that_make_no_sense(value):
    with pytest.raises((rue.RueError, TypeError)):
        from_json(value)


@rue.parameter
class LogCosh(rue.Loss):
    scale: float = 1.0
    lipschitz = 1.0

    def value(self, p, y):
        return abs(p - y) + math.log1p(math.exp(-2 * abs(p - y))) - math.log(2)

    def slope(self, p, y):
        return math.tanh(p - y)


def test_a_class_of_the_users_own_is_handed_over(interpreted, tmp_path):
    model = fresh(rue.OGD(LogCosh(2.0), "ball:1"))
    X, y = stream(model.learner)
    learn_on(model, X[:20], y[:20])
    again = round_trip(model, tmp_path / "m", known=[LogCosh])
    assert np.array_equal(learn_on(again, X[20:], y[20:]), learn_on(model, X[20:], y[20:]))
    same(again, model)
    with pytest.raises(
        rue.DataError,
        match=r"this rue can read: .*'LogCosh'.* hand it over: rue\.load\(path, known=",
    ):
        load(tmp_path / "m")


def test_a_class_named_like_one_of_rues_cannot_be_saved(interpreted, tmp_path):
    Hinge = rue.parameter(type("Hinge", (rue.Hinge,), {"__module__": "mine"}))
    with pytest.raises(rue.SettingsError, match="your class Hinge cannot be saved, because rue has a Hinge too"):
        save(rue.OGD(Hinge(), "ball:1"), tmp_path / "m")


@rue.parameter
class Peculiar(rue.Step):
    value: float

    def __init__(self, half):
        object.__setattr__(self, "value", 2.0 * half)

    def eta(self, t, seen):
        return self.value


@rue.parameter
class Doubling(rue.Step):
    value: float

    def __init__(self, value):
        object.__setattr__(self, "value", 2.0 * value)

    def eta(self, t, seen):
        return self.value


def test_a_class_that_is_rebuilt_as_another_cannot_be_saved(interpreted, tmp_path):
    with pytest.raises(
        rue.SettingsError, match=r"Doubling\(value=1.0\).* cannot be saved: built from its fields it is"
    ):
        save(rue.OGD("hinge", "ball:1", Doubling(0.5)), tmp_path / "m")


def test_a_class_that_cannot_be_rebuilt_cannot_be_saved(interpreted, tmp_path):
    with pytest.raises(rue.SettingsError, match=r"Peculiar.* cannot be saved, because it cannot be built"):
        save(rue.OGD("hinge", "ball:1", Peculiar(0.5)), tmp_path / "m")


def test_an_algorithm_of_the_users_own_cannot_be_saved(interpreted, tmp_path):
    from rue.learners.gradient import Gradient

    mine = rue.parameter(type("Mine", (Gradient,), {"__module__": "mine"}))
    algorithm = mine("Mine", rue.Hinge(), rue.Ball(1), rue.Fixed(1), rue.Uniform())
    with pytest.raises(rue.SettingsError, match="Mine is an algorithm of your own: only rue's can be saved"):
        save(rue.Learner(algorithm), tmp_path / "m")


def test_what_is_registered_nowhere_is_not_saved_and_what_is_can_be_loaded(interpreted, tmp_path):
    """A step of rue's own that model files cannot name: it was saved, and could not be loaded."""
    from rue.registry import _known, register

    body = {"__module__": "rue.steps.slow", "eta": lambda self, t, seen: 0.1 / t}
    slow = rue.parameter(type("Slow", (rue.Step,), body))
    with pytest.raises(rue.SettingsError, match=r"cannot be saved.*the settings name 'Slow', which this rue does not"):
        save(rue.OGD("hinge", "ball:1", slow()), tmp_path / "m")
    assert not (tmp_path / "m").exists()
    register("step", "slow")(slow)
    try:
        save(rue.OGD("hinge", "ball:1", slow()), tmp_path / "m")
        assert type(load(tmp_path / "m").learner.algorithm.step) is slow
    finally:
        del _known["step"]["slow"]


def test_settings_that_only_a_file_can_hold_are_refused():
    from rue.learners.adaptive import Diagonal
    from rue.learners.gradient import Gradient

    with pytest.raises(rue.SettingsError, match="rate must be positive"):
        Diagonal("AdaGrad", rue.Hinge(), rue.Reals(), rue.Uniform(), 0.0, 1.0, False)
    for lambda_ in (-1.0, math.inf):
        with pytest.raises(rue.SettingsError, match="OGD: lambda_ must be ≥ 0 and finite"):
            Gradient("OGD", rue.Hinge(), rue.Ball(1), rue.Fixed(1), rue.Uniform(), lambda_)


def test_weights_too_large_for_a_norm_certify_nothing_but_do_not_stop_the_report(interpreted):
    with np.errstate(over="ignore"):
        run = rue.learn([[1.0], [1.0]], [1.0, 1.0], learner=rue.AdaGrad("hinge", rate=1e160))
        assert "nothing is proved" in str(run.certificate())


def test_a_first_point_that_is_not_zero(interpreted, tmp_path):
    learner = rue.AdaGrad("square", rue.Box(0.5, 1.0), d=2)
    assert learner.point.tolist() == [0.5, 0.5, 0.5]
    again = round_trip(Model(learner), tmp_path / "m").learner
    assert again == learner
    X, y = stream(learner, d=2)
    assert np.array_equal(again.run(X, y), learner.run(X, y))

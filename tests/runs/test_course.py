"""The members over time, in the model file: what comes back is what went in, and going on is not having stopped."""

import functools
import math

import numpy as np
import pytest
from scipy import sparse

import rue
from commands import stream
from forging import array, forge, reason, refused_or_usable, setting
from rue.learners.mixture.layout import DIAGONAL
from rue.learners.mixture.pool import COLUMNS
from rue.learners.mixture.standing import MOST_LOOKS, Course
from rue.models.container import read_container
from rue.models.file import Model, load, save
from rue.reports.inspection import describe
from rue.runs.driver import Driver

learn = functools.partial(rue.learn, maps=None)  # the linear mixture


@pytest.fixture(autouse=True)
def uncompiled(interpreted):
    """The course is told in plain Python."""


def bits(course):
    """Everything a course consists of, NaN and −0 too."""
    parts = [np.array(part, dtype=np.float64) for part in (course.loss, course.losses, course.weights)]
    return course.t, course.seen, [(part.shape, part.tobytes()) for part in parts]


def data(kind, rows=90):
    """Some rows, how a pass over them starts, and how many members there are."""
    X, y = stream(rows, d=3)
    if kind == "classes":
        return X, np.array(["red", "green", "blue"])[np.argmax(X, axis=1)], {}, 48
    if kind == "list":
        return X, y, {"learner": rue.Mixture(members=["ogd", "adagrad", "adaptive"])}, 3
    if kind == "wide":  # kinds of members that need few features retire
        return sparse.csr_matrix(np.eye(rows)), y, {}, 48
    return X, y, {}, 48


KINDS = ["narrow", "wide", "classes", "list"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_course_comes_back_bit_for_bit(tmp_path, kind):
    X, y, how, many = data(kind)
    run = learn(X, y, **how)
    save(run, tmp_path / "m")
    again = load(tmp_path / "m")
    assert bits(again.course) == bits(run.course)
    assert len(again.course.t) > 15
    assert np.array(again.course.weights).shape == (len(again.course.t), many)
    assert np.isnan(again.course.losses[-1]).any() == (kind == "wide")
    assert not np.isnan(again.course.losses[0]).any()
    save(again, tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_is_not_having_stopped(tmp_path, kind):
    X, y, how, _ = data(kind)
    driver = Driver(**how)
    driver.learn(rue.Block(X, y))
    for cut in (1, 40, 64, 89):
        first = learn(X[:cut], y[:cut], task="multiclass" if kind == "classes" else "auto", **how)
        save(first, tmp_path / "m")
        found = load(tmp_path / "m")
        on = Driver.resume(found.learner, found.labels, found.evidence, course=found.course)
        on.learn(rue.Block(X[cut:], y[cut:]))
        assert bits(on.course) == bits(driver.course)


def test_marks_count_what_was_left_out_too(tmp_path):
    """Refused and skipped examples are not learnt, and the next look is still where it would have been."""
    X, y = stream(90)
    X[[3, 20, 50], 1], X[[5, 30], 0] = np.nan, 1e200
    whole, first = (Driver(bad="skip") for _ in "ab")
    whole.learn(rue.Block(X, y))
    first.learn(rue.Block(X[:41], y[:41]))
    assert (first.course.seen, first.learner.t) == (41, 37)
    save(Model(first.learner, first.evidence, first.labels, course=first.course), tmp_path / "m")
    found = load(tmp_path / "m")
    on = Driver.resume(found.learner, found.labels, found.evidence, course=found.course, bad="skip")
    on.learn(rue.Block(X[41:], y[41:]))
    assert bits(on.course) == bits(whole.course)
    stopping = Driver()
    stopping.learn(rue.Block(X, y))
    assert stopping.stopped.row == 3
    assert (stopping.course.seen, stopping.course.t) == (3, [1, 2, 3])


def test_the_picture_of_a_model_is_that_of_its_run(tmp_path):
    X, y = stream(200)
    run = learn(X, y)
    save(run, tmp_path / "m")
    run.plot_members(tmp_path / "run.svg")
    load(tmp_path / "m").plot_members(tmp_path / "model.svg")
    assert (tmp_path / "run.svg").read_bytes() == (tmp_path / "model.svg").read_bytes()
    with pytest.raises(rue.SettingsError, match="give the run or the model of a mixture"):
        rue.plot_members(Model(rue.OGD()))
    with pytest.raises(rue.SettingsError, match="no example was learnt"):
        rue.plot_members(Model(rue.Mixture()))


def test_inspect_tells_how_weight_has_moved():
    X, y = stream(200)
    run = learn(X, y)
    lines = describe(Model(run.learner, run.evidence, run.labels, course=run.course)).split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("  weight after"))
    shown = [int(word.replace(",", "")) for word in lines[at].split()[2:]]
    assert shown[-1] == 200
    assert set(shown[:-1]) < set(run.course.t)
    leader = run.members.heaviest()[0]
    assert lines[at + 1].startswith(f"  {leader} ")
    weights = dict(zip(run.course.t, run.course.weights, strict=True))
    place = run.members.members.index(leader)
    wanted = [f"{weights[t][place]:.0%}" for t in shown[:-1]] + [f"{leader.weight:.0%}"]
    assert lines[at + 1].split()[-5:] == wanted
    assert "weight after" not in describe(Model(run.learner))
    wide = learn(*data("wide")[:2])
    page = describe(Model(wide.learner, course=wide.course))
    assert all(line.rstrip() == line and len(line) < 120 for line in page.split("\n") if line.startswith("  weight"))
    exact = learn(X[:64], y[:64])  # which ends at a mark
    line = next(x for x in describe(Model(exact.learner, course=exact.course)).split("\n") if "weight after" in x)
    assert line.split()[-1] == "64"
    assert line.split().count("64") == 1


NEW = ("copies", "divisors", "copied_matrices", "candidates", "trial", "carried")
"""Arrays of a mixture that later formats have first."""


def test_a_file_of_before_has_no_course(tmp_path):
    """Format 1 knew none: it is read, and the looks begin where the learner stands."""
    X, y = stream(70)
    run = learn(X[:50], y[:50], learner=rue.Mixture("logistic", share=None))
    save(run, tmp_path / "m")

    def older(head, arrays):
        head["format"] = 1
        del head["learner"]["algorithm"]["Pooled"]["share"], head["evidence"]["windows"]
        kinds = arrays["point.weights"].reshape(-1, DIAGONAL, 8)
        arrays["point.weights"] = (
            kinds[:, list(COLUMNS)].reshape(len(kinds), -1).copy()
        )  # in the order of their numbers
        del head["course"], head["metrics"]
        later = ("course.", "metrics.", "windows.", *(f"point.{new}" for new in NEW))
        for name in [name for name in arrays if name.startswith(later)]:
            del arrays[name]

    found = load(forge(tmp_path / "m", tmp_path / "old", older))
    assert np.array_equal(found.learner.point, run.learner.point)
    assert bits(found.course) == bits(Course(seen=50))
    assert "weight after" not in describe(found)
    on = Driver.resume(found.learner, found.labels, found.evidence, course=found.course)
    on.learn(rue.Block(X[50:], y[50:]))
    assert on.course.t == [54, 64]
    save(found, tmp_path / "again")
    assert read_container(tmp_path / "again")[0]["course"] == [2, 70]
    rue.plot_members(load(tmp_path / "old"))


def test_learners_without_members_and_those_that_were_not_watched_have_none(tmp_path):
    X, y = stream(30)
    for what in (learn(X, y, learner="ogd"), rue.Mixture(), learn(X, y).learner):
        save(what, tmp_path / "m")
        head, arrays = read_container(tmp_path / "m")
        assert head["course"] is None
        assert not [name for name in arrays if name.startswith("course")]
        save(load(tmp_path / "m"), tmp_path / "n")
        assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


def test_the_course_of_another_learner_is_not_saved(tmp_path):
    X, y = stream(60)
    course = learn(X, y).course
    for learner in (rue.OGD(), rue.Mixture(), learn(X[:20], y[:20]).learner, rue.Mixture(budget=10_000, d=5)):
        with pytest.raises(rue.SettingsError, match="the course is not that of this learner"):
            save(Model(learner, course=course), tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    with pytest.MonkeyPatch.context() as patch:
        from rue.compiled import Kernel

        patch.setattr(Kernel, "resolve", lambda kernel, *args: kernel.interpreted)
        save(learn(*stream(40)), path)
    return path


def damaged(name, change):
    def forged(head, arrays):
        arrays[name] = arrays[name].copy()
        change(arrays[name])

    return forged


NONSENSE = [
    setting("course", value=None),
    setting("course", value=[0, 40]),
    setting("course", value=[MOST_LOOKS + 1, 40]),
    setting("course", value=[2**62, 40]),
    setting("course", value=[-1, 40]),
    setting("course", value=[20]),
    setting("course", value="20"),
    setting("course", 1, value=-1),
    setting("course", 1, value=2**60),
    setting("course", 1, value=math.nan),
    setting("course", 0, value=True),
    array("course.t", None),
    array("course.t", np.arange(5)),
    array("course.losses", np.zeros((10**6, 48))),
    array("course.losses", np.zeros((2, 10**6))),
    array("course.weights", np.zeros((20, 47))),
    array("course.weights", np.zeros(48, dtype=np.float32)),
    damaged("course.t", lambda t: t.__setitem__(3, 2)),
    damaged("course.t", lambda t: t.__setitem__(0, -5)),
    damaged("course.t", lambda t: t.__setitem__(-1, 41)),
    damaged("course.t", lambda t: t.__setitem__(-1, 2**62)),
    damaged("course.loss", lambda loss: loss.__setitem__(2, math.nan)),
    damaged("course.losses", lambda losses: losses.__setitem__((2, 5), -math.inf)),
    damaged("course.losses", lambda losses: losses.__setitem__(2, math.nan)),
    damaged("course.weights", lambda weights: weights.__setitem__((2, 5), math.nan)),
    damaged("course.weights", lambda weights: weights.__setitem__((2, 5), -0.1)),
    damaged("course.weights", lambda weights: weights.__setitem__((2, 5), 1e300)),
    damaged("course.weights", lambda weights: weights.__setitem__(2, 0.0)),
]


@pytest.mark.parametrize("change", NONSENSE, ids=range(len(NONSENSE)))
def test_a_course_that_makes_no_sense_is_refused_in_a_sentence(file, tmp_path, change):
    assert refused_or_usable(forge(file, tmp_path / "m", change))


def test_what_is_wrong_is_said(file, tmp_path):
    path = tmp_path / "m"
    assert "the course of its members is impossible" in reason(forge(file, path, NONSENSE[17]))
    assert "257 stands where a number of things belongs" in reason(forge(file, path, NONSENSE[2]))
    assert "course.losses has the wrong shape" in reason(forge(file, path, NONSENSE[13]))
    assert "arrays that do not belong to it" in reason(forge(file, path, NONSENSE[0]))
    assert not refused_or_usable(forge(file, path, damaged("course.losses", lambda a: a.__setitem__((2, 5), math.nan))))


def test_any_array_of_it_replaced_by_anything(file, tmp_path):
    rng = np.random.default_rng(1)
    _, arrays = read_container(file)
    for name in [name for name in arrays if name.startswith("course.")]:
        for kind in ("f8", "i8", "u4", "u1"):
            shape = arrays[name].shape
            value = np.frombuffer(rng.bytes(math.prod(shape) * np.dtype(kind).itemsize), dtype=kind)
            refused = refused_or_usable(forge(file, tmp_path / "m", array(name, value.reshape(shape))))
            assert refused or name in ("course.loss", "course.losses")  # any finite number can have been lost


def test_the_commands_go_on_with_the_course(tmp_path, inside):
    """Stopped and resumed is uninterrupted, and more data go on with the race."""
    X, y = stream(130)

    def write(name, rows):
        lines = [",".join(map(repr, [*X[i].tolist(), y[i]])) for i in rows]
        (tmp_path / name).write_text("a,b,c,d,e,y\n" + "\n".join(lines) + "\n")
        return tmp_path / name

    whole, one, two = write("whole.csv", range(130)), write("one.csv", range(80)), write("two.csv", range(80, 130))
    inside("learn", whole, "--target", "y", "--model", tmp_path / "w.rue", "-q")
    wanted = load(tmp_path / "w.rue")
    inside("learn", one, "--target", "y", "--model", tmp_path / "m.rue", "--checkpoint", tmp_path / "c.rue", "-q")
    assert bits(load(tmp_path / "c.rue").course) == bits(load(tmp_path / "m.rue").course)
    inside("learn", two, "--resume", tmp_path / "m.rue", "--model", tmp_path / "n.rue", "-q")
    found = load(tmp_path / "n.rue")
    assert bits(found.course) == bits(wanted.course)
    assert found.learner == wanted.learner
    for name in "wn":
        shown = inside("inspect", tmp_path / f"{name}.rue", "--plot", tmp_path / f"{name}.svg").out
        assert "weight after" in shown
    assert (tmp_path / "w.svg").read_bytes() == (tmp_path / "n.svg").read_bytes()
    assert ".png, .svg or .pdf" in inside("inspect", tmp_path / "w.rue", "--plot", tmp_path / "x.txt", ok=2).err
    inside("learn", one, "--target", "y", "--learner", "ogd", "--model", tmp_path / "o.rue", "-q")
    assert "others have no members" in inside("inspect", tmp_path / "o.rue", "--plot", tmp_path / "o.svg", ok=2).err

"""How the members of a mixture stand, now and over time; certificates and budget of the default learner."""

import functools
import json
import math

import numpy as np
import pytest
from scipy import sparse

import rue
from commands import read, run, stream, write_svm
from rue.learners.mixture.layout import ETA
from rue.learners.mixture.mixture import KIND_NAMES
from rue.learners.mixture.standing import Course, next_mark, standing
from rue.learners.softmax.multiclass import SOFTMAX_NAMES
from rue.regret.certificates.evidence import open_evidence
from rue.regret.certificates.witnesses import FEW, MIDDLE, RATES
from rue.reports.report import page, report
from rue.runs.driver import Driver
from rue.streams import blocks

learn = functools.partial(rue.learn, maps=None)  # the linear mixture


def column(found, name):
    return np.array([getattr(member, name) for member in found.members])


@pytest.mark.parametrize("loss", ["logistic", "square", "absolute", "hinge"])
def test_members_and_the_price_of_not_knowing_the_rate(loss):
    X, y = stream(task=rue.make("loss", loss).task)
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(y))
    made = learn(X, y, learner=rue.Mixture(loss), weights=weights)
    found = made.members
    losses, shares = column(found, "loss"), column(found, "weight")
    assert found.loss == pytest.approx(made.loss, rel=1e-12)
    assert found.best.loss == losses.min()
    assert found.price == pytest.approx(made.loss - losses.min(), rel=1e-9)
    assert found.price <= found.price_at_most
    without = learn(X, y, learner=rue.Mixture(loss, share=None), weights=weights)
    losses, shares = column(without.members, "loss"), column(without.members, "weight")
    made, found = without, without.members
    eta = 1.0 / weights.max() if loss == "logistic" else made.learner._point.memory[ETA]
    wanted = np.exp(-eta * (losses - losses.min()))
    np.testing.assert_allclose(shares, wanted / wanted.sum(), rtol=1e-6, atol=1e-12)
    assert found.theorem == "B12"
    if loss == "logistic":
        assert found.price_at_most == pytest.approx(weights.max() * math.log(len(losses)))
    else:  # AdaHedge: η = ln K / Σ gaps
        assert found.price_at_most == pytest.approx(2.0 * math.log(len(losses)) / eta)
    assert {member.kind for member in found.members} == set(KIND_NAMES)
    assert found.bytes_per_feature == made.learner.algorithm.bytes_per_feature(None)
    assert str(found).count("\n") == 1


def test_members_of_a_list_of_learners():
    X, y = stream()
    X /= np.abs(X).max(axis=0)  # larger predictions are clipped before they are mixed
    made = learn(X, y, learner=rue.Mixture(members=["ogd", "adagrad"]))
    found = made.members
    alone = [learn(X, y, learner=name).loss for name in ("ogd", "adagrad")]
    np.testing.assert_allclose(column(found, "loss"), alone, rtol=1e-9)
    assert [member.kind.split("(")[0] for member in found.members] == ["OGD", "AdaGrad"]
    assert [member.rate for member in found.members] == [None, None]
    assert found.loss == pytest.approx(made.loss)
    assert found.price == pytest.approx(made.loss - min(alone))
    assert found.price_at_most == pytest.approx(math.log(2.0) + math.log(len(y)))
    assert found.bytes_per_feature == 5 * 8  # a number for OGD, four for AdaGrad
    assert len(made.course.t) > 20
    assert "OGD(" in str(found)


def test_members_of_a_mixture_of_more_classes():
    X, _ = stream(400)
    y = np.argmax(X @ np.random.default_rng(3).standard_normal((5, 3)), axis=1)
    made = learn(X, y, task="multiclass")
    found = made.members
    losses = column(found, "loss")
    assert found.loss == pytest.approx(made.loss)
    assert found.price == pytest.approx(made.loss - losses.min())
    assert found.price <= found.price_at_most == pytest.approx(math.log(48) + math.log(400))
    without = learn(X, y + 1, learner=rue.SoftmaxMixture(share=None), task="multiclass").members
    assert without.price_at_most == pytest.approx(math.log(48))
    wanted = np.exp(column(without, "loss").min() - column(without, "loss"))
    np.testing.assert_allclose(column(without, "weight"), wanted / wanted.sum(), rtol=1e-6, atol=1e-12)
    assert {member.kind for member in found.members} == set(SOFTMAX_NAMES)
    copies = 4 * 96 + 32  # of the members' weights, which are tried as they stand still
    assert found.bytes_per_feature == 4 * made.learner.algorithm.budget + 40 + copies  # of four classes; the statistics


def test_kinds_that_retire_have_no_weight_and_are_never_the_best():
    X = np.eye(200)[np.random.default_rng(0).permutation(200)]
    y = np.where(np.arange(200) % 3, 1.0, -1.0)
    found = learn(sparse.csr_matrix(X), y).members
    assert [member.running for member in found.members].count(False) == len(found.members) // 3
    assert all(member.weight == 0.0 for member in found.members if not member.running)
    assert found.best.running
    assert sum(member.weight for member in found.members) == pytest.approx(1.0)
    assert column(found, "loss").min() < found.best.loss  # those that stopped early have lost less, which is no merit


def test_before_the_first_example_and_for_other_learners():
    found = standing(rue.Mixture())
    assert (found.loss, found.price) == (0.0, 0.0)
    assert found.price_at_most == pytest.approx(np.log(48))  # ln K before the first example as ever after
    assert len({member.weight for member in found.members}) == 1
    assert standing(rue.OGD()) is None
    X, y = stream(20)
    assert learn(X, y, learner="ogd").members is None


def test_marks_are_a_fifth_apart():
    marks, seen = [], 0
    while seen < 10**7:
        seen = next_mark(seen)
        marks.append(seen)
    assert marks[:12] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16]
    assert marks == sorted({round(2 ** (k / 4)) for k in range(200) if round(2 ** (k / 4)) <= marks[-1]})
    assert len(marks) < 100


def test_the_course_does_not_depend_on_blocks_and_changes_nothing():
    X, y = stream(1000)
    alone = rue.Mixture().run(X, y)
    courses = []
    for size in (1000, 1, 37):
        going = Driver()
        out = [going.learn(rue.Block(X[i : i + size], y[i : i + size])) for i in range(0, 1000, size)]
        assert np.array_equal(np.concatenate(out), alone)
        courses.append(going.course)
    assert courses[0].t == courses[1].t == courses[2].t
    assert courses[0].t[-3:] == [609, 724, 861]
    assert np.array_equal(courses[0].losses, courses[1].losses)
    assert np.array_equal(courses[0].weights, courses[2].weights)
    assert len(courses[1].t) < 40
    for t, loss in zip(courses[0].t, courses[0].loss, strict=True):
        assert loss == pytest.approx(learn(X[:t], y[:t]).loss, rel=1e-12)


def test_rows_are_counted_in_their_block_whatever_is_cut():
    X, y = stream(900)
    X[777, 2] = np.nan
    with pytest.raises(rue.BadExample) as caught:
        learn(X, y)
    assert caught.value.row == 777
    skipping = learn(X, y, bad="skip")
    assert skipping.skipped == 1
    assert np.flatnonzero(np.isnan(skipping.predictions)).tolist() == [777]
    assert Course().t == []


def test_report_page_and_inspect_name_the_members(tmp_path):
    X, y = stream()
    going = Driver()
    for block in blocks(X, y):
        going.learn(block)
    said = json.loads(json.dumps(report(going)))
    mixture = said["mixture"]
    assert {"kind", "rate", "loss", "weight", "running"} == set(mixture["best"])
    assert len(mixture["members"]) == 48
    assert mixture["price"] == pytest.approx(mixture["loss"] - mixture["best"]["loss"])
    shown = page(said)
    assert "trying them all cost" in shown
    assert "B12" not in shown
    assert "second order" not in shown
    assert mixture["theorem"] == "B15"
    assert "48 learners side by side, most weight: " in shown
    going = Driver("ogd")
    going.learn(next(iter(blocks(X, y))))
    assert report(going)["mixture"] is None
    assert report(going)["certificates"] is None
    rue.save(learn(X, y), tmp_path / "m.rue")
    assert "trying them all cost" in run("inspect", tmp_path / "m.rue").stdout


def test_the_race_of_the_members_is_drawn(tmp_path):
    X, y = stream(2000)
    made = learn(X, y)
    ax = rue.plot_members(made)
    best = made.members.best
    assert f"{best.kind}, rate {best.rate:.2g}" in [line.get_label() for line in ax.lines]
    bound = next(line for line in ax.lines if line.get_label().startswith("B15"))
    drawn = np.concatenate([line.get_ydata() for line in ax.lines if line.get_label().startswith("_")])
    assert bound.get_ydata()[0] == -made.members.price_at_most
    assert np.nanmin(drawn) >= bound.get_ydata()[0] * (1.0 + 1e-9)
    made.plot_members(tmp_path / "m.svg")
    assert (tmp_path / "m.svg").stat().st_size > 1000
    with pytest.raises(rue.SettingsError, match="others have no members"):
        rue.plot_members(learn(X, y, learner="ogd"))


def test_quick_witnesses_are_few_and_keep_no_digest():
    loss = rue.Logistic()
    pool = open_evidence(loss, witnesses=(1, 100, 10), quick=True).pool
    assert list(zip(pool.radii.tolist(), pool.rates.tolist(), strict=True)) == [
        (1.0, *MIDDLE),
        *((100.0, rate) for rate in FEW),
        (10.0, *MIDDLE),
    ]
    assert pool.table.shape[1] * pool.table.itemsize == 64, "one line of the cache"
    assert open_evidence(loss, witnesses=10, quick=True).pool.rates.tolist() == list(RATES)
    assert open_evidence(loss, witnesses=10, quick=True).digest is None
    assert open_evidence(loss, witnesses=10).digest is not None


def test_the_command_certifies_at_three_radii_and_is_right(tmp_path):
    X, y = write_svm(tmp_path / "s.svm")
    done = run("learn", tmp_path / "s.svm", "--linear", "--report", tmp_path / "r.json", "-q")
    said = read(tmp_path / "r.json")
    assert [found["radius"] for found in said["certificates"]] == [1.0, 10.0, 100.0]
    made = learn(sparse.csr_matrix(X), y)
    norm = float(np.linalg.norm(made.learner.point * made.learner.scales))
    assert said["certificate"]["radius"] in {k * 10.0**e for k in (1, 3) for e in range(-4, 6)}
    assert norm / 2e3 < said["certificate"]["radius"] < norm * 2e3  # one that says something, and round
    assert said["certificate"]["within"] <= 0.25
    scaled = X / np.maximum(1e-300, np.abs(X).max(axis=0))
    for found in [*said["certificates"], said["certificate"]]:
        assert (found["units"], found["witnesses"]) == ("largest", 4)
        best = rue.best_in_hindsight(scaled, y, loss="logistic", radius=found["radius"])
        assert made.loss - best.value <= found["regret_at_most"] + 1e-6
        assert found["regret_at_most"] <= made.certificate(radius=found["radius"]).regret_at_most + 1e-6
        assert found["comparator_loss_at_least"] == pytest.approx(said["loss_total"] - found["regret_at_most"])
    assert "\nnorm ≤ 100   no mean loss below " in done.stdout
    run("learn", tmp_path / "s.svm", "--radius", 3, "--report", tmp_path / "r.json", "-q")
    said = read(tmp_path / "r.json")
    assert [said["certificate"]] == said["certificates"]
    run("learn", tmp_path / "s.svm", "--learner", "ogd", "--report", tmp_path / "r.json", "-q")
    assert read(tmp_path / "r.json")["certificates"] is None


def test_budget_on_the_command_line(tmp_path, inside):
    write_svm(tmp_path / "s.svm", rows=50)
    least = standing(rue.Mixture(budget=10_000)).bytes_per_feature
    inside("learn", tmp_path / "s.svm", "--budget", 10_000, "--linear", "--report", tmp_path / "r.json", "-q")
    assert read(tmp_path / "r.json")["mixture"]["bytes_per_feature"] == least
    smaller = standing(rue.Mixture(budget=199)).bytes_per_feature
    inside(
        "learn",
        tmp_path / "s.svm",
        "--budget",
        199,
        "--linear",
        "--loss",
        "logistic",
        "--report",
        tmp_path / "r.json",
        "-q",
    )
    assert read(tmp_path / "r.json")["mixture"]["bytes_per_feature"] == smaller < 360
    inside("audit", tmp_path / "s.svm", "--budget", 199, "--linear", "--report", tmp_path / "r.json", "-q")
    assert read(tmp_path / "r.json")["mixture"]["bytes_per_feature"] == smaller
    for command in ("learn", "audit"):
        assert (
            "the learner 'ogd' takes no --budget"
            in inside(command, tmp_path / "s.svm", "--budget", 199, "--learner", "ogd", "-q", ok=2).err
        )
    assert "at least" in inside("learn", tmp_path / "s.svm", "--budget", 5, "--linear", "-q", ok=2).err
    inside("learn", tmp_path / "s.svm", "--linear", "--model", tmp_path / "m.rue", "-q")
    assert (
        "--budget contradicts --resume"
        in inside("learn", tmp_path / "s.svm", "--resume", tmp_path / "m.rue", "--budget", 199, "-q", ok=2).err
    )

"""Races: one reading, everyone scored and certified alike; peers against what one would type without rue."""

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import rue
from commands import run, write_svm
from rue.cli.commands.race import _split
from rue.race import peers
from rue.race.peers import open_peer
from rue.race.race import Racing


def stream(rows=250, d=4, seed=0, task="classify"):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.7), 3)
    p = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(rows)
    return X, np.where(p > 0, 1.0, -1.0) if task == "classify" else p


def log_loss(p, y):
    return np.logaddexp(0.0, -np.asarray(y) * np.asarray(p))


def test_learners_are_scored_as_when_they_run_alone():
    X, y = stream()
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    found = rue.race(X, y, learners=["mixture", "ogd", rue.AdaGrad("logistic"), "perceptron"], weights=weights)
    assert found.examples == len(y)
    for name, learner in (("mixture", rue.Mixture()), ("ogd", rue.OGD()), ("perceptron", rue.Perceptron())):
        p = learner.run(X, y, weights)
        assert found[name].loss == pytest.approx(float(weights @ log_loss(p, y)), rel=1e-9)
        assert found[name].mistakes == int(((y * p <= 0) & (weights > 0)).sum())
        assert found[name].risk == pytest.approx(found[name].loss / weights.sum())
    assert "learns with" in found["perceptron"].note
    assert [entry.loss for entry in found.entries] == sorted(entry.loss for entry in found.entries)
    made = rue.learn(X, y, weights=weights, maps=None)
    assert found["mixture"].loss == made.loss
    course = dict(found["mixture"].course)
    assert course[128] == pytest.approx(rue.learn(X[:128], y[:128], weights=weights[:128], maps=None).risk)


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_regret_is_certified_for_everyone_by_the_best_bound(task):
    X, y = stream(task=task)
    found = rue.race(X, y, learners=["mixture", "ogd"], radius=2.0)
    scaled = X / np.abs(X).max(axis=0)
    best = rue.best_in_hindsight(scaled, y, loss=found.loss, radius=2.0)
    assert 0.0 < found.comparator_loss_at_least <= best.value * (1 + 1e-9)
    for entry in found.entries:
        assert entry.regret_at_most == pytest.approx(entry.loss - found.comparator_loss_at_least)
        assert entry.regret_at_most >= entry.loss - best.value - 1e-6
        alone = rue.certify(
            X,
            y,
            rue.make("learner", entry.name, loss=found.loss).run(X, y),
            loss=found.loss,
            radius=2.0,
            units="largest",
        )
        assert entry.regret_at_most <= alone.regret_at_most + 1e-6
    assert found.best_constant == pytest.approx(
        float(((y - y.mean()) ** 2).sum()) if task == "regress" else rue.learn(X, y).y.size * entropy((y > 0).mean()),
        rel=1e-6,
    )


def entropy(share):
    return -share * math.log(share) - (1 - share) * math.log(1 - share)


@pytest.mark.parametrize("task", ["classify", "regress"])
@pytest.mark.parametrize("form", ["dense", "sparse", "hashed", "wide"])
def test_scikit_learn_is_what_one_would_type(task, form, monkeypatch, interpreted):
    """Behind the scaler of its documentation; columns that hashing leaves empty change nothing."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X, y = stream(60, task=task)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = SGDClassifier(loss="log_loss") if task == "classify" else SGDRegressor()
    scaler, rows = StandardScaler(), X
    if form == "wide":
        monkeypatch.setattr(peers, "FULL", 3)
        scaler, rows = MaxAbsScaler(), sparse.csr_matrix(X)  # sklearn's intercept learns slower from sparse rows
    p = np.zeros(len(y))
    for i in range(len(y)):
        x = scaler.partial_fit(rows[i : i + 1]).transform(rows[i : i + 1])
        if i:
            p[i] = (model.decision_function if task == "classify" else model.predict)(x)[0]
        more = {"classes": [-1.0, 1.0]} if task == "classify" else {}
        model.partial_fit(x, y[i : i + 1], sample_weight=weights[i : i + 1], **more)
    losses = log_loss(p, y) if task == "classify" else (p - y) ** 2
    given = X if form == "dense" else sparse.csr_matrix(X)
    if form == "hashed":
        given = sparse.csr_matrix((given.data, given.indices * 200_003 + 7, given.indptr), shape=(len(y), 2**20))
    found = rue.race(given, y, learners=["sklearn"], weights=weights)
    assert found["sklearn"].loss == pytest.approx(float(weights @ losses), rel=1e-9)
    assert found["sklearn"].note == f"example by example, {type(scaler).__name__} first"


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_river_is_what_one_would_type(task):
    from river import linear_model, preprocessing

    X, y = stream(60, task=task)
    made = linear_model.LogisticRegression() if task == "classify" else linear_model.LinearRegression()
    model = preprocessing.StandardScaler() | made
    total = 0.0
    for row, label in zip(X, y, strict=True):
        x = dict(enumerate(row.tolist()))
        if task == "classify":
            chance = model.predict_proba_one(x)[label > 0]
            total -= math.log(chance)
            model.learn_one(x, bool(label > 0))
        else:
            total += (model.predict_one(x) - label) ** 2
            model.learn_one(x, label)
    for given in (X, sparse.csr_matrix(X)):
        assert rue.race(given, y, learners=["river"])["river"].loss == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_vowpal_wabbit_is_what_one_would_type(task, tmp_path):
    X, y = stream(200, task=task)
    weights = np.round(np.random.default_rng(1).uniform(0.5, 2.0, len(y)), 3)
    with open(tmp_path / "s.vw", "w") as file:
        for row, label, weight in zip(X.tolist(), y.tolist(), weights.tolist(), strict=True):
            features = " ".join(f"{j}:{x!r}" for j, x in enumerate(row) if x)
            file.write(f"{label!r} {weight!r} | {features}\n")
    loss = "logistic" if task == "classify" else "squared"
    command = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-d", tmp_path / "s.vw", "-p", tmp_path / "p.txt"]
    subprocess.run([*command, "--loss_function", loss], check=True)
    p = np.loadtxt(tmp_path / "p.txt", ndmin=2)[:, 0]
    losses = log_loss(p, y) if task == "classify" else (p - y) ** 2
    for given in (X, sparse.csr_matrix(X)):
        found = rue.race(given, y, learners=["vw", "mixture"], weights=weights)
        assert found["vw"].loss == pytest.approx(float(weights @ losses), rel=1e-5)
        assert found["vw"].seconds > 0.0


@pytest.mark.parametrize("name", ["vw", "river", "sklearn"])
def test_a_stream_that_grows_wider_is_the_wide_one(name):
    X, y = stream(80, d=6)
    X[:40, 4:] = 0.0
    wide = open_peer(name, rue.Logistic(), True)
    narrow = open_peer(name, rue.Logistic(), True)
    if name == "river":  # whose scaler has not seen the zeros of columns that were not there
        X[:, 4:] = 0.0
    wanted = np.concatenate(
        [wide.learn(rue.Block(sparse.csr_matrix(part), label)) for part, label in ((X[:40], y[:40]), (X[40:], y[40:]))]
    )
    parts = (rue.Block(sparse.csr_matrix(X[:40, :4]), y[:40]), rue.Block(sparse.csr_matrix(X[40:]), y[40:]))
    found = np.concatenate([narrow.learn(part) for part in parts])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-8)
    for peer in (wide, narrow):
        peer.close()
        assert peer.seconds > 0.0


@pytest.mark.parametrize("name", ["vw", "river", "sklearn"])
def test_weight_zero_changes_nothing(name):
    X, y = stream(40)
    weights = np.ones(40)
    weights[::2] = 0.0
    for kept in (slice(None), slice(1, None, 2)):
        peer = open_peer(name, rue.Logistic(), False)
        p = peer.learn(rue.Block(X[kept], y[kept], weights[kept]))
        peer.close()
        if kept == slice(None):
            wanted = p[1::2]
    np.testing.assert_allclose(p, wanted, rtol=1e-6)


def test_a_peer_that_breaks_is_told_and_comes_last():
    X, y = stream(60, task="regress")
    small, large = (rue.race(X * scale, y, learners=["sklearn", "river"]) for scale in (1.0, 1e8))
    for entry in small.entries:  # scaled by their own libraries: no straw men
        assert large[entry.name].loss == pytest.approx(entry.loss, rel=1e-6)
    huge = rue.race(X * 1e200, y, learners=["river", "sklearn", "mixture"])
    assert huge["sklearn"].loss is None
    assert "within" in huge["sklearn"].note
    assert huge.entries[0].name == "mixture"
    assert "–" in str(huge)
    json.dumps(huge.report(), allow_nan=False)
    huge.plot()


def test_a_peer_has_no_column_that_is_never_used():
    """Features hashed into 2^20 slots: with a weight for each slot a row took so long that a race seemed to hang."""
    X, y = stream(20)
    hashed = sparse.csr_matrix(X)
    hashed = sparse.csr_matrix((hashed.data, hashed.indices * 200_003, hashed.indptr), shape=(20, 2**20))
    peer = open_peer("sklearn", rue.Logistic(), True)
    peer.learn(rue.Block(hashed, y))
    assert peer.model.coef_.shape == (1, 4)
    assert peer.scaler.mean_.shape == (4,)


def test_a_peer_that_takes_too_long_is_stopped_and_says_so(tmp_path, inside, interpreted):
    X, y = write_svm(tmp_path / "s.svm", rows=40, d=5)
    names = ["ogd", "river", "sklearn", "vw"]
    options = ["--learners", ",".join(names), "--limit", 1e-9, "--report", tmp_path / "r.json"]
    said = inside("race", tmp_path / "s.svm", *options, "--plot", tmp_path / "p.svg")
    found = {one["name"]: one for one in json.loads((tmp_path / "r.json").read_text())["learners"]}
    assert found["ogd"]["loss_total"] == rue.learn(sparse.csr_matrix(X), y, learner=rue.OGD("logistic")).loss
    for name in names[1:]:
        assert found[name]["loss_total"] is found[name]["risk"] is found[name]["regret_at_most"] is None
        got = re.match(r"stopped after 1e-09 s and (\d+) examples?", found[name]["note"])
        assert int(got[1]) < 40
        assert re.search(rf"(?m)^{name} +– .* stopped after 1e-09 s and {got[1]} examples?", said.out)
    assert "stopped after 1e-09 s and 1 example, at a risk of 0.6931" in found["sklearn"]["note"]
    assert "after 1 example sklearn stood at 0.6931, ogd at 0.6931." in said.out
    whole = rue.race(X, y, learners=["sklearn"], limit=None)["sklearn"]
    assert whole.loss is not None
    with pytest.raises(rue.SettingsError, match="a number of seconds above 0"):
        rue.race(X, y, limit=-1.0)


def test_who_is_not_installed_is_left_out_unless_named(monkeypatch):
    X, y = stream(30)
    for module in ("river", "sklearn"):
        monkeypatch.setitem(sys.modules, module, None)
    found = rue.race(X, y)
    assert {entry.name for entry in found.entries} == {"mixture", "adagrad", "ogd", "vw"}
    assert found.notes == ("river is not installed, so it did not run.", "sklearn is not installed, so it did not run.")
    assert "river is not installed" in str(found)
    with pytest.raises(rue.SettingsError, match="pip install scikit-learn"):
        rue.race(X, y, learners=["sklearn"])


def test_other_losses_run_without_peers():
    X, y = stream(30, task="regress")
    found = rue.race(X, y, loss="absolute")
    assert {entry.name for entry in found.entries} == {"mixture", "adagrad", "ogd"}
    assert len(found.notes) == 3
    with pytest.raises(rue.SettingsError, match="logistic and square loss"):
        rue.race(X, y, loss="absolute", learners=["vw"])


def test_bad_arguments_and_examples():
    X, y = stream(50)
    for wrong, words in (
        ({"learners": []}, "name the learners"),
        ({"learners": ["mixtur"]}, "did you mean 'mixture'"),
        ({"learners": [3]}, "a learner is a learner"),
        ({"learners": [rue.OGD("square")]}, "another task"),
        ({"learners": [rue.OGD(intercept=False)]}, "intercept"),
        ({"radius": -1.0}, "radius"),
        ({"bad": "maybe"}, "'stop' or 'skip'"),
    ):
        with pytest.raises(rue.SettingsError, match=words):
            rue.race(X, y, **{"learners": ["ogd"], **wrong})
    with pytest.raises(rue.SettingsError, match="not among the learners"):
        Racing(["ogd"], budget=200)
    with pytest.raises(rue.SettingsError, match="ogd learns no more than two classes: leave it out, or say mixture"):
        rue.race(X, np.array(list("abcde") * 10), learners=["ogd"])
    with pytest.raises(rue.DataError, match="no examples"):
        rue.race(X[:0], y[:0], learners=["ogd"])
    X[33, 1] = np.inf
    with pytest.raises(rue.BadExample) as caught:
        rue.race(X, y, learners=["ogd"])
    assert caught.value.row == 33
    for given in (X, sparse.csr_matrix(X)):
        found = rue.race(given, y, learners=["ogd"], bad="skip")
        assert (found.examples, found.skipped) == (49, 1)
        good = np.arange(50) != 33
        assert found["ogd"].loss == pytest.approx(rue.learn(X[good], y[good], learner="ogd").loss)


def test_specs_at_commas():
    assert _split("mixture,ogd:step=sqrt:0.5,average=uniform,vw") == [
        "mixture",
        "ogd:step=sqrt:0.5,average=uniform",
        "vw",
    ]
    assert _split("ogd:domain=box:-1,1,svm:0.01") == ["ogd:domain=box:-1,1", "svm:0.01"]


def test_the_command(tmp_path):
    X, y = write_svm(tmp_path / "s.svm", rows=150, d=5)
    names = "mixture,ogd,vw,river,sklearn"
    done = run(
        "race", tmp_path / "s.svm", "--learners", names, "--report", tmp_path / "r.json", "--plot", tmp_path / "p.svg"
    )
    said = json.loads((tmp_path / "r.json").read_text())
    assert {one["name"] for one in said["learners"]} == set(names.split(","))
    assert said["examples"] == 150
    wanted = rue.race(sparse.csr_matrix(X), y, learners=["mixture", "ogd"])
    mine = next(one for one in said["learners"] if one["name"] == "mixture")
    assert mine["loss_total"] == wanted["mixture"].loss
    assert said["comparator_loss_at_least"] >= wanted.comparator_loss_at_least - 1e-9
    for one in said["learners"]:
        assert one["regret_at_most"] == pytest.approx(one["loss_total"] - said["comparator_loss_at_least"])
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["learner", "risk", "error", "total", "loss", "regret", "at", "most", "CPU", "s"]
    assert sorted(line.split()[0] for line in lines[1:6]) == sorted(names.split(","))
    assert "example by example" in done.stdout
    shown = [line for line in done.stderr.splitlines() if not line.startswith("rue: ")]  # that it compiles
    assert shown[0].split() == ["examples", *names.split(","), "seconds"]
    assert (tmp_path / "p.svg").stat().st_size > 1000


def test_a_file_may_race_with_its_target_by_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,bought\n" + "1.5,yes\n0.5,no\n" * 20)
    found = rue.race(tmp_path / "t.csv", "bought", learners=["ogd"])
    assert found.examples == 40
    assert found["ogd"].loss == rue.learn(tmp_path / "t.csv", "bought", learner=rue.OGD("logistic")).loss


def test_the_command_refuses_nonsense(tmp_path):
    write_svm(tmp_path / "s.svm", rows=40)
    wrong = run("race", tmp_path / "s.svm", "--learners", "mixture,vv", "-q", ok=2)
    assert "there is no learner named 'vv'" in wrong.stderr
    assert "and the peers vw, river, sklearn." in wrong.stderr
    wrong = run("race", tmp_path / "s.svm", "--learners", "ogd", "--budget", 100, "-q", ok=2)
    assert "not among the learners" in wrong.stderr
    text = (tmp_path / "s.svm").read_text().splitlines()
    (tmp_path / "b.svm").write_text("\n".join([*text[:5], "7 1:2", *text[5:]]) + "\n")
    wrong = run("race", tmp_path / "b.svm", "--learners", "ogd", "--loss", "logistic", "-q", ok=1)
    assert "b.svm, line 6" in wrong.stderr


def test_the_command_names_the_column_of_a_bad_row(tmp_path, inside):
    (tmp_path / "b.csv").write_text("x,y\n1,1\n2,-1\n1e999,1\n")
    said = inside("race", tmp_path / "b.csv", "--target", "y", "--learners", "ogd", "-q", ok=1).err
    assert "b.csv, line 4, column x: an infinity (--bad skip passes over it)." in said

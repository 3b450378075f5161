"""Races of more than two classes: the mixture and the peers under log loss, against what one would type without rue."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import rue
from commands import run
from rue.race.peers import LEAST, open_peer
from rue.race.race import Racing
from rue.reports.report import report
from rue.runs.driver import NO_CERTIFICATE, Driver

PEERS = ["vw", "river", "sklearn"]
NAMES = np.array(["ham", "spam", "eggs", "toast", "tea"])


def stream(rows=120, d=4, classes=3, seed=0):
    """Rows, and classes 1, 2, … in the order of their first occurrence."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.8), 3)
    y = np.argmax(X @ rng.standard_normal((d, classes)) + 0.3 * rng.standard_normal((rows, classes)), axis=1)
    numbers = {c: 1.0 + i for i, c in enumerate(dict.fromkeys(y.tolist()))}
    return X, np.array([numbers[c] for c in y.tolist()])


def digits(rows):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[chosen], y[chosen]


def log_loss(chances, y):
    """The loss and the mistake of each row, from a table of probabilities of classes 1, 2, …; few lines of NumPy."""
    places = np.asarray(y, dtype=int) - 1
    inside = np.hstack([chances, np.zeros((len(y), max(0, 1 + places.max() - chances.shape[1])))])
    own = np.maximum(inside[np.arange(len(y)), places], LEAST)
    inside[np.arange(len(y)), places] = -1.0
    return -np.log(own), inside.max(axis=1) >= own


def entry(X, y, name, **how):
    return rue.race(X, y, learners=[name], task="multiclass", **how)[name]


def test_the_mixture_is_scored_as_when_it_runs_alone():
    X, y = stream(200)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    found = rue.race(X, NAMES[y.astype(int)], learners=["mixture", rue.SoftmaxMixture(budget=10_000)], weights=weights)
    made = rue.learn(X, y, weights=weights, task="multiclass", maps=None)
    assert found["mixture"].loss == made.loss
    assert found["mixture"].mistakes == made.mistakes
    assert found["mixture"].risk == made.risk
    learner, chances = rue.SoftmaxMixture(), np.zeros((len(y), 3))
    for i in range(len(y)):
        p = learner.predict(X[i])
        new = y[i] > len(p) - 1
        chances[i, : len(p) - 1] = p[1:]
        chances[i, int(y[i]) - 1] = p[0] / learner.names_of_next if new else p[int(y[i])]
        learner.update(X[i], y[i], weights[i])
    losses, _ = log_loss(chances, y)
    assert found["mixture"].loss == pytest.approx(float(weights @ losses), rel=1e-9)
    assert dict(found["mixture"].course)[64] == pytest.approx(
        float(weights[:64] @ losses[:64]) / weights[:64].sum(), rel=1e-9
    )
    assert len(found.entries) == 2


def test_baselines_and_what_there_is_not():
    X, y = stream(150)
    found = rue.race(X, y, learners=["mixture"], task="multiclass")
    shares = np.unique(y, return_counts=True)[1] / len(y)
    assert found.best_constant == pytest.approx(-len(y) * float(shares @ np.log(shares)))
    driver = Driver(task="multiclass")
    driver.learn(rue.Block(X, y))
    assert found.no_change == report(driver)["no_change"]
    assert found.comparator_loss_at_least is None
    assert found["mixture"].regret_at_most is None
    said = json.loads(json.dumps(found.report(), allow_nan=False))
    assert said["comparator_loss_at_least"] is None
    assert said["no_certificate"] == NO_CERTIFICATE
    assert said["learners"][0]["regret_at_most"] is None
    assert said["learners"][0]["error_rate"] == found["mixture"].mistakes / 150
    assert said["loss"] == "LogLoss()"
    assert f"\n{NO_CERTIFICATE}.\n" in str(found) + "\n"
    assert "linear model of norm" not in str(found)
    assert rue.race(X, y > 1, learners=["ogd"]).report()["no_certificate"] is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scikit_learn_is_what_one_would_type(form, interpreted):
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    X, y = stream()
    scaler, weights = StandardScaler(), np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model, chances = SGDClassifier(loss="log_loss"), np.full((len(y), 3), 1.0 / 3.0)
    for i in range(len(y)):
        x = scaler.partial_fit(X[i : i + 1]).transform(X[i : i + 1])
        if i:
            chances[i] = model.predict_proba(x)[0]
        model.partial_fit(x, y[i : i + 1], sample_weight=weights[i : i + 1], classes=[1.0, 2.0, 3.0])
    losses, wrong = log_loss(chances, y)
    found = entry(form(X), y, "sklearn", weights=weights)
    assert found.loss == pytest.approx(float(weights @ losses), rel=1e-9)
    assert found.mistakes == int(wrong.sum())
    assert found.note == "example by example, StandardScaler first; told of 3 classes before it starts"


def test_river_is_what_one_would_type():
    from river import linear_model, preprocessing

    X, y = stream()
    softmax = linear_model.SoftmaxRegression()
    for c in (1.0, 2.0, 3.0):
        softmax.weights[c]
    model, chances = preprocessing.StandardScaler() | softmax, np.empty((len(y), 3))
    for i in range(len(y)):
        x = dict(enumerate(X[i].tolist()))
        chances[i] = [model.predict_proba_one(x)[c] for c in (1.0, 2.0, 3.0)]
        model.learn_one(x, y[i])
    losses, wrong = log_loss(chances, y)
    assert losses[0] == pytest.approx(math.log(3.0))
    for given in (X, sparse.csr_matrix(X)):
        found = entry(given, y, "river")
        assert found.loss == pytest.approx(float(losses.sum()), rel=1e-9)
        assert found.mistakes == int(wrong.sum())
    assert found.note.endswith("told of 3 classes before it starts; no intercept")
    weighty = rue.race(X, NAMES[y.astype(int)], learners=["river", "mixture"], weights=np.full(len(y), 0.5))
    assert weighty["river"].loss is None
    assert "takes no weights" in weighty["river"].note
    assert weighty.entries[0].name == "mixture"


def test_vowpal_wabbit_is_what_one_would_type(tmp_path):
    X, y = stream(200)
    weights = np.round(np.random.default_rng(1).uniform(0.5, 2.0, len(y)), 3)
    with open(tmp_path / "s.vw", "w") as file:
        for row, label, weight in zip(X.tolist(), y.tolist(), weights.tolist(), strict=True):
            features = " ".join(f"{j}:{x!r}" for j, x in enumerate(row) if x)
            file.write(f"{label:.0f} {weight!r} | {features}\n")
    command = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-d", tmp_path / "s.vw", "-p", tmp_path / "p.txt"]
    subprocess.run([*command, "--oaa", "3", "--probabilities", "--loss_function", "logistic"], check=True)
    lines = (tmp_path / "p.txt").read_text().split("\n")
    chances = np.array([[float(word.split(":")[1]) for word in line.split()] for line in lines if line.strip()])
    losses, wrong = log_loss(chances, y)
    for given in (X, sparse.csr_matrix(X)):
        found = entry(given, y, "vw", weights=weights)
        assert found.loss == pytest.approx(float(weights @ losses), rel=1e-5)
        assert found.mistakes == int(wrong.sum())
    assert found.note == "its seconds include reading text; told of 3 classes before it starts"
    assert found.about == "vw --loss_function logistic --oaa 3 --probabilities"
    assert found.seconds > 0.0


def test_real_digits():
    X, y = digits(300)
    found = rue.race(X, y, task="classify")
    assert {one.name for one in found.entries} == {"mixture", *PEERS}
    left_out = [f"{name} learns no more than two classes, so it did not run." for name in ("adagrad", "ogd")]
    assert list(found.notes[:2]) == left_out
    assert found.notes[2].endswith(f"to name them cost it ln 10! = {math.log(math.factorial(10)):.1f} of its loss.")
    assert found.entries[0].name == "mixture"
    for one in found.entries:
        assert one.loss < found.best_constant or one.name == "sklearn"  # which takes raw pixels badly
        assert 0 < one.mistakes < 0.9 * 300
    again = rue.race(X, np.array([f"the {c}" for c in y]), learners=["mixture", *PEERS])  # words are as good
    for one in again.entries:
        assert one.loss == pytest.approx(found[one.name].loss, rel=1e-6)
        assert one.mistakes == found[one.name].mistakes


@pytest.mark.parametrize("name", PEERS)
def test_classes_that_come_late(name):
    """A peer that was told of the classes of the first block gives another one 1e-15; only River learns it."""
    X, y = stream(160, classes=5)
    late = y > 3.0
    order = np.concatenate([np.flatnonzero(~late)[:60], np.flatnonzero(~late)[60:], np.flatnonzero(late)])
    order[60:] = np.random.default_rng(2).permutation(order[60:])
    X, y = X[order], y[order]
    blocks = [rue.Block(X[i : i + 40], NAMES[y[i : i + 40].astype(int) - 1]) for i in range(0, 160, 40)]
    found = rue.race(iter(blocks), learners=["mixture", name])
    told = open_peer(name, rue.race(X[:9], y[:9], learners=["mixture"], task="multiclass").loss, True, 3)
    numbers = {c: 1.0 + i for i, c in enumerate(dict.fromkeys(y.tolist()))}
    scores = told.learn(rue.Block(X, np.array([numbers[c] for c in y.tolist()])))
    told.close()
    assert found[name].loss == pytest.approx(-float(np.log(np.abs(scores)).sum()), rel=1e-9)
    new = y > 3.0
    assert (np.abs(scores[new]) == LEAST).sum() == (2 if name == "river" else new.sum())
    assert (scores[new] < 0.0).sum() >= 2
    assert "told of 3 classes" in found[name].note
    never = "" if name == "river" else f", and {name} cannot learn it"
    assert found.notes == (
        "mixture is told of no classes: to name them cost it ln 5! = 4.8 of its loss.",
        f"2 classes came later than the first block: what {name} does not know has probability 1e-15{never}.",
    )
    assert found["mixture"].loss == rue.learn(iter(blocks), maps=None).loss
    assert rue.race(X, y, learners=[name], task="multiclass").notes == ()  # labels in memory: told of all


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("known", [1, 2])
def test_one_or_two_classes_at_first(name, known):
    X, y = stream(60)
    y = np.minimum(y, 2.0)
    blocks = [rue.Block(X[:known], y[:known]), rue.Block(X[known:], y[known:])]
    racing = Racing(["mixture", name], task="multiclass")
    for block in blocks:
        racing.learn(block)
    found = racing.finish()
    assert len(found.notes) == 1
    assert "told of 2 classes" in found[name].note
    assert found[name].loss == pytest.approx(entry(X, y, name).loss)


@pytest.mark.parametrize("name", PEERS)
def test_weight_zero_changes_nothing_and_streams_grow_wider(name):
    X, y = stream(60)
    loss = rue.SoftmaxMixture().loss
    weights = np.tile([0.0, 1.0], 30)
    scores = []
    for kept in (slice(None), slice(1, None, 2)):
        peer = open_peer(name, loss, False, 3)
        scores.append(peer.learn(rue.Block(X[kept], y[kept], weights[kept])))
        peer.close()
    np.testing.assert_allclose(scores[1], scores[0][1::2], rtol=1e-6)
    if name == "river":  # whose scaler has not seen the zeros of columns that were not there
        return
    X[:30, 2:] = 0.0
    scores = []
    for width in (4, 2):
        peer = open_peer(name, loss, True, 3)
        parts = (rue.Block(sparse.csr_matrix(X[:30, :width]), y[:30]), rue.Block(sparse.csr_matrix(X[30:]), y[30:]))
        scores.append(np.concatenate([peer.learn(part) for part in parts]))
        peer.close()
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-5)


def test_who_does_not_learn_classes_is_refused_when_named():
    X, y = stream(30)
    words = NAMES[y.astype(int)]
    for wrong, said in (
        (["ogd", "mixture"], "race: ogd learns no more than two classes: leave it out, or say mixture, which does."),
        ([rue.OGD()], "learns no more than two classes"),
        (["mixture:budget=300"], "learns no more than two classes"),
        (["mixtur"], "did you mean 'mixture'"),
        ([3], "a learner is a learner"),
        ([rue.SoftmaxMixture(intercept=False)], "intercept"),
        ([rue.SoftmaxMixture(), "perceptron"], "perceptron learns no more than two classes"),
    ):
        with pytest.raises(rue.SettingsError) as caught:
            rue.race(X, words, learners=wrong)
        assert said in str(caught.value)
    with pytest.raises(rue.DataError, match="more than two classes"):
        rue.race(X, words, loss="logistic", learners=["ogd"])
    with pytest.raises(rue.SettingsError, match="another task"):
        rue.race(X, y > 1, learners=[rue.SoftmaxMixture()])


def test_examples_that_cannot_be_used():
    X, y = stream(50)
    words = NAMES[y.astype(int)].astype(object)
    words[20] = None
    X[33, 1] = np.inf
    with pytest.raises(rue.BadExample, match="features must be finite") as caught:
        rue.race(X, words, learners=["mixture"])
    assert caught.value.row == 33
    found = rue.race(X, words, learners=["mixture"], bad="skip")
    assert (found.examples, found.skipped) == (48, 1)  # row 20 has no label
    good = ~np.isin(np.arange(50), (20, 33))
    assert found["mixture"].loss == rue.learn(X[good], words[good], maps=None).loss


def test_the_command(tmp_path):
    X, y = stream(150, classes=4)
    rows = [",".join(map(repr, row)) + f",{NAMES[int(c)]}" for row, c in zip(X.tolist(), y, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["a,b,c,d,y", *rows]) + "\n")
    out = ["--report", tmp_path / "r.json", "--plot", tmp_path / "p.svg"]
    done = run("race", tmp_path / "s.csv", "--target", "y", *out)
    said = json.loads((tmp_path / "r.json").read_text())
    assert {one["name"] for one in said["learners"]} == {"mixture", *PEERS}
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["learner", "risk", "error", "total", "loss", "regret", "at", "most", "CPU", "s"]
    shown = {line.split()[0]: line.split() for line in lines[1:5]}
    for one in said["learners"]:
        assert shown[one["name"]][2:5] == [f"{one['error_rate']:.2%}", f"{one['loss_total']:,.1f}", "–"]
        assert one["regret_at_most"] is None
    assert NO_CERTIFICATE in done.stdout
    assert "ogd learns no more than two classes, so it did not run." in done.stdout
    told = [line for line in done.stderr.splitlines() if not line.startswith("rue: compiling")]
    assert told[0].split() == ["examples", "mixture", *PEERS, "seconds"]
    assert (tmp_path / "p.svg").stat().st_size > 1000
    run("learn", tmp_path / "s.csv", "--target", "y", "--linear", "--report", tmp_path / "l.json", "-q")
    learnt = json.loads((tmp_path / "l.json").read_text())
    assert next(one for one in said["learners"] if one["name"] == "mixture")["loss_total"] == learnt["loss_total"]
    assert (said["best_constant"], said["no_change"]) == (learnt["best_constant"], learnt["no_change"])
    wrong = run("race", tmp_path / "s.csv", "--target", "y", "--learners", "mixture,adagrad", "-q", ok=2)
    assert wrong.stderr.count("\n") == 1
    assert "adagrad learns no more than two classes" in wrong.stderr


def test_the_picture_names_the_loss():
    X, y = stream(80)
    found = rue.race(X, y, learners=["mixture"], task="multiclass")
    ax = rue.plot_race(found)
    assert ax.get_ylabel() == "mean log loss so far"
    assert {"mixture", "best constant"} <= {line.get_label() for line in ax.lines}

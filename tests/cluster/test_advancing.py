"""The step of a shard and merging: pure functions, compared with ten lines of NumPy."""

import math

import numpy as np
import pandas
import pytest

import rue
from rue import ledger
from rue.cluster import advance, begin, cursors, merge
from rue.cluster.advancing import Readers, advance_with
from rue.cluster.rounds import FIRST_ROUND
from rue.cluster.sharded import price_in_words
from rue.models.file import from_bytes, to_bytes
from rue.runs.driver import Driver
from rue.streams import units
from rue.streams.data import Data

pytestmark = pytest.mark.usefixtures("interpreted")


def table(T, seed=0, tasks=2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(T, 2))
    score = X @ [1.0, -0.5] + 0.4 * random.normal(size=T)
    names = np.array(["no", "yes", "perhaps"])
    y = score if tasks == 1 else names[(score > 0).astype(int) + (tasks > 2) * (score > 0.8)]
    return pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "word": random.choice(list("abcd"), T), "y": y})


@pytest.fixture
def csv(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "UNIT", 1000)
    path = tmp_path / "data.csv"

    def write(T, tasks=2):
        table(T, tasks=tasks).to_csv(path, index=False)
        return Data((str(path),), target="y", bits=8)

    return write


def test_a_step_is_a_pure_function_and_readers_are_only_a_cache(csv):
    data = csv(150)
    state, [cursor] = begin(data, Driver("ogd")), cursors(data, 1)
    readers, fresh, cached = Readers(), (state, cursor), (state, cursor)
    while not fresh[1].done:
        fresh = advance(*fresh, 13)[:2]
        cached = advance_with(readers, *cached, 13)[:2]
        assert fresh == cached
    assert from_bytes(fresh[0]).learner.t == 150


@pytest.mark.parametrize(("tasks", "learner"), [(2, "ogd"), (1, "mixture"), (3, None), (2, "mixture")])
def test_one_shard_is_one_pass_to_the_bit(csv, tasks, learner):
    data = csv(70, tasks)
    learner = rue.make("learner", learner, loss="square" if tasks == 1 else "logistic") if learner else None
    one = rue.learn(data.paths[0], target="y", bits=8, learner=learner)
    state, [cursor] = begin(csv(70, tasks), Driver(learner)), cursors(data, 1)
    while not cursor.done:
        state, cursor, _ = advance(state, cursor, 31)
    model = from_bytes(state)
    assert model.learner == one.learner
    assert model.labels == one.labels
    assert model.names == one.names
    assert model.counts == one.counts
    assert model.evidence.ledger.sums.tolist() == one.ledger.sums.tolist()


def test_rows_that_are_bad_or_not_labelled_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "UNIT", 40)
    lines = ["1.5,0", "2.5,1", "9,9,0", "0.5,", "1.0,1"] * 5
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(["x,y", *lines, ""]))
    data = Data((str(path),), target="y")
    state, [cursor] = begin(data, Driver("ogd", bad="skip", task="classify")), cursors(data, 1, bad="skip")
    while not cursor.done:
        state, cursor, _ = advance(state, cursor, 1)
    assert {name: from_bytes(state).counts[name] for name in ("skipped", "unlabelled")} == {
        "skipped": 5,
        "unlabelled": 5,
    }
    with pytest.raises(rue.DataError, match=r"bad\.csv, line 4: 3 fields instead of 2"):
        advance(begin(data, Driver("ogd", task="classify")), cursors(data, 1)[0])


def test_a_part_that_learnt_alone_comes_back_to_the_bit(csv):
    data = csv(60)
    base, starts = begin(data, Driver()), cursors(data, 3)
    part = advance(base, starts[1], 20).state
    assert merge(base, [base, part, base]) == part
    assert merge(base, [base, base]) == base


def sharded_by_hand(frame, shards, sizes, eta=0.5):
    """OGD with a fixed step on square loss, in shards of rows k, k + M, …: the weights, Σℓ, A and S of all rounds."""
    X, y = np.column_stack([np.ones(len(frame)), frame[["x", "z"]]]), frame["y"].to_numpy()
    w, at, loss, A, S = np.zeros(3), 0, 0.0, 0.0, np.zeros(3)
    parts = [np.arange(k, len(y), shards) for k in range(shards)]
    for n in sizes:
        ends = []
        for rows in parts:
            own = w.copy()
            for t in rows[at : at + n]:
                p, g = X[t] @ own, 2.0 * (X[t] @ own - y[t])
                loss, A, S = loss + (p - y[t]) ** 2, A + g * p, S + g * X[t]
                own -= eta * g * X[t]
            ends.append(own)
        w, at = np.mean(ends, axis=0), at + n
    return w, loss, A, S


def test_shards_of_ogd_are_those_of_a_few_lines_of_numpy():
    frame = table(60, tasks=1).drop(columns="word")
    pieces = tuple(frame.iloc[k::3] for k in range(3))  # one unit each, and one for each shard
    data = Data(pieces, target="y")
    base, at = begin(data, Driver(rue.OGD("square", step=rue.Fixed(0.05)))), cursors(data, 3)
    for n in (3, 6, 11):
        parts = [advance(base, cursor, n) for cursor in at]
        base, at = merge(base, [part.state for part in parts]), [part.cursor for part in parts]
    model = from_bytes(base)
    w, loss, A, S = sharded_by_hand(frame, 3, (3, 6, 11), 0.05)
    assert model.learner.point == pytest.approx(w, rel=1e-12)
    sums = model.evidence.ledger.sums
    assert [sums[ledger.LOSS], sums[ledger.A]] == pytest.approx([loss, A], rel=1e-12)
    assert pytest.approx(S, rel=1e-11) == model.evidence.ledger.S


@pytest.mark.parametrize(("loss", "tasks"), [("logistic", 2), ("square", 1), ("hinge", 2)])
def test_the_merged_certificate_is_that_of_its_predictions_and_never_below_the_true_regret(loss, tasks):
    frame = table(90, tasks=tasks).drop(columns="word")
    pieces = tuple(frame.iloc[k::3] for k in range(3))
    data = Data(pieces, target="y")
    base, at = begin(data, Driver(rue.OGD(loss, "ball:2"))), cursors(data, 3)
    predictions, rows = [], []
    for n in (7, 23):
        learners = [from_bytes(base).learner for _ in at]
        for k, (learner, cursor) in enumerate(zip(learners, at, strict=True)):
            own = pieces[k].iloc[cursor.row : cursor.row + n]
            y = own["y"] if tasks == 1 else np.where(own["y"] == "yes", 1.0, -1.0)
            predictions.append(learner.run(own[["x", "z"]].to_numpy(), np.asarray(y)))
            rows.append((own[["x", "z"]].to_numpy(), np.asarray(y)))
        parts = [advance(base, cursor, n) for cursor in at]
        base, at = merge(base, [part.state for part in parts]), [part.cursor for part in parts]
    X, y, p = np.vstack([x for x, _ in rows]), np.concatenate([y for _, y in rows]), np.concatenate(predictions)
    evidence = from_bytes(base).evidence
    proved, alone = (
        evidence.certificate(rue.Ball(2.0), "raw"),
        rue.certify(X, y, p, loss=loss, radius=2, intercept=True),
    )
    assert proved.alone == pytest.approx(alone.alone, rel=1e-9)
    assert proved.loss_total == pytest.approx(alone.loss_total, rel=1e-12)
    best = rue.best_in_hindsight(np.column_stack([np.ones(len(y)), X]), y, loss=loss, radius=2.0).value
    assert proved.regret_at_most >= proved.loss_total - best - 1e-9


def test_new_classes_and_names_of_shards_come_together(csv):
    data = csv(120, 3)
    base, starts = begin(data, Driver()), cursors(data, 4)
    merged = from_bytes(merge(base, [advance(base, cursor).state for cursor in starts]))
    assert sorted(merged.labels.classes) == ["no", "perhaps", "yes"]
    assert {"word=a", "word=b", "word=c", "word=d"} <= set(merged.names.values())
    assert merged.learner.t == 120
    assert to_bytes(merged) == to_bytes(from_bytes(to_bytes(merged)))


def words_of(T, seed, many):
    """As `table`, with words out of so many."""
    random = np.random.default_rng(seed)
    frame = table(T, seed).drop(columns="word")
    frame["word"] = random.choice([f"word{k}" for k in range(many)], T)
    return frame


@pytest.mark.parametrize("many", [(3, 300), (90, 90)])  # one shard meets too many features; only both together do
def test_shards_of_which_some_meet_too_many_features_for_a_digest_are_merged(many):
    pieces = tuple(words_of(200, seed, own) for seed, own in enumerate(many))
    pieces[1]["word"] += "b"
    data = Data(pieces, target="y", bits=14)
    base, at = begin(data, Driver(maps=None)), cursors(data, 2)
    for n in (40, None):
        parts = [advance(base, cursor, n) for cursor in at]
        base, at = merge(base, [part.state for part in parts]), [part.cursor for part in parts]
    evidence = from_bytes(base).evidence
    assert evidence.ledger.sums[ledger.EXAMPLES] == 400
    assert evidence.certificate(rue.Ball(5.0), "raw").regret_at_most > 0.0


def test_what_cannot_be_learnt_in_shards_is_refused(csv):
    data = csv(20)
    with pytest.raises(rue.SettingsError, match="intervals and alarms are about one sequence"):
        begin(data, Driver(watch=rue.runs.watching.Watch(0.9)))
    with pytest.raises(rue.SettingsError, match="shards: a whole number from 1 on, not 0"):
        cursors(data, 0)
    with pytest.raises(rue.DataError, match="a learner without its accounts"):
        advance(to_bytes(rue.Model(rue.OGD())), cursors(data, 1)[0])
    with pytest.raises(rue.DataError, match="the bytes are not a model that can be read"):
        advance(b"no model", cursors(data, 1)[0])


def test_a_state_before_the_first_example_is_read_with_all_that_a_run_may_ask_for(csv):
    data = csv(40)
    state = begin(data, Driver("ogd", witnesses=[1.0, 5.0]))
    assert from_bytes(state).evidence.witnessed is not None
    part = advance(state, cursors(data, 1)[0])
    assert merge(state, [part.state, state]) == part.state
    assert from_bytes(part.state).evidence.witnessed.ends()[-1] == 40


def test_the_price_is_said():
    assert "4 times that of one learner" in price_in_words(16, 3, ["a"])
    assert "the processors were of 2 kinds (a, b)" in price_in_words(2, 3, ["a", "b"])
    assert math.log2(FIRST_ROUND).is_integer()

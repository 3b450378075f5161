"""Columns in bins by rank: the features of every row against a plain loop, the same bits in any form, and files."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from scipy.sparse import csr_array

import rue
from rue.errors import DataError, SettingsError
from rue.exports.document import document_of
from rue.exports.export import exported
from rue.exports.standalone import Model
from rue.learners.bins import Bins
from rue.learners.merging import merge
from rue.maps.table import LOW
from rue.models.file import model_of
from rue.streams.block import BinnedColumn
from rue.streams.numbering import hashed
from rue.streams.tables.columns import FIRST_BIN
from rue.streams.tables.encoding import binned_columns

N = 400
BINS = {"price": 16, "age": 4}


def rows(n=N, seed=0, words=True):
    """Rows with gaps, whose label depends on a price in waves."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        price, age = round(float(np.exp(rng.normal())), 4), int(rng.integers(0, 9))
        y = "yes" if math.sin(4.0 * math.log(price)) + 0.3 * rng.normal() > 0 else "no"
        gap = rng.random() < 0.1
        more = {"word": str(rng.choice(["red", "blue"]))} if words else {}
        found.append({"price": None if gap else price, "age": age, "size": float(rng.normal()), **more, "y": y})
    return found


def plainly(values, bins, enters=None):
    """The bin of each value, counted from 0, from the values before it; None where there is none."""
    sample, seen, due, edges, out = [], 0, 64, None, []
    for t, value in enumerate(values):
        if value is None or not math.isfinite(value):
            out.append(None)
            continue
        out.append(None if edges is None else sum(edge <= value for edge in edges) * bins // 256)
        if enters is None or enters[t]:
            seen += 1
            if seen <= 1024:
                sample.append(value)
            else:
                at = int(hashed(np.uint64(seen))) * seen >> 32
                if at < 1024:
                    sample[at] = value
            if seen == due:
                edges = [sorted(sample)[k * len(sample) // 256] for k in range(1, 256)]
                due *= 2
    return out


def bins_of(run, X):
    """The bins that a run's learner gives rows of a table, as they come, by the names of their features."""
    called, found = run.learner.called(run.names), []
    for block in rue.streams.read_like(run.features, X):
        attached = run.learner.with_last_labels(block)
        for i in range(len(attached)):
            here = slice(int(attached.X.indptr[i]), int(attached.X.indptr[i + 1]))
            found.append({called[int(j)] for j in attached.X.indices[here] if " in " in called.get(int(j), "")})
    return found


def test_bins_are_those_of_a_plain_loop():
    rng = np.random.default_rng(3)
    values = np.where(rng.random(5000) < 0.2, np.nan, rng.normal(size=5000).cumsum())
    y = np.where(rng.random(5000) < 0.1, np.nan, 1.0)
    weights = np.where(rng.random(5000) < 0.1, 0.0, 2.0)
    expected = plainly([None if v != v else v for v in values], 10, np.isfinite(y) & (weights > 0.0))
    filled = np.column_stack([np.nan_to_num(values), np.isnan(values)])
    bins, found, begin = Bins([BinnedColumn(0, 1, 2, 10)]), [], 0
    for end in (1, 2, 64, 65, 700, 5000):
        rows_ = rue.Block(csr_array(filled[begin:end]), y[begin:end], weights[begin:end])
        attached = bins.attached(rows_)
        for i in range(end - begin):
            own = attached.X.indices[attached.X.indptr[i] : attached.X.indptr[i + 1]]
            found += [next((int(j) - 2 for j in own if j > 1), None)]
        bins.enter(attached, 0, end - begin)
        begin = end
    assert found == expected
    assert bins.seen[0] == sum(
        v is not None and math.isfinite(a) and w > 0
        for v, a, w in zip([None if v != v else v for v in values], y, weights, strict=True)
    )
    assert FIRST_BIN == LOW


def test_a_run_is_that_over_features_made_by_hand():
    given = rows(words=False)
    run = rue.learn(given, "y", learner="ogd", bins=BINS)
    columns = {name: plainly([row[name] for row in given], count) for name, count in BINS.items()}
    X = np.zeros((N, 32 + 16 + 4 + 1))
    for i, row in enumerate(given):
        X[i, :3] = [row["price"] or 0.0, row["age"], row["size"]]
        X[i, 52] = row["price"] is None
        for name, first in (("price", 32), ("age", 48)):
            if columns[name][i] is not None:
                X[i, first + columns[name][i]] = 1.0
    by_hand = rue.learn(csr_array(X), [row["y"] for row in given], learner="ogd")
    np.testing.assert_allclose(run.predictions, by_hand.predictions, rtol=1e-12, atol=1e-12)
    assert run.certificate(1.0).regret_at_most == pytest.approx(by_hand.certificate(1.0).regret_at_most)
    linear = rue.learn(given, "y", learner=rue.Mixture())
    assert rue.learn(given, "y", learner=rue.Mixture(), bins=BINS).risk < 0.9 * linear.risk


def test_increasing_changes_leave_every_bin_as_it_is():
    given = rows(1500)
    changed = [{**row, "price": row["price"] and math.log(row["price"]) + 40.0} for row in given]
    run, again = (rue.learn(x, "y", learner="ogd", bins=BINS, bad="skip") for x in (given, changed))
    assert bins_of(run, given) == bins_of(again, changed)
    assert set().union(*bins_of(run, given)) > {"price in 16 bins=1", "price in 16 bins=16", "age in 4 bins=2"}
    assert not bins_of(run, [{**given[0], "price": None, "age": None}])[0]  # what is missing has no bin


@pytest.mark.parametrize("learner", ["ogd", "mixture", "several", None])
def test_one_by_one_and_in_blocks_of_any_size_have_the_same_bits(learner):
    given = rows()
    if learner == "several":
        given, learner = [{**row, "y": row["y"] + str(row["age"] % 2)} for row in given], rue.SoftmaxMixture()
    whole = rue.learn(given, "y", learner=learner, bins=BINS)
    parts, begin, p = None, 0, []
    for end in (1, 30, 65, 200, N):
        if parts is None:  # the first two rows settle the classes
            end = 2 if whole.labels.task == "classify" else 30
            parts = rue.learn(given[:end], "y", learner=learner, bins=BINS)
        elif end <= begin:
            continue
        else:
            parts = rue.learn(given[begin:end], learner=parts, bins=BINS)
        p += parts.predictions.tolist()
        begin = end
    if learner is not None:  # the first rows, few of them, say which columns are numbers
        assert p == whole.predictions.tolist()
        assert parts.learner == whole.learner
    again = parts.learner.copy()
    again.bins = Bins(again.bins.columns)
    [block] = rue.streams.read_like(whole.features, given)
    labels = whole.labels.encode([row["y"] for row in given])
    one, many = again.copy(), again.copy()
    for i in range(N):
        here = slice(int(block.X.indptr[i]), int(block.X.indptr[i + 1]))
        x = block.X.indices[here], block.X.data[here]
        one.predict(x)
        one.update(x, float(labels[i]))
    many.run(rue.Block(block.X, labels))
    assert one == many
    assert one.bins.seen.tolist() == whole.learner.bins.seen.tolist()


def test_every_format_saved_resumed_explained_and_on_the_command_line(tmp_path, inside):
    given = rows()
    table = pa.Table.from_pylist(given)
    parquet.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    lines = [",".join("" if v is None else str(v) for v in row.values()) for row in given]
    head = ",".join(given[0])
    (tmp_path / "t.csv").write_text("\n".join([head, *lines]) + "\n")
    (tmp_path / "first.csv").write_text("\n".join([head, *lines[:150]]) + "\n")
    (tmp_path / "rest.csv").write_text("\n".join([head, *lines[150:]]) + "\n")
    whole = rue.learn(table, "y", learner=rue.Mixture(), bins=BINS)
    sources = table.to_pandas(), given, *(tmp_path / name for name in ("t.parquet", "t.jsonl", "t.csv"))
    for source in sources:
        assert rue.learn(source, "y", learner=rue.Mixture(), bins=BINS).predictions.tolist() == (
            whole.predictions.tolist()
        )
    learn = ["--target", "y", "--linear", "--quiet", "--bins", "price:16", "--bins", "age:4"]
    inside("learn", tmp_path / "first.csv", *learn, "--model", tmp_path / "m.rue")
    resume = ["learn", tmp_path / "rest.csv", "--resume", tmp_path / "m.rue", "--quiet"]
    assert "contradicts" in inside(*resume, "--bins", "price:8", ok=2).err
    inside(*resume, "--bins", "price:16,age:4", "--model", tmp_path / "n.rue", "--predictions", tmp_path / "q.csv")
    resumed = rue.load(tmp_path / "n.rue")
    assert resumed.learner == whole.learner
    assert "price in 16 bins=3" in inside("weights", tmp_path / "n.rue").out
    inside("predict", tmp_path / "n.rue", tmp_path / "t.csv", "-o", tmp_path / "p.csv", "--as", "score")
    expected = whole.predict(table.drop_columns("y"))
    written = [line.split(",")[0] for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    np.testing.assert_allclose([float(p) for p in written], expected, rtol=1e-6)
    x = {name: value for name, value in given[5].items() if name != "y"}
    assert whole.predict(x) == expected[5]
    explained = rue.explain(whole, x)
    assert explained.prediction == expected[5]
    assert any(part.feature.startswith("price in 16 bins=") for part in explained.parts)
    assert rue.explain(rue.learn(given, "y", bins=BINS), x).parts
    with pytest.raises(SettingsError, match="bins=.* contradicts the model"):
        rue.learn(given, learner=resumed, bins={"price": 8})
    inside(
        "learn",
        tmp_path / "t.csv",
        "--target",
        "y",
        "--linear",
        "--quiet",
        "--bins",
        "price",
        "--model",
        tmp_path / "o.rue",
    )
    assert rue.load(tmp_path / "o.rue").learner.bins.columns[0].many == 64


def test_lags_and_bins_go_together():
    given = rows()
    whole = rue.learn(given, "y", learner="ogd", bins=BINS, lags=[1, 3])
    first = rue.learn(given[:100], "y", learner="ogd", bins=BINS, lags=[1, 3])
    rest = rue.learn(given[100:], learner=first)
    assert rest.learner == whole.learner
    assert whole.learner.bins == rue.learn(given, "y", learner="ogd", bins=BINS).learner.bins
    assert {"last label", "price in 16 bins=2"} < set(dict(rue.weights_of(whole)))


@pytest.mark.usefixtures("interpreted")
def test_rows_that_are_passed_over_or_have_no_label():
    given = [{**row, "size": math.inf} if i == 90 else row for i, row in enumerate(rows())]
    given[120]["y"] = None
    skipped = rue.learn(given, "y", learner="ogd", bins=BINS, bad="skip")
    without = rue.learn([row for i, row in enumerate(given) if i not in (90, 120)], "y", learner="ogd", bins=BINS)
    assert skipped.learner == without.learner


@pytest.mark.parametrize("learner", [rue.OGD("logistic"), None])
def test_exported_programs_have_the_same_bins(learner):
    given = rows(600)
    run = rue.learn(given, "y", learner=learner, bins=BINS)
    document = json.loads(json.dumps(document_of(model_of(run))))
    mine = [Model(document).score(row) for row in given]
    np.testing.assert_allclose(mine, run.predict(given), rtol=1e-9, atol=1e-9)
    few = rue.learn(given[:40], "y", learner="ogd", bins=BINS)
    np.testing.assert_allclose(Model(document_of(model_of(few))).score(given[50]), few.predict(given[50]), rtol=1e-12)
    if learner is not None:
        for to in ("sql", "onnx"):
            with pytest.raises(SettingsError, match=r"the column 'price' is put into bins, which (SQL|ONNX) does not"):
                exported(run, to)


def test_what_cannot_be_put_into_bins_is_refused(tmp_path, inside):
    given = rows(80)
    for bins, why in (
        ({"word": 8}, "'word' is read as category: name columns of numbers"),
        ({"y": 8}, "'y' is no feature: name columns of numbers"),
        ({"price": 1}, "1 for the column 'price': give a number from 2 to 256"),
        ({"price": 2.5}, "2.5 for the column 'price'"),
        ({"price": 8, 1: 8}, "'price' is named twice"),
        ({"prices": 8}, "there is no column to put into bins 'prices': did you mean 'price'"),
    ):
        with pytest.raises(DataError, match=why):
            rue.learn(given, "y", bins=bins)
    with pytest.raises(SettingsError, match="bins: give columns and numbers of bins"):
        rue.learn(given, "y", bins="price:64")
    with pytest.raises(SettingsError, match="bins: these are for files and tables"):
        rue.learn([[1.0, 2.0]], [1], bins={0: 4})
    learnt = rue.learn(given, "y", learner="ogd")
    with pytest.raises(SettingsError, match="contradicts the model"):
        rue.learn(given, learner=learnt, bins=BINS)
    binned = rue.learn(given, "y", learner="ogd", bins=BINS)
    with pytest.raises(SettingsError, match="merge: bins need the rows in order"):
        merge(binned.learner, [binned.learner])
    for call, why in (
        (lambda: rue.fleet(given, "y", by="word", learner="ogd", bins=BINS), "fleet: bins .* are for one model"),
        (lambda: rue.race(rue.streams.read(given, "y", bins=BINS), learners=["ogd"]), "race: bins"),
        (lambda: rue.audit(binned, given), "audit: it is not there for a run with bins"),
    ):
        with pytest.raises(SettingsError, match=why):
            call()
    (tmp_path / "t.svm").write_text("1 1:2\n")
    assert "are for tables, not svmlight" in inside("learn", tmp_path / "t.svm", "--bins", "a:4", ok=2).err
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    asked = ["learn", tmp_path / "t.csv", "--target", "y", "--bins"]
    assert "--bins takes columns and numbers of bins" in inside(*asked, "a:x", ok=2).err
    assert "--bins" in inside(*asked, "a:4", "--shards", "2", ok=2).err
    assert "--bins" in inside(*asked, "a:4", "--by", "a", ok=2).err


def test_where_the_slots_of_bins_are():
    run = rue.learn(rows(80), "y", learner="ogd", bins=BINS)
    columns = rue.streams.tables.columns.Columns.from_dict(run.features["columns"])
    assert [column[:1] + column[2:] for column in binned_columns(columns)] == [(0, 32, 16), (1, 48, 4)]
    assert columns.slots == 52
    without = rue.streams.tables.columns.Columns.from_dict(rue.learn(rows(80), "y").features["columns"])
    assert "bins" not in without.to_dict()
    for bins in ([["word", 4]], [["price", 300]], [["price", 4], ["price", 4]], [["price"]], 7):
        with pytest.raises(DataError, match="columns is damaged"):
            rue.streams.tables.columns.Columns.from_dict({**columns.to_dict(), "bins": bins})

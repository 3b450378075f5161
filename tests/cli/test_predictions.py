"""Files of predictions: a line for every row that was read, whatever became of the row."""

import csv
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rue
from commands import read, receive
from rue.cli.predictions import every_row
from rue.streams.chunk import BadRow


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    return tmp_path


BROKEN = (2, 13, 29)


def table(classes=("no", "yes"), n=30):
    """Rows as dicts: id, two features, and a label, missing in some; some have an infinity. The last class is late."""
    rng = np.random.default_rng(len(classes))
    rows = []
    for i in range(n):
        label = (
            None if i in (4, 11, 12, 25) else str(rng.choice(classes[:-1] if i < 20 and len(classes) > 2 else classes))
        )
        a = float("inf") if i in BROKEN else round(float(rng.normal()), 3)
        rows.append({"who": f'no. {i}, "x"', "a": a, "b": str(rng.choice(["u", "v"])), "y": label})
    rows[22]["y"] = classes[-1]
    return rows


def write(rows, name):
    arrow = pa.Table.from_pylist(rows)
    match name.partition(".")[2]:
        case "csv":
            with open(name, "w", newline="") as file:
                out = csv.DictWriter(file, rows[0], lineterminator="\n")
                out.writeheader()
                out.writerows(rows)
        case "jsonl":  # JSON has no infinity but a number that is too large
            lines = [json.dumps(row, ensure_ascii=False).replace("Infinity", '"broken"') for row in rows]
            Path(name).write_text("\n".join(lines) + "\n")
        case "parquet":
            pq.write_table(arrow, name, row_group_size=7)
        case "arrow":
            with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, arrow.schema) as out:
                out.write_table(arrow, 7)
        case "vw":
            labels = {None: "", "no": "-1 ", "yes": "1 "}
            tags = [re.sub(r"\W", "_", row["who"]) for row in rows]
            lines = [
                f"{labels[row['y']]}'{tag} | a:{row['a']} b={row['b']}" for row, tag in zip(rows, tags, strict=True)
            ]
            Path(name).write_text("\n".join(lines) + "\n")


def shown(path):
    head, *rows = csv.reader(io.StringIO(Path(path).read_text()))
    assert all(len(row) == len(head) for row in rows)
    return head, rows


LEARN = ["--learner", "ogd", "--loss", "logistic", "-q"]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.arrow", "t.vw"])
def test_one_line_for_every_row_read(name, inside):
    rows = table()
    write(rows, name)
    options = [] if name == "t.vw" else ["--target", "y", "--id", "who"]
    more = ["--predictions", "p.csv", "--report", "r.json", "--model", "m.rue"]
    inside("learn", name, *options, *LEARN, *more, "--bad", "skip")
    head, lines = shown("p.csv")
    assert head == (["tag", "prediction"] if name == "t.vw" else ["who", "prediction"])
    ids = [re.sub(r"\W", "_", row["who"]) if name == "t.vw" else row["who"] for row in rows]
    broken = np.isinf([row["a"] for row in rows])
    wanted_ids = ["" if bad and name == "t.vw" else each for each, bad in zip(ids, broken, strict=True)]
    assert [line[0] for line in lines] == wanted_ids
    assert [line[1] == "" for line in lines] == broken.tolist()
    report = read("r.json")
    assert (report["unlabelled"], report["skipped"]) == (4, 3)
    assert report["examples"] == len(rows) - 7

    # The same learner on the labelled rows alone, and what it says of the others on its way.
    good = [row for row, bad in zip(rows, broken, strict=True) if not bad]
    X = np.array([[row["a"], row["b"] == "u", row["b"] == "v"] for row in good])
    y = np.array([{"no": -1.0, "yes": 1.0, None: np.nan}[row["y"]] for row in good])
    learner, wanted = rue.OGD("logistic"), []
    for x, label in zip(X, y, strict=True):
        wanted.append(learner.predict(x))
        if label == label:
            learner.update(x, label)
    found = np.array([float(line[1]) for line in lines if line[1]])
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)

    # A model that stands still says it of the same rows.
    inside("predict", "m.rue", name, "--bad", "skip", "-o", "q.csv")
    head, again = shown("q.csv")
    assert [line[0] for line in again] == wanted_ids
    assert [line[1] == "" for line in again] == broken.tolist()
    np.testing.assert_allclose(
        [float(line[1]) for line in again if line[1]], X @ learner.weights + learner.bias, rtol=1e-9
    )

    # And what was written can be certified.
    certify = ["--predictions", "p.csv", "--loss", "logistic", "--radius", 1, "--report", "c.json"]
    inside("certify", name, *options, "--bad", "skip", *certify)
    known = ~np.isnan(y)
    certificate, report = rue.certify(X[known], y[known], np.array(wanted)[known], radius=1), read("c.json")
    assert (report["examples"], report["skipped"], report["unlabelled"]) == (known.sum(), 3, 4)
    assert report["loss_total"] == pytest.approx(certificate.loss_total)
    assert report["certificate"]["alone"] == pytest.approx(certificate.alone)


def test_ids_are_no_features(inside):
    rows = table()
    write(rows, "t.csv")
    inside("learn", "t.csv", "--target", "y", "--id", "who", *LEARN, "--bad", "skip", "--model", "m.rue")
    assert not any("who" in name for name in rue.load("m.rue").names.values())
    assert rue.learn("t.csv", y="y", id="who", bad="skip", learner="ogd").learner == rue.load("m.rue").learner
    write([{name: row[name] for name in ("b", "a")} for row in rows[3:6]], "new.csv")
    assert inside("predict", "m.rue", "new.csv").out.splitlines()[0] == "prediction"
    assert inside("predict", "m.rue", "new.csv", "--id", "b").out.splitlines()[1].split(",")[0] == rows[3]["b"]
    assert "there is no id column 'wo'" in inside("predict", "m.rue", "new.csv", "--id", "wo", ok=1).err
    write(rows, "t.vw")
    assert "say --id tag" in inside("learn", "t.vw", "--id", "who", ok=2).err
    Path("t.svm").write_text("1 1:1\n")
    assert "there are no columns" in inside("learn", "t.svm", "--id", "who", ok=2).err


def test_leading_zeros_of_ids_stay(inside):
    Path("t.csv").write_text("id,a,y\n007,1,1\n010,2,0\n")
    inside("learn", "t.csv", "--target", "y", "--id", "id", *LEARN, "--predictions", "p.csv")
    assert [line[0] for line in shown("p.csv")[1]] == ["007", "010"]


COLOURS = ("red", "green", "light, blue", 'so-called "grey"')


@pytest.mark.parametrize("ids", [[], ["--id", "who"]])
def test_probabilities_of_classes_are_a_table(ids, inside):
    rows = table(COLOURS)
    write(rows, "t.csv")
    options = ["--target", "y", "-q", "--bad", "skip", "--predictions", "p.csv", *(ids or ["--drop", "who"])]
    inside("learn", "t.csv", *options, "--model", "m.rue")
    head, lines = shown("p.csv")
    first = len(ids) // 2
    assert head == ["who"][:first] + sorted(COLOURS)
    run = rue.learn("t.csv", y="y", bad="skip", drop="who")
    order = np.argsort(run.labels.classes)
    found = np.array([[np.nan if cell == "" else float(cell) for cell in line[first:]] for line in lines])
    np.testing.assert_array_equal(found, run.probabilities[:, order])
    assert np.isnan(found).all(axis=1).tolist() == [i in BROKEN for i in range(30)]
    if ids:
        assert [line[0] for line in lines] == [row["who"] for row in rows]
    head_of_model = inside("predict", "m.rue", "t.csv", "--bad", "skip").out
    assert next(csv.reader(io.StringIO(head_of_model))) == head
    refused = ["--predictions", "p.csv", "--target", "y", "--loss", "logistic", "--radius", 1, "--bad", "skip"]
    assert "no certificate for more than two classes" in inside("certify", "t.csv", *refused, ok=1).err

    # Stopped and resumed, the file is the same; also when the process was killed after the file took its name.
    text = Path("t.csv").read_text().splitlines()
    for broken in BROKEN:  # no row but the ragged one stops the run
        text[1 + broken] = text[1 + broken].replace("inf", "1.0")
    Path("t.csv").write_text("\n".join([*text[:18], "ragged", *text[18:]]) + "\n")
    inside("learn", "t.csv", *options)
    wanted = Path("p.csv").read_bytes()
    os.remove("p.csv")
    stop = [option for option in options if option not in ("--bad", "skip")]
    inside("learn", "t.csv", *stop, "--checkpoint", "c.rue", ok=1)
    assert not os.path.exists("p.csv")
    for _ in range(2):
        inside("learn", "t.csv", "--resume", "c.rue", "-q", "--bad", "skip", "--predictions", "p.csv")
        assert Path("p.csv").read_bytes() == wanted
        assert not [name for name in os.listdir() if name.endswith(".part")]


def test_through_a_pipe_probabilities_are_long(inside):
    rows = table(COLOURS)
    write(rows, "t.csv")
    os.mkfifo("pipe")
    got, wait = receive("pipe")
    inside("learn", "t.csv", "--target", "y", "-q", "--bad", "skip", "--predictions", "pipe", "--id", "who")
    wait()
    head, *lines = csv.reader(io.StringIO(got[0].decode()))
    assert head == ["who", "row", "class", "probability"]
    run = rue.learn("t.csv", y="y", bad="skip", drop="who")
    found = np.where(np.isnan(run.probabilities), np.nan, 0.0)
    for who, row, name, p in lines:
        assert who == rows[int(row) - 1]["who"]
        if name:
            found[int(row) - 1, run.labels.classes.index(name)] = float(p)
    np.testing.assert_array_equal(found, run.probabilities)
    assert {int(line[1]) for line in lines} == set(range(1, 31))


def test_rows_before_the_first_label_have_a_line(inside):
    Path("t.csv").write_text("a,y\n" + "1,\n" * 3 + "2,1\n3,0\n")
    inside("learn", "t.csv", "--target", "y", *LEARN, "--predictions", "p.csv")
    assert len(shown("p.csv")[1]) == 5
    Path("t.csv").write_text("a,y\n" + "1,\n" * 3)
    assert (
        "no example has a label in t.csv"
        in inside("learn", "t.csv", "--target", "y", *LEARN, "--predictions", "p.csv", ok=1).err
    )
    assert shown("p.csv") == (["prediction"], [[""]] * 3)


def test_predictions_of_others_are_matched_row_by_row(inside):
    write(table(), "t.csv")
    options = ["t.csv", "--target", "y", "--drop", "who", "--bad", "skip", "--loss", "logistic", "--radius", 1]
    scores = np.linspace(-1.0, 1.0, 30)
    wanted = None
    for head, lines in {
        "": map(repr, scores.tolist()),
        "prediction\n": map(repr, scores.tolist()),
        "id,prediction\n": (f'"{i},0",{p!r}' for i, p in enumerate(scores.tolist())),
        "who,yes\n": (f"{i},{p!r}" for i, p in enumerate(scores.tolist())),
    }.items():
        Path("p.csv").write_text(head + "\n".join(lines) + "\n")
        said = inside("certify", *options, "--predictions", "p.csv").out
        wanted = wanted or said
        assert said == wanted
    Path("p.csv").write_text("\n".join(map(repr, scores[3:].tolist())) + "\n")
    assert (
        "has 27 predictions, but there are more rows" in inside("certify", *options, "--predictions", "p.csv", ok=1).err
    )


def test_bad_rows_stand_where_they_were_read():
    bad = [BadRow(place, 0, "", "") for place in (0, 2, 2, 3)]
    assert every_row(["a", "b", "c"], bad, list("wxyz")) == ["w", "a", "b", "x", "y", "c", "z"]


@pytest.mark.parametrize("classes", [("no", "yes"), COLOURS])
def test_rows_held_out_have_their_line_too(classes, inside):
    rows = table(classes)
    write(rows, "t.csv")
    options = ["--target", "y", "--id", "who", "--bad", "skip", *(LEARN if len(classes) == 2 else ["-q"])]
    for held in (0.3, 10):
        inside("learn", "t.csv", *options, "--holdout", held, "--predictions", "p.csv", "--model", "m.rue")
        head, lines = shown("p.csv")
        assert [line[0] for line in lines] == [row["who"] for row in rows]
        assert ["" in line for line in lines] == [i in BROKEN for i in range(30)]
        inside("predict", "m.rue", "t.csv", "--bad", "skip", "-o", "q.csv")
        again = shown("q.csv")
        assert (head, lines[-8:]) == (again[0], again[1][-8:])
        assert lines[3:20] != again[1][3:20]

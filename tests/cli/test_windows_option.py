"""`--windows` of `rue learn` and `rue certify`, and what the report says about windows and calibration."""

import csv
import json

import numpy as np
import pytest

import rue


@pytest.fixture
def drift(tmp_path):
    """A table whose rule turns round in the middle."""
    rng = np.random.default_rng(0)
    x, sunny = rng.normal(size=1200), rng.random(1200) < 0.5
    y = np.where(np.arange(1200) < 600, x, -x) + 0.5 * sunny + 0.2 * rng.normal(size=1200) > 0.0
    rows = [f"{a:.6f},{'sun' if b else 'rain'},{'yes' if c else 'no'}" for a, b, c in zip(x, sunny, y, strict=True)]
    path = tmp_path / "drift.csv"
    path.write_text("\n".join(["x,sky,bought", *rows]) + "\n")
    return path


def test_windows_of_a_table(inside, drift, tmp_path):
    common = [drift, "--target", "bought", "--learner", "ogd", "--radius", 10]
    paths = [tmp_path / name for name in ("w.csv", "r.json", "p.csv", "m.rue", "other.csv")]
    page = inside("learn", *common, "--windows", paths[0], "--report", paths[1], "--predictions", paths[2],
                  "--model", paths[3], "--quiet").out  # fmt: skip
    rows, report = list(csv.DictReader(paths[0].read_text().splitlines())), json.loads(paths[1].read_text())
    assert [int(row["first"]) for row in rows] == [1, *(int(row["last"]) + 1 for row in rows[:-1])]
    assert sum(float(row["loss"]) for row in rows) == pytest.approx(report["loss_total"])
    assert sum(int(row["mistakes"]) for row in rows) == report["mistakes"]
    assert report["windows"]["radius"] == 10
    shares = [row["share"] for row in report["windows"]["changes"]]
    assert shares == sorted(shares, reverse=True)
    assert "worst window" in page
    assert "last window" in page
    assert "calibrated   says " in page
    assert report["calibration"]["groups"][0]["name"] in ("sky=sun", "sky=rain")
    inside("certify", drift, "--target", "bought", "--predictions", paths[2], "--loss", "logistic", "--radius", 10,
           "--windows", paths[4])  # fmt: skip
    again = list(csv.DictReader(paths[4].read_text().splitlines()))
    for mine, theirs in zip(again, rows, strict=True):
        assert float(mine["comparator_loss_at_least"]) == pytest.approx(float(theirs["comparator_loss_at_least"]))
    assert len(rue.load(paths[3]).evidence.ledger.windows.pieces()) == len(rows)


def test_windows_are_written_to_a_file_of_their_own(inside, drift, tmp_path):
    same = tmp_path / "x.csv"
    said = inside("learn", drift, "--target", "bought", "--windows", same, "--predictions", same, ok=2)
    assert "--windows" in said.err

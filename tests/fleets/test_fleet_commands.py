"""`rue learn --by`, and what `rue predict` and `rue inspect` do with its model; and its file, read without trust."""

import csv
import json

import numpy as np
import pyarrow.parquet
import pytest

import rue
from rue.cli.app import app
from rue.cli.commands import register
from rue.fleets.file import load_fleet
from rue.models.container import read_container, write_container


def command(capsys, *args):
    """Run a command in this process; what it printed on stdout and stderr."""
    capsys.readouterr()
    register(args[0])
    app(list(map(str, args)), standalone_mode=False)
    return capsys.readouterr()


@pytest.fixture
def sales(tmp_path, monkeypatch):
    """A table of two shops, and rows of an unknown one and of none."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{shop},{x:.2f},{int(x > 0) if shop == 7 else int(x < 0)}" for shop in (7, 8) for x in rng.normal(size=40)]
    order = rng.permutation(80)
    (tmp_path / "sales.csv").write_text("\n".join(["shop,x,sold", *(rows[i] for i in order), ",1.0,1", ""]))
    (tmp_path / "new.csv").write_text("shop,x\n7,2.0\n8,2.0\n9,2.0\n,2.0\n")
    return tmp_path


LEARN = ("learn", "sales.csv", "--target", "sold", "--by", "shop", "--learner", "ogd", "-q")


def test_learn_predict_inspect_and_go_on(sales, capsys):
    asked = ("--model", "m.rue", "--report", "r.json", "--report-by", "t.parquet", "--predictions", "p.csv")
    said = command(capsys, *LEARN, *asked)
    assert "keys         2 in the column 'shop'" in said.out
    report = json.loads((sales / "r.json").read_text())
    assert (report["keys"], report["examples"], report["keyless"]) == (2, 80, 1)
    table = pyarrow.parquet.read_table(sales / "t.parquet").to_pydict()
    assert sorted(table["key"]) == ["7", "8"]
    assert table["examples"] == [40, 40]
    with open(sales / "p.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 81
    assert rows[-1] == {"shop": "", "prediction": ""}
    fleet = rue.Fleet.load("m.rue")
    for key in ("7", "8"):
        mine = [float(row["prediction"]) for row in rows if row["shop"] == key]
        alone = [line for line in (sales / "sales.csv").read_text().splitlines() if line.startswith(key)]
        (sales / "alone.csv").write_text("\n".join(["shop,x,sold", *alone, ""]))
        run = rue.learn("alone.csv", "sold", learner="ogd", id="shop")
        assert mine == run.predictions.tolist()
        assert fleet.models[key].learner == run.learner
    said = command(capsys, "predict", "m.rue", "new.csv", "--as", "label")
    assert said.out.splitlines() == ["shop,prediction", "7,1", "8,0", "9,0", '"",""']
    assert "1 row of 1 key that the model does not know, such as '9'" in said.err
    assert "1 row without a key: not predicted" in said.err
    assert "key 7: 40 examples, mean loss" in command(capsys, "inspect", "m.rue", "--key", "7").out
    assert "keys         2" in command(capsys, "inspect", "m.rue").out
    command(capsys, "learn", "sales.csv", "--resume", "m.rue", "--model", "m.rue", "-q")
    assert rue.Fleet.load("m.rue").models["7"].examples == 80


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((*LEARN, "--checkpoint", "c.rue"), "--checkpoint does not go together with --by"),
        ((*LEARN, "--maps"), "--maps does not go together with --by"),
        ((*LEARN, "--report-by", "x.txt"), "--report-by writes .parquet or .csv"),
        (("learn", "sales.csv", "--target", "sold", "--report-by", "x.csv"), "say --by COLUMN too"),
        (("learn", "sales.csv", "--target", "sold", "--by", "sold"), "--by and --target both name sold"),
        (("learn", "sales.csv", "--target", "sold", "--by", "nosuch"), "there is no column for --by: 'nosuch'"),
        (("weights", "m.rue"), "holds a model for every key"),
        (("learn", "sales.csv", "--resume", "m.rue", "--by", "x"), "--by x contradicts --resume"),
        (("predict", "m.rue", "nokey.csv"), "nokey.csv has no column 'shop'"),
        (("inspect", "m.rue", "--key", "9"), "there is no model for the key '9'"),
        (("predict", "cut.rue", "new.csv"), "cut.rue is not a model that can be read"),
    ],
)
def test_what_cannot_be_is_one_sentence(sales, capsys, args, message):
    rue.fleet("sales.csv", "sold", by="shop", learner="ogd").save("m.rue")
    (sales / "nokey.csv").write_text("x\n1.0\n")
    (sales / "cut.rue").write_bytes((sales / "m.rue").read_bytes()[:900])
    with pytest.raises(rue.RueError) as refused:
        command(capsys, *args)
    assert message in str(refused.value)


@pytest.mark.parametrize("learner", ["ogd", "mixture"])
def test_a_forged_file_is_refused_or_usable(sales, learner):
    """Whatever a byte of the arrays says, with a digest that fits: a sentence, or a fleet that predicts and learns."""
    rng = np.random.default_rng(1)
    X, by = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    rue.fleet(X, y, by=by, learner=learner).save("m.rue")
    refused = 0
    for _ in range(60):
        head, arrays = read_container("m.rue")
        name = rng.choice([name for name in arrays if arrays[name].size and name not in ("names", "keys")])
        forged = np.array(arrays[name])
        forged.reshape(-1).view(np.uint8)[rng.integers(forged.nbytes)] ^= 1 << rng.integers(8)
        write_container("forged.rue", head, {**arrays, name: forged})
        try:
            fleet = load_fleet("forged.rue")
        except rue.DataError:
            refused += 1
        else:
            fleet.predict(X, by=by)
            rue.fleet(X, y, by=by, learner=fleet)
    assert refused > 0

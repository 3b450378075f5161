"""What docs/jobs/cluster.md shows for other engines, as it stands there, gives what the shards of rue itself give."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas
import pytest

import rue
from conftest import ROOT

PAGE = (ROOT / "docs" / "jobs" / "cluster.md").read_text()


def recipe(engine):
    """The block of the page that imports an engine, or names it in the comment before it."""
    [block] = re.findall(rf"<!-- not run: it needs {engine}.*? -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    return block


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "clicks").mkdir()
    for k in range(4):
        X = random.normal(size=(200, 2))
        table = pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "clicked": np.where(X @ [1.0, -1.0] > 0, "yes", "no")})
        table.to_csv(tmp_path / "clicks" / f"{k}.csv", index=False)
    return tmp_path


def run(folder, source):
    """A script, in a process of its own and in the folder."""
    (folder / "recipe.py").write_text(source)
    limits = {"NUMBA_DISABLE_JIT": "1", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "recipe.py"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **limits}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return rue.load(folder / "clicks.rue")


@pytest.mark.soak  # there too: `make test` skips it where Dask is not installed
@pytest.mark.skipif(find_spec("dask") is None, reason="Dask is not installed: make soak has it")
def test_dask(folder, monkeypatch):
    source = recipe("dask").replace("begin(data)", 'begin(data, Driver("ogd"))')
    model = run(folder, "from rue.runs.driver import Driver\n" + source.replace("65_536", "1_000"))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    same = rue.cluster.learn("clicks/", target="clicked", shards=16, on="local", workers=1, learner="ogd")
    assert model.learner == same.model.learner
    assert model.learner.t == 800


@pytest.mark.soak
@pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed: make soak has it")
def test_spark(folder):
    before = """
from pyspark.sql import SparkSession
from rue.runs.driver import Driver

options = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
builder = SparkSession.builder.master("local[2]")
for name, value in options.items():
    builder = builder.config(name, value)
frame = builder.getOrCreate().read.csv("clicks", header=True, inferSchema=True).repartition(3)
"""
    source = recipe("Spark").replace('target="clicked"))', 'target="clicked"), Driver("ogd"))', 1)
    model = run(folder, before + source)
    assert model.learner.t == 800
    table = pandas.concat(pandas.read_csv(path) for path in sorted((folder / "clicks").iterdir()))
    predictions = model.learner.predict_many(table[["x", "z"]].to_numpy())
    yes = model.labels.positive
    assert np.mean((predictions > 0) == (table["clicked"] == yes)) > 0.9

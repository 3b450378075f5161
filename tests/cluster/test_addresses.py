"""Data at addresses: file:// everywhere, memory:// by fsspec, and s3:// from moto's server in a process of its own."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas
import pytest

import rue
from rue.cluster import learn

SETTINGS = {"target": "y", "shards": 3, "round": 50, "learner": "ogd", "bits": 8}
NAMES = ["data.csv", "data.csv.gz", "data.jsonl", "data.parquet", "data.arrow", "data.feather"]


@pytest.fixture(autouse=True)
def small(monkeypatch, interpreted):
    monkeypatch.setattr("rue.streams.units.UNIT", 2000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows in every format that has columns, each in a folder of its own."""
    random, root = np.random.default_rng(0), tmp_path_factory.mktemp("files")
    X = random.normal(size=(150, 2))
    words = random.choice(["red", "blue, or so", 'a "grey"'], 150)
    table = pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "word": words, "y": np.where(X.sum(axis=1) > 0, "yes", "no")})
    for name in NAMES:
        (root / name).mkdir()
        path = root / name / name
        if "csv" in name:
            table.to_csv(path, index=False)
        elif name == "data.jsonl":
            table.to_json(path, orient="records", lines=True)
        elif name == "data.parquet":
            table.to_parquet(path, row_group_size=40)
        else:
            table.to_feather(path, compression="uncompressed")
    return root


def same(address, path):
    """Whether an address is learnt as the file is, to the bit."""
    there, here = learn(address, on="inline", **SETTINGS), learn(path, on="inline", **SETTINGS)
    assert there.examples == 150
    return there.model.learner == here.model.learner and there.loss == here.loss


@pytest.mark.parametrize("name", NAMES)
def test_file_addresses_of_every_format(folder, name):
    path = str(folder / name / name)
    assert same(f"file://{path}", path)
    assert same(f"file://{folder / name}", path)  # the folder
    assert same(str(folder / name), path)


def test_a_file_that_is_not_there(folder):
    with pytest.raises(rue.DataError, match=r"there is no file file://.*none\.csv"):
        learn(f"file://{folder}/none.csv", on="inline", **SETTINGS)
    with pytest.raises(rue.DataError, match=r"moon://a/data\.csv cannot be opened: "):
        learn("moon://a/data.csv", on="inline", **SETTINGS)


@pytest.mark.soak
@pytest.mark.skipif(find_spec("fsspec") is None, reason="fsspec is not installed: make soak has it")
def test_what_fsspec_opens(folder):
    import fsspec

    memory = fsspec.filesystem("memory")
    for name in NAMES:
        memory.put(str(folder / name / name), f"/rows/{name}/{name}")
        assert same(f"memory://rows/{name}/{name}", str(folder / name / name))
        assert same(f"memory://rows/{name}", str(folder / name / name))
    with pytest.raises(rue.DataError, match=r"there is no file memory://rows/none\.csv\.$"):
        learn("memory://rows/none.csv", on="inline", **SETTINGS)


SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """The port of an S3 server on the loopback interface."""
    if find_spec("moto") is None:
        pytest.skip("moto is not installed: make soak has it")
    log = (tmp_path_factory.mktemp("s3") / "log").open("w")
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as server:
        yield int(server.stdout.readline())
        server.stdin.close()
    log.close()


@pytest.mark.soak
def test_s3(folder, s3, monkeypatch, inside, tmp_path):
    from pyarrow import fs

    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("RUE_UNIT", "2000")
    options = {"endpoint_override": f"127.0.0.1:{s3}", "scheme": "http", "access_key": "a", "secret_key": "b"}
    store, query = fs.S3FileSystem(allow_bucket_creation=True, **options), f"?endpoint_override=127.0.0.1:{s3}"
    query += "&scheme=http"
    for name in NAMES:
        store.create_dir(f"bucket/{name}")
        with store.open_output_stream(f"bucket/{name}/{name}", compression=None) as out:
            out.write((folder / name / name).read_bytes())
        assert same(f"s3://bucket/{name}/{name}{query}", str(folder / name / name))
        assert same(f"s3://bucket/{name}{query}", str(folder / name / name))
    address, models = f"s3://bucket/data.csv/data.csv{query}", [tmp_path / "a.rue", tmp_path / "b.rue"]
    command = ["--target", "y", "--shards", 3, "--round", 50, "--learner", "ogd", "--bits", 8, "-q"]
    for model, on in zip(models, (["local", "--workers", 2], ["inline"]), strict=True):
        inside("learn", address, *command, "--on", *on, "--model", model)
    assert models[0].read_bytes() == models[1].read_bytes()
    for wrong in (f"s3://bucket/none.csv{query}", f"s3://other/data.csv{query}"):
        said = inside("learn", wrong, *command, ok=1).err
        assert "there is no file s3://" in said
        assert len(said.strip().splitlines()) == 1
    nobody = "s3://bucket/data.csv?scheme=http&endpoint_override=127.0.0.1:1"
    said = inside("learn", nobody, *command, ok=1).err
    assert "cannot be opened" in said
    assert len(said.strip().splitlines()) == 1

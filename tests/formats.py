"""One table in every format and packing that rue reads."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def table(rows, wrong=None, seed=0):
    """Numbers, words with holes, and classes; one infinity where told."""
    rng = np.random.default_rng(seed)
    numbers = {f"c{j}": np.round(rng.standard_normal(rows), 4) for j in range(6)}
    words = rng.choice(["red", "green, or so", "blue"], rows).tolist()
    score = numbers["c0"] - numbers["c1"] + (np.array(words) == "red") + rng.standard_normal(rows)
    numbers["c2"][rng.random(rows) < 0.05] = np.nan
    if wrong is not None:
        numbers["c3"][wrong] = np.inf
    return pa.table({**numbers, "word": words, "y": np.where(score > 0, "yes", "no")})


def features(row):
    """A row as svmlight and VW have it."""
    return " ".join(f"{j + 1}:{row[f'c{j}']!r}" for j in range(6) if not np.isnan(row[f"c{j}"]))


def svmlight(made):
    rows = made.to_pylist()
    return "".join(f"{1 if row['y'] == 'yes' else -1} {features(row)}\n" for row in rows).encode()


def vw(made):
    rows = made.to_pylist()
    lines = (f"{1 if row['y'] == 'yes' else -1} |w {row['word']} |n {features(row)}\n" for row in rows)
    return "".join(lines).replace(",", "").encode()


def csv(made):
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(made, sink)
    return sink.getvalue().to_pybytes().replace(b",nan,", b",,")


def jsonl(made):
    lines = (json.dumps({k: v for k, v in row.items() if v == v}) + "\n" for row in made.to_pylist())
    return "".join(lines).replace("Infinity", "1e999").encode()


def parquet(made):
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(made, sink, row_group_size=1500)
    return sink.getvalue().to_pybytes()


def arrow(made, compression="uncompressed"):
    sink = pa.BufferOutputStream()
    pa.feather.write_feather(made, sink, chunksize=1700, compression=compression)
    return sink.getvalue().to_pybytes()


def stream(made):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=900)
    return sink.getvalue().to_pybytes()


WRITERS = {
    ".svm": svmlight,
    ".vw": vw,
    ".csv": csv,
    ".jsonl": jsonl,
    ".parquet": parquet,
    ".arrow": arrow,
    ".ipc": stream,
}


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def write(path, made):
    """A table in the format and the packing that the name asks for."""
    suffixes = path.suffixes
    data = WRITERS[suffixes[0]](made)
    path.write_bytes(PACKERS[suffixes[1]](data) if len(suffixes) > 1 else data)
    return path

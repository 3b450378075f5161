"""Damaged tables, read in a process of their own: `python damaging.py FILE TARGET SEED COUNT FOLDER`.

Prints for each damaged copy whether it was refused, gave the rows of the original, or others; a crash shows in the exit
code, after the damage was written down.
"""

import json
import random
import resource
import sys
from pathlib import Path

import numpy as np

from rue.errors import DataError
from rue.streams.tables.columns import plan
from tables import open_table


def rows_of(path, columns):
    """What is learnt of a table, as text."""
    table = open_table(path)
    columns.require(table.schema.names, True)
    assert table.first is not None  # damage found here is reported by `pieces`
    parts = []
    for piece in table.pieces():
        chunk = table.chunk(piece, columns)
        X = chunk.block.X
        assert not chunk.bad or all(bad.why for bad in chunk.bad)
        arrays = np.diff(X.indptr), X.indices, X.data, np.asarray(chunk.block.y)
        parts += [(array.dtype.str, array.tolist()) for array in arrays] + [[bad.line for bad in chunk.bad]]
    return repr(parts)


def damaged(content, rng):
    """A copy with a byte changed, a piece cut out of it, or its end cut off."""
    how, at = rng.random(), rng.randrange(len(content))
    changed = bytearray(content)
    if how < 0.8:
        changed[at] ^= 1 << rng.randrange(8) if how < 0.4 else rng.randrange(1, 256)
        return f"byte {at}: {content[at]} became {changed[at]}", bytes(changed)
    if how < 0.9:
        return f"cut after {at}", content[:at]
    length = rng.randrange(1, 64)
    return f"without {length} bytes from {at}", content[:at] + content[at + length :]


def main(path, target, seed, count, folder):
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    rng, content = random.Random(int(seed)), Path(path).read_bytes()
    table = open_table(path)
    columns = plan(table.schema, target=target, first=table.first)
    expected = rows_of(path, columns)
    copy = Path(folder) / f"damaged{Path(path).suffix}"
    for _ in range(int(count)):
        what, bad = damaged(content, rng)
        Path(folder, "last").write_text(what)
        copy.write_bytes(bad)
        try:
            outcome = "same" if rows_of(copy, columns) == expected else "different"
        except DataError as error:
            outcome = "refused" if "\n" not in str(error) else f"not one sentence: {error}"
        print(json.dumps([outcome, what]))


if __name__ == "__main__":
    main(*sys.argv[1:])

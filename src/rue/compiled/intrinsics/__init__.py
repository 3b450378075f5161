"""Instructions that Numba has no word for, as functions that kernels call.

Each is a plain function, which runs where nothing is compiled, with the LLVM instructions for compiled code beside it;
tests hold the two together.

- `scalars`: prefetching (`fetch`), the lowest bit of a word, numbers at an address;
- `gathering`: sums over rows of a table, and steps along them, a vector at a time;
- `transposing`: eight rows of a table as columns, and back;
- `text`: the ends of names, the hashes of words, the order of indices.
"""

from rue.compiled.intrinsics.gathering import collect_lanes, gather_rows, move_lanes, move_rows
from rue.compiled.intrinsics.scalars import fetch, lowest_bit, number_at, whole_at
from rue.compiled.intrinsics.text import BYTES, HASHED, QUAD, WORD_LANES, count_smaller, ends_among, hash_words
from rue.compiled.intrinsics.transposing import EIGHT, as_columns, as_rows
from rue.compiled.llvm import LANES

__all__ = [
    "BYTES",
    "EIGHT",
    "HASHED",
    "LANES",
    "QUAD",
    "WORD_LANES",
    "as_columns",
    "as_rows",
    "collect_lanes",
    "count_smaller",
    "ends_among",
    "fetch",
    "gather_rows",
    "hash_words",
    "lowest_bit",
    "move_lanes",
    "move_rows",
    "number_at",
    "whole_at",
]

"""Streams of examples: blocks of rows with labels and weights."""

from rue.streams.block import Block, as_array, as_labels, blocks, floats, missing_labels, one_sparse_row
from rue.streams.labels import Labels
from rue.streams.packaged import census
from rue.streams.stream import ReadOptions, Stream, read, read_like

__all__ = [
    "Block",
    "Labels",
    "ReadOptions",
    "Stream",
    "as_array",
    "as_labels",
    "blocks",
    "census",
    "floats",
    "missing_labels",
    "one_sparse_row",
    "read",
    "read_like",
]

"""Streams of examples: blocks of rows with labels and weights."""

from rue.streams.base import Block, as_array, blocks, floats, one_sparse_row
from rue.streams.labels import Labels
from rue.streams.packaged import census

__all__ = ["Block", "Labels", "as_array", "blocks", "census", "floats", "one_sparse_row"]

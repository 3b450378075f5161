"""Streams of examples: blocks of rows with labels and weights."""

from rue.streams.base import Block, blocks, one_sparse_row
from rue.streams.labels import Labels
from rue.streams.packaged import census

__all__ = ["Block", "Labels", "blocks", "census", "one_sparse_row"]

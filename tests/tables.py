"""A table opened without a stream around it."""

import os

from rue.streams.files.cutting import MAX_LINE
from rue.streams.files.pieces import PIECE
from rue.streams.files.sources import Source
from rue.streams.formats import find_source, formats
from rue.streams.tables.batches import open_frame


def open_table(source, name=None, *, separator=None, block=PIECE, max_line=MAX_LINE, decimal="."):
    """A table from a path, a binary file object whose format is named, or a frame."""
    if isinstance(source, str | os.PathLike):
        source = find_source(os.fspath(source), name)
    elif hasattr(source, "read"):
        source = Source(source, name)
    else:
        return open_frame(source)
    format_ = formats()[source.format](separator=separator, max_line=max_line)
    format_.decimal = decimal
    return format_.open(source, block)

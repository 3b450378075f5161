"""From the record batches of a table to chunks of examples, by the rules of `columns`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from rue.errors import DataError
from rue.streams.block import BinnedColumn, Block, _View
from rue.streams.chunk import BadRow, Chunk
from rue.streams.names import Names
from rue.streams.tables.assembly import NOTHING, Rows, assemble, first_of_each, hash_texts, look_over
from rue.streams.tables.columns import Columns, kind_of
from rue.streams.tables.dates import CALENDAR, DAYS, HOURS, read_moments
from rue.streams.tables.spelling import is_text, parse_numbers
from rue.streams.tables.tokens import Words, add_words, pair_words, split_words

__all__ = ["encode", "key_texts", "shortened"]

CACHED = 1 << 17
"""Numbers put together at a time: a MiB of them stays in the processor's cache."""
CROSS = "×"
"""Between the names, and the values, of columns that are crossed."""
_WIDE = (np.dtype(np.int64), np.dtype(np.float64))


def encode(
    columns: Columns,
    batch: Any,
    lines: Any,
    bad: Iterable[BadRow] = (),
    *,
    labels: bool = True,
    names: Names | None = None,
) -> Chunk:
    """The examples of a record batch whose rows stand in these lines; thread-safe; the hot loops release the GIL.

    `bad` are rows already rejected by the parser. Without `labels` a table needs no target and no weight. A missing
    label is NaN among numbers, else None.
    If `names` are given, the chunk has the names of hashed features that are not among them, each column's in the order
    of their first occurrence.
    """
    there = batch.schema.names
    columns.require(there, labels)
    good = np.ones(batch.num_rows, dtype=np.bool_)
    why: dict[int, tuple[str, str]] = {}
    reader = _Reader(columns, batch.num_rows)
    for name, kind in columns.plan:
        reader.add(name, kind, _column(batch, name), good, why)
    for one in columns.crosses:
        reader.crossed(one, [_column(batch, name) for name in one], good, why)
    y = weights = None
    if columns.target is not None and (labels or columns.target in there):
        y = _labels(columns, _column(batch, columns.target), good, why)
    if columns.weight is not None and (labels or columns.weight in there):
        weights = _weights(columns, _column(batch, columns.weight), good, why)
    advice = _advice(columns, batch, good, why) if columns.experts else None
    tags: Any = None
    if columns.id is not None and columns.id in there:
        tags = _tags(columns.id, _column(batch, columns.id))
    X = reader.rows(good, why)
    called = () if names is None else reader.names(good, names.seen)
    if why:
        y, weights, advice = (None if column is None else column[good] for column in (y, weights, advice))
    good_lines = lines[good] if why else lines
    missing = (reader.gaps[good] if why else reader.gaps) if reader.gaps.any() else None
    refused = [BadRow(0, int(lines[i]), *reason, "" if tags is None else tags[i]) for i, reason in why.items()]
    if tags is not None:
        tags = tuple(tags[i] for i in np.flatnonzero(good).tolist()) if why else tuple(tags)
    placed = _placed([*bad, *refused], good_lines)
    return Chunk(Block(X, y, weights), good_lines, placed, tags, names=called, missing=missing, advice=advice)


def shortened(text: str) -> str:
    """At most 40 characters of a text, quoted."""
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _placed(bad: list[BadRow], lines: Any) -> tuple[BadRow, ...]:
    """Bad rows in order, each with the number of good ones before it."""
    ordered = sorted(bad, key=lambda row: row.line)
    places = np.searchsorted(lines, [row.line for row in ordered]).tolist()
    return tuple(dataclasses.replace(row, place=place) for row, place in zip(ordered, places, strict=True))


class _Reader:
    """The columns of one batch on their way to rows."""

    def __init__(self, columns: Columns, count: int) -> None:
        self.columns, self.count = columns, count
        self.own: list[Any] = []
        """The columns with slots of their own, as numbers of any kind."""
        self.missing = False
        """Whether a number is missing in a good row."""
        self.gaps = np.zeros(count, dtype=np.int32)
        """How many cells of each row are missing; of a row that is not good it may be less."""
        self.slots: list[Any] = []
        self.texts: list[tuple[str, Any]] = []
        self.words: list[tuple[str, Words, Any]] = []
        """The columns of text: name, words, and their slots."""

    def add(self, name: str, kind: str, column: Any, good: Any, why: dict[int, tuple[str, str]]) -> None:
        """Take in a column; rows of it that cannot be read become bad."""
        if kind == "category":
            self.hashed(name, _texts(name, column))
        elif kind == "text":
            self.tokenised(name, _texts(name, column))
        elif kind in ("number", "boolean"):
            self.own.append(_numbers(self.columns, name, column, good, why))
        else:
            self.dated(name, kind, column, good, why)

    def dated(self, name: str, kind: str, column: Any, good: Any, why: dict[int, tuple[str, str]]) -> None:
        """The parts of a column of dates, by the rules of the version of its columns."""
        moments, wrong = read_moments(name, kind, column, kind_of(column.type), self.columns.order)
        if wrong is not None:
            _refuse(wrong, name, lambda i: f"{shortened(str(column[i]))} is not a {kind}", good, why)
        missing, new = moments.missing, self.columns.version > 1
        days = moments.days_since(self.columns.start(name) if new else 0)
        if missing is not None:
            days[missing] = np.nan
        self.own.append(days)
        if new and kind in CALENDAR:
            yearly = moments.day_of_year
            self.own.append(yearly if missing is None else np.where(missing, 0, yearly))
            quiet = moments.midnight if missing is None else moments.midnight | missing
            self.listed(f"{name}.hour", HOURS, moments.hour, quiet)
        elif kind in ("timestamp", "time"):
            self.listed(f"{name}.hour", HOURS, moments.hour, missing)
        if kind in CALENDAR:
            self.listed(f"{name}.weekday", DAYS, moments.weekday, missing)

    def tokenised(self, name: str, column: Any) -> None:
        """A column of text as words, and perhaps as pairs of neighbours."""
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        texts = _plain(column)
        self.gaps += _empty(texts)
        words = split_words(*_content(texts))
        for some in (words, pair_words(words)) if self.columns.word_pairs else (words,):
            self.words.append((name, some, _slots(self.columns, name, some.letters, some.places)))

    def listed(self, name: str, words: tuple[str, ...], codes: Any, missing: Any) -> None:
        """A hashed column of a few words, given by their numbers."""
        import pyarrow as pa

        slots = _few_slots(self.columns, (name,) * len(words), words)[codes]
        if missing is not None:
            slots[missing] = NOTHING
        self.slots.append(slots)
        self.texts.append((name, pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(words))))

    def hashed(self, name: str, column: Any) -> None:
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            nothing = _few_slots(self.columns, (name,), ("",))
            words = _plain(column.dictionary)
            known = np.concatenate((_slots(self.columns, name, *_content(words)), nothing))
            empty = np.append(_empty(words), True)
            codes = column.indices
            absent = codes.null_count > 0 or bool(empty[:-1].any())
            codes = codes.fill_null(len(known) - 1) if codes.null_count else codes
            self.slots.append(known[codes.to_numpy()])
            if absent:
                self.gaps += empty[codes.to_numpy()]
        else:
            words = _plain(column)
            self.slots.append(_slots(self.columns, name, *_content(words)))
            self.gaps += _empty(words)
        self.texts.append((name, column))

    def crossed(self, names: tuple[str, ...], columns: list[Any], good: Any, why: dict[int, tuple[str, str]]) -> None:
        """Columns whose values together are a category."""
        import pyarrow as pa
        import pyarrow.compute as pc

        parts = []
        for name, column in zip(names, columns, strict=True):
            if self.columns.kind(name) == "number" and is_text(column.type):  # with decimal commas
                column = pa.array(_numbers(self.columns, name, column, good, why))
            texts = _texts(name, column)
            texts = texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts
            parts.append(_plain(texts).cast(pa.large_string()))
        self.hashed(CROSS.join(names), pc.binary_join_element_wise(*parts, pa.scalar(CROSS, pa.large_string())))

    def rows(self, good: Any, why: dict[int, tuple[str, str]]) -> Any:
        """The good rows; those with an infinity become bad."""
        own = self.columns.own
        absent = _few_slots(self.columns, own, ("",) * len(own))
        slots = np.stack(self.slots) if self.slots else np.empty((0, self.count), np.uint32)
        room = self.count * (len(own) + len(slots)) + 1
        out = Rows(np.zeros(self.count + 1, np.int64), np.empty(room, np.uint32), np.empty(room))
        culprit = np.zeros(self.count, np.int32)
        step = max(64, min(self.count, CACHED // max(1, len(own))))
        numbers, count = np.empty((len(own), step + 8)), 0  # 8 more: columns a power of 2 apart would share cache lines
        filled, sound = np.empty((-(-len(own) // 64), step), np.uint64), np.empty(step)
        columns = [column if column.dtype in _WIDE else column.astype(np.float64) for column in self.own]
        columns = [np.ascontiguousarray(column) for column in columns]
        addresses = np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.uint64)
        whole = np.array([column.dtype == np.int64 for column in columns], dtype=np.bool_)
        # Resolved once, because dispatch takes as long as the call.
        look = look_over.resolve(addresses, whole, 0, 0, numbers, filled, sound)
        gaps = self.gaps
        put = assemble.resolve(numbers, filled, sound, 0, 0, absent, slots, good, culprit, gaps, out, 0)
        for begin in range(0, self.count, step):
            stop = min(begin + step, self.count)
            look(addresses, whole, begin, stop - begin, numbers, filled, sound)
            count, missing = put(numbers, filled, sound, begin, stop, absent, slots, good, culprit, gaps, out, count)
            self.missing |= missing
        if count + len(why) < self.count:
            for i in np.flatnonzero(~good).tolist():
                why.setdefault(i, (own[culprit[i]], "an infinity"))
        for _, words, slots_of_words in self.words:
            out = _with_words(out, count, good, slots_of_words, words.ends)
        used = int(out.indptr[count])
        width = self.columns.width
        if used and out.indices[:used].max() >= width:
            width = self.columns.full_width
        indices, values = out.indices[:used], out.values[:used]
        if 2 * used < room:  # several blocks wait to be learnt: they are not to hold room that they do not need
            indices, values = indices.copy(), values.copy()
        return _View(out.indptr[: count + 1], indices, values, width, bins=binned_columns(self.columns))

    def names(self, good: Any, seen: Any) -> tuple[tuple[int, str], ...]:
        """The hashed features that occur in good rows, without those that have a bit in `seen`."""
        import pyarrow as pa

        named: dict[int, str] = {}
        own = self.columns.own if self.missing else ()
        absent = _few_slots(self.columns, own, ("",) * len(own))
        for name, values, slot in zip(own, self.own[: len(own)], absent, strict=True):
            if np.isnan(values[good]).any():
                named.setdefault(int(slot), f"{name}=")
        out = np.empty(self.count, np.int64)
        for slots, (name, texts) in zip(self.slots, self.texts, strict=True):
            table = np.full(2 << self.count.bit_length(), NOTHING)
            count = first_of_each(slots, good, seen, table, out)
            if not count:
                continue
            chosen = texts.take(pa.array(out[:count]))
            if pa.types.is_dictionary(chosen.type):
                chosen = chosen.dictionary_decode()
            for i, text in zip(out[:count].tolist(), _words(chosen), strict=True):
                named.setdefault(int(slots[i]), f"{name}={'' if text is None else text}")
        for name, words, slots in self.words:
            there, out = np.repeat(good, np.diff(words.ends)), np.empty(slots.size, np.int64)
            table = np.full(2 << slots.size.bit_length(), NOTHING)
            for i in out[: first_of_each(slots, there, seen, table, out)].tolist():
                word = words.letters[words.places[i] : words.places[i + 1]].tobytes().decode()
                named.setdefault(int(slots[i]), f"{name}={word}")
        return tuple(named.items())


def _with_words(rows: Rows, count: int, good: Any, slots: Any, ends: Any) -> Rows:
    """The first `count` rows with the words of a text column."""
    room = int(rows.indptr[count]) + slots.size
    out = Rows(np.zeros(count + 1, np.int64), np.empty(room, np.uint32), np.empty(room))
    longest = int(np.diff(ends).max(initial=0))
    add_words(rows, good, slots, ends, np.empty(longest, np.uint32), out)
    return out


def _slots(columns: Columns, name: str, content: Any, places: Any) -> Any:
    """The slots of `name=text` for the texts content[places[i]:places[i + 1]]."""
    out = np.empty(max(0, places.size - 1), dtype=np.uint32)
    if out.size:
        base, mask = np.uint64(columns.slots), np.uint64((1 << columns.bits) - 1)
        hash_texts(np.frombuffer(f"{name}=".encode(), np.uint8), places, content, base, mask, out)
    return out


def _content(texts: Any) -> tuple[Any, Any]:
    """The bytes of an Arrow array of texts, and where in them each begins, and the last one ends."""
    if not len(texts):
        return np.zeros(0, np.uint8), np.zeros(1, np.int32)
    data = texts.buffers()[2]
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), _offsets(texts)


def _offsets(texts: Any) -> Any:
    """Where in its data each text of an Arrow array begins, and where the last one ends."""
    import pyarrow as pa

    places = np.frombuffer(texts.buffers()[1], np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    return places[texts.offset : texts.offset + len(texts) + 1]


def _empty(texts: Any) -> Any:
    """Which texts of an Arrow array are empty."""
    if not len(texts):
        return np.zeros(0, dtype=np.bool_)
    places = _offsets(texts)
    return places[1:] == places[:-1]


@functools.lru_cache(maxsize=64)
def binned_columns(columns: Columns) -> tuple[BinnedColumn, ...] | None:
    """The columns that are put into bins, as a learner needs them; None if there are none."""
    names = tuple(name for name, _ in columns.bins)
    absent = _few_slots(columns, names, ("",) * len(names)).tolist()
    described = zip(columns.bins, absent, columns.first_bins, strict=False)
    found = (BinnedColumn(columns.own.index(name), slot, first, count) for (name, count), slot, first in described)
    return tuple(found) or None


@functools.lru_cache(maxsize=256)
def _few_slots(columns: Columns, names: tuple[str, ...], words: tuple[str, ...]) -> Any:
    """The slots of a few features that every batch needs."""
    import pyarrow as pa

    slots = [_slots(columns, name, *_content(pa.array([word]))) for name, word in zip(names, words, strict=True)]
    return np.concatenate(slots) if slots else np.empty(0, np.uint32)


# Columns of a batch as numbers, moments, texts.


def _column(batch: Any, name: str) -> Any:
    """A column as one array, without an extension type around it."""
    import pyarrow as pa

    column = batch.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column


def _numbers(columns: Columns, name: str, column: Any, good: Any, why: dict[int, tuple[str, str]]) -> Any:
    """As an array of numbers, NaN where they are missing; text in their place is read where decimal commas were."""
    import pyarrow as pa

    if column.type in (pa.float64(), pa.int64()):  # as most are; to tell what the others are takes time
        return column.to_numpy(zero_copy_only=False)
    if columns.decimal == "," and is_text(column.type):
        numbers, wrong = parse_numbers(column)
        if wrong is not None:
            _refuse(wrong, name, lambda i: f"{shortened(str(column[i]))} is not a number", good, why)
        return numbers.to_numpy(zero_copy_only=False)
    if kind_of(column.type) not in ("number", "boolean") and not pa.types.is_null(column.type):
        raise DataError(f"the column {name!r} held numbers at the beginning, but holds {column.type} here.")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.string()).cast(pa.float64())  # by way of text it is rounded correctly
    elif pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _texts(name: str, column: Any) -> Any:
    """As text or as a dictionary of texts; numbers as Arrow writes them, 1.0 as 1."""
    import pyarrow as pa

    if not kind_of(column.type):
        raise DataError(f"the column {name!r} held words at the beginning, but holds {column.type} here.")
    if pa.types.is_dictionary(column.type):
        if column.dictionary.null_count:
            return _texts(name, column.dictionary_decode())
        if pa.types.is_string_view(column.dictionary.type):
            return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))
        if kind_of(column.dictionary.type) == "category":
            return column
        return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))
    if pa.types.is_string_view(column.type):  # for which Arrow has hardly any functions
        return column.cast(pa.large_string())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string()).cast(pa.float64())
    return column if kind_of(column.type) == "category" else _without_nan(column).cast(pa.string())


def _without_nan(column: Any) -> Any:
    """A NaN is a missing value for a category too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


class _InvalidUtf8(str):
    """Text of a column that is not UTF-8, with escapes in it: Arrow does not validate text when it reads a file."""

    __slots__ = ()


def _words(texts: Any) -> list[Any]:
    """An Arrow array of text as a list; None where they are missing."""
    import pyarrow as pa

    try:
        return texts.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        large = pa.types.is_large_string(texts.type)
        return list(map(_word, texts.cast(pa.large_binary() if large else pa.binary()).to_pylist()))


def _word(data: bytes | None) -> str | None:
    """Bytes as text; marked if they are not UTF-8."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return _InvalidUtf8((data or b"").decode("utf-8", "backslashreplace"))


def _plain(texts: Any) -> Any:
    """As an array of strings, an empty one for each that is missing: as if nulls had no bytes of their own."""
    import pyarrow as pa

    if pa.types.is_null(texts.type):
        texts = texts.cast(pa.string())
    return texts.fill_null("") if texts.null_count else texts


def _tags(name: str, column: Any) -> list[str]:
    """A column as texts, "" where they are missing."""
    return _words(key_texts(column, name))


def key_texts(column: Any, name: str = "by") -> Any:
    """An Arrow array of any kind as one of texts, "" where they are missing; 1.0 is 1, and a date 2026-12-31.

    >>> import pyarrow
    >>> key_texts(pyarrow.array([1.0, None])).to_pylist()
    ['1', '']
    """
    texts = _texts(name, column)
    return _plain(texts.dictionary_decode() if hasattr(texts, "dictionary") else texts)


def _labels(columns: Columns, column: Any, good: Any, why: dict[int, tuple[str, str]]) -> Any:
    """The labels; rows without a usable one are refused in `good` and `why`."""
    name = str(columns.target)
    if columns.label == "category":
        texts = _texts(name, column)
        encoded = texts if hasattr(texts, "dictionary") else _plain(texts).dictionary_encode()
        distinct = _words(encoded.dictionary)
        words = np.array([*distinct, ""])
        codes = encoded.indices.fill_null(len(words) - 1).to_numpy()
        y = words[codes]
        missing = y == ""
        if any(isinstance(word, _InvalidUtf8) for word in distinct):
            invalid = np.array([*(isinstance(word, _InvalidUtf8) for word in distinct), False])
            _refuse(invalid[codes], name, lambda i: f"{shortened(str(y[i]))} is not text in UTF-8", good, why)
    else:
        y = _numbers(columns, name, column, good, why) + 0.0  # no −0
        missing = np.isnan(y)
        _refuse(np.isinf(y), name, lambda i: "the label is an infinity", good, why)
        if columns.label == "number":
            return y
        y = y != 0.0
    if missing.any():
        y = y.astype(object)
        y[missing] = None
    return y


def _weights(columns: Columns, column: Any, good: Any, why: dict[int, tuple[str, str]]) -> Any:
    """The weights; rows without a usable one are refused in `good` and `why`."""
    name = str(columns.weight)
    weights = np.array(_numbers(columns, name, column, good, why), dtype=np.float64)
    _refuse(np.isnan(weights), name, lambda i: "no weight", good, why)
    outside = np.isinf(weights) | (weights < 0.0)
    _refuse(outside, name, lambda i: f"the weight {weights[i]:g} is not a finite number ≥ 0", good, why)
    return weights


def _advice(columns: Columns, batch: Any, good: Any, why: dict[int, tuple[str, str]]) -> Any:
    """The predictions of outside experts, a column for each; NaN where there is none."""
    return np.column_stack([_numbers(columns, name, _column(batch, name), good, why) for name in columns.experts])


def _refuse(rows: Any, name: str, reason: Any, good: Any, why: dict[int, tuple[str, str]]) -> None:
    for i in np.flatnonzero(rows).tolist():
        good[i] = False
        why.setdefault(i, (name, reason(i)))

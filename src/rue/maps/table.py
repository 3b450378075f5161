"""`ColumnTable`: the features of a stream as columns of values, which is what maps make their features from.

A *map* turns a row into more features (docs/theory.md, section 12), and it may use the past only. What it needs of the
past is here: for every numeric column which values have occurred, and where a value ranks among them.

- A feature that has taken one value other than 0 is a *mark*: a 0/1 column, or a category. Where it is not 0 the row
  has its token. Its zeros make a token too, but only among the first `LOW` features, where the numeric columns of a
  table stand, and only while at most `FEW` of these are marks.
- A feature that has taken two values other than 0 is a *column*. It is numbered by the value, in the order of their
  first occurrence, until `DISTINCT` values have occurred, and after that it is *ranked*: its value becomes a byte, the
  number of 255 quantiles of the past that are not above it. A feature that is absent has the value 0.
- Quantiles are redrawn after 64, 128, 256, … rounds, from at most `SAMPLED` past values. Nothing else depends on the
  values themselves, so an increasing change of a column leaves tokens and ranks as they are, to the last bit (M2).
  The first 64 rounds are only looked at.

The prediction of the raw features is column 0. With more than `MOST_COLUMNS` columns (counts of words) the table is
closed for good: there is nothing to gain, and maps are silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import inline, noinline, values
from rue.errors import DataError
from rue.layout import Array, Layout, Number, Numbers
from rue.memory import aligned_zeros
from rue.streams.numbering import hashed

__all__ = [
    "FIRST_DRAW",
    "LEVELS",
    "MARKS",
    "SAMPLED",
    "TABLE",
    "ColumnTable",
    "combined",
    "draw_quantiles",
    "open_table",
    "place_in_sample",
    "rank_among",
]

DISTINCT, SAMPLED, LEVELS = 48, 1024, 256
"""Values a column is numbered by at most; past values that quantiles are drawn from; how many ranks there are."""
MOST_COLUMNS, MARKS = 257, 64
"""The most columns, the prediction among them; how many marks of a row are looked at."""
LOW, FEW = 32, 12
"""Zeros are tokens among the first `LOW` features, where tables have their numbers, while at most `FEW` are marks.

Zeros of 0/1 columns helped (bike 2649 → 2387), those of one-hot categories hurt (4018): docs/decisions/0027.
"""
FIRST_DRAW = 64
"""After how many rounds quantiles are drawn first; then whenever that number has doubled."""
CHOSEN = 16
"""How many columns are crossed where there are many."""
GROUPS = 8
"""Into how many groups of ranks the residuals of a column are sorted, to see what it tells."""
PREDICTION_NAME = 2.0**32 - 1.0
"""Stands for the raw prediction where columns have the index of their feature."""

TRAITS = Numbers(
    Number("first", "The first value other than 0; 0 while there was none.", merge="first"),
    Number("since", "In which round that was.", merge="first", least=0.0),
    Number("column", "The number of its column plus 1, or 0.", merge="derived", least=0.0),
)
FIRST, SINCE, COLUMN = TRAITS.indices("first", "since", "column")
COLUMNS = Numbers(
    Number("name", "The index of the feature, as the data have it.", merge="derived", least=0.0),
    Number("distinct", "How many values have occurred, up to 49.", merge="derived", least=0.0),
    Number("ranked", "Whether it is ranked (1) or numbered by its values (0).", merge="derived", least=0.0),
    Number("chosen", "Whether it is among those that tell most (1).", merge="derived", least=0.0),
)
NAME, COUNT, RANKED, TELLING = COLUMNS.indices("name", "distinct", "ranked", "chosen")
ROUNDS = Numbers(
    Number("rounds", "How many rounds it has seen."),
    Number("columns", "How many columns there are.", merge="derived"),
    Number("active", "How many there were when quantiles were drawn: these make tokens.", merge="derived"),
    Number("due", "After how many rounds quantiles are drawn next.", merge="derived"),
    Number("closed", "Whether there were too many columns (1).", merge="maximum"),
    Number("marks", "How many of the first features are marks.", merge="derived"),
    Number("wide", "How many rows had more marks than are looked at."),
)
SEEN, MANY, ACTIVE, DUE, CLOSED, MARKED, WIDE = ROUNDS.indices(*(number.name for number in ROUNDS))
TABLE = Layout(
    Array("traits", "What is known of each feature.", ("coordinate", TRAITS)),
    Array("columns", "The columns.", ("column", COLUMNS)),
    Array("numbers", "The values that a column is numbered by.", ("column", "value")),
    Array("sample", "Past values of each column.", ("column", "past")),
    Array("quantiles", "The values that split the past into 256 parts.", ("column", "quantile")),
    Array("residuals", "Σ slope, then Σ slope², by group of ranks.", ("column", "group")),
    Array("low", "Of the first features: 1 for a mark, 2 for a column.", ("feature",), merge="maximum", least=0.0),
    Array("rounds", "The numbers.", (ROUNDS,)),
)

OF_COLUMNS = ("columns", "numbers", "sample", "quantiles", "residuals")
"""What has a row for each column, and behind them empty ones."""

_0, _1, _32 = (np.uint64(i) for i in (0, 1, 32))
_LOW_BITS = np.uint64(2**32 - 1)
_GOLDEN = np.uint64(0x9E3779B1)


@inline
def combined(a: Any, b: Any) -> Any:
    """32 bits that depend on all bits of two numbers and on their order; like MurmurHash3, not to be predicted."""
    return hashed((hashed(np.uint64(a) & _LOW_BITS) + (np.uint64(b) * _GOLDEN & _LOW_BITS)) & _LOW_BITS)


@inline
def rank_among(quantiles: Any, v: Any) -> Any:
    """How many of 255 quantiles are not above a value."""
    rank, step = 0, LEVELS >> 1
    while step > 0:  # no branch depends on the value: the processor could not foresee it
        rank += step if quantiles[rank + step - 1] <= v else 0
        step >>= 1
    return rank


@inline
def place_in_sample(t: Any) -> Any:
    """Where the t-th value goes in a sample of the past; from `SAMPLED` on it is not stored.

    Each value of the past is as likely to stay: Vitter's Algorithm R (1985), with the hash of the round for a random
    number, because sampling every so many rounds would meet the same hours of every day.
    """
    return t - _1 if t <= np.uint64(SAMPLED) else (hashed(t & _LOW_BITS) * t) >> _32


@inline
def draw_quantiles(sample: Any, n: Any, scratch: Any, quantiles: Any) -> None:
    """Write the values that split the first n of a sample into 256 parts."""
    for i in range(n):
        scratch[i] = sample[i]
    heap_sort(scratch, n)
    for i in range(LEVELS - 1):
        quantiles[i] = scratch[(i + 1) * n // LEVELS]


@values
class ColumnTable(NamedTuple):
    """What is known of the columns, and the present row as tokens.

    A token is 32 bits that stand for a feature and what it is in this row: its value's number, its group of ranks, or
    that it is a mark.
    """

    traits: Any
    """A row for each feature in use, as the raw pool's tables have them."""
    columns: Any
    numbers: Any
    sample: Any
    quantiles: Any
    residuals: Any
    low: Any
    rounds: Any
    x: Any
    """The present value of each column."""
    ranks: Any
    """The present rank of each column."""
    places: Any
    """The number of its present value, of a column that is not ranked; −1: a new one."""
    tokens: Any
    """First those of the columns that have one, then those of the marks."""
    owners: Any
    """The column of each token; −1 for a mark."""
    counts: Any
    """How many tokens there are of columns, and in all, and how many columns have a rank."""
    scratch: Any

    @property
    def layout(self) -> Layout:
        return TABLE

    def __reduce__(self) -> Any:
        """Copied and pickled with the columns and the features alone that there are."""
        many, seen = int(self.rounds[MANY]), np.flatnonzero(self.traits.any(axis=1))
        used = int(seen[-1]) + 1 if seen.size else 0
        cut = {name: getattr(self, name)[:many] for name in OF_COLUMNS}
        return _with_room, (tuple(self._replace(traits=self.traits[:used], **cut)), len(self.traits), len(self.columns))

    # The present row.

    def look(self, row: Any, lines: Any, prediction: Any) -> None:
        """Make the tokens of a row; `lines` says which row of `traits` a coordinate has; 0: it never occurred."""
        m = self.rounds
        self.counts[0] = self.counts[1] = self.counts[2] = 0
        if m[CLOSED] > 0.0 or m[DUE] == FIRST_DRAW:
            return
        marks, there = self.read(row, lines, prediction)
        if m[ACTIVE] > 1.0:  # the prediction alone is no column worth a map
            self.counts[2] = int(m[ACTIVE])
            for c in range(self.counts[2]):
                self.place(c)
        self.counts[1] = self.counts[0]
        if marks <= MARKS:
            self.enter_marks(row, lines, there)

    def read(self, row: Any, lines: Any, prediction: Any) -> Any:
        """The values of the columns; how many marks the row has, and which of the first features, bit by bit."""
        x, marks, there = self.x, 0, _0
        for c in range(int(self.rounds[MANY])):
            x[c] = 0.0
        x[0] = prediction
        for k in range(row.lo, row.hi):
            value, line = row.at(k), lines[row.place(k)]
            if value != 0.0 and line > 0:
                column = int(self.traits[line, COLUMN])
                if column > 0:
                    x[column - 1] = value
                else:
                    marks += 1
                name = np.uint64(row.index_of(k))
                if name < _32:
                    there |= _1 << name
        return marks, there

    def place(self, c: Any) -> None:
        """Rank or number the value of a column, and make its token; one that is new has none."""
        v, of = self.x[c], self.columns[c]
        rank = self.rank(c, v)
        self.ranks[c], self.places[c] = rank, -1
        if of[RANKED] > 0.0:
            self.enter(combined(of[NAME], 3000 + (rank >> 5)), c)
        else:
            for i in range(min(DISTINCT, int(of[COUNT]))):
                if self.numbers[c, i] == v:
                    self.places[c] = i
                    self.enter(combined(of[NAME], 1000 + i), c)

    def rank(self, c: Any, v: Any) -> Any:
        """How many of the 255 quantiles of a column are not above a value."""
        return rank_among(self.quantiles[c], v)

    def enter(self, token: Any, owner: Any) -> None:
        """Add a token of a column."""
        k = self.counts[0]
        self.tokens[k], self.owners[k] = token, owner
        self.counts[0] = k + 1

    def enter_marks(self, row: Any, lines: Any, there: Any) -> None:
        """Add the tokens of marks, and of the zeros of a few."""
        k = self.counts[1]
        for i in range(row.lo, row.hi):
            value, line = row.at(i), lines[row.place(i)]
            if value != 0.0 and self.traits[line, COLUMN] == 0.0 and value == self.traits[line, FIRST]:
                self.tokens[k], self.owners[k] = combined(row.index_of(i), 1), -1
                k += 1
        if self.rounds[MARKED] <= FEW:
            for j in range(LOW):
                if self.low[j] == 1.0 and (there >> np.uint64(j)) & _1 == _0:
                    self.tokens[k], self.owners[k] = combined(j, 2), -1
                    k += 1
        self.counts[1] = k

    # The past.

    def see(self, row: Any, lines: Any, prediction: Any, slope: Any) -> None:
        """Enter a row into the past, with the slope of its loss; it is the one that was looked at last.

        Every feature of it has its line by now.
        """
        m = self.rounds
        m[SEEN] += 1.0
        if m[CLOSED] > 0.0:
            return
        marks, columns = 0, m[MANY]
        for k in range(row.lo, row.hi):
            value, line = row.at(k), lines[row.place(k)]
            if value != 0.0:
                marks += self.meet(row.index_of(k), value, self.traits[line])
        m[WIDE] += marks > MARKS
        if m[CLOSED] == 0.0:
            if m[DUE] == FIRST_DRAW or m[MANY] > columns:  # otherwise `look` has read it
                self.read(row, lines, prediction)
            self.x[0] = prediction  # others may have been tried since
            for c in range(int(m[MANY])):
                self.remember(c, slope)
            self.add_to_sample()
            if m[SEEN] == m[DUE]:
                self.redraw()

    def meet(self, name: Any, value: Any, traits: Any) -> Any:
        """A feature that is not 0: whether it is a mark. Its second value makes it a column."""
        low = np.uint64(name) < _32
        if traits[FIRST] == 0.0:
            traits[FIRST], traits[SINCE] = value, self.rounds[SEEN]
            if low:
                self.low[name] = 1.0
                self.rounds[MARKED] += 1.0
        elif traits[COLUMN] == 0.0 and value != traits[FIRST]:
            if low:
                self.low[name] = 2.0
                self.rounds[MARKED] -= 1.0
            self.add_column(name, traits)
        return traits[COLUMN] == 0.0

    @noinline
    def add_column(self, name: Any, traits: Any) -> None:
        """Make a column of a feature that has had one value or been absent in all rounds before this one."""
        m, c = self.rounds, int(self.rounds[MANY])
        if c == self.columns.shape[0]:
            m[CLOSED] = 1.0
            return
        m[MANY] += 1.0
        traits[COLUMN] = c + 1.0
        self.columns[c, NAME] = np.float64(name)
        first, since = traits[FIRST], traits[SINCE]
        if since > 1.0:  # it was absent before: its value was 0
            self.numbers[c, 0], self.numbers[c, 1], self.columns[c, COUNT] = 0.0, first, 2.0
        else:
            self.numbers[c, 0], self.columns[c, COUNT] = first, 1.0
        # Whether it was absent in some round since then is not known: its sample is as if it was not.
        for i in range(min(SAMPLED, int(m[SEEN]) - 1)):
            self.sample[c, i] = 0.0 if i + 1.0 < since else first

    def remember(self, c: Any, slope: Any) -> None:
        """Number a value that is new, and add the slope to the residuals of its group."""
        v, of, known = self.x[c], self.columns[c], False
        if of[COUNT] <= DISTINCT:
            for i in range(int(of[COUNT])):
                known |= self.numbers[c, i] == v
            if not known:
                if of[COUNT] < DISTINCT:
                    self.numbers[c, int(of[COUNT])] = v
                of[COUNT] += 1.0
        if c < int(self.rounds[ACTIVE]):
            group = (self.ranks[c] if c > 0 else self.rank(c, v)) >> 5
            self.residuals[c, group] += slope
            self.residuals[c, GROUPS + group] += slope * slope

    def add_to_sample(self) -> None:
        """Store the present values in the place of a random past row, each row of the past being as likely to stay."""
        at = place_in_sample(np.uint64(self.rounds[SEEN]))
        if at < np.uint64(SAMPLED):
            for c in range(int(self.rounds[MANY])):
                self.sample[c, at] = self.x[c]

    @noinline
    def redraw(self) -> None:
        """Draw the quantiles anew, and see which columns tell most."""
        m, scratch = self.rounds, self.scratch
        n = min(SAMPLED, int(m[SEEN]))
        for c in range(int(m[MANY])):
            draw_quantiles(self.sample[c], n, scratch, self.quantiles[c])
            if self.columns[c, COUNT] > DISTINCT:
                self.columns[c, RANKED] = 1.0
        for c in range(int(m[MANY])):
            self.columns[c, TELLING] = 1.0 if self.ahead_of(c) < CHOSEN else 0.0
        m[ACTIVE] = m[MANY]
        m[DUE] *= 2.0

    def ahead_of(self, c: Any) -> Any:
        """How many columns tell more about the label than this one, Σ (Σ slope)²/Σ slope² over their groups."""
        more, own = 0, self.signal(c)
        for other in range(int(self.rounds[MANY])):
            gain = self.signal(other)
            more += gain > own or (gain == own and other < c)
        return more

    def signal(self, c: Any) -> Any:
        total = 0.0
        for group in range(GROUPS):
            if self.residuals[c, GROUPS + group] > 0.0:
                total += self.residuals[c, group] * (self.residuals[c, group] / self.residuals[c, GROUPS + group])
        return total

    # In Python.

    def grown(self, rows: int) -> ColumnTable:
        """With `traits` of so many rows."""
        traits = aligned_zeros((rows, len(TRAITS)))
        traits[: len(self.traits)] = self.traits[:rows]
        return self._replace(traits=traits)

    def merged(self, parts: Sequence[ColumnTable]) -> ColumnTable:
        """That of the part that has seen most, for its columns; features that only others have met become marks.

        Values are numbered as they come, so parts that met new values in another order number them otherwise.
        """
        chosen = max(parts, key=lambda part: (float(part.rounds[MANY]), float(part.rounds[SEEN])))
        state = {array.name: getattr(chosen, array.name).copy() for array in TABLE}
        traits = state["traits"]
        for part in parts:
            unknown = traits[:, FIRST] == 0.0
            traits[unknown, :COLUMN] = part.traits[unknown, :COLUMN]
        state["low"] = np.max([part.low for part in parts], axis=0)
        state["low"][state["low"] == 2.0] = np.where(chosen.low[state["low"] == 2.0] == 2.0, 2.0, 1.0)
        m = state["rounds"]
        for name in (SEEN, WIDE):
            m[name] = self.rounds[name] + sum(part.rounds[name] - self.rounds[name] for part in parts)
        m[MARKED] = (state["low"] == 1.0).sum()
        m[CLOSED] = max(float(part.rounds[CLOSED]) for part in parts)
        while m[DUE] <= m[SEEN]:
            m[DUE] *= 2.0
        return self._replace(**state)

    def require_sane(self) -> None:
        """Refuse a state from a file that rounds could not go on from."""
        m, most = self.rounds, len(self.columns)
        whole = (m == np.floor(m)).all() and (m >= 0.0).all() and (m <= 2.0**53).all()
        if not whole or not 1 <= m[MANY] <= most or m[ACTIVE] > m[MANY] or m[MARKED] > LOW:
            raise DataError("the columns of its maps are impossible")
        draws = np.log2(m[DUE] / FIRST_DRAW) if m[DUE] >= FIRST_DRAW else 0.5
        if draws != int(draws) or m[DUE] <= m[SEEN]:
            raise DataError("the rounds of its maps are impossible")
        places = np.sort(self.traits[:, COLUMN][self.traits[:, COLUMN] > 0.0])
        if not np.array_equal(places, np.arange(2.0, m[MANY] + 1.0)):
            raise DataError("the columns of its maps do not fit its features")
        if (self.columns[:, COUNT] > DISTINCT + 1).any() or (self.columns[:, NAME] >= 2.0**32).any():
            raise DataError("the columns of its maps are impossible")


def _with_room(own: tuple[Any, ...], rows: int, columns: int) -> ColumnTable:
    """The table that `ColumnTable.__reduce__` took apart, with as much room as it had."""
    table = ColumnTable(*own)
    wide = {name: aligned_zeros((columns, getattr(table, name).shape[1])) for name in OF_COLUMNS}
    wide["traits"] = aligned_zeros((rows, len(TRAITS)))
    for name, array in wide.items():
        known = getattr(table, name)
        array[: len(known)] = known
    return table._replace(**wide)


def open_table(rows: int) -> ColumnTable:
    """A table that has seen nothing, with room for so many features."""
    rounds = np.zeros(len(ROUNDS))
    rounds[MANY], rounds[DUE] = 1.0, FIRST_DRAW
    columns = np.zeros((MOST_COLUMNS, len(COLUMNS)))
    columns[0, NAME] = PREDICTION_NAME
    return ColumnTable(
        traits=aligned_zeros((rows, len(TRAITS))),
        columns=columns,
        numbers=aligned_zeros((MOST_COLUMNS, DISTINCT)),
        sample=aligned_zeros((MOST_COLUMNS, SAMPLED)),
        quantiles=aligned_zeros((MOST_COLUMNS, LEVELS - 1)),
        residuals=aligned_zeros((MOST_COLUMNS, 2 * GROUPS)),
        low=np.zeros(LOW),
        rounds=rounds,
        x=np.zeros(MOST_COLUMNS),
        ranks=np.zeros(MOST_COLUMNS, dtype=np.int64),
        places=np.zeros(MOST_COLUMNS, dtype=np.int64),
        tokens=np.zeros(MOST_COLUMNS + MARKS + LOW, dtype=np.uint64),
        owners=np.zeros(MOST_COLUMNS + MARKS + LOW, dtype=np.int64),
        counts=np.zeros(3, dtype=np.int64),
        scratch=np.zeros(SAMPLED),
    )


@inline
def heap_sort(a: Any, n: Any) -> None:
    """Sort the first n numbers in place: compiled code allocates nothing."""
    for begin in range(n // 2 - 1, -1, -1):
        sift_down(a, begin, n)
    for end in range(n - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        sift_down(a, 0, end)


@inline
def sift_down(a: Any, at: Any, n: Any) -> None:
    """Restore the heap below a place."""
    root, sifting = at, True
    while sifting:
        child = 2 * root + 1
        if child + 1 < n and a[child + 1] > a[child]:
            child += 1
        sifting = child < n and a[child] > a[root]
        if sifting:
            a[root], a[child] = a[child], a[root]
            root = child

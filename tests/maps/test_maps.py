"""Maps: tokens and features against a reference written from the description, not from the code."""

import math

import numpy as np
import pytest

import rue
from rue.maps import chained, open_table
from rue.maps.table import CHOSEN, CLOSED, DISTINCT, MANY, MOST_COLUMNS, SAMPLED
from rue.rows import DenseRow, SparseRow

MASK = np.uint64(2**18 - 1)
PREDICTION = 2**32 - 1


def scrambled(key):
    """The last steps of MurmurHash3."""
    key ^= key >> 16
    key = key * 0x85EBCA6B & 0xFFFFFFFF
    key ^= key >> 13
    key = key * 0xC2B2AE35 & 0xFFFFFFFF
    return key ^ key >> 16


def combined(a, b):
    return scrambled((scrambled(a) + (b * 0x9E3779B1 & 0xFFFFFFFF)) & 0xFFFFFFFF)


class Reference:
    """Columns, ranks and tokens of dense rows, as the docstring of `rue.maps.table` describes them."""

    def __init__(self, d):
        self.past = []
        self.first = [0.0] * d
        self.values = {-1: []}
        """By feature, −1 for the prediction: the values in the order of their first occurrence."""
        self.sample, self.quantiles, self.ranked, self.active = {}, {}, set(), []

    def features(self, x, q):
        """The hashed features of `Pairs` and `Trees`."""
        if not self.quantiles:
            return [], []
        here = {-1: q, **dict(enumerate(x))}
        columns = self.active if len(self.active) > 1 else []
        name = {c: PREDICTION if c < 0 else c for c in columns}
        rank = {c: int((np.array(self.quantiles[c]) <= here[c]).sum()) for c in columns}
        bins, tokens = [], []
        for c in columns:
            if c in self.ranked:
                bins += [combined(name[c], 16 + (rank[c] >> 4))]
                bins += [combined(name[c], 4 + (rank[c] >> 6)), combined(name[c], 64 + (rank[c] >> 2))]
                tokens.append(combined(name[c], 3000 + (rank[c] >> 5)))
            elif here[c] in self.values[c][:DISTINCT]:
                bins.append(combined(name[c], 2000 + self.values[c].index(here[c])))
                tokens.append(combined(name[c], 1000 + self.values[c].index(here[c])))
        marks = [j for j in range(len(x)) if self.first[j] and j not in self.values]
        tokens += [combined(j, 1) for j in marks if x[j] == self.first[j]]
        low = [j for j in marks if j < 32]
        tokens += [combined(j, 2) for j in low if x[j] == 0.0] if len(low) <= 12 else []
        assert len(tokens) <= 30
        pairs = [combined(a, b) for i, a in enumerate(tokens) for b in tokens[i + 1 :]]
        leaves = []
        for tree in range(32 if len(columns) > 2 else 0):
            node = combined(tree, 5000)
            for _ in range(8):
                node = combined(node, 1 if rank[columns[node % len(columns)]] > (node >> 16) & 255 else 2)
            leaves.append(node)
        return [[1 + (f & int(MASK)) for f in made] for made in (bins + pairs, leaves)]

    def see(self, x, q):
        self.past.append((*x, q))
        t = len(self.past)
        for j, value in enumerate(x):
            if value and not self.first[j]:
                self.first[j] = value
            elif value and j not in self.values and value != self.first[j]:
                before = [row[j] for row in self.past[:-1]]
                self.values[j] = list(dict.fromkeys(before))
                self.sample[j] = list(before)
        for c, values in self.values.items():
            value = q if c < 0 else x[c]
            if value not in values:
                values.append(value)
            sample = self.sample.setdefault(c, [])
            at = t - 1 if t <= SAMPLED else (scrambled(t) * t) >> 32
            if at < SAMPLED:
                sample[at : at + 1] = [value]
        if t >= 64 and math.log2(t / 64).is_integer():
            self.active = list(self.values)
            for c in self.active:
                ordered = sorted(self.sample[c])
                self.quantiles[c] = [ordered[(i + 1) * len(ordered) // 256] for i in range(255)]
            self.ranked = {c for c in self.active if len(self.values[c]) > DISTINCT}


def table_of(rows, predictions, maps, width, sparse=False):
    """The features of each row, made by a table that then sees it."""
    table, chain, lines = open_table(width + 1), chained(maps), np.arange(1, width + 1, dtype=np.uint32)
    out, found = np.zeros(1024, dtype=np.uint32), []
    for x, q in zip(rows, predictions, strict=True):
        x = np.asarray(x, dtype=np.float64)
        row = DenseRow(x, np.uint64(0), np.uint64(width), np.uint64(0))
        if sparse:
            used = np.flatnonzero(x).astype(np.uint32)
            row = SparseRow(used, x[used], np.uint64(0), np.uint64(used.size), np.uint64(0), used)
        table.look(row, lines, q)
        found.append([out[1 : chain.fill(k, table, out, 1, MASK)].tolist() for k in range(len(maps))])
        table.see(row, lines, q, 0.1)
    return found, table


def made(n=1500, seed=0):
    """Columns of all kinds: continuous, few values, 0/1, mostly 0, a category's marks, one that changes late."""
    rng = np.random.default_rng(seed)
    late = np.where(np.arange(n) < 700, 0.0, rng.integers(0, 4, n))
    columns = [
        rng.normal(size=n),
        rng.integers(0, 24, n),
        rng.random(n) < 0.3,
        np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
        rng.random(n) < 0.05,
        late,
    ]
    return np.column_stack(columns).astype(np.float64), rng.normal(size=n)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_those_of_the_description(interpreted, sparse):
    rows, predictions = made()
    reference, late = Reference(rows.shape[1]), 5
    found, _ = table_of(rows, predictions, (rue.Pairs(), rue.Trees()), rows.shape[1], sparse)
    lengths = set()
    for x, q, own in zip(rows.tolist(), predictions.tolist(), found, strict=True):
        expected = reference.features(x, q)
        if reference.first[late] and late not in reference.values:
            break  # what a column was between its first value and its second is not remembered exactly
        assert own == [list(part) for part in expected]
        lengths.add(len(own[0]))
        reference.see(x, q)
    assert len(lengths) > 3


@pytest.mark.parametrize("change", [lambda x: x + 5.0, np.exp, lambda x: np.cbrt(x) - 7.0, lambda x: 1e6 * x + 1e7])
def test_increasing_changes_of_columns_change_no_feature(interpreted, change):
    """M2, to the last bit; values without ties and the zeros of columns that are not 0/1 alone."""
    rng = np.random.default_rng(1)
    n = 1200
    rows = np.column_stack([rng.normal(size=n), rng.integers(0, 10, n), np.round(rng.normal(size=n), 1)])
    predictions, maps = rng.normal(size=n), (rue.Pairs(), rue.Trees())
    before, _ = table_of(rows, predictions, maps, 3)
    after, _ = table_of(change(rows), predictions, maps, 3)
    assert before == after
    assert len(set(map(str, before))) > n // 2


def test_a_decreasing_change_is_seen(interpreted):
    rng = np.random.default_rng(1)
    rows, predictions = rng.normal(size=(300, 2)), rng.normal(size=300)
    assert table_of(rows, predictions, (rue.Pairs(),), 2)[0] != table_of(-rows, predictions, (rue.Pairs(),), 2)[0]


def test_too_many_columns_close_the_table(interpreted):
    rng = np.random.default_rng(2)
    rows = rng.poisson(1.0, size=(80, MOST_COLUMNS + 10)).astype(float) * rng.random((80, MOST_COLUMNS + 10))
    found, table = table_of(rows, np.zeros(80), (rue.Pairs(),), rows.shape[1])
    assert table.rounds[CLOSED] == 1.0
    assert found[-1] == [[]]


def test_with_many_columns_the_telling_ones_are_crossed(interpreted):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 40))
    found, table = table_of(rows, np.zeros(200), (rue.Pairs(),), 40)
    assert table.rounds[MANY] == 41.0
    assert table.columns[:, 3].sum() == CHOSEN
    assert len(found[-1][0]) == 3 * 40 + 1 + CHOSEN * (CHOSEN - 1) // 2  # the prediction, always 0, is numbered


@pytest.mark.parametrize("wrong", [[], [rue.Pairs()] * 7, [rue.Logistic()]])
def test_what_is_no_map_is_refused(wrong):
    with pytest.raises(rue.SettingsError, match="maps"):
        rue.Staged(maps=wrong)


def test_trees_refuse_nonsense():
    with pytest.raises(rue.SettingsError, match="Trees"):
        rue.Trees(trees=0)

"""A digest of a narrow stream (D3): a thousand means of examples, for which slopes are chosen after the pass.

Examples put into one cell lose together at least what their mean would, times their weight, whatever the point
(Jensen; examples of a margin loss share a cell only if they share their label, residual losses are convex in label and
prediction together). So the best in hindsight on the means bounds the stream's from below, for every set at once.
In the language of witnesses: one whose slope is the same throughout a cell, and the best of that kind.

It takes O(d) memory and time for an example. When the table is full its rows are gathered into cells again, split where
most would be lost: along the predictions of the best points so far and, as those will move, along every feature. For
radii that were asked for those points are looked for. A digest that was not asked for has to be cheap: it takes the
point of least squares, cuts anew only when the number of reductions is a power of two, or three times one, and in
between puts each row into the cell where the last cuts lead it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, noinline, values
from rue.domains import Domain
from rue.errors import DataError
from rue.layout import Array, Layout, Number, Numbers
from rue.losses import Loss
from rue.norms import LARGEST_TERM, LEAST_PRODUCT, norm
from rue.regret.certificates.witnesses import Pool
from rue.regret.hindsight.comparator import best_in_hindsight
from rue.regret.hindsight.interior import has_barrier
from rue.regret.risk.ranges import largest_norm

__all__ = ["CELLS", "NARROW", "Digest", "condenses", "open_digest", "shelved"]

CELLS = 1024
"""How many means are left after the table, four times as long, has become full."""

TOGETHER = 32
"""How many cells are compared with each other once and for all: about the root of `CELLS`."""

NARROW = 128
"""The most coordinates of a stream that is digested: in more dimensions means of so few cells say little."""

STRAY = 0.2
"""By what share of the radius the best point may yet move: elec2 likes 0.2 to 1, a9a less than 0.5."""

SPOILT = 2.0**1000
"""What stands for the largest label where a product with a weight has underflowed."""

TOTALS = Numbers(
    Number("used", "How many rows of the table are in use.", merge="derived"),
    Number("reduced", "How often its rows have been gathered into cells.", merge="maximum"),
    Number("cell", "Into how many cells they are gathered.", merge="same"),
)
USED, REDUCED, CELL = TOTALS.indices("used", "reduced", "cell")
COLUMNS = Numbers(Number("weight", "Σ weight of the cell."), Number("label", "Σ weight·y of the cell."))
WEIGHT, LABEL = COLUMNS.indices("weight", "label")
CUTS = Numbers(
    Number("axis", "Which feature decides; the number of features for the prediction, −1 in a cell."),
    Number("border", "Rows whose value is at most this go low."),
    Number("low", "The node of those rows; in a cell, its row of the table."),
    Number("high", "The node of the others."),
)
AXIS, BORDER, LOW, HIGH = CUTS.indices("axis", "border", "low", "high")
FIRST = len(COLUMNS)
"""The column of the table where the sums of the coordinates begin."""
DIGEST = Layout(
    Array("table", "For each cell Σ weight, Σ weight·y and Σ weight·x.", ("cell", "column")),
    Array("largest", "The largest magnitude in each column of single examples.", ("column",), merge="maximum"),
    Array("points", "The best point in each radius, when last looked for.", ("radius", "coordinate")),
    Array("radii", "The radii.", ("radius",), merge="same", saved=False),
    Array("totals", "The numbers.", (TOTALS,), saved=False, dtype="int64"),
)
_0, _1, _2 = (np.uint64(i) for i in range(3))


@values
class Digest(NamedTuple):
    """Sums over cells of examples."""

    table: Any
    """For each cell Σ weight, Σ weight·y and Σ weight·x."""
    largest: Any
    """The largest magnitude in each column of single examples."""
    points: Any
    """For each radius the best point of the digest when it was last looked for; without radii that of least squares."""
    radii: Any
    """The radii that were asked for, perhaps none."""
    totals: Any
    """How many rows of the table are in use, how often it has been reduced, and to how many."""
    scaled: Any
    """1 where the radii are in units of each feature's largest magnitude, otherwise 0."""
    cuts: Any
    """The nodes of the trees that lead a row to its cell: node 0 is the root, for labels ≤ 0 of a margin loss node 1.
    Empty where radii were asked for, and before the first cuts."""

    def room(self, size: Any) -> Any:
        return size + _2 <= self.largest.size

    def full(self) -> Any:
        return self.totals[USED] >= self.table.shape[0]

    def learn(self, loss: Any, row: Any, y: Any, weight: Any) -> bool:
        """Enter one example as a cell of its own; whether there is room for another."""
        entry = self.table[self.totals[USED]]
        entry[WEIGHT], entry[LABEL] = weight, weight * y
        self.largest[LABEL] = max(self.largest[LABEL], abs(y))
        whole = weight >= LEAST_PRODUCT and (y == 0.0 or abs(entry[LABEL]) >= LEAST_PRODUCT)
        if row.shift > _0:
            entry[FIRST] = weight
            self.largest[FIRST] = 1.0
        for k in range(row.lo, row.hi):
            j = row.place(k) + _2
            entry[j] = weight * row.at(k)
            self.largest[j] = max(self.largest[j], abs(row.at(k)))
            whole &= row.at(k) == 0.0 or abs(entry[j]) >= LEAST_PRODUCT
        if not whole and weight != 1.0:  # a mean would be wrong: from now on nothing is proved
            self.largest[LABEL] = SPOILT
        self.totals[USED] += 1
        return bool(self.totals[USED] < self.table.shape[0])

    def grown(self, size: int) -> Digest | None:
        """Room for at least `size` coordinates; None if that is too many."""
        more = size + FIRST - self.largest.size
        if more <= 0:
            return self
        if size > NARROW:
            return None
        cuts = self.cuts.copy()
        cuts[cuts[:, AXIS] == self.points.shape[1], AXIS] += more  # the axis of predictions comes after the features
        wider = [np.pad(array, ((0, 0), (0, more))) for array in (self.table, self.points)]
        return self._replace(table=wider[0], points=wider[1], largest=np.pad(self.largest, (0, more)), cuts=cuts)

    def merge(self, parts: Sequence[Digest], nonnegative: bool) -> Digest | None:
        """The cells of several parts of a stream together, each of which went on from a copy of this digest.

        Perhaps with more rows than the table is meant to have. The cells of a part that has gathered its rows since
        then hold examples of the base together with its own. Those of one such part stand for both; with those of
        another the base would be counted twice, so they are left out: losses that are never negative only lose by it,
        and what is proved stays true. For other losses there is no digest then, and none for too many coordinates.
        """
        size = max(digest.largest.size for digest in (self, *parts)) - FIRST
        grown = [digest.grown(size) for digest in (self, *parts)]
        digests = [digest for digest in grown if digest is not None]
        if len(digests) < len(grown):
            return None
        base = digests[0]
        before, fresh, mixed = base.cells(), [], []
        for part in digests[1:]:
            own, gathered = part.cells(), part.totals[REDUCED] != base.totals[REDUCED]
            if not len(before) or (not gathered and np.array_equal(own[: len(before)], before)):
                fresh.append(own[len(before) :])
            else:
                mixed.append(own)
        if len(mixed) > 1 and not nonnegative:
            return None
        rows = np.vstack([max(mixed, key=lambda cells: float(cells[:, WEIGHT].sum()), default=before), *fresh])
        latest = max(digests, key=lambda digest: int(digest.totals[REDUCED]))
        table = np.zeros((max(len(rows), len(self.table)), rows.shape[1]))
        table[: len(rows)] = rows
        return latest._replace(
            table=table,
            largest=DIGEST["largest"].merged(base.largest, [digest.largest for digest in digests[1:]]),
            totals=np.array([len(rows), latest.totals[REDUCED], self.totals[CELL]]),
            cuts=_uncut(),
        )

    def empty(self) -> Digest:
        """One of the same kind with nothing in it."""
        return open_digest(self.radii, bool(self.scaled), int(self.totals[CELL]))

    def cells(self) -> Any:
        """The rows in use."""
        return self.table[: self.totals[USED]]

    def stored(self) -> dict[str, Any]:
        """The arrays that a model file holds."""
        arrays = {"digest.table": self.cells(), "digest.largest": self.largest, "digest.points": self.points}
        return arrays if self.radii.size else arrays | {"digest.cuts": self.cuts}

    def require_sane(self) -> None:
        """Refuse sums that no stream has."""
        if not (self.cells()[:, WEIGHT] > 0.0).all() or not np.isfinite(self.points).all():
            raise DataError("its digest makes no sense")
        axis, low, high = self.cuts[:, [AXIS, LOW, HIGH]].T
        whole = np.array_equal(np.floor(self.cuts[:, [AXIS, LOW, HIGH]]), self.cuts[:, [AXIS, LOW, HIGH]])
        leads_to_cell = (axis == -1.0) & (low >= 0.0) & (low < min(self.totals[CELL], self.totals[USED]))
        inner = (axis >= 0.0) & (axis <= self.points.shape[1]) & np.isfinite(self.cuts[:, BORDER])
        inner &= (np.minimum(low, high) > np.arange(axis.size)) & (np.maximum(low, high) < axis.size)  # so paths end
        if not whole or not (leads_to_cell | inner).all():
            raise DataError("its digest makes no sense")

    def means(self, by: Any) -> tuple[Any, Any, Any]:
        """The mean features in units of `by`, the mean label and the weight of every cell."""
        cells = self.cells()
        weights = cells[:, WEIGHT]
        return cells[:, FIRST:] / weights[:, None] / by, cells[:, LABEL] / weights, weights.copy()

    def reduced(self, loss: Loss) -> Digest:
        """Its rows gathered into few cells; now and then the best points are looked for again."""
        cells = int(self.totals[CELL])
        by = np.where(self.largest[FIRST:] > 0.0, self.largest[FIRST:], 1.0) if self.scaled else 1.0
        many = int(self.totals[REDUCED]) + 1
        # Cuts are looked for anew after 1, 2, 3, 4, 6, 8, 12, … reductions only: between them rows are led to their
        # cells by the old cuts, which takes no sorting.
        if len(self.cuts) and not _is_power(many) and (many % 3 or not _is_power(many // 3)):
            used = _lead(self.table, self.totals[USED], self.cuts, self.points[0], loss.depends_on == "margin")
            return self._replace(totals=np.array([used, many, cells]))
        points, table = self.points, np.zeros((4 * cells, self.largest.size))
        with np.errstate(all="ignore"):
            X, y, weights = self.means(by)
            if _is_power(many):
                points = np.array(self._best_points(loss, X, y, weights, points * by)) / by
            radii = self.radii if self.radii.size else np.array([norm(points[0] * by)])
            product = np.matmul if self.radii.size else _product
            order, starts, cuts = _gathered(loss, X, y, weights, points * by, radii, cells, product)
            table[: starts.size] = np.add.reduceat(self.cells()[order], starts, axis=0)
            if self.radii.size or (loss.depends_on == "margin" and (y.min() > 0.0 or y.max() <= 0.0)):
                cuts = _uncut()
            features = np.flatnonzero((cuts[:, AXIS] >= 0.0) & (cuts[:, AXIS] < X.shape[1]))
            cuts[features, BORDER] *= np.broadcast_to(by, X.shape[1])[cuts[features, AXIS].astype(np.int64)]
        return self._replace(table=table, points=points, totals=np.array([starts.size, many, cells]), cuts=cuts)

    def _best_points(self, loss: Loss, X: Any, y: Any, weights: Any, points: Any) -> list[Any]:
        """About the best points of the radii, or where there are none that of least squares; `points` are the last."""
        if self.radii.size:
            return [_best(X, y, weights, loss, U, u) for U, u in zip(self.radii, points, strict=True)]
        u = _least_squares(X, y, weights) * (2.0 if loss.depends_on == "margin" else 1.0)  # log-odds are about 2·E[y]
        return [u if np.isfinite(u).all() else points[0]]

    def moved(self, to: Any, size: int) -> Digest:
        """The same with `size` coordinates, those from before at the places `to`, or nowhere where −1."""
        before = np.flatnonzero(to[: self.largest.size - FIRST] >= 0)
        at, width = to[before], size + FIRST
        table, points, largest = np.zeros((len(self.table), width)), np.zeros((len(self.points), size)), np.zeros(width)
        table[:, :FIRST], largest[:FIRST] = self.table[:, :FIRST], self.largest[:FIRST]
        table[:, at + FIRST], largest[at + FIRST] = self.table[:, before + FIRST], self.largest[before + FIRST]
        points[:, at] = self.points[:, before]
        return self._replace(table=table, points=points, largest=largest, cuts=_uncut())

    def at_least(self, loss: Loss, domain: Domain, by: Any, rounding: float) -> float:
        """A lower bound on the stream's loss at any point of a set in units of `by`; −∞ where there is none."""
        if not self.totals[USED] or not domain.bounded or not has_barrier(domain, by.size):
            return -math.inf
        with np.errstate(all="ignore"):
            X, y, weights = self.means(by)
            far = norm(self.largest[FIRST:] / by) * largest_norm(domain, by.size)
            most = float(self.largest[LABEL])
            ends = [(p, label) for p in (-far, far) for label in (-most, most)]
            if not (math.isfinite(far) and most <= LARGEST_TERM):
                return -math.inf
            # Rounding may have moved a sum by `rounding` of its terms, and with it the loss and what the slope is of.
            slack = max(abs(loss.value(*end)) + 2.0 * abs(loss.slope(*end)) * (far + most) for end in ends)
            slack *= rounding * float(weights.sum())
            try:
                hindsight = best_in_hindsight(X, y, loss=loss, domain=domain, weights=weights, intercept=False)
            except DataError:  # sums that overflowed
                return -math.inf
            bound = hindsight.at_least - slack
        return bound if math.isfinite(bound) else -math.inf


def condenses(loss: Loss) -> bool:
    """Whether the mean of examples never loses more than they do: margin losses label by label, residual losses."""
    return loss.depends_on != ""


def open_digest(radii: Any, scaled: bool, cells: int = CELLS) -> Digest:
    """With nothing in it yet."""
    radii = np.unique(np.asarray(radii, dtype=np.float64))
    table, largest, points = np.zeros((4 * cells, FIRST)), np.zeros(FIRST), np.zeros((max(1, radii.size), 0))
    return Digest(table, largest, points, radii, np.array([0, 0, cells]), int(scaled), _uncut())


def _uncut(nodes: int = 0) -> Any:
    """Room for the nodes of a tree."""
    return np.zeros((nodes, len(CUTS)))


def shelved(loss: Loss, pool: Pool | None, width: int, used: int, reduced: int, nodes: int | None = None) -> Digest:
    """With room for what a model file holds of it: of the radii of these witnesses, or with so many `nodes` of none."""
    if not condenses(loss) or (pool is None and nodes is None):
        raise DataError("it holds a digest of what cannot be digested")
    if nodes is not None and nodes > 2 * CELLS:
        raise DataError("its digest does not fit together")
    empty = open_digest((), True)
    if nodes is None and pool is not None:
        empty = open_digest(pool.radii, pool.largest.size > 0)
    more = width - FIRST
    if not (0 <= more <= NARROW and 0 <= used < len(empty.table)):
        raise DataError("its digest does not fit together")
    digest = empty.grown(more)
    assert digest is not None
    return digest._replace(totals=np.array([used, reduced, CELLS]), cuts=_uncut(nodes or 0))


def _best(X: Any, y: Any, weights: Any, loss: Loss, radius: float, start: Any) -> Any:
    """About the best point of a ball; the one before where the numbers have overflowed."""
    try:
        options = {"radius": radius, "weights": weights, "intercept": False, "tolerance": 1e-2, "start": start}
        return best_in_hindsight(X, y, loss=loss, **options).point
    except DataError:
        return start


def _is_power(number: int) -> bool:
    """Whether a number is a power of two."""
    return number & (number - 1) == 0


def _least_squares(X: Any, y: Any, weights: Any) -> Any:
    """The point of least squares, a little towards 0 so that there is one; NaN where the numbers have overflowed."""
    Q, b = np.zeros((X.shape[1], X.shape[1])), np.zeros(X.shape[1])
    _normal_equations(X, y, weights, Q, b)
    Q[np.diag_indices(len(Q))] += 1e-6 * np.trace(Q) / max(1, len(Q)) + LEAST_PRODUCT
    try:
        return np.linalg.solve(Q, b)
    except np.linalg.LinAlgError:
        return np.full(b.size, np.nan)


@kernel
def _normal_equations(X: Any, y: Any, weights: Any, Q: Any, b: Any) -> None:
    """Add Σ weight·x xᵀ and Σ weight·y·x over every other row: enough for a direction."""
    for i in range(0, y.size, 2):
        for j in range(b.size):
            weighted = weights[i] * X[i, j]
            b[j] += weighted * y[i]
            for k in range(j + 1):
                Q[j, k] += weighted * X[i, k]
    for j in range(b.size):
        for k in range(j):
            Q[k, j] = Q[j, k]


@values
class Cells(NamedTuple):
    """Rows gathered into cells, each a stretch of `order`.

    What a cell may lose along an axis is Σ n(e − ē)(h − h̄): for predictions e and slopes h at some point that is at
    least what Jensen's inequality gives away at this point. The first axes are the features, with h = stray·e, the
    last the predictions at some points.
    """

    e: Any
    h: Any
    """The slopes at these points."""
    stray: Any
    n: Any
    order: Any
    starts: Any
    ends: Any
    axes: Any
    costs: Any
    middles: Any
    sums: Any
    """For each cell Σn·e along every axis, Σn·h at every point, and Σn."""
    squares: Any
    """For each cell Σn·e² along every feature and Σn·e·h along the predictions."""
    cuts: Any
    leaves: Any
    """The node of each cell."""
    tops: Any
    """The costliest of each `TOGETHER` cells, the first if several are: so that not all are looked at for each cut."""

    def costliest(self) -> Any:
        """The cell that may lose most, the first if several may."""
        worst = self.tops[0]
        for g in range(1, self.tops.size):
            if self.costs[self.tops[g]] > self.costs[worst]:
                worst = self.tops[g]
        return worst

    def compare(self, c: Any) -> None:
        """Look again for the costliest of those together with cell c."""
        g = c // TOGETHER
        top = g * TOGETHER
        for k in range(top + 1, min(top + TOGETHER, self.costs.size)):
            if self.costs[k] > self.costs[top]:
                top = k
        self.tops[g] = top

    @noinline
    def sweep(self, c: Any) -> None:
        """Add up cell c."""
        sums, squares, points = self.sums[c], self.squares[c], self.h.shape[1]
        axes, features = self.e.shape[1], self.e.shape[1] - points
        for a in range(sums.size):
            sums[a] = 0.0
        for a in range(axes):
            squares[a] = 0.0
        for k in range(self.starts[c], self.ends[c]):
            i = self.order[k]
            n, row = self.n[i], self.e[i]
            for a in range(features):
                sums[a] += n * row[a]
                squares[a] += n * row[a] * row[a]
            for r in range(points):
                e, h = row[features + r], self.h[i, r]
                sums[features + r] += n * e
                squares[features + r] += n * e * h
                sums[axes + r] += n * h
            sums[axes + points] += n

    @noinline
    def settle(self, c: Any) -> None:
        """Find the axis along which cell c may lose most, and its mean there."""
        sums, axes, points = self.sums[c], self.e.shape[1], self.h.shape[1]
        features, n = axes - points, sums[axes + points]
        self.costs[c], self.axes[c], self.middles[c] = 0.0, 0, 0.0
        for a in range(axes):
            mean, cost = sums[a] / n, self.squares[c, a]
            if a < features:
                cost = self.stray * (cost - mean * sums[a])
            else:
                cost -= mean * sums[axes + a - features]
            if cost > self.costs[c]:
                self.costs[c], self.axes[c], self.middles[c] = cost, a, mean

    def divide(self, c: Any, new: Any) -> bool:
        """Cut cell c in two at its mean, the smaller part being new; False if there is but one part."""
        low, high = self.starts[c], self.ends[c]
        while low < high:
            i = self.order[low]
            if self.e[i, self.axes[c]] <= self.middles[c]:
                low += 1
            else:
                high -= 1
                self.order[low], self.order[high] = self.order[high], i
        if low == self.starts[c] or low == self.ends[c]:
            return False
        if low - self.starts[c] < self.ends[c] - low:
            self.starts[new], self.ends[new], self.starts[c] = self.starts[c], low, low
        else:
            self.starts[new], self.ends[new], self.ends[c] = low, self.ends[c], low
        return True

    def note(self, c: Any, new: Any, nodes: Any) -> None:
        """Enter into the tree that cell c was cut, before either part is looked at."""
        cut, first = self.cuts[self.leaves[c]], self.ends[new] == self.starts[c]
        cut[AXIS], cut[BORDER], cut[LOW], cut[HIGH] = self.axes[c], self.middles[c], nodes, nodes + 1
        self.leaves[new], self.leaves[c] = (nodes, nodes + 1) if first else (nodes + 1, nodes)


@kernel
def _divide(cells: Any, count: Any) -> Any:
    """Cut the costliest cell as long as there is room for another; how many there are then."""
    nodes = 2
    for c in range(count):
        cells.sweep(c)
        cells.settle(c)
        cells.compare(c)
    while count < cells.starts.size:
        worst = cells.costliest()
        if not cells.costs[worst] > 0.0:
            break
        if cells.divide(worst, count):
            cells.note(worst, count, nodes)
            nodes += 2
            cells.sweep(count)
            for a in range(cells.sums.shape[1]):
                cells.sums[worst, a] -= cells.sums[count, a]
            for a in range(cells.squares.shape[1]):
                cells.squares[worst, a] -= cells.squares[count, a]
            cells.settle(worst)
            cells.settle(count)
            cells.compare(count)
            count += 1
        else:
            cells.costs[worst] = 0.0
        cells.compare(worst)
    return count


@kernel
def _lead(table: Any, used: Any, cuts: Any, point: Any, margin: Any) -> Any:
    """Add the rows that are not in a cell yet to the cells where the cuts lead them; how many cells there are."""
    cells = 0
    for k in range(cuts.shape[0]):
        if cuts[k, AXIS] < 0.0:
            cells = max(cells, int(cuts[k, LOW]) + 1)
    for i in range(cells, used):
        row = table[i]
        label, p = row[LABEL] / row[WEIGHT], 0.0
        for j in range(point.size):
            p += point[j] * row[FIRST + j]
        p = p / row[WEIGHT] - (0.0 if margin else label)
        node = 1 if margin and label <= 0.0 else 0
        while cuts[node, AXIS] >= 0.0:
            axis = int(cuts[node, AXIS])
            value = p if axis == point.size else row[FIRST + axis] / row[WEIGHT]
            node = int(cuts[node, LOW] if value <= cuts[node, BORDER] else cuts[node, HIGH])
        cell = table[int(cuts[node, LOW])]
        for j in range(row.size):
            cell[j] += row[j]
            row[j] = 0.0
    return cells


@kernel
def _slopes(loss: Any, p: Any, y: Any, out: Any) -> None:
    for i in range(y.size):
        for r in range(p.shape[1]):
            out[i, r] = loss.slope(p[i, r], y[i])


def _product(a: Any, b: Any) -> Any:
    """a·b on one core: BLAS would wake its threads, which take the learner's core for milliseconds."""
    return np.einsum("...j,jk->...k", a, b)


def _gathered(
    loss: Loss, X: Any, y: Any, n: Any, points: Any, radii: Any, cells: int, product: Any
) -> tuple[Any, Any, Any]:
    """An order of the rows in which cells are stretches, where each begins, and the cuts that lead there."""
    rows, d = X.shape
    p = product(X, points.T)
    slopes = np.empty_like(p)
    _slopes(loss, p, y, slopes)
    groups = [np.arange(rows)]
    if loss.depends_on == "margin":
        groups = [group for group in (np.flatnonzero(y > 0.0), np.flatnonzero(y <= 0.0)) if group.size]
    else:
        p = p - y[:, None]
    curvature = np.zeros(radii.size)
    for group in groups:
        e, h, share = p[group], slopes[group], n[group] / n[group].sum()
        e, h = e - product(share, e), h - product(share, h)
        curvature = np.fmax(curvature, product(share, e * h) / product(share, e * e))
    stray = float(np.max(curvature * (STRAY * radii) ** 2)) / d
    e = np.hstack([X, p])
    mean = product(n / n.sum(), e)
    e -= mean  # or else sums would cancel
    stray = stray if 0.0 < stray < math.inf else 1.0
    sizes, axes = np.array([group.size for group in groups]), e.shape[1]
    (starts, ends, along), (costs, middles) = np.zeros((3, cells), dtype=np.int64), np.zeros((2, cells))
    sums, squares = np.zeros((cells, axes + slopes.shape[1] + 1)), np.zeros((cells, axes))
    cuts, leaves, tops = _uncut(2 * cells), np.arange(cells), np.arange(0, cells, TOGETHER)
    tree = cuts, leaves, tops
    order = np.concatenate(groups)
    gathered = Cells(e, slopes, stray, n, order, starts, ends, along, costs, middles, sums, squares, *tree)
    gathered.ends[: sizes.size] = np.cumsum(sizes)
    gathered.starts[1 : sizes.size] = gathered.ends[: sizes.size - 1]
    count = _divide(gathered, sizes.size)
    order = np.argsort(gathered.starts[:count])
    inner = np.flatnonzero(cuts[:, LOW] > 0.0)
    cuts[inner, BORDER] += mean[cuts[inner, AXIS].astype(np.int64)]
    cuts[1, AXIS] = -1.0 if len(groups) == 1 else cuts[1, AXIS]  # no row begins there
    cuts[leaves[order], AXIS], cuts[leaves[order], LOW] = -1.0, np.arange(count)
    return gathered.order, gathered.starts[order], cuts[: 2 + 2 * (count - len(groups))]

"""Witnesses (D3): cheap learners that run along with the main one; they predict badly and certify well.

Each is projected OGD on a ball of its own with the adaptive step (A8) times a rate. By D1 a witness with slopes g_t has
proved, for every set K, that no point of K lost less than c − h_K(−S) with c = Σℓ − A: a statement about the stream,
so the largest of these certifies any learner that saw the same examples, and so does any mixture of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue.compiled import kernel, lanes, noinline, values
from rue.compiled.arithmetic import choose, higher, lower, root
from rue.compiled.intrinsics import LANES, fetch, gather_rows, move_rows
from rue.errors import SettingsError, shown
from rue.layout import Array, Layout, Number, Numbers
from rue.memory import aligned_zeros
from rue.norms import LEAST_SQUARE, norm
from rue.rows import SOON
from rue.windows import claim, longer

__all__ = ["LOSS", "RATES", "A", "Pool", "best_mixture", "filled_up", "open_pool", "watch"]

RATES = (0.05, 0.1, 0.2, 0.4, 0.8, math.sqrt(2.0))
"""What the step of A8 is multiplied by, one witness each: which one certifies best depends on the stream."""

MIDDLE, FEW = (0.1,), (0.05, 0.2)
"""Those that certify nearly as well: two for the largest radius, where the bounds differ most, one for each other."""

STATE = Numbers(
    Number("loss", "Σℓ of the witness."),
    Number("a", "A = Σ g_t p_t."),
    Number("gradients", "Σ‖g_t x_t‖², which the step is made of (A8)."),
    Number("scale", "The scale s: its point is s·v.", merge="derived"),
    Number("square", "‖s·v‖².", merge="derived"),
)
LOSS, A, GRADIENTS, SCALE, SQUARE = STATE.indices("loss", "a", "gradients", "scale", "square")
SCRATCH = Numbers(
    Number("given", "⟨v, x⟩; after the loss is known, −g."),
    Number("taken", "The step: v −= taken·x."),
    Number("prediction", "The prediction."),
    Number("label", "The label."),
    Number("value", "The loss."),
    Number("slope", "The slope."),
    Number("radius", "The radius of the witness's ball."),
    Number("rate", "What its step is multiplied by."),
)
GIVEN, TAKEN, PREDICTION, LABEL = SCRATCH.indices("given", "taken", "prediction", "label")
VALUE, SLOPE, RADIUS, RATE = SCRATCH.indices("value", "slope", "radius", "rate")
NOTED = Numbers(Number("feature", "The feature as it is."), Number("scaled", "The feature in the witnesses' units."))
FEATURE, SCALED = NOTED.indices("feature", "scaled")
WITNESSES = Layout(
    # `Pool` has these two side by side in `table`, as the file does; `_in_lines_of` takes them apart for merging.
    Array("points", "The first half of `table`: the witnesses' points.", ("line", "witness"), merge="averaged"),
    Array("sums", "The second half: S = Σ g_t x_t of each witness.", ("line", "witness"), merge="added"),
    Array("state", "The numbers of each witness.", (STATE, "witness")),
    Array("largest", "The largest magnitude of the line's feature.", ("line",), merge="maximum", optional=True),
)
NOTES = 512
"""How many features of a row are worked on at once."""
_TOGETHER = (0,) * LANES
_0, _1, _LINE, _FAR, _NOTES = (np.uint64(i) for i in (0, 1, 8, 80, NOTES))


@lanes(abreast=LANES)
def times(a: Any, b: Any) -> Any:
    return a * b


@lanes(3, abreast=LANES)
def enter_round(loss: Any, A: Any, value: Any, slope: Any, p: Any, weight: Any) -> Any:
    """Σℓ and A = Σgp with a round in them, and −g."""
    g = weight * slope
    return loss + weight * value, A + g * p, -g


@lanes(4, abreast=LANES)
def step_of(gradients: Any, scale: Any, norm: Any, given: Any, p: Any, square: Any, U: Any, rate: Any) -> Any:
    """Σ‖gx‖², s and ‖s·v‖² after a step of A8 times a rate and the projection; and the step: v −= step·x.

    If g = 0 or a sum is not finite, no step is taken.
    """
    # A8 on the ball of radius U: η = rate·D/√(2Σ‖g_i x_i‖²) with D = 2U. The point is s·v, so a step along x changes
    # ‖s·v‖² by −2⟨s·v, a·x⟩ + a²‖x‖², and the projection is a change of s.
    g, most = -given, U * U
    more = gradients + g * (g * square)
    a = g * rate * math.sqrt(2.0) * U / root(more)
    total = norm - 2.0 * a * p + a * (a * square)
    # Vector code has no branches: products of 0 and 1 stand for g ≠ 0 and 0 < Σ < ∞.
    counted = choose(lower(g, -g), 0.0, 1.0, 0.0) * choose(-more, 0.0, 1.0, 0.0) * choose(more, math.inf, 1.0, 0.0)
    taken = counted * choose(higher(total, -total), math.inf, 1.0, 0.0)
    return (
        choose(counted, 1.0, gradients, more),
        choose(taken, 1.0, scale, choose(most, total, scale * (U / root(total)), scale)),
        choose(taken, 1.0, norm, lower(higher(total, 0.0), most)),
        choose(taken, 1.0, 0.0, a / scale),
    )


@values
class Pool(NamedTuple):
    """K witnesses side by side in each row of a table, so that their numbers of a feature lie together in memory."""

    table: Any
    """For each feature in use the v of every witness (its point is s·v), then the S = Σ g_t x_t of every witness; both
    padded with zeros to a multiple of LANES columns."""
    lines: Any
    """For each coordinate its row of the table; 0 for a feature that has not occurred."""
    places: Any
    """The coordinate of each row of the table, from row 1 on."""
    state: Any
    """For each witness Σℓ, A = Σ g_t p_t, Σ‖g_t x_t‖², the scale s, and ‖s·v‖²; padded as the table is."""
    radii: Any
    rates: Any
    scratch: Any
    """For each witness ⟨v, x⟩ and then −g, the step, the prediction, label, loss and slope; and its radius and rate."""
    largest: Any
    """The largest magnitude of each row's feature so far, by which witnesses divide it; empty in raw units."""
    spots: Any
    """What one pass over an example leaves for the next: the table rows of its features, …"""
    notes: Any
    """… and their values, as they are and in the witnesses' units."""
    window: Any
    """S of each witness in the window that is being filled, a row for each row of the table (`WitnessWindows`); no rows
    if there are no windows."""
    part: Any
    """For each witness Σℓ and A = Σ g_t p_t in that window."""

    def room(self, size: Any) -> Any:
        return size <= self.lines.size

    def learn(self, loss: Any, row: Any, y: Any, weight: Any) -> bool:
        """One round of every witness."""
        width, n, square, begin, moving = self.scratch.shape[1], row.many(), 0.0, _0, False
        given, taken, x, z = self.scratch[GIVEN], self.scratch[TAKEN], self.notes[FEATURE], self.notes[SCALED]
        for i in range(width):
            given[i] = 0.0
        while begin < n:
            end = min(n, begin + _NOTES)
            square = self.take_down(row, begin, end, square)
            for i in range(0, width, LANES):
                gather_rows(given, i, self.table, self.spots, i, z, end - begin, _TOGETHER)
            begin = end
        for i in range(0, width, LANES):
            moving |= self.step(loss, i, y, weight, square)
        begin = _0 if moving else n
        while begin < n:
            end = min(n, begin + _NOTES)
            if n > _NOTES:
                self.take_down(row, begin, end, 0.0)
            for i in range(0, width, LANES):
                move_rows(self.table, self.spots, i, taken, i, z, end - begin, _TOGETHER)
                move_rows(self.table, self.spots, width + i, given, i, x, end - begin, _TOGETHER)
                if self.window.shape[0] > 0:
                    move_rows(self.window, self.spots, i, given, i, x, end - begin, _TOGETHER)
            begin = end
        return True

    @noinline
    def take_down(self, row: Any, begin: Any, end: Any, square: Any) -> Any:
        """Note some of an example's features, the intercept counted as one; returns `square` + Σz², z the scaled ones.

        A call (`@noinline`) is cheaper here than all of this inlined, where there are not enough registers.
        """
        i, followed = _0, row.followed(_FAR)
        if begin < row.shift:
            square = self.note(i, _0, 1.0, square)
            i += _1
        for k in range(row.lo + begin + i - row.shift, row.lo + end - row.shift):
            if followed:
                self.prefetch(row, k)
            square = self.note(i, row.place(k), row.at(k), square)
            i += _1
        return square

    def note(self, i: Any, j: Any, x: Any, square: Any) -> Any:
        line, z = self.lines[j], x
        if self.largest.size > 0:
            most = max(self.largest[line], abs(x))
            self.largest[line] = most
            z = x / most if most > 0.0 else 0.0
        self.spots[i], self.notes[FEATURE, i], self.notes[SCALED, i] = line, x, z
        return square + z * z

    def prefetch(self, row: Any, k: Any) -> None:
        """Prefetch what belongs to features a little further on; not all at once, which the processor cannot do."""
        fetch(self.lines, row.place(k + _FAR))
        soon, wide = np.uint64(row.place(k + SOON)), np.uint64(self.table.shape[1])
        if soon < np.uint64(self.lines.size):
            line = np.uint64(self.lines[soon])
            fetch(self.largest, line)
            fetch(self.table, line * wide)
            if wide > _LINE:
                fetch(self.table, line * wide + _LINE)

    def step(self, loss: Any, first: Any, y: Any, weight: Any, square: Any) -> bool:
        """One round of LANES witnesses, given ⟨v, x⟩: update Σℓ, A and the scales; find what S and v are to move by.

        Returns whether any of them moves.
        """
        state, given, taken, p = self.state, self.scratch[GIVEN], self.scratch[TAKEN], self.scratch[PREDICTION]
        value, slope, last, moving = self.scratch[VALUE], self.scratch[SLOPE], first + LANES, False
        times(first, LANES, p, state[SCALE], given)
        for i in range(first, last):
            self.scratch[LABEL, i] = y
        loss.at_once(first, LANES, value, slope, p, self.scratch[LABEL])
        for i in range(first, last):
            if i >= self.radii.size:
                value[i], slope[i] = 0.0, 0.0
            elif not (math.isfinite(p[i]) and math.isfinite(weight * (value[i] + slope[i] * (1.0 + p[i])))):
                p[i] = 0.0  # any prediction will do: the proof only asks that its slope be taken there
                value[i], slope[i] = loss.value(0.0, y), loss.slope(0.0, y)
        enter_round(first, LANES, state[LOSS], state[A], given, state[LOSS], state[A], value, slope, p, weight)
        if self.window.shape[0] > 0:
            part = self.part
            enter_round(first, LANES, part[LOSS], part[A], given, part[LOSS], part[A], value, slope, p, weight)
        before, U, rate = (state[GRADIENTS], state[SCALE], state[SQUARE]), self.scratch[RADIUS], self.scratch[RATE]
        step_of(first, LANES, *before, taken, *before, given, p, square, U, rate)
        for i in range(first, last):
            moving |= given[i] != 0.0
            if state[SCALE, i] < 1e-100:
                self.multiply_out(i)
        return moving

    @noinline
    def multiply_out(self, i: Any) -> None:
        """s ← 1, with the point unchanged: v and this round's step, not yet added to v, are multiplied by s."""
        s = self.state[SCALE, i]
        for j in range(self.table.shape[0]):
            self.table[j, i] *= s
        self.scratch[TAKEN, i] *= s
        self.state[SCALE, i] = 1.0

    def grown(self, size: int) -> Pool:
        """Room for at least `size` coordinates."""
        return self if size <= self.lines.size else self._replace(lines=longer(self.lines, size))

    def claimed(self, indices: Any, shift: Any) -> Pool:
        """With a row of the table for each feature that occurs: a wide stream uses few of its features."""
        before = self.places.size
        fresh = np.empty(min(indices.size, self.lines.size - before) + 1, dtype=np.int64)
        count = claim(self.lines, np.ascontiguousarray(indices, dtype=np.uint32), np.uint64(shift), fresh, before)
        if count == 0:
            return self
        after = before + count
        table, largest = self.table, self.largest
        if after >= len(table):
            table = longer(table, 2 * after)
            largest = longer(largest, 2 * after) if largest.size else largest
        return self._replace(table=table, places=np.concatenate([self.places, fresh[:count]]), largest=largest)

    def moved(self, to: Any, size: int) -> Pool:
        """The same with room for `size` coordinates, those from before at the places `to`."""
        places, lines = to[self.places], np.zeros(size, dtype=np.uint32)
        lines[places] = np.arange(1, places.size + 1)
        return self._replace(lines=lines, places=places)

    def merge(self, parts: Sequence[Pool]) -> Pool:
        """The witnesses of several parts of a stream together, each of which went on from a copy of these.

        What a witness has proved is a sum over the examples, whatever points it predicted them with: c = Σℓ − A and
        S are added since the base. It goes on from the mean of its points, which lies in its ball.
        """
        for part in parts:
            if self.radii.tolist() != part.radii.tolist() or self.rates.tolist() != part.rates.tolist():
                raise SettingsError("witnesses at different radii cannot be merged: give both parts the same ones.")
        pools = (self, *parts)
        merged = self._replace(lines=self.lines.copy()).grown(max(pool.lines.size for pool in pools))
        for part in parts:
            merged = merged.claimed(part.places, 0)
        states = [pool._in_lines_of(merged) for pool in pools]
        together, width = WITNESSES.merged(states[0], states[1:]), self.scratch.shape[1]
        state, points = together["state"], together["points"]
        most = self.scratch[RADIUS] * self.scratch[RADIUS]
        state[SCALE], state[SQUARE] = 1.0, np.minimum((points * points).sum(axis=0), most)
        table = aligned_zeros(merged.table.shape)
        table[:, :width], table[:, width:] = points, together["sums"]
        scaled = all(pool.largest.size for pool in pools)
        own = {"scratch": self.scratch.copy(), "spots": self.spots.copy(), "notes": self.notes.copy()}
        return merged._replace(table=table, state=state, largest=together["largest"] if scaled else np.empty(0), **own)

    def _in_lines_of(self, other: Pool) -> dict[str, Any]:
        """Points, sums and magnitudes where another pool, which knows all of its features, has them."""
        width, own, at = self.scratch.shape[1], slice(1, self.places.size + 1), other.lines[self.places]
        points, sums, largest = (
            np.zeros((len(other.table), width)),
            np.zeros((len(other.table), width)),
            np.zeros(len(other.table)),
        )
        points[at], sums[at] = self.table[own, :width] * self.state[SCALE], self.table[own, width:]
        largest[at] = self.largest[own] if self.largest.size else 0.0
        return {"points": points, "sums": sums, "largest": largest, "state": self.state}

    def empty(self) -> Pool:
        """Witnesses of the same radii and rates that have seen nothing."""
        K = self.radii.size
        state, none = np.zeros((len(STATE), K)), np.empty(0, dtype=np.int64)
        state[SCALE] = 1.0
        table, largest = np.zeros((1, 2 * K)), np.zeros(1 if self.largest.size else 0)
        return filled_up(table, np.zeros(1, dtype=np.uint32), none, state, self.radii, self.rates, largest)

    def stored(self) -> dict[str, Any]:
        """The arrays that a model file holds."""
        used = self.places.size + 1  # row 0 belongs to features that have not occurred
        table = self.table[:used].reshape(used, 2, -1)[:, :, : self.radii.size].reshape(used, -1)
        lines = {"table": table, "largest": self.largest[:used], "places": self.places.astype(np.float64)}
        numbers = {"state": self.state[:, : self.radii.size], "radii": self.radii, "rates": self.rates}
        return {f"pool.{name}": array for name, array in (lines | numbers).items()}

    def magnitudes(self) -> Any:
        """The largest magnitude of each coordinate's feature, or None in raw units."""
        return self.spread(self.largest, self.lines.size) if self.largest.size else None

    def spread(self, column: Any, size: int) -> Any:
        """One number for each row of the table as one number for each coordinate."""
        out = np.zeros(size)
        out[self.places] = column[1 : self.places.size + 1]
        return out

    def constants(self, rounding: float = 0.0) -> Any:
        """c = Σℓ − A of every witness, less `rounding` times what was added up."""
        total, along = self.state[[LOSS, A], : self.radii.size]
        return total - along - rounding * (np.abs(total) + np.abs(along))

    def losses(self) -> Any:
        """Σ weight·ℓ of every witness."""
        return self.state[LOSS, : self.radii.size]

    def sum_of(self, i: int, size: int) -> Any:
        """S of witness i, in `size` coordinates."""
        return self.spread(self.table[:, self.scratch.shape[1] + i], size)

    def sums(self, S: Any, by: Any) -> Any:
        """The S of each witness and, last, the learner's, which is in units of `by` already, as columns."""
        sums = self.table[1 : self.places.size + 1, self.scratch.shape[1] :]
        own = sums[:, : self.radii.size] / by[self.places, None]
        return np.column_stack([own, S[self.places]])  # where no feature occurred S is 0

    def inner(self, S: Any, by: Any) -> Any:
        """⟨S_i, S_j⟩ of the columns of `sums`."""
        both = self.sums(S, by)
        return both.T @ both

    def norms(self, S: Any, by: Any, inner: Any) -> Any:
        """‖S_i‖ of the columns of `sums`, whose inner products are known but may under- or overflow."""
        squares = np.diag(inner)
        if np.all((squares >= LEAST_SQUARE) & (squares < 1.0 / LEAST_SQUARE)):
            return np.sqrt(squares)
        return np.array([norm(column) for column in self.sums(S, by).T])


def open_pool(radii: Any, scaled: bool, quick: bool = False) -> Pool:
    """A witness for each radius and rate; `scaled` if features are to be divided by their largest magnitude.

    With `quick` the largest of several radii has two rates, the others one: three radii = 4 witnesses × (v, S) = 64
    bytes, a cache line.
    """
    try:
        wanted = np.atleast_1d(np.asarray(radii, dtype=np.float64))
    except (TypeError, ValueError):
        wanted = np.empty(0)
    if (
        isinstance(radii, bool)
        or wanted.ndim != 1
        or not wanted.size
        or not (np.isfinite(wanted).all() and (wanted > 0.0).all())
    ):
        raise SettingsError(f"witnesses: give one radius or several, all positive and finite, not {shown(radii)}.")
    most, quick = float(wanted.max()), quick and wanted.size > 1
    pairs = [
        (radius, rate)
        for radius in wanted.tolist()
        for rate in (RATES if not quick else FEW if radius == most else MIDDLE)
    ]
    state = np.zeros((len(STATE), len(pairs)))
    state[SCALE] = 1.0
    radii, of_radii = np.array(pairs).T.copy()
    table, largest = np.zeros((1, 2 * len(pairs))), np.zeros(1 if scaled else 0)
    return filled_up(table, np.zeros(1, dtype=np.uint32), np.empty(0, dtype=np.int64), state, radii, of_radii, largest)


def filled_up(table: Any, lines: Any, places: Any, state: Any, radii: Any, rates: Any, largest: Any) -> Pool:
    """A pool from a table and a state without padding: pads the columns to a multiple of LANES."""
    K, width = radii.size, -(-radii.size // LANES) * LANES
    shapes = (len(table), 2, width), (len(STATE), width), (len(SCRATCH), width)
    wide, wide_state, scratch = (aligned_zeros(shape) for shape in shapes)
    wide[:, :, :K] = table.reshape(len(table), 2, K)
    wide_state[SCALE], wide_state[:, :K], scratch[RADIUS, :K], scratch[RATE, :K] = 1.0, state, radii, rates
    spots, notes = np.zeros(NOTES, dtype=np.int64), aligned_zeros((len(NOTED), NOTES))
    own = wide.reshape(len(table), -1), lines, places, wide_state, radii, rates, scratch, largest, spots, notes
    return Pool(*own, window=np.zeros((0, width)), part=np.zeros((2, width)))


@kernel
def watch(loss: Any, keeper: Any, rows: Any, y: Any, weights: Any, predictions: Any, begin: Any) -> Any:
    """Give a keeper of evidence the rows from `begin` on that were scored; the first row it cannot take, or all.

    It may also stop after a row, when the keeper's `learn` says that it has no room for another.
    """
    size = rows.coordinates()
    if not keeper.room(size) or predictions.size < y.size:
        return begin
    for i in range(begin, y.size):
        weight = weights[i] if weights.size > 0 else 1.0
        if math.isnan(predictions[i]) or weight == 0.0:
            continue
        if not rows.sound(i):
            return i
        row = rows.row(i)
        if not (row.ordered() and row.fits(size)):
            return i
        if not keeper.learn(loss, row, y[i], weight):
            return i + 1
    return y.size


def best_mixture(constants: Any, inner: Any, radius: float, norms: Any = None) -> float:
    """max over θ in the simplex of Σθ_i c_i − U‖Σθ_i S_i‖, nearly: from the best vertex, towards one vertex at a time.

    `inner` holds the ⟨S_i, S_j⟩, and `norms` the ‖S_i‖ where those may under- or overflow. Every θ gives a valid bound,
    so it does not matter how near.
    """
    norms = np.sqrt(np.maximum(0.0, np.diag(inner))) if norms is None else norms
    values = constants - radius * norms
    usable = np.isfinite(values)
    if not usable.any():
        return -math.inf
    start = int(np.argmax(values[usable]))
    best = float(values[usable][start])
    usable &= (norms == 0.0) | (np.diag(inner) >= LEAST_SQUARE)  # of the others ⟨S_i, S_j⟩ may have lost all digits
    if not usable.any() or not np.isfinite(inner[np.ix_(usable, usable)]).all():
        return best
    constants, inner, values = constants[usable], inner[np.ix_(usable, usable)], values[usable]
    start = int(np.argmax(values))
    first, best = best, float(values[start])
    theta = np.zeros(constants.size)
    theta[start] = 1.0
    for _ in range(4 * constants.size):
        c, along, square = theta @ constants, inner @ theta, theta @ inner @ theta

        def value(step: Any, c: Any = c, along: Any = along, square: Any = square) -> Any:
            """The bound at (1 − step)·θ + step·e_i, for every vertex i."""
            rest = 1.0 - step
            norm = rest * rest * square + 2.0 * rest * step * along + step * step * np.diag(inner)
            return rest * c + step * constants - radius * np.sqrt(np.maximum(0.0, norm))

        low, high = np.zeros(constants.size), np.ones(constants.size)
        for _ in range(30):
            a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
            worse = value(a) < value(b)
            low, high = np.where(worse, a, low), np.where(worse, high, b)
        reached = value(low)
        i = int(np.argmax(reached))
        if not reached[i] > best + 1e-9 * abs(best):
            break
        best = float(reached[i])
        theta *= 1.0 - low[i]
        theta[i] += low[i]
    return max(first, best)

"""Evidence: the sums of a pass that certify its regret afterwards; a function of the stream and of the predictions.

The ledger, with the sums of D1, is always there; the largest magnitude of each feature, witnesses (D3) and curvature
(D4) are there when asked for. All of it takes O(d) memory, or O(d²) for curvature, and adds up over parts of a stream.
With witnesses that were asked for there is a digest too, as long as the stream is narrow and the loss is one that
`condenses` accepts. Without asking (`narrow`) there is the strongest proof that costs little while a stream has at most
`NARROW` features in use: curvature for square loss, a digest for others.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rue import ledger as accounts
from rue.compiled import values
from rue.domains import Domain
from rue.errors import BadExample, NoRoom, SettingsError, shown
from rue.layout import Array, Layout
from rue.ledger import Ledger, add_up, keep_accounts, open_ledger, trusted_range
from rue.losses import Loss
from rue.memory import gibibytes, memory_limit
from rue.norms import LEAST_PRODUCT, LEAST_SQUARE, LOST, norm
from rue.regret.certificates.certificate import Certificate
from rue.regret.certificates.curvature import Curvature, open_curvature
from rue.regret.certificates.digest import FIRST, REDUCED, Digest, condenses, open_digest
from rue.regret.certificates.digest import NARROW as DIGESTED
from rue.regret.certificates.witnessed import WitnessWindows, open_witness_windows
from rue.regret.certificates.witnesses import Pool, best_mixture, open_pool, watch
from rue.regret.risk.ranges import largest_norm
from rue.rows import SparseRows
from rue.streams import Block, numbering
from rue.streams.numbering import Numbering, spread
from rue.windows import open_windows

__all__ = ["Evidence", "Largest", "open_evidence"]

_0 = np.uint64(0)
NARROW = 64
"""The most coordinates in use for which there is curvature or a digest without asking, the digest for a stream that is
so short that it holds every example up to 128 (docs/decisions/0023)."""


FEW = 4096
"""Of how many entries of the first block the features are counted: text is not narrow, and that shows early."""

LARGEST = Layout(Array("magnitudes", "The largest magnitude of each feature.", ("coordinate",), merge="maximum"))


@values
class Largest(NamedTuple):
    """The largest magnitude of each feature so far."""

    magnitudes: Any

    def room(self, size: Any) -> Any:
        return size <= self.magnitudes.size

    def learn(self, loss: Any, row: Any, y: Any, weight: Any) -> bool:
        if row.shift > _0:
            self.magnitudes[_0] = 1.0
        for k in range(row.lo, row.hi):
            j = row.place(k)
            self.magnitudes[j] = max(self.magnitudes[j], abs(row.at(k)))
        return True

    def grown(self, size: int) -> Largest:
        if size <= self.magnitudes.size:
            return self
        magnitudes = np.zeros(size)
        magnitudes[: self.magnitudes.size] = self.magnitudes
        return Largest(magnitudes)

    def merge(self, parts: Sequence[Largest]) -> Largest:
        """That of several parts of a stream together."""
        size = max(part.magnitudes.size for part in (self, *parts))
        return Largest(**LARGEST.merged(self.grown(size), [part.grown(size) for part in parts]))


@dataclasses.dataclass(eq=False)
class Evidence:
    """The sums of a pass over a stream, from which `certificate` proves an upper bound on regret.

    `ledger` has those of D1, A = Σ g_t p_t and S = Σ g_t x_t with g_t the slope at the prediction p_t: against any u
    the regret is at most A − ⟨S, u⟩. Each further field, if it is there, proves more. They are sums over the examples,
    so those of several parts of a stream can be merged.

    >>> import rue
    >>> X, y = rue.census()
    >>> run = rue.learn(X[:1000], y[:1000], learner=rue.OGD("hinge", "ball:10"))
    >>> proved = run.evidence.certificate(rue.Ball(1))  # about any set, not only the learner's
    >>> bool(proved.comparator_loss_at_least <= rue.best_in_hindsight(X[:1000], y[:1000], loss="hinge", radius=1).value)
    True

    docs/theory.md, section 6.
    """

    loss: Loss
    ledger: Ledger
    largest: Largest | None = None
    """The largest magnitude of each feature, for certificates in units of it."""
    pool: Pool | None = None
    """The witnesses of D3."""
    curvature: Curvature | None = None
    """Σ x xᵀ and Σ y·x of D4, for square loss."""
    lambda_: float = 0.0
    """The rounds' regulariser (λ/2)‖w‖², which is not part of `loss` (D2)."""
    penalty: float = 0.0
    """Σ weight·(λ/2)‖w_t‖² of the points played."""
    digest: Digest | None = None
    """Kept as long as the stream is narrow enough."""
    unasked: bool = False
    """Whether curvature or digest were switched on automatically; they are dropped when there are more than `NARROW`
    features in use."""
    numbering: Numbering | None = None
    """Where in the arrays the features of a wide stream are: the learner's numbering, or its own."""
    coordinates: int = 0
    """How many coordinates a wide stream has; `ledger.S` has those of any other."""
    intercept: bool = True
    """Whether the first coordinate of a wide stream, or of one with `columns`, is the intercept's."""
    columns: Numbering | None = None
    """Which columns of the digest, and of curvature that was not asked for, the features of a sparse stream have; each
    its own index where there is no numbering."""
    magnitudes: Any = None
    """The largest magnitude of each feature as the learner knows it, if it divides features by them."""
    witnessed: WitnessWindows | None = None
    """What the witnesses have proved in each window; None where there are none, or too many features in use."""

    def widen(self, size: int, rows: Any = None) -> None:
        """Make room in the ledger for `size` coordinates, and in its windows for those that occur in some `rows`.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge())
        >>> evidence.widen(5)
        >>> evidence.ledger.S.size
        5
        """
        ledger = self.ledger.grown(size)
        self.ledger = ledger if rows is None else ledger._replace(windows=ledger.windows.with_room(rows))

    def follow(self, learner: Any) -> None:
        """Adopt the numbering of features of the learner whose blocks are to be entered.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge())
        >>> evidence.follow(rue.Perceptron(d=3))
        >>> evidence.numbering is None  # three features are not wide
        True
        """
        if learner.numbering is not self.numbering:
            moved = self.renumbered(learner.numbering, bool(learner.intercept))
            self.__dict__.update(moved.__dict__)
        if self.numbering is not None:
            self.coordinates = max(self.coordinates, learner.coordinates)

    def renumbered(self, numbering: Numbering | None, intercept: bool) -> Evidence:
        """The same with features where a numbering has them, which learns those it does not know.

        With an `intercept` coordinate 0 stays where it is.

        >>> import rue
        >>> from rue.streams.numbering import Numbering
        >>> run = rue.learn([[1.0], [-1.0]], [1, -1], learner="ogd")
        >>> run.evidence.renumbered(Numbering(), True).coordinates
        2
        """
        if self.numbering is None and numbering is not None and self.ledger.S.size <= numbering.base + int(intercept):
            size = self.ledger.S.size  # every feature stays where it is
            return dataclasses.replace(self, numbering=numbering, coordinates=size, intercept=intercept)
        before = np.arange(self.ledger.S.size)
        if self.numbering is not None:
            before, intercept = self.numbering.coordinates(self.intercept), self.intercept
        to, size = before, self.coordinates
        if numbering is not None:
            features = before[before >= int(intercept)] - int(intercept)
            to = np.where(before == 0, 0, -1) if intercept else np.full(before.size, -1)
            to[before >= int(intercept)] = numbering.places_of(features, adding=True).astype(np.int64) + int(intercept)
            size = numbering.size + int(intercept)
        elif 40 * size > memory_limit():
            raise NoRoom(
                f"the certificate for this set needs all {size:,} coordinates, {gibibytes(40 * size)}, more than the "
                f"{gibibytes(memory_limit())} that there are: ask for a ball (radius=…)."
            )
        windows = self.ledger.windows.moved(to, size)
        moved: dict[str, Any] = {"ledger": self.ledger._replace(S=spread(self.ledger.S, to, size), windows=windows)}
        if self.largest is not None:
            moved["largest"] = Largest(spread(self.largest.magnitudes, to, size))
        if self.pool is not None:
            moved["pool"] = self.pool.moved(to, size)
        if self.curvature is not None:
            moved["curvature"] = None if self.unasked else self.curvature.moved(to, size)
        coordinates = max(self.coordinates, self.ledger.S.size if self.numbering is None else 0)
        wide: dict[str, Any] = {
            "numbering": numbering,
            "coordinates": coordinates,
            "intercept": intercept,
            "digest": None,
            "columns": None,
            "magnitudes": None,
        }
        return dataclasses.replace(self, **moved, **wide)

    def in_places(self, array: Any, coordinates: Any) -> Any:
        """An `array` for these coordinates (for all, in order, if None) as one for the places of a wide stream.

        >>> import numpy as np, rue
        >>> from rue.streams.numbering import Numbering
        >>> wide = rue.learn([[1.0], [-1.0]], [1, -1], learner="ogd").evidence.renumbered(Numbering(), True)
        >>> wide.in_places(np.array([10.0, 20.0]), None)  # the second place is that of features never seen
        array([10.,  0., 20.])
        """
        assert self.numbering is not None
        shift, coordinates = int(self.intercept), np.arange(array.size) if coordinates is None else coordinates
        known = np.flatnonzero(coordinates[: array.size] >= shift)
        out = np.zeros(self.numbering.size + shift)
        out[:shift] = array[:shift]
        out[self.numbering.places_of(coordinates[known] - shift).astype(np.int64) + shift] = array[known]
        out[self.numbering.base + shift] = 0.0  # of features that are not in this stream
        return out

    def _numbered(self, block: Block, intercept: bool) -> Block:
        """A block with its features where the arrays have them, and room for them."""
        if self.numbering is None and block.sparse and block.width > max(numbering.WIDE, self.ledger.S.size):
            self.coordinates, self.intercept = self.ledger.S.size, intercept
            self.numbering = Numbering(max(0, self.ledger.S.size - int(intercept)))
        if self.numbering is None or block.numbering is self.numbering:
            return block
        self.coordinates = max(self.coordinates, block.width + int(intercept))
        return block.numbered(self.numbering, adding=True)

    def room_for(self, needed: int) -> int:
        """How many places arrays are to have where so many are `needed`: twice as many as before, of wide streams.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge())
        >>> evidence.room_for(7)
        7
        """
        has = self.ledger.S.size
        return needed if self.numbering is None or needed <= has else max(needed, 2 * has)

    def _accumulators(self) -> list[tuple[str, Any]]:
        """The accumulators there are besides the ledger, by the names of the fields."""
        fields = [(name, getattr(self, name)) for name in ("largest", "pool", "curvature", "digest")]
        return [(name, keeper) for name, keeper in fields if keeper is not None]

    def enter(self, block: Block, predictions: Any, intercept: bool, before: int, mapped: Any = None) -> int:
        """Score a block by the predictions of any model; how many of its examples had none (NaN), or no finite loss.

        With an `intercept` the models compared with have one; `before` is how many rows came before the block, for
        messages. `mapped` are the sums of maps (`MappedSums`), which then get the same rows.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge())
        >>> evidence.enter(rue.Block([[1.0], [2.0]], y=[1, 1]), np.array([0.5, np.nan]), True, 0)
        1
        """
        block = self._numbered(block, intercept)
        size, predictions = block.width + int(intercept), np.array(predictions)  # rows that are left out become NaN
        self.widen(self.room_for(size), block.rows(intercept))
        y, weights = block.labels(), block.column_of_weights()
        ledger = self.ledger._replace(trusted=trusted_range(self.loss))  # it shares the arrays
        end, left_out = keep_accounts(self.loss, ledger, block.rows(intercept), y, weights, predictions, 0)
        if end < len(block) and block.sparse:  # perhaps only because indices are not sorted
            rows = block.in_order().rows(intercept)
            end, missing = keep_accounts(self.loss, ledger, rows, y, weights, predictions, end)
            left_out += missing
        if end < len(block):
            raise BadExample(
                before + end,
                f"label {float(y[end])!r}, prediction {float(predictions[end])!r}, weight and features must be finite, "
                f"each feature once, the label {self.loss.labels}, the weight ≥ 0.",
            )
        self.watch(block, predictions, intercept, size)
        if mapped is not None:
            mapped.enter(self.loss, block.rows(intercept), y, weights, predictions, self.room_for(size))
        return int(left_out)

    def watch(self, block: Block, predictions: Any, intercept: bool, size: int, adds_gradients: bool = False) -> None:
        """Enter a block whose scored rows are already validated: update everything except the ledger.

        `size` is the number of coordinates, or of rows in the arrays, there is to be room for. With `adds_gradients`
        S = Σ g_t x_t is updated too, which a `Ledger` that does not add gradients has left to the caller.

        `predictions` and `intercept` are as for `enter`, which calls this.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge(), units="largest")
        >>> evidence.watch(rue.Block([[3.0]], y=[1]), np.array([0.5]), True, 2)
        >>> evidence.scales()
        array([1., 3.])
        """
        room = self.room_for(size)
        condensed, width = self._in_columns(block, intercept, size)
        for name, keeper in self._accumulators():
            condenses = name == "digest" or (name == "curvature" and self.unasked)
            setattr(self, name, keeper.grown(width if condenses else size if name == "curvature" else room))
        y, weights, rows = block.labels(), block.column_of_weights(), block.rows(intercept)
        if adds_gradients:
            self.widen(room, rows)
            gradients = open_ledger()._replace(S=self.ledger.S, windows=self.ledger.windows)
            if not add_up(self.loss, gradients, rows, y, weights, predictions):
                raise BadExample(0, "the block does not fit what was predicted for it.")
        if self.pool is not None:
            occurring = rows.indices if isinstance(rows, SparseRows) else np.arange(block.width)
            self.pool = self.pool.claimed(occurring, rows.shift)
            self.witnessed = None if self.witnessed is None else self.witnessed.with_room(self.pool)
        for name, keeper in self._accumulators():
            shown = condensed if name == "digest" or (name == "curvature" and self.unasked) else block
            first = rows if shown is block else shown.rows(intercept)
            given, end = first, 0
            while end < len(block):
                look = self.witnessed.watch if name == "pool" and self.witnessed is not None else watch
                end = look(self.loss, keeper, given, y, weights, predictions, end)
                if isinstance(keeper, Digest) and keeper.full():
                    if self.unasked and width > NARROW:
                        self.digest = self.columns = None
                        break
                    self.digest = keeper = keeper.reduced(self.loss)
                elif end < len(block) and given is not first:
                    raise BadExample(end, "the sparse matrix is damaged.")
                elif end < len(block):
                    given = shown.in_order().rows(intercept)

    def _in_columns(self, block: Block, intercept: bool, size: int) -> tuple[Block, int]:
        """A block with its features in the columns of the digest, and how many coordinates that is.

        The digest, and curvature that was not asked for, are dropped where there are more than they can have.
        """
        most = NARROW if self.unasked and self.digest is None else DIGESTED
        if self.digest is None and not (self.unasked and self.curvature is not None):
            return block, size
        if self.numbering is None and self.columns is None and size > most and block.sparse:
            rows: Any = block.rows(False)
            if np.unique(rows.indices[:FEW]).size + int(intercept) <= most:
                self.columns, self.intercept = Numbering(max(0, self._condensed_size() - int(intercept))), intercept
        if self.columns is not None:
            block = block.numbered(self.columns, adding=True)
            size = self.columns.size + int(intercept)
        reduced = self.unasked and self.digest is not None and self.digest.totals[REDUCED] > 0
        if size > (NARROW if reduced else most) or self.numbering is not None:
            self.digest = self.columns = None
            self.curvature = None if self.unasked else self.curvature
        return block, size

    def _condensed_size(self) -> int:
        """How many coordinates the digest, or curvature that was not asked for, has room for."""
        if self.digest is not None:
            return int(self.digest.largest.size) - FIRST
        return 0 if self.curvature is None else int(self.curvature.moment.size)

    def merged(self, other: Evidence) -> Evidence:
        """The evidence of two parts of a stream together, this and the `other`, whichever learners they had.

        >>> import rue
        >>> X, y = rue.census()
        >>> halves = [rue.learn(X[:500], y[:500]), rue.learn(X[500:1000], y[500:1000])]
        >>> both = halves[0].evidence.merged(halves[1].evidence)
        >>> int(both.ledger.sums[0])
        1000
        """
        self._require_like(other)
        return self._empty().merge([self, other])

    def merge(self, parts: Sequence[Evidence]) -> Evidence:
        """The evidence about all examples that several parts have entered, each of which went on from a copy of this.

        The sums of D1, D2 and D4, and those of every witness, are added since the base, so that the certificate is that
        of one pass with the same predictions, up to rounding. The digest may prove less than one pass's, see its
        `merge`; parts whose evidence begins afresh and is put together by `merged` prove more. A part that has entered
        nothing does not count; if one alone has, a copy of it is returned.

        >>> import copy, rue
        >>> X, y = rue.census()
        >>> base = rue.learn(X[:100], y[:100], learner="ogd").evidence
        >>> parts = [copy.deepcopy(base), copy.deepcopy(base)]
        >>> int(base.merge(parts).ledger.sums[0])  # nothing has been entered since
        100
        """
        for part in parts:
            self._require_like(part)
        examples = float(self.ledger.sums[accounts.EXAMPLES])
        begun = [part for part in parts if part.ledger.sums[accounts.EXAMPLES] != examples]
        if len(begun) <= 1:
            return copy.deepcopy(begun[0] if begun else self)
        base, *parts = _in_same_columns(_in_one_numbering([self, *begun]))
        theirs = {name: [dict(part._accumulators()).get(name) for part in parts] for name, _ in base._accumulators()}
        both: dict[str, Any] = {
            name: keeper.merge(theirs[name], self.loss.nonnegative) if name == "digest" else keeper.merge(theirs[name])
            for name, keeper in base._accumulators()
            if None not in theirs[name]
        }
        if (digest := both.get("digest")) is not None and digest.full():
            both["digest"] = digest.reduced(self.loss)
        scales = [part.scales() for part in parts]
        if "pool" not in both and all(own is not None for own in scales):
            both["largest"] = Largest(scales[0]).merge([Largest(own) for own in scales[1:]])
        known = [part.magnitudes for part in parts]
        if base.numbering is None and all(own is not None for own in known):
            both["magnitudes"] = Largest(known[0]).merge([Largest(own) for own in known[1:]]).magnitudes
        ledger = base.ledger.merge([part.ledger for part in parts])
        pools = [part.pool for part in (base, *parts) if part.pool is not None]
        windows = [part.witnessed for part in parts if part.witnessed is not None]
        if "pool" in both and base.witnessed is not None and len(windows) == len(parts):
            both["witnessed"] = base.witnessed.merge(windows, pools, both["pool"])
        penalty = base.penalty + sum(part.penalty - base.penalty for part in parts)
        both |= {"numbering": base.numbering, "intercept": parts[0].intercept}
        both["coordinates"] = max(part.coordinates for part in parts)
        both["unasked"] = any(part.unasked for part in parts)
        in_columns = ("digest", "curvature") if both["unasked"] else ("digest",)
        if any(both.get(name) is not None for name in in_columns):  # a part may have met too many, and given them up
            both["columns"] = base.columns
        return Evidence(self.loss, ledger, lambda_=self.lambda_, penalty=penalty, **both)

    def _require_like(self, other: Evidence) -> None:
        if self.loss != other.loss or self.lambda_ != other.lambda_:
            raise SettingsError(f"evidence about {self.loss!r} and {other.loss!r}, or other λ, cannot be merged.")

    def _empty(self) -> Evidence:
        """Evidence of the same kind with nothing in it."""
        keepers = dict(self._accumulators())
        pool = self.pool.empty() if self.pool is not None else None
        return dataclasses.replace(
            self,
            ledger=open_ledger(windows=open_windows()),
            largest=Largest(np.zeros(1)) if "largest" in keepers else None,
            pool=pool,
            witnessed=None if pool is None else open_witness_windows(pool),
            curvature=open_curvature() if "curvature" in keepers else None,
            digest=self.digest.empty() if self.digest is not None else None,
            penalty=0.0,
            columns=None,
            magnitudes=None,
        )

    def scales(self) -> Any:
        """The largest magnitude of each feature, or None if there is no such sum.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge())
        >>> evidence.scales() is None
        True
        """
        if self.largest is not None:
            return self.largest.magnitudes
        if self.pool is not None and self.pool.largest.size:
            return self.pool.magnitudes()
        if self.digest is not None and self.digest.scaled:
            return spread(self.digest.largest[FIRST:], self._coordinates_of_columns(), self.ledger.S.size)
        return self.magnitudes

    def _coordinates_of_columns(self) -> Any:
        """The coordinate of each column of the digest; −1 where there is none."""
        if self.columns is not None:
            return self.columns.coordinates(self.intercept)
        return np.arange(self._condensed_size())

    def certificate(
        self,
        domain: Domain,
        units: str | None = None,
        scales: Any = None,
        left_out: int = 0,
        thorough: bool = True,
    ) -> Certificate:
        """The best that can be proved about a set: D1 or D2, with witnesses and curvature where there are any.

        `units` are by default those of the learner: `largest` if it divides features by their magnitudes. About an
        unbounded set D1 and D3 prove nothing unless the features' magnitudes were added up: without them it is not
        known how far rounding has moved S. `scales` are of the coordinates that have a row in the arrays here (sparse,
        wide data). Without `thorough` the digest and curvature are left out, which need a search.

        `domain` is the set, and `left_out` how many examples are not in the sums, which the sentence says.

        >>> import rue
        >>> run = rue.learn([[1.0], [-1.0]], [1, -1], learner=rue.OGD("hinge", "ball:1"))
        >>> run.evidence.certificate(rue.Ball(1)).theorem
        'D1'
        """
        if units is None:
            free = self.magnitudes is not None or (self.digest is not None and not self.digest.radii.size)
            units = "largest" if free else "raw"
        if self.numbering is not None and not domain.keeps_zeros:  # coordinates that never occur count too
            if scales is not None:
                scales = spread(scales, self.numbering.coordinates(self.intercept), self.coordinates)
            return self.renumbered(None, self.intercept).certificate(domain, units, scales, left_out, thorough)
        with np.errstate(all="ignore"):  # sums that overflowed prove nothing, in silence
            by = self.divisors(units, scales, self.ledger.S.size)
            magnitudes = self.scales() if scales is None else scales
            return self._certified(domain, units, by, magnitudes, left_out, thorough)

    def _certified(
        self, domain: Domain, units: str, by: Any, magnitudes: Any, left_out: int, thorough: bool
    ) -> Certificate:
        sums, S = self.ledger.sums, self.ledger.S / by
        A, total = float(sums[accounts.A]), float(sums[accounts.LOSS]) + self.penalty
        height = self._support(domain, self.ledger.S, by, magnitudes, float(sums[accounts.LOSS]))
        theorem, alone = "D1", A + height
        if self.lambda_ > 0.0:
            theorem, alone = "D2", A + self.penalty + self._regularised(domain, S, height)
        alone += self.underflown(domain, by)
        if not (math.isfinite(alone) and math.isfinite(total)):
            alone = math.inf
        at_least = total - alone if alone < math.inf else -math.inf
        if self.loss.nonnegative and at_least <= max(self.rounding * (total + abs(A)), LEAST_SQUARE):
            at_least = 0.0  # below rounding error: use ℓ ≥ 0 instead
        witnesses, seen = 0, -math.inf
        if self.pool is not None and self.lambda_ == 0.0:
            witnesses = int(self.pool.radii.size)
            seen = self._witnessed(domain, by, total - A - self.rounding * (abs(total) + abs(A)), S, magnitudes)
        divisors = self._in_the_columns(domain, by)
        if self.digest is not None and self.lambda_ == 0.0 and thorough and divisors is not None:
            seen = max(seen, self.digest.at_least(self.loss, domain, divisors, self.rounding))
        if seen > max(at_least, LEAST_SQUARE if self.loss.nonnegative else -math.inf):
            theorem, at_least = "D3", seen
        if self.curvature is not None and self.lambda_ == 0.0 and thorough:
            exact = self._exact(self.curvature, domain, by)
            if exact >= at_least and exact > 0.0:
                theorem, at_least = "D4", exact
        regret = total - at_least
        if math.isnan(regret):
            regret = math.inf
        return Certificate(
            domain,
            total,
            regret,
            alone,
            at_least,
            A,
            norm(S),
            left_out,
            theorem,
            units,
            witnesses,
            self.lambda_,
            float(sums[accounts.WEIGHT]),
        )

    def _support(self, domain: Domain, S: Any, by: Any, magnitudes: Any, loss: float) -> float:
        """h_K(−S) in units of `by`; ∞ if K is unbounded and the error of the computed S may hide that it is ∞.

        On a bounded set an error of S moves the bound a little. On an unbounded one it may decide whether there is a
        bound at all: the orthant has h(−S) = 0 if S ≥ 0, and ∞ if one S_j is negative, be it by 1e-400. So along the
        coordinates in which the set has no end the sign of S_j must be beyond doubt. `loss` is Σ weight·ℓ of the
        predictions that S belongs to, and `magnitudes` are those of the features, or None if they were not added up.
        """
        if domain.bounded:
            return float(domain.support(-S / by))
        if len(domain.parts) > 1:
            return min(self._support(part, S, by, magnitudes, loss) for part in domain.parts)
        error, sides = self._error_of(S, magnitudes, loss), domain.sides(S.size)
        doubtful = error > 0.0  # of a set of any other shape, such as a halfspace, S must be exact
        if sides is not None:
            low, high = sides
            doubtful = ((high == math.inf) & (error > S)) | ((low == -math.inf) & (error > -S))
        return math.inf if doubtful.any() else float(domain.support(-S / by))

    def _error_of(self, S: Any, magnitudes: Any, loss: float) -> Any:
        """How far off each S_j = Σ g_t x_tj may be: γ·G·s_j by rounding, and T·2⁻¹⁰⁷⁴·(1 + s_j) by underflow.

        γ is `rounding`, s_j the feature's largest magnitude, and G ≥ Σ|g_t|: |g_t| ≤ weight·L for a Lipschitz loss,
        and g_t² ≤ 2β·weight²·ℓ for a β-smooth one that is never negative, so Σ|g_t| ≤ √(2β·Σweight·Σ(weight·ℓ)). A
        feature that has never occurred has S_j = 0 exactly; of unknown features nothing is known.
        """
        if magnitudes is None:
            return np.full(S.size, math.inf)
        rounds, mass = (float(self.ledger.sums[i]) for i in (accounts.EXAMPLES, accounts.WEIGHT))
        slopes = math.inf if self.loss.lipschitz is None else self.loss.lipschitz * mass
        if self.loss.smooth is not None and self.loss.nonnegative:
            loss += LOST * (rounds + mass)  # of losses that underflowed
            slopes = min(slopes, math.sqrt(2.0 * self.loss.smooth * mass) * math.sqrt(loss))
        s = np.zeros(S.size)
        s[: min(S.size, magnitudes.size)] = magnitudes[: S.size]
        return np.where(s > 0.0, self.rounding * slopes * s + rounds * LOST * (1.0 + s), 0.0)

    def _exact(self, curvature: Curvature, domain: Domain, by: Any) -> float:
        """D4."""
        if not self.unasked:
            return curvature.grown(by.size).at_least(domain, by)
        divisors = self._in_the_columns(domain, by)
        return 0.0 if divisors is None else curvature.grown(divisors.size).at_least(domain, divisors)

    def _in_the_columns(self, domain: Domain, by: Any) -> Any:
        """What each column of the digest is divided by; None where a set cannot be looked at in these columns alone."""
        if self.columns is None:
            return by
        if not domain.keeps_zeros:  # coordinates that never occur count too
            return None
        coordinates = self._coordinates_of_columns()
        inside = (coordinates >= 0) & (coordinates < by.size)
        return np.where(inside, by[np.where(inside, coordinates, 0)], 1.0)

    def underflown(self, domain: Domain, by: Any) -> float:
        """How far off ⟨S, u⟩ may be because products g_t·x_t underflowed; 0 where that is less than any bound shows.

        It matters where features, or the points compared with, are extreme: |u_j| ≤ U/s_j times 5e-324 a round.
        The points are those of a `domain`, their coordinates divided `by` these.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> open_evidence(rue.Hinge()).underflown(rue.Ball(1.0), np.ones(2))
        0.0
        """
        rounds, reach = float(self.ledger.sums[accounts.EXAMPLES]), _reach(domain, by.size)
        lost = rounds * LOST * math.sqrt(by.size) / float(by.min(initial=1.0)) * reach
        return lost if lost > LEAST_PRODUCT else 0.0

    @property
    def rounding(self) -> float:
        """How far off a sum over the rounds may be, relative to the terms (docs/theory.md, end of section 6)."""
        return (float(self.ledger.sums[accounts.EXAMPLES]) + 10.0) * 4e-16

    def divisors(self, units: str, scales: Any, size: int) -> Any:
        """What each coordinate is divided by in these units.

        `units` are `raw` or `largest`; `scales`, if given, replace the magnitudes that were added up; `size` is the
        number of coordinates.

        >>> import numpy as np, rue
        >>> from rue.regret.certificates.evidence import open_evidence
        >>> evidence = open_evidence(rue.Hinge())
        >>> evidence.divisors("raw", None, 3)
        array([1., 1., 1.])
        """
        if units == "raw":
            return np.ones(size)
        if units != "largest":
            raise SettingsError(f"certificate: units must be 'raw' or 'largest', not {shown(units)}.")
        if self.lambda_ > 0.0:
            raise SettingsError("certificate: with a regulariser (λ/2)‖w‖² norms are in raw units: leave units out.")
        largest = self.scales() if scales is None else scales
        if largest is None:
            raise SettingsError("certificate: the features' magnitudes were not kept: learn with units='largest'.")
        by = np.zeros(size)
        by[: min(size, largest.size)] = largest[:size]
        by[by == 0.0] = 1.0  # a feature that never occurred
        return by

    def _regularised(self, domain: Domain, S: Any, height: float) -> float:
        """D2: sup over K of −⟨S, u⟩ − ½B‖u‖², at u* = Π_K(−S/B); `height` is h_K(−S)."""
        B = self.lambda_ * float(self.ledger.sums[accounts.WEIGHT])
        if B == 0.0:
            return height
        size = norm(S)
        free = size / (2.0 * B) * size
        if domain.whole_space:
            return free
        if not np.isfinite(S / B).all():
            return min(free, height)
        u, residual = domain.project_with_residual(-S / B)
        if residual > 0.0 or len(domain.parts) > 1:  # perhaps not the maximum: (B/2)‖·‖² is above its tangent at u
            tangent = 0.5 * B * float(u @ u) + domain.support_near(-S - B * u, u)
            return min(free, height, tangent)
        return float(-(S @ u) - 0.5 * B * (u @ u))

    def _witnessed(self, domain: Domain, by: Any, constant: float, S: Any, magnitudes: Any) -> float:
        """D3: the best lower bound that a witness, or a mixture of them and the learner, gives."""
        assert self.pool is not None
        pool, constants = self.pool, np.append(self.pool.constants(self.rounding), constant)
        constants = constants - self.underflown(domain, by)
        if domain.centred_radius is not None:
            inner = pool.inner(S, by)
            return best_mixture(constants, inner, domain.centred_radius, pool.norms(S, by, inner))
        losses = pool.losses().tolist()
        heights = [self._support(domain, pool.sum_of(i, S.size), by, magnitudes, one) for i, one in enumerate(losses)]
        values = [c - height for c, height in zip(constants[:-1].tolist(), heights, strict=True)]
        return max((value for value in values if math.isfinite(value)), default=-math.inf)


def _in_one_numbering(parts: list[Evidence]) -> list[Evidence]:
    """The same with their features at the same places; the first is the base."""
    base = parts[0]
    if all(part.numbering is base.numbering for part in parts):
        return parts
    intercept = next(part.intercept for part in parts if part.numbering is not None)
    widest = max(part.ledger.S.size for part in parts if part.numbering is None or part is base)
    common = copy.deepcopy(base.numbering) or Numbering(max(0, widest - int(intercept)))
    return [part.renumbered(common, intercept) for part in parts]


def _in_same_columns(parts: list[Evidence]) -> list[Evidence]:
    """The same with digests, and curvature that was not asked for, in the same columns; the first is the base."""
    if all(part.columns is None for part in parts):
        return parts
    common, shift = Numbering(), int(any(part.intercept for part in parts if part.columns is not None))
    moves = []
    for part in parts:
        coordinates = part._coordinates_of_columns()
        to = np.where(coordinates == 0, 0, -1) if shift else np.full(coordinates.size, -1)
        features = coordinates[coordinates >= shift] - shift
        to[coordinates >= shift] = common.places_of(features, adding=True).astype(np.int64) + shift
        moves.append(to)
    size, moved = common.size + shift, []
    for part, to in zip(parts, moves, strict=True):
        own: dict[str, Any] = {"columns": common, "intercept": bool(shift)}
        fits = size <= (NARROW if part.unasked and part.digest is None else DIGESTED)
        if part.digest is not None:
            own["digest"] = part.digest.moved(to, size) if fits else None
        if part.curvature is not None and part.unasked:
            own["curvature"] = part.curvature.moved(to, size) if fits else None
        moved.append(dataclasses.replace(part, **own))
    return moved


def _reach(domain: Domain, size: int) -> float:
    """The largest norm of a point of the domain, not counting coordinates that may be as large as they like."""
    if domain.bounded:
        return largest_norm(domain, size)
    if len(domain.parts) > 1:
        return max(_reach(part, size) for part in domain.parts)
    ends = np.abs(domain.sides(size) or [np.inf])
    return norm(np.where(ends < math.inf, ends, 0.0))


def open_evidence(
    loss: Loss,
    *,
    units: str = "raw",
    witnesses: Any = None,
    curvature: bool = False,
    lambda_: float = 0.0,
    quick: bool = False,
    domain: Domain | None = None,
    narrow: bool = False,
) -> Evidence:
    """With nothing in it yet; `witnesses` is a radius or several, `domain` the set to be asked about, if that is known.

    Nothing can be proved about an unbounded set without the features' largest magnitudes, which are added up for it.

    With `quick` they take at most about a third of a mixture's pass: fewer of them, no digest, and for square loss
    curvature, as long as the stream is narrow: it is exact. With `narrow` there is, as long as the stream is, a digest
    for other losses too.
    """
    if units not in ("raw", "largest"):
        raise SettingsError(f"units must be 'raw' or 'largest', not {shown(units)}.")
    if curvature and not loss.quadratic:
        raise SettingsError(
            f"curvature (D4) is kept for square loss, which is a quadratic; {loss!r} does not declare to be it."
        )
    pool = None if witnesses is None else open_pool(witnesses, units == "largest", quick)
    unbounded = domain is not None and not domain.bounded
    wanted = (units == "largest" and pool is None) or (unbounded and (pool is None or units == "raw"))
    largest = Largest(np.zeros(1)) if wanted else None
    digest = None
    if pool is not None and condenses(loss) and not quick:
        digest = open_digest(pool.radii, units == "largest")
    free = lambda_ == 0.0 and not curvature and digest is None
    digested = free and narrow and not loss.quadratic and condenses(loss)
    unasked = digested or (free and loss.quadratic and (narrow or (quick and pool is not None)))
    if digested:
        digest = open_digest((), True)
    exact = open_curvature() if curvature or (unasked and loss.quadratic) else None
    ledger = open_ledger(windows=open_windows())
    witnessed = None if pool is None else open_witness_windows(pool)
    return Evidence(loss, ledger, largest, pool, exact, lambda_, digest=digest, unasked=unasked, witnessed=witnessed)

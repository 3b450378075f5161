"""`Fleet`: a model for every key, and `fleet`, which learns one in a single pass."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from rue import ledger as accounts
from rue.errors import DataError, SettingsError, shown
from rue.fleets.arena import Arena
from rue.fleets.keys import Keys, as_texts, text_of
from rue.fleets.learning import Pass, as_sparse
from rue.fleets.packing import require_packable
from rue.learners import Learner, keyed, loop
from rue.learners.one_example import complaint
from rue.ledger import Ledger, open_ledger
from rue.regret.certificates.evidence import Evidence
from rue.runs.driver import Driver, LearntPart, default_learner
from rue.runs.predicting import probabilities
from rue.runs.resuming import history_entry
from rue.runs.run import Run
from rue.streams import Block, Labels, ReadOptions, Stream, read, read_like
from rue.streams.block import is_readable, missing_labels
from rue.streams.chunk import BadRow, Chunk
from rue.streams.numbering import Numbering
from rue.streams.settling import settle

if TYPE_CHECKING:
    from rue.reports.fleets import FleetReport

__all__ = ["Fleet", "FleetModels", "FleetPass", "fleet"]

COUNTED = ("keyless", "refused", "skipped", "unlabelled", "missing")
"""What of the rows is counted for all keys together."""


@dataclasses.dataclass(eq=False)
class Fleet:
    """A model for every key, learnt in one pass; `rue.fleet` returns it.

    Each key has learnt its own rows and nothing else: its predictions, weights and certificate are those of
    `rue.learn` on the rows of the key alone, to the last bit, whatever the other keys are.

    >>> import rue
    >>> X, y = rue.census()
    >>> shops = ["north", "south"] * 500
    >>> fleet = rue.fleet(X[:1000], y[:1000], by=shops)
    >>> alone = rue.learn(X[:1000:2], y[:1000:2], maps=None)
    >>> fleet.models["north"].learner == alone.learner, fleet.models["north"].risk == alone.risk
    (True, True)
    """

    learner: Learner
    """What every key begins with."""
    labels: Labels
    """The task, and which class stands for −1 and which for +1."""
    arena: Arena
    """The state of all keys."""
    keys: Keys
    """What the keys are called."""
    by: str | None = None
    """The column that the keys are in; None where they were given as an array."""
    features: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How files or tables become features; empty for arrays and blocks."""
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """What hashed features are called."""
    width: int = 0
    """How many features the data had."""
    sparse: bool = False
    """Whether the data were sparse, or a table: then a key has a place only for the features that its rows had."""
    counts: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    """How many rows had no key (`keyless`), no label (`unlabelled`), were `skipped` or `refused`; `missing` values."""
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What was learnt when."""
    predictions: Any = dataclasses.field(default=None, repr=False)
    """p_t of every row that was read, made before the update; NaN where there is none. None for one that was loaded."""
    seconds: float = 0.0
    """Time spent learning."""
    waiting: float = 0.0
    """Seconds spent waiting for the data."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """What was probably meant otherwise than it was learnt."""

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"Fleet(keys={len(self):,}, examples={self.examples:,}, risk={self.risk:.6g}, learner={self.learner!r})"

    @property
    def models(self) -> FleetModels:
        """The model of each key, by the key: a mapping, whose values are made when they are asked for.

        >>> import rue
        >>> fleet = rue.fleet([[1.0], [2.0], [3.0]], [1, -1, 1], by=[7, 7, 8], learner="ogd")
        >>> list(fleet.models), fleet.models[7].examples
        (['7', '8'], 2)
        """
        return FleetModels(self)

    @property
    def sums(self) -> Any:
        """The sums of the certificates, a row for each key (`rue.ledger.SUMS`)."""
        return self.arena.sums()

    @property
    def examples(self) -> int:
        """How many examples were scored and learnt, of all keys."""
        return int(self.sums[:, accounts.EXAMPLES].sum())

    @property
    def risk(self) -> float:
        """Σ weight·ℓ / Σ weight over all keys: what predicting with the own model of each key has cost on average."""
        lost, mass = self.sums[:, [accounts.LOSS, accounts.WEIGHT]].sum(axis=0) if len(self) else (0.0, 0.0)
        return float(lost / mass) if mass else float("nan")

    @property
    def bytes_per_key(self) -> float:
        """The memory that the state of a key takes on average, without its name."""
        words = sum(group.records.shape[1] * 8 + group.ids.shape[1] * 4 for group in self._groups_of_keys())
        return 28.0 + words / len(self) if len(self) else 0.0

    def _groups_of_keys(self) -> list[Any]:
        return [self.arena.groups[number] for number in self.arena.group[: len(self)].tolist()]

    def run(self, key: Any) -> Run:
        """What `rue.learn` on the rows of one key would leave, but for its predictions and what needs more memory.

        >>> import rue
        >>> fleet = rue.fleet([[1.0], [2.0], [3.0]], [1, -1, 1], by=["a", "a", "b"], learner="ogd")
        >>> fleet.run("a").certificate(1.0).theorem
        'D1'
        """
        number = self.keys.numbers.get(text_of(key))
        if number is None:
            raise DataError(f"there is no model for the key {shown(key)}: none of the rows learnt had it.")
        learner, ledger = self._unpacked(number)
        numbering, left_out, nothing = learner.numbering, int(self.arena.left_out[number]), np.empty(0)
        wide: dict[str, Any] = {} if numbering is None else {"numbering": numbering, "coordinates": learner.coordinates}
        evidence = Evidence(
            learner.loss,
            ledger,
            lambda_=float(getattr(learner.algorithm, "lambda_", 0.0)),
            penalty=learner.penalty,
            intercept=learner.intercept,
            magnitudes=learner.scales_in_places(),
            **wide,
        )
        return Run(
            learner,
            self.labels,
            predictions=nothing,
            y=nothing,
            weights=None,
            evidence=evidence,
            refused=left_out,
            skipped=0,
            seconds=0.0,
            features=self.features,
            names=self.names,
            counts={"refused": left_out},
            history=[{**entry, "examples": int(ledger.sums[accounts.EXAMPLES])} for entry in self.history[-1:]],
        )

    def _unpacked(self, number: int) -> tuple[Learner, Ledger]:
        """The learner of a key, and the sums of its certificate, in arrays as wide as `rue.learn` would have them."""
        record, shape, ids = self.arena.record(number)
        bench, shift = self.arena.bench(shape.places), self.arena.shift
        bench.load(record, shape)
        learner = Learner(self.learner.algorithm, intercept=self.learner.intercept)
        used, width = ids.size + shift, self.width + shift
        numbering, room, at = None, None, np.arange(used)
        if self.sparse:  # place 0 of a numbering, after the intercept's, is that of features never seen
            numbering = Numbering(0, ids)
            room = numbering.size + shift
            at = np.concatenate([np.arange(shift), 1 + shift + np.arange(ids.size)])
        rule, point = learner.algorithm.start(width, room=room)
        ledger = open_ledger(width if room is None else room)
        state = {**point._asdict(), **ledger._asdict()}
        for array in bench.arrays:
            to, view = state[array.name], bench.views[array.name]
            if "coordinate" not in array.axes:
                to[...] = view
            elif bench.tables and array.name not in ("lines", "S"):
                # A row for each feature in the order in which they came, after row 0 for those that never did.
                to[: used + 1] = view[: used + 1]
            else:
                to[at] = view[:used]
        learner.__setstate__({**learner.__getstate__(), "d": self.width, "_rule": rule, "_point": point})
        learner.numbering = numbering
        return learner, ledger

    def predict(self, X: Any, by: Any = None, as_: str = "score") -> Any:
        """Predictions for many examples, each by the model of its key as it stands; they change nothing.

        X is what was learnt: arrays, or tables and files that have the column of the keys. `by` are the keys where
        they are no column, one for each row. A key that is not known gets what a learner predicts that has learnt
        nothing, 0; a row whose key is missing gets NaN. `as_` is `score`, `probability` or `label`, as for
        `Run.predict`.

        >>> import rue
        >>> fleet = rue.fleet([[1.0], [2.0], [3.0]], [1, -1, 1], by=["a", "a", "b"], learner="perceptron")
        >>> fleet.predict([[1.0], [1.0], [1.0]], by=["a", "b", "new"]).round(2)
        array([-1.,  4.,  0.])
        """
        if as_ not in ("score", "probability", "label"):
            raise SettingsError(f"predict: as_ is score, probability or label, not {shown(as_)}.")
        stream = read_like(self.features, X, self.names) if is_readable(X) else read(X)
        own = None if by is None else as_texts(by)
        parts = []
        for chunk in stream.reads(labelled=False):
            if chunk.first_bad:
                raise chunk.error(chunk.first_bad)
            parts.append(self.predict_block(chunk.block, self.keys.of(keys_of(chunk, own, self.by)))[0])
        scores = np.concatenate(parts) if parts else np.empty(0)
        if own is not None and len(own) != scores.size:
            raise DataError(f"there are {scores.size:,} rows and {len(own):,} keys: give one for each row.")
        return self.read_as(scores, as_)

    def read_as(self, scores: Any, as_: str) -> Any:
        """Scores as probabilities or labels; `scores` and `as_` are as for `predict`.

        >>> import numpy as np, rue
        >>> fleet = rue.fleet([[1.0], [2.0]], ["no", "yes"], by=["a", "b"], learner="ogd")
        >>> fleet.read_as(np.array([-0.5, 2.0]), "label").tolist()
        ['no', 'yes']
        """
        if as_ == "score":
            return scores
        if self.labels.task != "classify":
            raise SettingsError(f"predict: as_={as_!r} is for classes: these models predict numbers.")
        if as_ == "label":
            pair = np.array([self.labels.negative, self.labels.positive])
            return pair[(scores > 0.0).astype(int)]
        if not self.learner.loss.log_odds:
            raise SettingsError(f"predict: probabilities need logistic loss, not {self.learner.loss!r}.")
        return probabilities(scores)

    def predict_block(self, block: Block, keys: Any) -> tuple[Any, int]:
        """Predictions for a `block`, whose `keys` have these numbers, and for how many rows the key is not known.

        >>> import rue
        >>> fleet = rue.fleet([[1.0], [2.0]], [1, -1], by=["a", "b"], learner="perceptron")
        >>> fleet.predict_block(rue.Block([[1.0], [1.0]]), fleet.keys.of(["a", "new"]))
        (array([2., 0.]), 1)
        """
        unknown = keys == -2
        block = self._checked(block)
        out, late = np.where(unknown, 0.0, np.nan), np.zeros(len(block), dtype=np.bool_)
        known = keys >= 0
        tried = self.learner.algorithm.tries_frozen
        if tried is not None and known.any():
            late[known] = self.arena.rounds[keys[known]] >= tried
        passing = Pass(self.arena, self.learner.intercept)
        plain = passing.predict(block, np.where(known & ~late, keys, -1), bool(self.learner.algorithm.averaging))
        out = np.where(known & ~late, plain, out)
        for number in np.unique(keys[late]).tolist():
            mine = late & (keys == number)
            out[mine] = self.run(self.keys.names[number]).learner.frozen().predict_many(block.where(mine))
        return out, int(unknown.sum())

    def _checked(self, block: Block) -> Block:
        """A block that can be predicted, or an error about the first row that cannot."""
        if not self.sparse and (block.sparse or block.width != self.width):
            raise DataError(f"the examples have {block.width} features, but the fleet has learnt {self.width}.")
        block = _in_order(block)
        zeros, any_label = np.zeros(len(block)), 1.0
        y = np.full(len(block), any_label)
        status = checked(self.learner, Block(block.X, y, zeros))
        if status.any():
            row = int(np.flatnonzero(status)[0])
            raise DataError(f"row {row + 1}: {why_not(self.learner, block, row, int(status[row]), y, zeros)}")
        return block

    def table(self, radius: float | None = None) -> Any:
        """The report of each key, a pyarrow Table with a row for each: examples, risk, mistakes, and the certificate.

        `risk_at_least` is proved: no linear model of norm at most `radius` had a smaller mean loss on the key's rows
        (docs/theory.md, D1). Without a `radius` it is that of the learner's own ball, or 1. For learners that divide
        features by their largest magnitude the norm is of weights of features so divided.

        >>> import rue
        >>> fleet = rue.fleet([[1.0], [2.0], [3.0]], [1, -1, 1], by=["a", "a", "b"], learner="ogd")
        >>> fleet.table().column_names[:3], fleet.table()["examples"].to_pylist()
        (['key', 'examples', 'risk'], [2, 1])
        """
        import pyarrow as pa

        from rue.fleets.table import columns_of

        return pa.table(columns_of(self, radius))

    def report(self, radius: float | None = None) -> FleetReport:
        """All that `rue learn --by` prints, for people, and in `fields` what `--report` writes.

        `radius` is as for `table`.

        >>> import rue
        >>> fleet = rue.fleet([[1.0], [2.0], [3.0]], [1, -1, 1], by=["a", "a", "b"], learner="ogd")
        >>> fleet.report().fields["keys"]
        2
        """
        from rue.reports.fleets import report_of_fleet

        return report_of_fleet(self, radius)

    def save(self, path: Any) -> None:
        """Write all models to the file `path`, whole or not at all; `Fleet.load` and `rue predict` read it.

        >>> import rue, tempfile, os
        >>> fleet = rue.fleet([[1.0], [2.0], [3.0]], [1, -1, 1], by=["a", "a", "b"], learner="ogd")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fleet.save(os.path.join(folder, "fleet.rue"))
        ...     again = rue.Fleet.load(os.path.join(folder, "fleet.rue"))
        >>> again.models["a"].learner == fleet.models["a"].learner
        True
        """
        from rue.fleets.file import save_fleet

        save_fleet(self, path)

    @classmethod
    def load(cls, path: Any) -> Fleet:
        """Read what `save` or `rue learn --by … --model` wrote to a `path`; damage is one sentence (`DataError`).

        >>> import rue
        >>> rue.Fleet.load("/nowhere/fleet.rue")
        Traceback (most recent call last):
        rue.errors.DataError: /nowhere/fleet.rue cannot be read: no such file or directory.
        """
        from rue.fleets.file import load_fleet

        return load_fleet(path)


class FleetModels(Mapping[Any, Run]):
    """The models of a fleet by their keys; each is made when it is asked for, as `Fleet.run` makes it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def __getitem__(self, key: Any) -> Run:
        if key not in self:
            raise KeyError(key)
        return self._fleet.run(key)

    def __contains__(self, key: object) -> bool:
        return text_of(key) in self._fleet.keys.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._fleet.keys.names)

    def __len__(self) -> int:
        return len(self._fleet)


class FleetPass:
    """Takes a fleet through a stream: `run` learns it chunk by chunk, and `fleet` has what was learnt.

    `own` are the keys of all rows where they are no column of the data.
    """

    def __init__(self, driver: Driver, by: str | None, own: Any = None, workers: int = 1) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise SettingsError(f"workers must be a number of threads, 1 or more, not {shown(workers)}.")
        self.driver, self.by, self.own, self.workers = driver, by, own, workers
        self.fleet: Fleet | None = None
        self.counts = dict.fromkeys(COUNTED, 0)
        self.clock: Callable[[], float] = time.perf_counter
        self.seconds = 0.0
        """Time spent putting rows together by key and learning them, by `clock`."""
        self.waiting = 0.0
        self._pass: Pass | None = None
        if driver.learner is not None:
            require_packable(driver.learner.algorithm)
            if driver.learner.lags is not None:
                raise SettingsError("fleet: last labels as features (lags) are for one model: learn without them.")

    @classmethod
    def resume(cls, fleet: Fleet, bad: str, own: Any = None, workers: int = 1) -> FleetPass:
        """Go on with a fleet, itself, not a copy."""
        driver = Driver(fleet.learner, bad=bad)
        driver.labels = fleet.labels
        learning = cls(driver, fleet.by, own, workers)
        learning.fleet, learning.counts = fleet, fleet.counts
        return learning

    def run(self, chunks: Iterable[Chunk]) -> Iterator[LearntPart]:
        """Learn what is read, and hand out each part; ends after a row that stops the run."""
        driver = self.driver
        if driver.labels is None:
            task = driver.task if driver.learner is None else driver.learner.loss.task
            chunks = settle(chunks, self._begin, task, driver.positive, stops_at_bad=not driver.most_skipped)
        started = time.perf_counter()
        try:
            for chunk in chunks:
                self.waiting += time.perf_counter() - started
                part = self._learn_chunk(chunk)
                yield part
                if part.bad is not None:
                    return
                started = time.perf_counter()
        finally:
            if self._pass is not None:
                self._pass.close()
            if self.fleet is not None:
                self.fleet.seconds, self.fleet.waiting = self.seconds, self.waiting

    def _begin(self, y: Any) -> None:
        """Settle the task, and with it the learner, by the first labels."""
        driver = self.driver
        if driver.learner is None and driver.labels is None:
            driver.begin(y)
            if driver.labels is not None and driver.labels.task == "multiclass":
                raise SettingsError(
                    "a model for every key learns numbers or two classes, and here are more: learn the classes one by "
                    "one, or without --by."
                )
        driver.begin(y)

    def _learn_chunk(self, chunk: Chunk) -> LearntPart:
        driver = self.driver
        bad = None if driver.most_skipped else chunk.first_bad
        block = chunk.block if bad is None else chunk.block.first(bad.place)
        keys = keys_of(chunk, self.own, self.by)[: len(block)]
        began = self.clock()
        predictions, stopped = self._learn(block, keys) if len(block) else (np.empty(0), None)
        self.seconds += self.clock() - began
        if chunk.missing is not None:
            self.counts["missing"] += int(chunk.missing[: predictions.size].sum())
        if stopped is not None:
            bad = BadRow(stopped[0], int(chunk.lines[stopped[0]]), "", stopped[1])
        elif bad is None:
            self.counts["skipped"] += len(chunk.bad)
        return LearntPart(chunk, block.first(predictions.size), predictions, bad)

    def _learn(self, block: Block, texts: Any) -> tuple[Any, tuple[int, str] | None]:
        """Learn a block: its predictions, and which row stops the run and why, if one does."""
        if block.y is None:
            raise DataError("there are no labels: give y.")
        if block.bins:
            raise SettingsError("fleet: bins (columns put into bins by rank) are for one model: leave bins out.")
        self._begin(block.y)
        driver, missing = self.driver, missing_labels(block.y)
        if driver.labels is None:
            self.counts["unlabelled"] += len(block)
            return np.full(len(block), np.nan), None
        driver.labels = driver.labels.extended(block.y)
        fleet = self._opened(block)
        block = _in_order(block)
        encoded = Block(block.X, *_labels_and_weights(driver, block))
        status, stopped = checked(driver.learner, encoded), None
        if status.any():
            bad = np.flatnonzero(status)
            if not driver.most_skipped:
                row = int(bad[0])
                stopped = row, self._why(block, encoded, row, int(status[row]))
                encoded, status, texts = encoded.first(row), status[:row], texts[:row]
                missing = None if missing is None else missing[:row]
        keys = fleet.keys.of(texts, adding=True)
        fleet.arena.admit(len(fleet.keys))
        self.counts["keyless"] += int((keys == -1).sum())
        self.counts["skipped"] += int(((status != 0) & (keys >= 0)).sum())
        np.add.at(fleet.arena.left_out, keys[(status != 0) & (keys >= 0)], 1)
        good = np.where(status == 0, keys, -1)
        if self._pass is None:
            self._pass = Pass(fleet.arena, driver.learner.intercept, self.workers)
        out = self._pass.learn(encoded, good) if len(encoded) else np.empty(0)
        refused = (good >= 0) & np.isnan(out)
        self.counts["refused"] += int(refused.sum())
        np.add.at(fleet.arena.left_out, good[refused], 1)
        if missing is not None:
            self.counts["unlabelled"] += int((missing & np.isfinite(out)).sum())
        return out, stopped

    def _why(self, block: Block, encoded: Block, row: int, status: int) -> str:
        labels = self.driver.labels
        if labels is not None and labels.task != "regress" and np.isnan(encoded.y[row]):
            return labels.complaint(block.y[row])
        return why_not(self.driver.learner, encoded, row, status, encoded.labels(), encoded.column_of_weights())

    def _opened(self, block: Block) -> Fleet:
        """The fleet, begun with the first block."""
        driver, labels = self.driver, self.driver.labels
        assert labels is not None
        if self.fleet is None:
            if driver.learner is None:
                driver.learner = default_learner(
                    labels.task, maps=None, intercept=driver.intercept, budget=driver.budget
                )
            require_packable(driver.learner.algorithm)
            template = Learner(driver.learner.algorithm, intercept=driver.learner.intercept)
            if driver.learner.t:
                raise SettingsError("fleet: every key begins afresh: give a learner that has not learnt anything yet.")
            self.fleet = Fleet(template, labels, Arena(template), Keys(), self.by)
            self.fleet.counts, self.fleet.sparse = self.counts, block.sparse
            self.fleet.width = block.width
        found = self.fleet
        found.labels = labels
        if block.sparse != found.sparse or (not block.sparse and block.width != found.width):
            raise DataError(f"the examples have {block.width} features, but those before had {found.width}.")
        found.width = max(found.width, block.width)
        return found


def keys_of(chunk: Chunk, own: Any, by: str | None) -> Any:
    """The key of each good row of a chunk, as text: from an array given beside the data, or from their column."""
    if own is not None:
        lines = np.asarray(chunk.lines) - 1
        if lines.size and int(lines[-1]) >= len(own):
            raise DataError(f"there are more rows than keys, which are {len(own):,}: give one for each row.")
        if lines.size and lines[-1] - lines[0] + 1 == lines.size:
            return own.slice(int(lines[0]), lines.size)
        return own.take(lines)
    if chunk.tags is None:
        where = f"{chunk.name} has" if chunk.name else "the data have"
        if by is None:
            raise DataError("the models were learnt with keys that are no column: give by=, a key for each row.")
        raise DataError(f"{where} no column {shown(by)}, which says by which model a row is predicted.")
    return list(chunk.tags)


def checked(learner: Learner, block: Block) -> Any:
    """What is wrong with each row, as `rue.learners.loop` calls it; 0 where nothing is."""
    status = np.zeros(len(block), dtype=np.int64)
    rows = as_sparse(block).rows(learner.intercept)
    keyed.check_rows(learner.loss, rows, block.labels(), block.column_of_weights(), status)
    return status


def why_not(learner: Learner, block: Block, row: int, status: int, y: Any, weights: Any) -> str:
    """What to say about a row that cannot be learnt."""
    rows: Any = block.rows(learner.intercept)
    values = np.empty(0)
    if status != loop.BROKEN:
        one = rows.row(row)
        values = rows.values[int(one.lo) : int(one.hi)]
    return complaint(status, learner, values, y[row], weights[row] if weights.size else 1.0)


def _in_order(block: Block) -> Block:
    """The block, with the features of each row in order, where they are not."""
    if not block.sparse or not len(block):
        return block
    rows: Any = block.rows(False)
    falls = np.flatnonzero(rows.indices[1:] <= rows.indices[:-1]) + 1
    inside = np.isin(falls, rows.indptr, invert=True)
    return block.in_order() if inside.any() else block


def _labels_and_weights(driver: Driver, block: Block) -> tuple[Any, Any]:
    """Labels as the loss takes them, and weights; a row without a label has any label, and weight 0."""
    labels: Any = driver.labels
    y, missing = labels.encode(block.y), block.unlabelled
    if missing is None:
        return y, block.weights
    any_label = next((label for label in (1.0, 0.0, *y[~missing][:1]) if driver.learner.loss.accepts(label)), 1.0)
    weights = np.ones(len(block)) if block.weights is None else np.array(block.weights, dtype=np.float64)
    return np.where(missing, any_label, y), np.where(missing, 0.0, weights)


def fleet(
    X: Any,
    y: Any = None,
    *,
    by: Any,
    learner: Learner | Fleet | str | None = None,
    weights: Any = None,
    bad: str = "stop",
    task: str = "auto",
    positive: Any = None,
    workers: int = 1,
    record: Callable[[LearntPart], None] | None = None,
    **how: Unpack[ReadOptions],
) -> Fleet:
    """Learn a model for every key in one pass: for every shop, sensor, customer (docs/jobs/fleet.md).

    `by` names the column of the keys, or has a key for each row of arrays or of one table. Keys may be numbers, words
    or dates, and come in any order; a row whose key is missing is counted and not learnt. Every key has a learner of
    its own, which begins with the key's first row, and each example is predicted by it before it is learnt. What a key
    learns is what `rue.learn` learns from the key's rows alone, to the last bit. A key takes a few kilobytes, with OGD
    some hundred bytes.

    `learner` is by default the linear mixture, which has nothing to tune; a fleet given is copied and goes on. `X`,
    `y`, `weights`, `bad`, `task`, `positive` and the rest are as for `rue.learn`; what classes mean is the same for all
    keys. `workers` is how many threads learn side by side, which changes the time and nothing else. `record` is called
    with each part of the stream as it was learnt, and then the fleet's `predictions` are not collected.

    >>> import rue
    >>> rows = [
    ...     {"shop": "a", "price": 1.0, "sold": 9.0},
    ...     {"shop": "b", "price": 1.0, "sold": 2.0},
    ...     {"shop": None, "price": 2.0, "sold": 8.0},
    ... ]
    >>> shops = rue.fleet(rows, "sold", by="shop")
    >>> len(shops), shops.examples, shops.counts["keyless"]
    (2, 2, 1)
    """
    column = isinstance(by, str | int) and not isinstance(by, bool)
    if column and not is_readable(X):
        raise SettingsError(f"by={shown(by)} names a column, and X has none: give a key for each row.")
    if column and "id" in how:
        raise SettingsError("fleet: leave id out: the rows are told apart by their keys.")
    own = None if column else as_texts(by)
    if own is not None and isinstance(X, list | tuple) and is_readable(X) and not isinstance(X[0], dict) and len(X) > 1:
        raise SettingsError("by= is a key for each row of one table; of several files or tables name the column.")
    options: dict[str, Any] = {**how, "id": by} if column else dict(how)
    before = 0
    if isinstance(learner, Fleet):
        if column and learner.by != str(by):
            raise SettingsError(f"by={shown(by)} contradicts the fleet, whose keys are {shown(learner.by)}.")
        learning = FleetPass.resume(copy.deepcopy(learner), bad, own, workers)
        stream = read_like(learner.features, X, learner.names, y=y) if is_readable(X) else read(X, y, weights)
        before = learner.examples
    else:
        driver = Driver(learner, task=task, bad=bad, positive=positive, maps=None)
        learning = FleetPass(driver, str(by) if column else None, own, workers)
        stream = read(X, y, weights, **options)
        if y is not None and not isinstance(y, str | int):
            learning._begin(y)
    predictions = _learn_all(learning, stream, record)
    if learning.fleet is None:
        why = "every label is missing" if learning.counts["unlabelled"] else "there are no examples"
        raise DataError(f"there is nothing to learn: {why}.")
    result = learning.fleet
    if own is not None and predictions is not None and len(own) != predictions.size:
        raise DataError(f"there are {predictions.size:,} rows and {len(own):,} keys: give one for each row.")
    result.features, result.names = stream.describe(), dict(stream.names.of)
    result.notes = [*learning.driver.notes, *stream.warnings]
    result.history = [*result.history, history_entry(result.examples - before)]
    result.predictions = predictions
    return result


def _learn_all(learning: FleetPass, stream: Stream, record: Callable[[LearntPart], None] | None) -> Any:
    """Learn a stream to its end; the predictions of all rows, or None if `record` is given each part instead."""
    found: list[Any] = []
    for part in learning.run(stream.reads()):
        if record is not None:
            record(part)
        else:
            skipped = [row.place for row in part.skipped]
            found.append(np.insert(part.predictions, skipped, np.nan) if skipped else part.predictions)
        part.require_good()
    if record is not None:
        return None
    return np.concatenate(found) if found else np.empty(0)

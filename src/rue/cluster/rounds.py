"""Rounds: all shards take a step from one state, and what they have learnt is merged and committed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rue.cluster.advancing import Cursor, merged
from rue.cluster.executors import Executor, Outcome, Place
from rue.errors import DataError, RueError, SettingsError
from rue.models.file import Model, load_model, to_bytes
from rue.models.schema import CLUSTER, require
from rue.streams.units import digest_of

__all__ = ["FIRST_ROUND", "ROUND", "Standing", "resume", "run"]

FIRST_ROUND = 1024
"""Examples of a shard in the first round; in each round after it twice as many as in the one before, up to `ROUND`."""
ROUND = 2**18


@dataclasses.dataclass(frozen=True)
class Standing:
    """How far a run has come: what a commit holds."""

    model: Model
    """With the cursors and the round in its `position`."""
    places: tuple[Place, ...]
    learnt: tuple[tuple[int, float, float], ...]
    """For each shard the examples it has learnt, the sum of their losses, and that of their weights."""
    round: int = 0
    """How many rounds there were."""
    most: int = ROUND
    """Examples of a shard in a round at most."""
    processors: tuple[str, ...] = ()
    """The kinds of processors that have learnt."""
    digest: str = ""
    """Of the units."""
    units: tuple[int, ...] = ()
    """How many each shard has."""

    @classmethod
    def start(cls, model: Model, cursors: Sequence[Cursor], most: int) -> Standing:
        """Before the first round."""
        if most < 1:
            raise SettingsError(f"round: a whole number of examples from 1 on, not {most}.")
        places = tuple(Place(cursor.shard, cursor.unit, cursor.row) for cursor in cursors)
        units = tuple(len(cursor.units) for cursor in cursors)
        digest = digest_of(_all(cursors))
        return cls(model, places, ((0, 0.0, 0.0),) * len(places), most=most, digest=digest, units=units)

    @property
    def done(self) -> bool:
        """Whether all shards are at the end of their data."""
        return all(place.unit >= units for place, units in zip(self.places, self.units, strict=True))

    @property
    def size(self) -> int:
        """How many examples each shard has in the next round."""
        return min(self.most, FIRST_ROUND << min(self.round, 40))

    def committed(self) -> Model:
        """The model, with what it takes to go on."""
        return dataclasses.replace(
            self.model,
            position={
                "cluster": {
                    "places": [list(place) for place in self.places],
                    "learnt": [list(one) for one in self.learnt],
                    "round": self.round,
                    "most": self.most,
                    "processors": list(self.processors),
                    "units": self.digest,
                }
            },
        )


def _all(cursors: Sequence[Cursor]) -> tuple[Any, ...]:
    """The units of all shards, in the order in which they were dealt out."""
    longest = max(len(cursor.units) for cursor in cursors)
    return tuple(cursor.units[i] for i in range(longest) for cursor in cursors if i < len(cursor.units))


def resume(path: str, cursors: Sequence[Cursor], most: int | None) -> Standing:
    """How far a run had come that has left a commit; refuses other data, or another number of shards."""
    model = load_model(path, cursors[0].known)
    at = (model.position or {}).get("cluster")
    if not isinstance(at, dict):
        raise SettingsError(f"{path} is no commit of a run over shards: leave shards (--shards) out to go on with it.")
    try:
        require(at, CLUSTER, "position", needed=CLUSTER)
        if len(at["places"]) != len(at["learnt"]):
            raise DataError("its shards do not fit together")
    except DataError as error:
        raise DataError(f"{path} is damaged: {error}.") from None
    if len(at["places"]) != len(cursors):
        raise SettingsError(f"{path} was stopped with {len(at['places'])} shards, not {len(cursors)}: give as many.")
    if most is not None and most != at["most"]:
        raise SettingsError(f"{path} was started with rounds of {at['most']} examples: leave round (--round) out.")
    if at["units"] != digest_of(_all(cursors)):
        raise DataError(
            f"{path} was stopped in other data, or they have changed since: give the same, or learn afresh."
        )
    return Standing(
        model,
        tuple(Place(*place) for place in at["places"]),
        tuple((int(examples), float(loss), float(weight)) for examples, loss, weight in at["learnt"]),
        at["round"],
        at["most"],
        tuple(at["processors"]),
        at["units"],
        tuple(len(cursor.units) for cursor in cursors),
    )


def run(
    standing: Standing,
    cursors: Sequence[Cursor],
    executor: Executor,
    commit: Callable[[bytes], None] = lambda content: None,
    shown: Callable[[Outcome], None] = lambda outcome: None,
) -> Iterator[Standing]:
    """Rounds up to the end of the data, each committed before it is handed out; `shown` is given every step's outcome.

    The executor has begun with the same cursors.

    An unusable example ends the run with an error; what was handed out before it stands.
    """
    state = to_bytes(standing.committed())
    while not standing.done:
        todo = [place for place in standing.places if place.unit < standing.units[place.shard]]
        outcomes = {}
        for outcome in executor.advance(state, todo, standing.size):
            shown(outcome)
            outcomes[outcome.place.shard] = outcome
        _require_good([outcomes[shard] for shard in sorted(outcomes)])
        standing = _merged(standing, state, outcomes, cursors[0].known)
        state = to_bytes(standing.committed())
        commit(state)
        yield standing


def _require_good(outcomes: Sequence[Outcome]) -> None:
    """Raise what went wrong, of several shards that of the first."""
    for outcome in outcomes:
        if outcome.crash:
            raise RueError(f"shard {outcome.place.shard} failed:\n{outcome.crash}")
        if outcome.refusal:
            raise DataError(outcome.refusal)


def _merged(standing: Standing, base: bytes, outcomes: dict[int, Outcome], known: tuple[type, ...]) -> Standing:
    """How far the run has come with what the shards of a round have learnt."""
    in_order = [outcomes[shard] for shard in sorted(outcomes)]
    places, learnt, processors = list(standing.places), list(standing.learnt), dict.fromkeys(standing.processors)
    for outcome in in_order:
        assert outcome.learnt is not None
        shard, new = outcome.place.shard, outcome.learnt
        examples, loss, weight = learnt[shard]
        places[shard], learnt[shard] = outcome.place, (examples + new.examples, loss + new.loss, weight + new.weight)
        processors |= {new.processor: None}
    return dataclasses.replace(
        standing,
        model=merged(base, [outcome.state for outcome in in_order], known),
        places=tuple(places),
        learnt=tuple(learnt),
        round=standing.round + 1,
        processors=tuple(processors),
    )

"""Learning on more than one machine: shards of the data that learn side by side and are merged after every round.

How many shards there are decides the result; how many workers learn them decides only how long it takes. `advance` is
the step of one shard, a function of the bytes of a model and of a place in the data, and `merge` puts shards together.
`rounds` repeats the two to the end of the data and commits every round, on an executor: `executors` has the one in
this process, `local` one with a process for each core, whose other end is `worker`, `on_ray` one on Ray. `sharded` is
`learn` and what it returns.

The page "More than one machine" shows how it is used; docs/theory.md, section 7, has what it costs.
"""

from __future__ import annotations

from rue.cluster.advancing import Cursor, Part, advance, begin, cursors, merge
from rue.cluster.sharded import Sharded, learn

__all__ = ["Cursor", "Part", "Sharded", "advance", "begin", "cursors", "learn", "merge"]

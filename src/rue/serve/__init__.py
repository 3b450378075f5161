"""The service: `rue serve FOLDER` learns while it answers, and what it has acknowledged is on disk.

`log` is the record of what happened, in order, in SQLite; `records` says what a record is. `fold` makes models of
records: `model` is one of them, `examples` how its features are read, `driver` how it is scored by what was served.
`snapshots` stores the state of the fold, `service` is the one thread that writes, `routes` answers requests, `server`
runs all of it, `replaying` does the same without a server.
"""

from __future__ import annotations

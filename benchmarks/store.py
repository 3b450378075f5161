"""What the peers reached, measured in child processes and stored in docs/peers.json for later runs.

`python -m benchmarks.store [--missing] [SECONDS [STREAM…]]` measures all peers anew, or those of which nothing is
stored, two families at a time, each peer for at most so many processor seconds a stream.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.peers import FAMILIES
from benchmarks.tables import NAMES

ROOT = Path(__file__).parents[1]
STORE = ROOT / "docs" / "peers.json"
SECONDS = 100.0
_lock = Lock()


def stored() -> dict[str, dict[str, Any]]:
    """By stream and peer: a record, or words where there is none."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def measure(name: str, family: str, seconds: float = SECONDS) -> None:
    """Measure the peers of a family on a stream in a child process, and store what they reach."""
    python = os.environ.get("RUE_PEERS", sys.executable)
    command = [python, "-W", "ignore", "-m", "benchmarks.peers", name, family, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {line["peer"]: line["found"] for line in lines}
    if done.returncode or not found:
        found[family] = f"stopped: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"[:200]
    for record in found.values():
        if isinstance(record, dict):
            record |= {"limit": seconds, "date": str(date.today())}
    with _lock:
        store = stored()
        others = {peer: old for peer, old in store.get(name, {}).items() if peer.split()[0] != family}
        store[name] = others | found
        ordered = {stream: store[stream] for stream in NAMES if stream in store}
        STORE.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    print(f"  {name}, {family}: " + "; ".join(f"{peer} {_short(found[peer])}" for peer in found), flush=True)


def _short(record: Any) -> str:
    return record if isinstance(record, str) else f"{record['loss']:.4g} ({record['rows']:,} rows)"


def measure_all(names: list[str] | None = None, seconds: float = SECONDS, missing: bool = False) -> None:
    """Measure all peers, two families at a time; or only those families of which nothing is stored for a stream."""
    store = stored() if missing else {}
    with ThreadPoolExecutor(2) as workers:
        jobs = [
            workers.submit(measure, name, family, seconds)
            for name in names or NAMES
            for family in FAMILIES
            if not any(peer.split()[0] == family for peer in store.get(name, {}))
        ]
        for job in jobs:
            job.result()


def main(arguments: list[str]) -> None:
    """Measure all peers on the streams named, or on all."""
    missing = "--missing" in arguments
    seconds, *names = [word for word in arguments if word != "--missing"] or [str(SECONDS)]
    measure_all(names, float(seconds), missing)


if __name__ == "__main__":
    main(sys.argv[1:])

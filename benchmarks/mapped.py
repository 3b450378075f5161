"""What the default learner costs beyond the linear mixture: processor time, rows a second, memory."""

from __future__ import annotations

import sys
import tempfile

from benchmarks import store
from benchmarks.data import SHARED
from benchmarks.forests import learn, linear
from benchmarks.streams import environment, in_turns
from benchmarks.tables import REAL, table

ROUNDS = 3
COLUMNS = {"elec2": 20, "bike": 20, "flights": 20, "covtype": 64}
"""The streams that are tables: they have at most so many columns."""
WANTED = {20: 50_000, 64: 30_000}
FOREST = "CapyMOA ARF"


def cost_rows() -> list[tuple[str, float, str]]:
    """Processor time, reading counted, in turns with the linear mixture's; the least of each counts."""
    rows, peers = [], store.stored()
    for name in REAL:
        if (stream := table(name)) is None:
            continue
        times: dict[str, list[float]] = {"default": [], "linear": []}
        for _ in range(ROUNDS):
            times["default"].append(learn(name, stream).seconds)
            times["linear"].append(learn(name, stream, linear(stream)).seconds)
        least = {how: min(seconds) for how, seconds in times.items()}
        print(f"  {name}: {least['default']:.2f} s of processors, linear {least['linear']:.2f} s", flush=True)
        wanted = "≤ 1.15" if name == "toxicity" else "≤ 6"
        rows.append((f"{name}: processor time, times the linear mixture's", least["default"] / least["linear"], wanted))
        if most := COLUMNS.get(name):
            rate = stream.y.size / least["default"]
            rows.append((f"{name}: thousand rows a second and core", rate / 1000.0, f"≥ {WANTED[most] // 1000}"))
            forest = peers.get(name, {}).get(FOREST)
            if isinstance(forest, dict):
                theirs = forest["rows"] / forest["seconds"]
                rows.append((f"{name}: rows a second and core, times {FOREST}'s", rate / theirs, "≥ 10"))
    return rows


def memory_rows() -> list[tuple[str, float, str]]:
    """The most that `rue learn FILE` holds beyond what it holds with the linear mixture."""
    rows = []
    for name, (file, options) in REAL.items():
        if not (SHARED / file).exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "rue", "learn", str(SHARED / file), "--quiet"]
            if "target" in options:
                command += ["--target", options["target"]]
            if "category" in options:
                command += ["--category", ",".join(options["category"])]
            loss = "square" if name == "bike" else "logistic"
            commands = {"default": command, "linear": [*command, "--learner", "mixture", "--loss", loss]}
            spent = in_turns(commands, environment(folder), rounds=2)
        beyond = spent["default"].memory - spent["linear"].memory
        rows.append((f"{name}: memory beyond the linear mixture's, in MB", beyond, "≤ 80"))
    return rows

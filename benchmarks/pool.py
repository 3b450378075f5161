"""The default learner's cost: its members against one alone, the certificate, witnesses, and a whole file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import rue
from benchmarks import data, streams
from benchmarks.clock import best_of
from rue.ledger import Silent, open_ledger
from rue.regret.certificates.evidence import open_evidence
from rue.runs.accounts import LARGE
from rue.streams import blocks
from rue.threads import helpers

ROWS, PIECE = 60_000, 8_192
MEMBERS = 48


def side_by_side() -> list[tuple[str, float, str]]:
    """48 members in one pass against one `AdaGrad` alone, both without accounts; and with the certificate.

    As `learn` has it: piece by piece, S of a wide stream added up beside the learner, by a helper.
    """
    rows = []
    for name in ("text_like", "toxicity", "a9a", "covtype", "elec2"):
        if (stream := getattr(data, name)()) is None:
            continue
        times = _times(stream[0][:ROWS], np.where(np.asarray(stream[1][:ROWS]) > 0, 1.0, -1.0))
        print(f"  {name}: " + ", ".join(f"{what} {seconds * 1e3:.0f} ms" for what, seconds in times.items()))
        ratio, share = times["all"] / times["one"], 100.0 * (times["certified"] / times["all"] - 1.0)
        rows.append((f"{name}: {MEMBERS} members, times one AdaGrad alone", ratio, f"≤ {MEMBERS // 3}"))
        rows.append((f"{name}: the certificate on top of the pool, in %", share, "≤ 10"))
    return rows


def _times(X: Any, y: Any) -> dict[str, float]:
    pieces, d = [block.part(k, k + PIECE) for block in blocks(X, y) for k in range(0, len(block), PIECE)], X.shape[1]

    def run(learner: Any, ledger: Any) -> None:
        for block in pieces:
            learner.run_block(block, ledger, np.empty(len(block)), 0)

    def certified() -> None:
        learner, evidence = rue.Mixture(d=d), open_evidence(rue.Logistic())
        if d < LARGE:
            return run(learner, open_ledger(d + 1))
        with helpers(1, "beside") as beside:
            seen = []
            for block in pieces:
                out = np.empty(len(block))
                learner.run_block(block, evidence.ledger._replace(adds_gradients=False), out, 0)
                seen.append(beside.submit(evidence.watch, block, out, True, d + 1, apart=True))
            for block_seen in seen:
                block_seen.result()
        return None

    return best_of(
        {
            "one": lambda: run(rue.AdaGrad("logistic", d=d), Silent(0)),
            "all": lambda: run(rue.Mixture(d=d), Silent(0)),
            "certified": certified,
        },
        rounds=15,
    )


def with_witnesses() -> list[tuple[str, float, str]]:
    """`rue.learn` with witnesses at 1, 10 and 100, as the command line keeps them, against `rue.learn` without."""
    from rue.runs.driver import Driver

    rows = []
    for name in ("text_like", "toxicity", "a9a", "covtype", "elec2"):
        if (stream := getattr(data, name)()) is None:
            continue
        pieces = list(blocks(stream[0][:ROWS], stream[1][:ROWS]))

        def run(radii: tuple[float, ...] | None, pieces: list[Any] = pieces) -> None:
            driver = Driver(witnesses=radii, units="largest", quick=True)
            for block in pieces:
                driver.learn(block)

        times = best_of({"without": lambda: run(None), "with": lambda: run((1.0, 10.0, 100.0))})
        share = 100.0 * (times["with"] / times["without"] - 1.0)
        rows.append((f"{name}: witnesses on top of the pool, in %", share, "≤ 33"))
    return rows


def whole_file(size: int = 1000) -> list[tuple[str, float, str]]:
    """`rue learn FILE --linear` against `vw FILE` with none but the loss, by the clock."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        env = streams.environment(folder)
        for kind, lines in (("numbers", streams.numeric("vw")), ("words", streams.wordy())):
            path = streams.write(Path(folder) / "text.vw", lines, size * streams.MB)
            vw = ["-m", "vowpalwabbit", "--loss_function", "logistic", "-b", "20", "--quiet", "-d", path]
            commands = {
                f"the pool, {kind}": [sys.executable, "-m", "rue", "learn", path, "--linear", "--quiet"],
                f"vw, {kind}": [sys.executable, *vw],
            }
            spent = streams.in_turns(commands, env)
            ratio = spent[f"the pool, {kind}"].wall / spent[f"vw, {kind}"].wall
            rows.append((f"{size} MB of {kind}: the whole pool, times VW's default learner", ratio, "≤ 1"))
    return rows

"""`python -m benchmarks [PART …]` measures parts, such as engine, quality, forests or growth, or all.

Each part's figures go to docs/benchmarks.json with the day, the machine and the versions, and docs/speed.md is rendered
from that file.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import (
    cluster,
    engine,
    first,
    fleet,
    footprint,
    forests,
    frozen,
    growth,
    intervals,
    mapped,
    noregret,
    pool,
    quality,
    regret,
    serve,
    small,
    streams,
    windows,
)

DOCS = Path(__file__).parents[1] / "docs"
PAGE, RESULTS = DOCS / "speed.md", DOCS / "benchmarks.json"
_PEERS = ("numba", "numpy", "scipy", "scikit-learn", "river", "vowpalwabbit", "pyarrow")
PARTS = {
    "engine": (engine.passes, engine.one_by_one, engine.width, engine.cold_start),
    "first": (first.first_rows,),
    "small": (small.small_rows,),
    "regret": (regret.certificate_rows, regret.comparator_rows, regret.witness_rows),
    "streams": (streams.against_vw, streams.against_pyarrow, streams.memory, streams.cold_start),
    "footprint": (footprint.footprint_rows,),
    "pool": (pool.side_by_side, pool.with_witnesses, pool.whole_file),
    "quality": (quality.quality_rows, quality.batch_rows),
    "forests": (forests.forest_rows,),
    "noregret": (noregret.excess_rows,),
    "mapped": (mapped.cost_rows, mapped.memory_rows),
    "fleet": (fleet.fleet_rows,),
    "frozen": (frozen.frozen_rows,),
    "intervals": (intervals.interval_rows,),
    "windows": (windows.window_rows, windows.proof_rows, windows.loss_rows),
    "serve": (serve.single_rows, serve.batch_rows, serve.daemon_rows),
    "growth": (growth.growth_rows,),
    "cluster": (cluster.quality_rows,),
    "cluster-speed": (cluster.speed_rows, cluster.ray_rows),
}
TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = {"forests": forests.forest_table}
WORDS = {
    "engine": """## The engine

The sparse stream is generated to be like RCV1 (200,000 rows, 47,236 columns, Zipf); covtype is dense, 581,012 × 54. The
*bare pass* does nothing but the sparse dot products. `SGDClassifier.partial_fit(shuffle=False)` takes the same steps
η/√t and has its default ℓ2 penalty where rue projects onto a ball.""",
    "first": """## A first command

Three rows, learnt by a wheel that was just installed into a new environment, with an empty cache: the start of Python
and all imports counted. The wheel carries the kernels of the common first uses, compiled for the processors of the
level x86-64-v3; without them they are compiled on the spot, once for a machine.""",
    "small": """## Small arrays

`rue.learn` of arrays that fit into the cache, in units of the learner's own pass over them (`Learner.run`), which
predicts and updates and does nothing else. The difference is baselines, metrics, the course of a mixture's members,
and the evidence for certificates, of a mixture the strong one (D3), which is added up by a helper on another core.""",
    "regret": """## Regret

D1 is measured on the sparse stream above, in the compiled loop. *Hindsight* is `best_in_hindsight` on a9a (48,842
rows), in units of one pass of OGD over it. Witnesses are those of `rue.learn(X, y, witnesses=[5, 20])` with the linear
mixture, in units of each feature's largest magnitude: the share of the distance between D1 alone and the true regret
that they close depends on the learner, for the better it certifies itself, the less there is left to close.""",
    "streams": """## Files

Whole processes, start-up counted, kernels compiled before: `rue learn FILE --learner ogd --loss logistic --domain reals
--step sqrt:0.5` in turns with `python -m vowpalwabbit --sgd -l 0.5 --loss_function logistic`, one pass, no cache. Lines
of *numbers* are like RCV1's, lines of *words* have a user, an hour and twenty words. Tables are compared in one
process, by the time elapsed and by that of the processors, with pyarrow's own reading of the same file a batch at a
time, its columns of text encoded as dictionaries, plus learning from blocks that are ready. Memory is the most that the
process held.""",
    "footprint": """## What a run of its own takes

a9a (48,842 rows of 14 features, 123 columns) learnt once, from text on disk to the end of the process, each system in a
process of its own with all its start-up: `rue learn` with no options and with OGD, Vowpal Wabbit at its defaults,
`SGDClassifier.partial_fit` over what `load_svmlight_file` has read, and River's `LogisticRegression` over the same
lines as dicts. Rue's processes are not the smallest: they hold Numba, LLVM and what reads ahead on two cores.
What is stamped before 2026-11-19 was measured when the linear mixture was the default.""",
    "pool": """## The linear mixture

48 members side by side in one pass, on the first 60,000 rows of each stream, against one `AdaGrad` alone, which is of
no costlier kind than any of them; sixteen have full matrices while no more than 64 features occur (covtype, elec2).
The certificate is by the clock, as `learn` has it: beyond 2¹⁴ coordinates (text_like, toxicity) S is added up by a
helper on another core. The whole file is `rue learn FILE --linear` in turns with Vowpal Wabbit's default
learner.""",
    "quality": """## Out of the box

The mean progressive loss of `rue learn FILE` with no options on six real streams, divided by a peer's on the same
features in the same order. Vowpal Wabbit runs eleven times: at its defaults, with `--coin`, with `--ftrl`, and at eight
learning rates; its best counts. River is `StandardScaler | LogisticRegression` (or `LinearRegression`), scikit-learn is
`SGDClassifier(loss="log_loss")` (or `SGDRegressor`), at their defaults. LIBLINEAR (scikit-learn's `LogisticRegression`
with that solver, at its defaults) may look at the first half as often as it likes; then both predict the second half,
without learning.
What is stamped before 2026-11-19 was measured when the linear mixture was the default.""",
    "forests": """## Forests, boosting, pairs

Each row of a stream is predicted, then learnt; *loss* is the mean log loss, no probability counted as less than 10⁻¹⁵,
or the mean squared error, over the rows that the learner got through in the processor time it had. *rue* and *linear*
are the default learner and the mixture on raw features **on the same rows**, and the better of a peer and rue is bold.
Because a tree's vote of 0 costs 34.5 nats, there is a second loss that counts no probability as less than 0.01 or more
than 0.99. Rows a second are of processor time, reading counted for rue and Vowpal Wabbit.

The peers have the original columns, categories as such. River's forests have 10 trees and CapyMOA's 100, their
defaults; LightGBM is trained anew after 64 rows, then whenever the rows have doubled, or later every n/20 rows, on all
rows so far or on the last n/5; Vowpal Wabbit has all pairs (`-q ::`), and the best of eleven settings counts, each with
a quarter of the time. What they reached, when and with what limit: [peers.json](peers.json); `python -m
benchmarks.store 100` measures it anew, with the interpreter that RUE_PEERS names if they live in another environment.
Covtype's seven classes are those of UCI's Covertype, in the order of the file.""",
    "noregret": """## Never far behind the linear mixture

40 streams of at most 3,000 rows: starts and middles of the real ones, River's, noise, wide sparse text. The figure is
the largest excess of the default learner's loss over that of the linear mixture, both added up to some row, at any row
of any of the streams. With M stages, members of one mixture, no more than the linear member's loss + ln M is promised
for log loss.""",
    "mapped": """## What more than linear costs

`rue.learn` of whole files in one process, in turns with the linear mixture, reading counted, kernels compiled before;
elec2, bike and flights have at most 20 columns, covtype 54. CapyMOA's adaptive random forest has 100 trees and is taken
from [peers.json](peers.json). Memory is the most that a process `rue learn FILE` held, beyond the same with `--learner
mixture`.""",
    "fleet": """## A model for every key

`rue.fleet` with 100,000 keys of 50 rows and 10 features, two classes, by processor time of one core: putting the rows
together by key is counted, reading them is not. In *shuffled* rows a block has hardly two rows of the same key, so each
record is fetched from memory and written back for a row or two; *key after key* is the other end. The memory is that
of a key's record and tables; its name takes some hundred bytes more.""",
    "frozen": """## The model that stays

Each stream and each third of it (at most 60,000 rows) is learnt and frozen after 20, 35, 50, 65 and 80 % of the rows;
the frozen model is judged on the fifth that follows. A ratio compares its mean loss with the better of two others: the
mixture as it plays, standing still, and scikit-learn's batch regression on standardised columns, fitted to all rows so
far. `python -m benchmarks frozen` prints every case.""",
    "intervals": """## Prediction intervals

`rue.learn(FILE, interval=0.9)` on bike (rentals an hour) and elec2 (the price, without the column that says how it
moves). The interval score is width + 20 × overshoot, its mean compared with that of adaptive conformal inference
(Gibbs and Candès 2021) around the same forecasts, at the best in hindsight of 8 rates × 13 windows. Times are of whole
passes over the file, reading counted.""",
    "windows": """## Windows and change

What windows cost is the processor time of the compiled pass over the first 60,000 rows, its ledger with and without
windows; beyond 2¹⁴ coordinates (toxicity) a helper on another core adds them up, whose time is counted here all the
same. With witnesses at norm 5 (`witnesses=5, units="largest"`) each window of a stream is certified by itself (D6),
and so are models that change at borders of windows (D7): a share above 1 is a proof that they could not match the
learner. The losses are those of `rue.learn(FILE, maps=None)`, whose members are mixed by fixed share (B15), and of
covtype those with the last label as a feature (`lags=[1]`) too, with that mixture and with the default stages; what is
wanted are the bounds of the issue that asked for it.""",
    "serve": """## The service

`rue serve` with the linear mixture, on one core; the clients are another process on another core. A request has 20
features. A *durable prediction* is on disk before it is answered, and the echo is the same HTTP server and JSON with
nothing behind it, in turns. By the processor: divided by the processor time of the server, which other work on the
machine does not change. Vowpal Wabbit's daemon gets the same examples as lines over a socket; it writes nothing to disk
and joins no late labels.""",
    "cluster": """## Shards

The linear mixture, the default learner of shards, over all rows of two streams in file order, in shards that are
merged after rounds of 1,024 examples each, then twice as many up to 262,144; units of 8,192 rows. The frozen models are
those after half and after 80 % of the rows, each judged on the fifth that follows (geometric mean of the two ratios).
Covtype's rows are sorted by region: in one pass the next rows are always of the region just learnt, in shards from up
to eight places.""",
    "cluster-speed": """## Workers

Whole commands, `rue learn FILE --shards 2`, the default learner on 20 numbers and a word, two workers on two cores
against one worker on one, pinned with `taskset`; and what Ray adds to a round.""",
    "growth": """## How cost grows

Random sparse rows: 20,000 of them, 32 non-zeros each, 2^14 columns, and one of these grows. A slope of 1 is
proportional, 0 is free.

![Seconds of one pass against rows, non-zeros, columns and members, on logarithmic axes](growth.svg)""",
}


def main(names: list[str]) -> None:
    """Measure, keep the figures, render the page."""
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"benchmarks: there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}.")
    for name in names or list(PARTS):
        rows = [row for part in PARTS[name] for row in part()]
        print(f"\n{'what':60} {'measured':>8}  wanted")
        for what, figure, wanted, *_ in rows:
            print(f"{what:60} {shown(figure, wanted):>8}  {wanted}")
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[name] = {
            "made": made(),
            "rows": [record(*row) for row in rows],
        }
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        PAGE.write_text(page(results))


def record(what: str, figure: float, wanted: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """A row as it is stored; a figure that there is not is null."""
    return {"what": what, "measured": float(figure) if figure == figure else None, "wanted": wanted, **(details or {})}


def shown(figure: float, wanted: str) -> str:
    """A figure with as many decimals as what was wanted of it, and two at least.

    >>> shown(0.20772, "≤ 0.214"), shown(0.329308, "≤ 0.329529"), shown(2.7, "–")
    ('0.208', '0.329308', '2.70')
    """
    decimals = max([2, *map(len, re.findall(r"\d\.(\d+)", wanted))])
    return f"{figure:.{decimals}f}"


def made() -> dict[str, Any]:
    """When, where and with what."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ": unknown")
    return {
        "date": str(date.today()),
        "machine": f"{os.cpu_count()} × {cpu.split(':')[1].strip()}",
        "load": round(os.getloadavg()[2], 1),
        "versions": {"Python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PEERS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def ratios(rows: list[dict[str, Any]]) -> str:
    """The table of a part that has no other."""
    lines = [f"| {row['what']} | {shown(row['measured'], row['wanted'])} | {row['wanted']} |" for row in rows]
    return "\n".join(["| what | measured | wanted |", "|---|---|---|", *lines])


def page(results: dict[str, Any]) -> str:
    """docs/speed.md."""
    parts = []
    for name in PARTS:
        if name not in results:
            continue
        how = results[name]["made"]
        versions = ", ".join(f"{peer} {number}" for peer, number in how["versions"].items())
        rows = TABLES.get(name, ratios)(results[name]["rows"])
        stamp = f"`python -m benchmarks {name}`, {how['date']}, {how['machine']}, load {how['load']}; {versions}."
        parts.append(f"{WORDS[name]}\n\n{rows}\n\n<small>{stamp}</small>\n")
    return f"""# Benchmarks

`make bench` writes this page. Everything runs in turns, the best of several counts, and compilation is apart; so the
figures are ratios that hold on a shared machine, not times. *Wanted* is what we set out to reach: where we are short of
it, or a peer is better, it says so here. The figures as data: [benchmarks.json](benchmarks.json).

{chr(10).join(parts)}"""


if __name__ == "__main__":
    main(sys.argv[1:])

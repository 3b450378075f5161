"""`python -m benchmarks [engine|first|regret|streams|footprint|pool|quality|frozen|growth …]` measures parts, or all.

Each part's figures go to docs/benchmarks.json with the day, the machine and the versions, and docs/speed.md is rendered
from that file.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import engine, first, footprint, frozen, growth, pool, quality, regret, streams

DOCS = Path(__file__).parents[1] / "docs"
PAGE, RESULTS = DOCS / "speed.md", DOCS / "benchmarks.json"
_PEERS = ("numba", "numpy", "scipy", "scikit-learn", "river", "vowpalwabbit", "pyarrow")
PARTS = {
    "engine": (engine.passes, engine.one_by_one, engine.width, engine.cold_start),
    "first": (first.first_rows,),
    "regret": (regret.certificate_rows, regret.comparator_rows, regret.witness_rows),
    "streams": (streams.against_vw, streams.against_pyarrow, streams.memory, streams.cold_start),
    "footprint": (footprint.footprint_rows,),
    "pool": (pool.side_by_side, pool.with_witnesses, pool.whole_file),
    "quality": (quality.quality_rows, quality.batch_rows),
    "frozen": (frozen.frozen_rows,),
    "growth": (growth.growth_rows,),
}
WORDS = {
    "engine": """## The engine

The sparse stream is generated to be like RCV1 (200,000 rows, 47,236 columns, Zipf); covtype is dense, 581,012 × 54. The
*bare pass* does nothing but the sparse dot products. `SGDClassifier.partial_fit(shuffle=False)` takes the same steps
η/√t and has its default ℓ2 penalty where rue projects onto a ball.""",
    "first": """## A first command

Three rows, learnt by a wheel that was just installed into a new environment, with an empty cache: the start of Python
and all imports counted. The wheel carries the kernels of the common first uses, compiled for the processors of the
level x86-64-v3; without them they are compiled on the spot, once for a machine.""",
    "regret": """## Regret

D1 is measured on the sparse stream above, in the compiled loop. *Hindsight* is `best_in_hindsight` on a9a (48,842
rows), in units of one pass of OGD over it. Witnesses are those of `rue.learn(X, y, witnesses=[5, 20])` with the default
learner, in units of each feature's largest magnitude: the share of the distance between D1 alone and the true regret
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
lines as dicts. Rue's processes are not the smallest: they hold Numba, LLVM and what reads ahead on two cores.""",
    "pool": """## The default learner

48 members side by side in one pass, on the first 60,000 rows of each stream, against one `AdaGrad` alone, which is of
no costlier kind than any of them; sixteen have full matrices while no more than 64 features occur (covtype, elec2).
The certificate is by the clock, as `learn` has it: beyond 2¹⁴ coordinates (text_like, toxicity) S is added up by a
helper on another core. The whole file is `rue learn FILE` with no options in turns with Vowpal Wabbit's default
learner.""",
    "quality": """## Out of the box

The mean progressive loss of `rue learn FILE` with no options on six real streams, divided by a peer's on the same
features in the same order. Vowpal Wabbit runs eleven times: at its defaults, with `--coin`, with `--ftrl`, and at eight
learning rates; its best counts. River is `StandardScaler | LogisticRegression` (or `LinearRegression`), scikit-learn is
`SGDClassifier(loss="log_loss")` (or `SGDRegressor`), at their defaults. LIBLINEAR (scikit-learn's `LogisticRegression`
with that solver, at its defaults) may look at the first half as often as it likes; then both predict the second half,
without learning.""",
    "frozen": """## The model that stays

Each stream and each third of it (at most 60,000 rows) is learnt and frozen after 20, 35, 50, 65 and 80 % of the rows;
the frozen model is judged on the fifth that follows. A ratio compares its mean loss with the better of two others: the
mixture as it plays, standing still, and scikit-learn's batch regression on standardised columns, fitted to all rows so
far. `python -m benchmarks frozen` prints every case.""",
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
        for what, figure, wanted in rows:
            print(f"{what:60} {figure:8.2f}  {wanted}")
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[name] = {
            "made": made(),
            "rows": [{"what": what, "measured": float(figure), "wanted": wanted} for what, figure, wanted in rows],
        }
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        PAGE.write_text(page(results))


def made() -> dict[str, Any]:
    """When, where and with what."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ": unknown")
    return {
        "date": str(date.today()),
        "machine": f"{os.cpu_count()} × {cpu.split(':')[1].strip()}",
        "load": round(os.getloadavg()[2], 1),
        "versions": {"Python": platform.python_version(), **{name: version(name) for name in _PEERS}},
    }


def page(results: dict[str, Any]) -> str:
    """docs/speed.md."""
    parts = []
    for name in PARTS:
        if name not in results:
            continue
        how = results[name]["made"]
        versions = ", ".join(f"{peer} {number}" for peer, number in how["versions"].items())
        rows = "\n".join(
            f"| {row['what']} | {row['measured']:.2f} | {row['wanted']} |" for row in results[name]["rows"]
        )
        stamp = f"`python -m benchmarks {name}`, {how['date']}, {how['machine']}, load {how['load']}; {versions}."
        parts.append(
            f"{WORDS[name]}\n\n| what | measured | wanted |\n|---|---|---|\n{rows}\n\n<small>{stamp}</small>\n"
        )
    return f"""# Benchmarks

`make bench` writes this page. Everything runs in turns, the best of several counts, and compilation is apart; so the
figures are ratios that hold on a shared machine, not times. *Wanted* is what we set out to reach: where we are short of
it, or a peer is better, it says so here. The figures as data: [benchmarks.json](benchmarks.json).

{chr(10).join(parts)}"""


if __name__ == "__main__":
    main(sys.argv[1:])

"""`python -m benchmarks [engine|regret|streams|quality]` measures all, or a part; all is written to docs/speed.md."""

from __future__ import annotations

import os
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

from benchmarks import engine, quality, regret, streams

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
_PEERS = ("numba", "numpy", "scipy", "scikit-learn", "river", "vowpalwabbit", "pyarrow")
PARTS = {
    "engine": (engine.passes, engine.one_by_one, engine.width, engine.cold_start),
    "regret": (regret.certificate_rows, regret.comparator_rows, regret.witness_rows),
    "streams": (streams.against_vw, streams.against_pyarrow, streams.memory, streams.cold_start),
    "quality": (quality.quality_rows,),
}


def main(names: list[str]) -> None:
    """Measure; with nothing named, write the tables into docs/speed.md."""
    tables = {}
    for name in names or list(PARTS):
        rows = tables[name] = [row for part in PARTS[name] for row in part()]
        print(f"\n{'what':60} {'measured':>8}  wanted")
        for what, figure, wanted in rows:
            print(f"{what:60} {figure:8.2f}  {wanted}")
    if not names:
        PAGE.write_text(page(tables))


def page(tables: dict[str, list[tuple[str, float, str]]]) -> str:
    """docs/speed.md."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ": unknown")
    made = f"{date.today()}, {os.cpu_count()} × {cpu.split(':')[1].strip()}, Python {platform.python_version()}"
    with_what = ", ".join(f"{name} {version(name)}" for name in _PEERS)
    engines, regrets, files, qualities = (
        "\n".join(f"| {what} | {figure:.2f} | {wanted} |" for what, figure, wanted in tables[name]) for name in PARTS
    )
    return f"""# Speed

Written by `make bench` ({made}; {with_what}).
Everything runs in one process, in turns, the best of five counts, and compilation
is apart; so the figures are ratios that hold on a shared machine, not times.

## The engine

The sparse stream is generated to be like RCV1 (200,000 rows, 47,236 columns, Zipf); covtype is dense, 581,012 × 54. The
*bare pass* does nothing but the sparse dot products. `SGDClassifier.partial_fit(shuffle=False)` takes the same steps
η/√t and has its default ℓ2 penalty where rue projects onto a ball.

| what | measured | wanted |
|---|---|---|
{engines}

## Regret

D1 is measured on the sparse stream above, in the compiled loop. *Hindsight* is `best_in_hindsight` on a9a (48,842
rows), in units of one pass of OGD over it. Witnesses are those of `rue.learn(X, y, witnesses=[5, 20])` with the default
learner, in units of each feature's largest magnitude: the share of the distance between D1 alone and the true regret
that they close depends on the learner, for the better it certifies itself, the less there is left to close.

| what | measured | wanted |
|---|---|---|
{regrets}

## Files

Whole processes, start-up counted, kernels compiled before: `rue learn FILE --learner ogd --loss logistic --domain reals
--step sqrt:0.5` in turns with `python -m vowpalwabbit --sgd -l 0.5 --loss_function logistic`, one pass, no cache. Lines
of *numbers* are like RCV1's, lines of *words* have a user, an hour and twenty words. Tables are compared in one
process, by seconds of processors, with pyarrow's own reading of the same file a batch at a time, its columns of text
encoded as dictionaries, plus learning from blocks that are ready. Memory is the most that the process held.

| what | measured | wanted |
|---|---|---|
{files}

## Out of the box

The mean progressive loss of `rue learn FILE` with no options on six real streams, divided by a peer's on the same
features in the same order. Vowpal Wabbit runs eleven times: at its defaults, with `--coin`, with `--ftrl`, and at eight
learning rates; its best counts. River is `StandardScaler | LogisticRegression` (or `LinearRegression`), scikit-learn is
`SGDClassifier(loss="log_loss")` (or `SGDRegressor`), at their defaults.

| what | measured | wanted |
|---|---|---|
{qualities}
"""


main(sys.argv[1:])

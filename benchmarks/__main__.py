"""`python -m benchmarks` measures everything and rewrites docs/speed.md."""

from benchmarks.engine import main

main(write=True)

"""`python -m benchmarks` runs everything."""

from benchmarks.engine import main

main()

"""What the theorems promise about a run, each with its assumptions checked (docs/theory.md, B1 to B10)."""

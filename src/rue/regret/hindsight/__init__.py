"""The best point in hindsight, with a certified gap (docs/theory.md, D5)."""

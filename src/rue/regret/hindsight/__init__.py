"""The best point in hindsight, with a certified gap (docs/theory.md, D5).

- `comparator`: `rue.best_in_hindsight`, and what it returns;
- `stored`: the stream as arrays; `program`: its loss as a convex program, with lower bounds on it; `conjugates`: losses
  made of lines and parabolas, as solvers read them;
- `solvers`: which method for which program, and Newton's; `interior`: interior points; `descent`: first-order methods.
"""

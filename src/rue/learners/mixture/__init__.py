"""The default learner's linear part: many rates of several kinds of gradient descent, mixed by exponential weights.

- `mixture`: `Mixture` itself, and one round of it, from the prediction to the members' steps;
- `layout`: every number and array of its state, by name;
- `pool`: the tables in which the members' weights lie, and how they are read and moved; `columns` has the arithmetic
  on many features at once, `matrices` the second-order kinds;
- `mixing`: the members' shares, from their losses (docs/theory.md, B12 and B15);
- `frozen`: the weights to keep when learning stops;
- `pooling`, `merging`: pools that have learnt parts of a stream, as one;
- `standing`: how the members stand, now and over time;
- `committee`, `trees`: `Mixture(members=[…])`, any list of learners in the place of the pool.
"""

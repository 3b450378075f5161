"""The certificate of a merged run is never below its true regret, which cvxpy finds; on small random streams."""

import cvxpy
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from conftest import many
from rue.cluster import advance, begin, cursors, merge
from rue.models.file import from_bytes
from rue.runs.driver import Driver
from rue.streams.data import Data

pytestmark = pytest.mark.usefixtures("interpreted_module")
RADIUS = 2.0


def best_loss(loss, X, y):
    """The least Σℓ of a linear model with an intercept and weights of length 2 at most."""
    w = cvxpy.Variable(X.shape[1] + 1)
    p = np.column_stack([np.ones(len(y)), X]) @ w
    total = {
        "logistic": lambda: cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, p))),
        "hinge": lambda: cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(y, p))),
        "square": lambda: cvxpy.sum_squares(p - y),
    }[loss]()
    return cvxpy.Problem(cvxpy.Minimize(total), [cvxpy.norm(w) <= RADIUS]).solve(solver="CLARABEL")


@settings(max_examples=many(6, 200))
@given(
    seed=st.integers(0, 10**6),
    shards=st.integers(1, 4),
    T=st.integers(4, 60),
    first=st.integers(1, 8),
    loss=st.sampled_from(["logistic", "hinge", "square"]),
    learner=st.sampled_from(["ogd", "adagrad", "mixture"]),
)
def test_the_merged_certificate_is_never_below_the_true_regret(seed, shards, T, first, loss, learner):
    random = np.random.default_rng(seed)
    X, flips = random.normal(size=(T, 2)) * [1.0, 3.0], np.where(np.arange(T) < T // 2, 1.0, -1.0)
    score = (X @ random.normal(size=2) + 0.3 * random.normal(size=T)) * flips
    y = score if loss == "square" else np.where(score > 0, 1, -1)
    table = pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "y": y})
    data = Data(tuple(table.iloc[k::shards] for k in range(shards)), target="y")
    made = rue.make("learner", learner, loss=loss)
    task = "regress" if loss == "square" else "classify"
    state, at, n = begin(data, Driver(made, task=task)), cursors(data, shards), first
    while not all(cursor.done for cursor in at):
        parts = [advance(state, cursor, n) for cursor in at if not cursor.done]
        moved = {part.cursor.shard: part.cursor for part in parts}
        state, at, n = merge(state, [part.state for part in parts]), [moved.get(c.shard, c) for c in at], 2 * n
    evidence = from_bytes(state).evidence
    proved = evidence.certificate(rue.Ball(RADIUS), "raw")
    regret = proved.loss_total - best_loss(loss, X, y.astype(float))
    assert proved.regret_at_most >= regret - 1e-6 * (1.0 + abs(proved.loss_total))

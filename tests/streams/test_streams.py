from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import rue
from rue.errors import BadExample, DataError
from rue.streams import Block, blocks, one_sparse_row
from rue.streams.block import ROWS

N, WIDTH = 300, 7


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((N, WIDTH)) < 0.5, rng.integers(-8, 9, (N, WIDTH)) / 4.0, 0.0)  # exact in float32, int64
    X[:, 0] = 0.25  # no row is empty
    y = np.where(X @ rng.normal(size=WIDTH) + rng.normal(size=N) > 0, 1.0, -1.0)
    return X, y


def learner():
    return rue.OGD("hinge", "reals", "sqrt:0.5")


def plain(X, y, weights=None):
    """The same learner in a dozen lines: what every form of the data must give."""
    w, bias, out = np.zeros(X.shape[1]), 0.0, []
    t = 0
    for i in range(len(y)):
        weight = 1.0 if weights is None else weights[i]
        p = w @ X[i] + bias
        out.append(p)
        if weight == 0.0:
            continue
        t += 1
        if y[i] * p <= 1:
            eta = 0.5 / np.sqrt(t) * weight * y[i]
            w, bias = w + eta * X[i], bias + eta
    return np.array(out)


def shuffled(X):
    """CSR whose rows hold their features in another order."""
    made = sparse.csr_matrix(X)
    rng = np.random.default_rng(3)
    for a, b in pairwise(made.indptr):
        order = a + rng.permutation(b - a)
        made.indices[a:b], made.data[a:b] = made.indices[order], made.data[order]
    assert not made.has_sorted_indices
    return made


def wide_indices(X):
    made = sparse.csr_matrix(X)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def misaligned(X):
    raw = np.zeros(X.size * 8 + 1, dtype=np.uint8)
    made = raw[1:].view(np.float64).reshape(X.shape)
    made[:] = X
    assert not made.flags.aligned
    return made


class Framed:
    """What a data frame offers."""

    def __init__(self, X):
        self.X = X

    def __iter__(self):
        return iter("columns")

    def __array__(self, dtype=None, copy=None):
        return np.array(self.X, dtype=dtype)


DENSE = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "big-endian": lambda X: X.astype(">f8"),
    "misaligned": misaligned,
    "lists": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "objects": lambda X: X.astype(object),
    "a frame": Framed,
}
SPARSE = {
    "csr": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "csr int64 indices": wide_indices,
    "csr unsorted": shuffled,
    "csr explicit zeros": lambda X: sparse.csr_matrix(
        (X.ravel(), np.tile(np.arange(WIDTH), N), np.arange(N + 1) * WIDTH)
    ),
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "coo array": sparse.coo_array,
    "lil": sparse.lil_matrix,
    "sliced": lambda X: sparse.vstack([sparse.csr_matrix(X), sparse.csr_matrix(X)]).tocsr()[:N],
}


@pytest.mark.parametrize("form", sorted(DENSE))
def test_dense_forms_are_learnt_alike(form, data):
    X, y = data
    given = DENSE[form](X)
    expected = learner().run(X, y)
    np.testing.assert_allclose(expected, plain(X, y), rtol=1e-10, atol=1e-12)
    assert learner().run(given, y).tobytes() == expected.tobytes()
    assert rue.learn(given, y, learner=learner()).predictions.tobytes() == expected.tobytes()


@pytest.mark.parametrize("form", sorted(SPARSE))
def test_sparse_forms_are_learnt_alike(form, data):
    X, y = data
    given = SPARSE[form](X)
    before = given.copy()
    np.testing.assert_allclose(learner().run(given, y), plain(X, y), rtol=1e-10, atol=1e-12)
    if form != "csr explicit zeros":  # whose sums run in other lanes
        expected = learner().run(sparse.csr_matrix(X), y)
        assert learner().run(given, y).tobytes() == expected.tobytes()
        assert rue.learn(given, y, learner=learner()).predictions.tobytes() == expected.tobytes()
    assert (before != given).nnz == 0
    if hasattr(given, "indices"):
        assert np.array_equal(before.indices, given.indices)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16])
def test_whole_numbers_and_truth_values(dtype, data):
    X, y = data
    X = np.abs(X) > 0.5
    expected = plain(X.astype(float), y)
    for given in (X.astype(dtype), sparse.csr_matrix(X.astype(np.float32 if dtype is np.float16 else dtype))):
        np.testing.assert_allclose(learner().run(given, y), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32, object, list])
def test_labels_and_weights_of_other_types(dtype, data):
    X, y = data
    weights = np.tile([0.0, 1.0, 2.0], N // 3)
    expected = plain(X, y, weights)
    if dtype is bool:
        assert np.allclose(rue.learn(X, y > 0, learner=learner(), weights=weights).predictions, expected)
        return
    y, weights = (y.tolist(), weights.tolist()) if dtype is list else (y.astype(dtype), weights.astype(dtype))
    np.testing.assert_allclose(learner().run(X, y, weights), expected, rtol=1e-10, atol=1e-12)


def test_a_block():
    block = rue.Block([[1, 2, 3], [4, 5, 6]], [1, -1], [0.5, 2])
    assert (len(block), block.width, block.sparse) == (2, 3, False)
    assert block.labels().dtype == block.column_of_weights().dtype == np.float64
    assert block.column_of_weights().tolist() == [0.5, 2.0]
    assert rue.Block(np.eye(2)).column_of_weights().size == 0
    made = rue.Block(sparse.coo_matrix(np.eye(3)), [1, 1, 1])
    assert (len(made), made.width, made.sparse) == (3, 3, True)
    assert len(rue.Block(np.empty((0, 4)), [])) == 0


def test_a_block_of_zero_columns_learns_the_intercept(data):
    _, y = data
    np.testing.assert_allclose(learner().run(np.empty((N, 0)), y), plain(np.empty((N, 0)), y), rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: rue.Block([1, 2]),
            "X must have two dimensions, rows and features, not 1; one example at a time goes to predict and update.",
        ),
        (lambda: rue.Block(np.zeros((2, 2, 2))), "X must have two dimensions, rows and features, not 3."),
        (lambda: rue.Block(3.0), "X must have two dimensions, rows and features, not 0."),
        (lambda: rue.Block(np.eye(2), [1]), "X has 2 rows, but the labels have shape (1,): one a row."),
        (lambda: rue.Block(np.eye(2), [[1], [1]]), "X has 2 rows, but the labels have shape (2, 1): one a row."),
        (lambda: rue.Block(np.eye(2), 1), "X has 2 rows, but the labels have shape (): one a row."),
        (lambda: rue.Block(np.eye(2), [1, 1], [1, 1, 1]), "X has 2 rows, but the weights have shape (3,): one a row."),
        (lambda: rue.Block(np.eye(2)).labels(), "there are no labels: give y."),
        (lambda: rue.Block(np.eye(2), ["a", "b"]).labels(), "the labels must be real numbers, not <U1."),
        (lambda: rue.Block([["a", "b"]]).rows(True), "the features must be real numbers, not <U1."),
        (lambda: rue.Perceptron().run(np.eye(2)), "there are no labels: give y."),
        (
            lambda: rue.Perceptron().run([rue.Block(np.eye(2), [1, 1])], [1, 1]),
            "blocks carry their labels and weights: do not give y or weights beside them.",
        ),
        (
            lambda: rue.Perceptron().run([rue.Block(np.eye(2), [1, 1])], weights=[1, 1]),
            "blocks carry their labels and weights: do not give y or weights beside them.",
        ),
        (
            lambda: rue.Perceptron().run(rue.Block(np.eye(2), [1, 1]), [-1, -1]),
            "blocks carry their labels and weights: do not give y or weights beside them.",
        ),
        (
            lambda: rue.learn(rue.Block(np.eye(2), [1, 1]), weights=[1, 2]),
            "blocks carry their labels and weights: do not give y or weights beside them.",
        ),
        (lambda: rue.Perceptron().run(iter([np.eye(2)])), "a stream yields rue.Block objects, not ndarray."),
        (lambda: rue.Perceptron().run("file.svm"), "there is no file file.svm."),
        (lambda: rue.learn(np.eye(2)), "there are no labels: give y."),
        (lambda: rue.learn([rue.Block(np.eye(2))]), "there are no labels: give y."),
        (lambda: rue.learn([]), "X must have two dimensions"),
        (lambda: rue.learn(iter([])), "there are no examples to learn."),
        (lambda: rue.learn(np.empty((0, 3)), []), "there are no examples to learn."),
        (lambda: one_sparse_row(sparse.csr_matrix(np.eye(2))), "one example at a time: a sparse row has shape (1, d)"),
    ],
)
def test_what_is_refused(build, sentence):
    with pytest.raises(DataError) as caught:
        build()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_complex_numbers_are_refused():
    with pytest.raises(DataError, match="the features must be real numbers, not complex128"):
        rue.Perceptron().run(np.eye(2) * 1j, [1, -1])


@pytest.mark.parametrize("index", [-1, WIDTH, 2**31 - 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_index_outside_the_matrix_is_refused(index, dtype):
    X = sparse.csr_matrix(np.ones((3, WIDTH)))
    X.indices = X.indices.astype(dtype)
    X.indices[-1] = index
    with pytest.raises(DataError):
        rue.Perceptron(d=WIDTH).run(X, [1, -1, 1])


def test_a_feature_given_twice_is_refused():
    X = sparse.csr_matrix((np.ones(3), [0, 1, 1], [0, 1, 3]), shape=(2, 3))
    with pytest.raises(BadExample) as caught:
        rue.Perceptron().run(X, [1, -1])
    assert caught.value.row == 1
    assert "more than once" in str(caught.value)


def test_one_sparse_row():
    indices, values = one_sparse_row(sparse.coo_matrix([[0.0, 2.0, 3.0]]))
    assert (indices.tolist(), values.tolist()) == ([1, 2], [2.0, 3.0])


# Cutting. More rows than fit into one block.

MANY = 2 * ROWS + 1000


@pytest.fixture(scope="module")
def long():
    rng = np.random.default_rng(8)
    X = rng.integers(-3, 4, (MANY, 3)) / 2.0
    return X, np.where(X @ [1.0, -1.0, 0.5] + rng.normal(size=MANY) > 0, 1.0, -1.0), rng.uniform(0.5, 2.0, MANY)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_matrix], ids=["C", "F", "csr"])
def test_blocks_are_cut_and_nothing_is_lost(form, long):
    assert ROWS == 65_536
    X, y, weights = long
    parts = list(blocks(form(X), y, weights))
    assert [len(part) for part in parts] == [ROWS, ROWS, 1000]
    assert np.array_equal(np.concatenate([part.y for part in parts]), y)
    assert np.array_equal(np.concatenate([part.weights for part in parts]), weights)
    rows = [part.rows(False) for part in parts]
    if form is sparse.csr_matrix:
        assert np.array_equal(np.concatenate([row.values for row in rows]), form(X).data)
        assert np.array_equal(np.concatenate([row.indices for row in rows]), form(X).indices)
        assert all(row.indptr[0] == 0 and row.indptr[-1] == row.values.size for row in rows)
    else:
        assert np.array_equal(np.concatenate([row.values for row in rows]).reshape(-1, 3), X)
    assert all(part.width == 3 for part in parts)


@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS])
def test_the_edges_of_blocks(rows):
    parts = list(blocks(np.zeros((rows, 1))))
    assert [len(part) for part in parts] == [ROWS] * (rows // ROWS) + ([rows % ROWS] if rows % ROWS else [])
    assert all(part.y is None and part.weights is None for part in parts)


def test_no_rows_are_no_blocks():
    assert list(blocks(np.empty((0, 3)), [])) == []
    assert list(blocks(iter([]))) == []
    assert learner().run(np.empty((0, 3)), []).shape == (0,)


@pytest.fixture(scope="module")
def longest(long):
    """What a pass over all rows at once gives, by pieces that are never cut."""
    X, y, weights = long
    model = learner()
    edges = [0, 40_000, 80_000, 120_000, MANY]
    parts = [model.run(X[a:b], y[a:b], weights[a:b]) for a, b in pairwise(edges)]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, sparse.csr_matrix, shuffled], ids=["C", "F", "csr", "unsorted"]
)
def test_long_arrays_are_learnt_whole(form, long, longest):
    X, y, weights = long
    model = learner()
    p = model.run(form(X), y, weights)
    assert model.t == MANY
    np.testing.assert_allclose(p, longest, rtol=1e-9, atol=1e-9)
    if form is not shuffled and form is not sparse.csr_matrix:
        assert p.tobytes() == longest.tobytes()


def test_only_the_last_rows_are_unsorted(long, longest):
    X, y, weights = long
    made = sparse.csr_matrix(X)
    last = slice(made.indptr[-2], made.indptr[-1])
    made.indices[last], made.data[last] = made.indices[last][::-1].copy(), made.data[last][::-1].copy()
    np.testing.assert_allclose(learner().run(made, y, weights), longest, rtol=1e-9, atol=1e-9)


def test_the_row_of_a_bad_example_counts_from_the_first_block(long):
    X, y, _ = long
    X = X.copy()
    X[ROWS + 7, 1] = np.nan
    for act in (lambda: learner().run(X, y), lambda: rue.learn(X, y, learner=learner())):
        with pytest.raises(BadExample) as caught:
            act()
        assert caught.value.row == ROWS + 7
        assert str(caught.value).startswith(f"row {ROWS + 7} (counting from 0): a feature is nan")


def test_the_row_of_a_stray_label_counts_from_the_first_block(long):
    X, y, _ = long
    y = y.copy()
    y[ROWS + 7] = 3.0
    with pytest.raises(DataError, match=f"row {ROWS + 7} "):
        rue.learn(X, y, learner=learner())


# Streams of blocks.


def pieces(X, y, weights=None, sizes=(1, 99, 0, 150, 50)):
    at = 0
    for size in sizes:
        part = slice(at, at + size)
        at += size
        yield rue.Block(X[part], y[part], None if weights is None else weights[part])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_streams_of_blocks_are_learnt_like_the_whole(form, weighted, data):
    X, y = data
    X = form(X)
    weights = np.linspace(0, 2, N) if weighted else None
    expected = learner().run(X, y, weights)
    assert learner().run(pieces(X, y, weights)).tobytes() == expected.tobytes()
    assert learner().run(list(pieces(X, y, weights))).tobytes() == expected.tobytes()
    assert learner().run(rue.Block(X, y, weights)).tobytes() == expected.tobytes()
    whole = rue.learn(X, y, weights=weights, learner=learner())
    for given in (pieces(X, y, weights), tuple(pieces(X, y, weights)), rue.Block(X, y, weights)):
        run = rue.learn(given, learner=learner())
        assert run.predictions.tobytes() == expected.tobytes()
        assert (run.loss, run.mistakes, run.examples) == (whole.loss, whole.mistakes, whole.examples)
        assert np.array_equal(run.y, y)
        assert run.weights is None if weights is None else np.array_equal(run.weights, weights)
    assert whole.examples == (N - 1 if weighted else N)


def test_dense_and_sparse_blocks_in_one_stream(data):
    X, y = data
    mixed = [rue.Block(X[:100], y[:100]), rue.Block(sparse.csr_matrix(X[100:]), y[100:])]
    np.testing.assert_allclose(learner().run(mixed), plain(X, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("first", [True, False], ids=["weights first", "weights later"])
def test_blocks_with_and_without_weights_in_one_stream(first, data):
    X, y = data
    weights = np.where(np.arange(N) < 100, 2.0, 1.0) if first else np.where(np.arange(N) < 100, 1.0, 2.0)
    stream = [
        rue.Block(X[:100], y[:100], weights[:100] if first else None),
        rue.Block(X[100:], y[100:], None if first else weights[100:]),
    ]
    run = rue.learn(stream, learner=learner())
    np.testing.assert_allclose(run.predictions, plain(X, y, weights), rtol=1e-10, atol=1e-12)
    assert np.array_equal(run.weights, weights)


def test_later_sparse_blocks_may_be_wider(data):
    X, y = data
    X = X.copy()
    X[:100, 3:] = 0.0
    wider = [rue.Block(sparse.csr_matrix(X[:100, :3]), y[:100]), rue.Block(sparse.csr_matrix(X[100:]), y[100:])]
    np.testing.assert_allclose(learner().run(wider), plain(X, y), rtol=1e-10, atol=1e-12)
    with pytest.raises(DataError, match="the example has 7 features, but the learner has 3"):
        learner().run([rue.Block(X[:100, :3], y[:100]), rue.Block(X[100:], y[100:])])


# Labels.


@pytest.mark.parametrize(
    ("given", "negative", "positive"),
    [
        ([0, 1, 1], 0, 1),
        ([1, 0], 0, 1),
        ([-1, 1], -1, 1),
        ([1.0, -1.0], -1.0, 1.0),
        ([True, False], False, True),
        (np.array([1, 0], dtype=np.uint8), 0, 1),
        (["yes", "no"], "no", "yes"),
        (["Yes", "No"], "No", "Yes"),
        (["TRUE", "FALSE"], "FALSE", "TRUE"),
        (["1", "0"], "0", "1"),
        (["1", "-1"], "-1", "1"),
        (["+1", "-1"], "-1", "+1"),
        (["ham", "spam", "ham"], "ham", "spam"),
        (["spam", "ham", "ham"], "ham", "spam"),
        ([1], -1, 1),
        ([1.0, 1.0], -1.0, 1.0),
        ([0, 0], 0, 1),
        ([-1], -1, 1),
        ([True], False, True),
        ([False], False, True),
        (["yes"], "no", "yes"),
        (["no"], "no", "yes"),
        (["0"], "0", "1"),
    ],
    ids=repr,
)
def test_two_classes(given, negative, positive):
    labels = rue.Labels.of(given)
    assert labels == rue.Labels("classify", negative, positive)
    assert (type(labels.negative), type(labels.positive)) == (type(negative), type(positive))
    np.testing.assert_array_equal(labels.encode([negative, positive, positive]), [-1.0, 1.0, 1.0])
    assert labels.encode([negative]).dtype == np.float64


@pytest.mark.parametrize(("first", "later"), [(["Yes"], "No"), (["NO"], "YES"), (["True"], "False")])
def test_the_missing_class_is_written_the_way_the_other_one_is(first, later):
    encoded = rue.Labels.of(first).encode([first[0], later])
    assert encoded.tolist() in ([1.0, -1.0], [-1.0, 1.0])


@pytest.mark.parametrize("given", [[0.5, 1.0], [0, 1, 2], [3, 4], [-1, 0, 1], [2.0], [-1, 0]], ids=repr)
def test_other_numbers_are_a_regression(given):
    labels = rue.Labels.of(given)
    assert labels == rue.Labels("regress")
    np.testing.assert_array_equal(labels.encode(given), np.array(given, dtype=np.float64))


def test_a_task_decides():
    assert rue.Labels.of([0, 1], "regress") == rue.Labels("regress")
    assert rue.Labels.of([7, 3], "classify") == rue.Labels("classify", 3, 7)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: rue.learn(np.eye(5), ["a", "b", "c", "d", "e"], learner=rue.OGD()),
            "there are more than two classes ('a', 'b', 'c', 'd', …): leave the learner and the loss out for the one "
            "that learns them; for numbers to predict, choose a regression loss such as loss='square'.",
        ),
        (lambda: rue.Labels.under(rue.Hinge(), ["a", "b", "c"]), "there are more than two classes ('a', 'b', 'c'): "),
        (lambda: rue.Labels.under(rue.Hinge(), [3, 4, 5]), "there are more than two classes (3, 4, 5): "),
        (
            lambda: rue.Labels.of([0, 1], "clasify"),
            "the task must be auto, classify, multiclass or regress, not 'clasify'.",
        ),
        (lambda: rue.Labels.of(None), "there are no labels: give y."),
        (
            lambda: rue.learn(np.eye(3), [1, 0, 2], learner=rue.Perceptron()),
            "row 2 (counting from 0): the label 2 is neither 0 nor 1: for more than two classes say task='multiclass'",
        ),
        (
            lambda: rue.learn([rue.Block(np.eye(2), ["a", "b"]), rue.Block(np.eye(2), ["b", "c"])]),
            "row 3 (counting from 0): the label 'c' is neither 'a' nor 'b'",
        ),
        (
            lambda: rue.learn([rue.Block(np.eye(2), [1, 0]), rue.Block(np.eye(2), [1, -1])]),
            "row 3 (counting from 0): the label -1 is neither 0 nor 1",
        ),
        (
            lambda: rue.Labels.of([0.5]).encode(["a"]),
            "the labels of a regression must be numbers, not words such as a.",
        ),
    ],
)
def test_labels_that_are_refused(build, sentence):
    with pytest.raises(DataError) as caught:
        build()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_label_that_is_neither_class_becomes_nan():
    assert np.array_equal(rue.Labels.of([0, 1]).encode([1, 0, 2, np.nan]), [1, -1, np.nan, np.nan], equal_nan=True)
    assert np.isnan(rue.Labels.of(["a", "b"]).encode([1.0]))
    assert np.isnan(rue.Labels.of([0, 1]).encode(["a"]))


@pytest.mark.parametrize(
    ("first", "second", "signs"),
    [
        ([1, 1], [0, 1], [1, 1, -1, 1]),
        ([1, 1], [-1, 1], [1, 1, -1, 1]),
        ([0, 0], [0, 1], [-1, -1, -1, 1]),
        (["ham", "ham"], ["spam", "ham"], [-1, -1, 1, -1]),
        (["Yes", "Yes"], ["No", "Yes"], [1, 1, -1, 1]),
        ([True, True], [False, True], [1, 1, -1, 1]),
    ],
)
def test_a_class_may_appear_after_the_first_block(first, second, signs):
    run = rue.learn([rue.Block(np.eye(2), first), rue.Block(np.eye(2), second)])
    assert run.y.tolist() == signs


@pytest.mark.parametrize("words", [(0, 1), (False, True), ("no", "yes"), ("high", "low")], ids=repr)
def test_learning_with_any_two_classes(words, data):
    X, y = data
    X, y = (X, y) if y[0] < 0 else (-X, -y)
    expected = rue.learn(X, y, learner=learner())
    run = rue.learn(X, np.array(words)[(y > 0).astype(int)], learner=learner())
    assert run.predictions.tobytes() == expected.predictions.tobytes()
    assert run.mistakes == expected.mistakes
    assert (run.labels.negative, run.labels.positive) == words
    assert np.array_equal(run.y, y)


def test_later_blocks_must_not_contradict_the_first(data):
    X, y = data
    words = np.where(y > 0, "high", "low")
    odd = np.where(y > 0, "high", "lower")
    with pytest.raises(DataError, match=r"the label 'lower' is neither '(low|high)' nor '(low|high)'"):
        rue.learn([rue.Block(X, words), rue.Block(X, odd)], learner=learner())
    with pytest.raises(DataError, match="the label 2 is neither 0 nor 1"):
        rue.learn([rue.Block(X[:2], [0, 1]), rue.Block(X[:2], [1, 2])], learner=learner())


def test_an_unusable_label_is_skipped_when_asked(data):
    X, y = data
    odd = y.copy()
    odd[[5, 200]] = 3.0
    run = rue.learn(X, odd, learner=learner(), bad="skip")
    assert run.skipped == 2
    np.testing.assert_array_equal(np.isnan(run.predictions), odd != y)
    np.testing.assert_allclose(run.predictions[odd == y], plain(X[odd == y], y[odd == y]), rtol=1e-10, atol=1e-12)


def test_a_regression_takes_numbers_as_they_are(data):
    X, y = data
    run = rue.learn(X, (y > 0).astype(int), learner=rue.OGD("absolute", "reals", "sqrt:0.5"))
    assert run.labels == rue.Labels("regress")
    assert set(run.y) == {0.0, 1.0}
    assert run.mistakes is None


# The packaged stream.


def test_census():
    X, y = rue.census()
    assert sparse.issparse(X)
    assert X.format == "csr"
    assert X.shape == (48842, 123)
    assert X.dtype == y.dtype == np.float64
    assert set(y) == {-1.0, 1.0}
    assert np.mean(y > 0) == pytest.approx(0.23928, abs=5e-6)
    assert set(X.data) == {1.0}
    assert X.has_canonical_format
    counts = np.diff(X.indptr)
    assert counts.max() == 14
    again, _ = rue.census()
    assert again is not X


@pytest.mark.parametrize(
    ("labels", "column", "wanted", "codes"),
    [
        (rue.Labels("classify", -1.0, 1.0), [1.0, -1.0, 1.0], ("classify", -1.0, 1.0), [1.0, -1.0, 1.0]),
        (rue.Labels("classify", 0, 1), np.array([True, False]), ("classify", 0, 1), [1.0, -1.0]),
        (rue.Labels("classify", -1.0, 1.0), [1.0, 0.0], ("classify", 0.0, 1.0), [1.0, -1.0]),
        (rue.Labels("classify", -1.0, 1.0), [-1.0, 0.0], ("classify", -1.0, 1.0), [-1.0, np.nan]),
        (rue.Labels("classify", "ham", None), ["ham", "ham"], ("classify", "ham", None), [-1.0, -1.0]),
        (rue.Labels("classify", "ham", None), ["ham", "spam"], ("classify", "ham", "spam"), [-1.0, 1.0]),
        (rue.Labels("classify", "ham", "spam"), [1.0, 2.0], ("classify", "ham", "spam"), [np.nan, np.nan]),
        (rue.Labels("classify", 1.0, 2.0), [2.0, np.nan], ("classify", 1.0, 2.0), [1.0, np.nan]),
        (rue.Labels("classify", 1.0, 2.0), [], ("classify", 1.0, 2.0), []),
    ],
)
@pytest.mark.parametrize("kind", [None, object])
def test_labels_that_are_known_and_some_that_are_not(labels, column, wanted, codes, kind):
    found = labels.extended(np.array(column, dtype=kind))
    assert found == rue.Labels(*wanted)
    assert [type(found.negative), type(found.positive)] == [type(name) for name in wanted[1:]]
    assert np.array_equal(found.encode(np.array(column, dtype=kind)), codes, equal_nan=True)


def test_rows_say_whether_features_follow():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 5.0, 6.0]])
    rows = Block(sparse.csr_matrix(X)).rows(True)
    assert [[bool(rows.row(i).followed(np.uint64(n))) for n in (0, 3, 4, 5)] for i in range(3)] == [
        [True, True, True, False],
        [True, True, False, False],
        [True, False, False, False],
    ]
    assert not Block(X).rows(True).row(0).followed(np.uint64(0))

"""Windows (D6) and comparators that change (D7) against brute force on small streams, and how windows are kept."""

import copy
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import rue
from conftest import many
from rue import windows as w
from rue.ledger import open_ledger
from rue.models.file import Model, load_model, save_model
from rue.regret.certificates.evidence import Evidence
from rue.regret.certificates.windows import changing_models, evidence_of_window, find_window, windows_of
from rue.streams import Block

LOSSES = {
    "logistic": (lambda p, y: np.logaddexp(0.0, -y * p), lambda p, y: -y / (1.0 + np.exp(y * p))),
    "hinge": (lambda p, y: np.maximum(0.0, 1.0 - y * p), lambda p, y: np.where(y * p <= 1.0, -y, 0.0)),
    "square": (lambda p, y: (p - y) ** 2, lambda p, y: 2.0 * (p - y)),
    "absolute": (lambda p, y: np.abs(p - y), lambda p, y: np.sign(p - y)),
}


def small(rng, T=None, d=None):
    """A stream that drifts, predictions of no model at all, and weights."""
    T, d = T or int(rng.integers(1, 30)), d or int(rng.integers(1, 4))
    X = rng.normal(size=(T, d)) * rng.choice([1.0, 1.0, 10.0], size=d)
    u = rng.normal(size=d) * np.where(np.arange(T) < rng.integers(0, T + 1), 1.0, -1.0)[:, None]
    y = np.sign((X * u).sum(axis=1) + 0.1 * rng.normal(size=T))
    y[y == 0.0] = 1.0
    return X, y, rng.normal(size=T) * rng.choice([0.1, 1.0, 3.0]), rng.choice([0.5, 1.0, 2.0], size=T)


def entered(loss, X, y, p, weights=None, *, length=2, most=w.MOST_WINDOWS, cuts=()):
    """The evidence about predictions, with windows that are short at first, entered in pieces."""
    from rue.registry import make

    evidence = Evidence(make("loss", loss), open_ledger(windows=w.open_windows(length=length, most=most)))
    for begin, end in itertools.pairwise([0, *cuts, len(y)]):
        part = slice(begin, end)
        evidence.enter(Block(X[part], y[part], None if weights is None else weights[part]), p[part], False, begin)
    return evidence


@pytest.mark.usefixtures("interpreted")
def test_every_window_of_short_streams_is_certified_as_its_own_sums_say():
    rng = np.random.default_rng(0)
    for _ in range(many(150, 3000)):
        X, y, p, weights = small(rng)
        name = str(rng.choice(list(LOSSES)))
        value, slope = LOSSES[name]
        evidence = entered(name, X, y, p, weights, length=2 * int(rng.integers(1, 3)), most=int(rng.choice([4, 8, 32])))
        ends, U = (
            evidence.ledger.windows.pieces()[:, w.EXAMPLES].cumsum().astype(int),
            float(rng.choice([0.3, 2.0, 9.0])),
        )
        assert ends[-1] == len(y)
        g = weights * slope(p, y)
        numbers = np.ones(len(y)), weights, weights * value(p, y), y * p <= 0.0, g * p, weights * y, weights * y * y
        begins = [0, *ends[:-1].tolist()]
        wanted = np.column_stack([np.add.reduceat(np.asarray(column, dtype=float), begins) for column in numbers])
        assert evidence.ledger.windows.pieces() == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        for r, s in [(1, len(y)), *((int(a), int(b)) for a, b in np.sort(rng.integers(1, len(y) + 1, (8, 2))))]:
            i, j, first, last = find_window(evidence, (r, s))
            assert first <= r <= s <= last
            assert i == 0 or ends[i - 1] == first - 1
            assert ends[j] == last
            inside = slice(first - 1, last)
            g, losses = weights[inside] * slope(p[inside], y[inside]), weights[inside] * value(p[inside], y[inside])
            certificate = evidence_of_window(evidence, i, j).certificate(rue.Ball(U))
            expected = g @ p[inside] + U * np.linalg.norm(g @ X[inside])
            assert certificate.alone == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert certificate.loss_total == pytest.approx(losses.sum(), rel=1e-12)
            for u in rng.normal(size=(5, X.shape[1])):
                u = u * U / np.linalg.norm(u) * rng.choice([1.0, rng.random()])
                theirs = float(weights[inside] @ value(X[inside] @ u, y[inside]))
                assert certificate.comparator_loss_at_least <= theirs * (1 + 1e-12) + 1e-12
                assert losses.sum() - theirs <= certificate.regret_at_most + 1e-9 * (1.0 + losses.sum())


def brute_force(norms, changes):
    """max over all sets of at most so many borders of Σ‖S_segment‖, each set tried."""
    m, best = len(norms), 0.0
    for k in range(min(changes, m - 1) + 1):
        for borders in itertools.combinations(range(1, m), k):
            parts = itertools.pairwise([0, *borders, m])
            best = max(best, sum(norms[a, b - 1] for a, b in parts))
    return best


@pytest.mark.usefixtures("interpreted")
def test_models_that_change_against_every_partition_and_many_comparators():
    rng = np.random.default_rng(1)
    for _ in range(many(120, 2000)):
        X, y, p, weights = small(rng, T=int(rng.integers(1, 17)))
        name = str(rng.choice(list(LOSSES)))
        value, slope = LOSSES[name]
        evidence, U = entered(name, X, y, p, weights), float(rng.choice([0.3, 2.0, 9.0]))
        ends = [0, *evidence.ledger.windows.pieces()[:, w.EXAMPLES].cumsum().astype(int).tolist()]
        m, g = len(ends) - 1, weights * slope(p, y)
        norms = np.array(
            [[np.linalg.norm(g[ends[a] : ends[b + 1]] @ X[ends[a] : ends[b + 1]]) for b in range(m)] for a in range(m)]
        )
        total, below = float(weights @ value(p, y)), math.inf
        for k in (0, 1, 2, 3, m):
            found = changing_models(evidence, rue.Ball(U), "raw").certificate(k)
            assert found.alone == pytest.approx(g @ p + U * brute_force(norms, k), rel=1e-9, abs=1e-9)
            assert found.comparator_loss_at_least >= min(max(total - found.alone, 0.0), total) - 1e-9 * (1.0 + total)
            assert found.comparator_loss_at_least <= below + 1e-12
            below = found.comparator_loss_at_least
            for _ in range(6):  # comparators that change at borders, some of them fitted to the windows' slopes
                borders = sorted(rng.permutation(np.arange(1, m))[:k].tolist()) if m > 1 else []
                theirs = 0.0
                for a, b in itertools.pairwise([0, *borders, m]):
                    inside = slice(ends[a], ends[b])
                    u = -(g[inside] @ X[inside]) if rng.random() < 0.6 else rng.normal(size=X.shape[1])
                    u = u * U / max(np.linalg.norm(u), 1e-300) * rng.choice([1.0, rng.random()])
                    theirs += float(weights[inside] @ value(X[inside] @ u, y[inside]))
                assert found.comparator_loss_at_least <= theirs * (1 + 1e-12) + 1e-9
        one = evidence.certificate(rue.Ball(U))
        assert changing_models(evidence, rue.Ball(U), "raw").certificate(0).alone == pytest.approx(
            one.alone, rel=1e-12, abs=1e-12
        )


@pytest.mark.usefixtures("interpreted")
def test_with_one_window_models_that_change_are_d1():
    rng = np.random.default_rng(2)
    for _ in range(20):
        X, y, p, weights = small(rng)
        evidence = entered("logistic", X, y, p, weights, length=64)
        whole = with_one_window(evidence)
        for k in (0, 1, 5):
            found = changing_models(whole, rue.Ball(2.0), "raw").certificate(k)
            assert found.alone == pytest.approx(evidence.certificate(rue.Ball(2.0)).alone, rel=1e-12, abs=1e-12)


def with_one_window(evidence):
    """The same evidence with all windows joined into one."""
    windows = evidence.ledger.windows
    joined = w.of_pieces(windows.columns()[0], windows.pieces(), 2**40, 32)
    again = copy.deepcopy(evidence)
    again.ledger = again.ledger._replace(windows=joined)
    assert len(joined.pieces()) == 1
    return again


@pytest.mark.usefixtures("interpreted")
def test_windows_never_depend_on_how_the_stream_is_cut():
    rng = np.random.default_rng(3)
    for _ in range(many(20, 300)):
        X, y, p, weights = small(rng, T=int(rng.integers(1, 200)))
        whole = entered("logistic", X, y, p, weights, most=8)
        for cuts in (range(1, len(y)), sorted(set(rng.integers(1, len(y) + 1, 5).tolist()))):
            part = entered("logistic", X, y, p, weights, most=8, cuts=[cut for cut in cuts if cut < len(y)])
            assert_same(part.ledger.windows, whole.ledger.windows)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("T", [7, 8, 12])
def test_rows_that_are_not_scored_begin_no_window(T):
    X, y, p, weights = np.ones((T + 3, 1)), np.ones(T + 3), np.zeros(T + 3), np.where(np.arange(T + 3) < T, 1.0, 0.0)
    scored = entered("hinge", X[:T], y[:T], p[:T], length=4)
    for cuts in ((), [T], [T + 1, T + 2]):
        assert_same(entered("hinge", X, y, p, weights, length=4, cuts=cuts).ledger.windows, scored.ledger.windows)


def wide(rng, rows, columns=30_000):
    """Sparse rows of which some features are 0 and written down, some slopes are 0, and some weights."""
    X = sp.random(rows, columns, density=12 / columns, format="csr", rng=rng)
    X.data[rng.random(X.nnz) < 0.2] = 0.0
    y = rng.choice([-1.0, 1.0], rows)
    p = np.where(rng.random(rows) < 0.3, 5.0 * y, rng.normal(size=rows))
    return X, y, p, rng.choice([0.0, 1.0, 2.0], rows)


@pytest.mark.usefixtures("interpreted")
def test_windows_of_wide_streams_never_depend_on_how_they_are_cut_either(monkeypatch):
    rng = np.random.default_rng(13)
    for budget in (w.BUDGET, 2**20, 0):  # columns as they may be needed, as they are counted, and fewer windows
        monkeypatch.setattr(w, "BUDGET", budget)
        X, y, p, weights = wide(rng, 400)
        whole = entered("hinge", X, y, p, weights, length=4, most=32)
        windows, slopes = whole.ledger.windows, -weights * y * (y * p <= 1.0)
        assert windows.lines.size
        assert windows.clock[w.MOST] == (4 if budget < 2**20 else 32)
        occurred = np.unique(X[slopes != 0.0].tocoo().coords[1][X[slopes != 0.0].data != 0.0])
        assert windows.columns()[1].tolist() == occurred.tolist()  # a column for what counts, and for nothing else
        assert w.FEW < occurred.size <= w.PER_EXAMPLE * windows.clock[w.LENGTH]
        counts, closed = windows.pieces()[:, w.EXAMPLES].tolist(), int(windows.clock[w.CLOSED])
        assert set(counts[:closed]) <= {windows.clock[w.LENGTH]}
        assert all(count <= windows.clock[w.LENGTH] / 2 for count in counts[closed:])
        scored, ends = np.flatnonzero(weights > 0.0), windows.pieces()[:, w.EXAMPLES].cumsum().astype(int)
        for i, (begin, end) in enumerate(itertools.pairwise([0, *ends.tolist()])):
            inside = scored[begin:end]
            S = np.asarray(slopes[inside] @ X[inside]).ravel()
            assert windows.spread(windows.columns()[0][i], S.size) == pytest.approx(S, rel=1e-9, abs=1e-12)
        for cuts in (range(1, 400), [7, 100, 101]):
            part = entered("hinge", X, y, p, weights, length=4, most=32, cuts=cuts)
            assert_same(part.ledger.windows, windows)
            assert part.ledger.S.tobytes() == whole.ledger.S.tobytes()


def assert_same(one, other):
    assert one.clock.tolist() == other.clock.tolist()
    assert one.pieces().tobytes() == other.pieces().tobytes()
    size = max(one.columns()[1].max(initial=-1), other.columns()[1].max(initial=-1)) + 1
    for a, b in zip(one.columns()[0], other.columns()[0], strict=True):
        assert one.spread(a, size).tobytes() == other.spread(b, size).tobytes()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("length", "most"), [(2, 4), (2, 8), (4, 32), (32, 32)])
def test_windows_have_equal_length_and_the_last_is_in_halves(length, most):
    T = 40 * length + 1
    X, y, p = np.ones((T, 1)), np.ones(T), np.zeros(T)
    evidence = entered("hinge", X, y, p, length=length, most=most)
    for t in range(1, T + 1, 1 + length // 4):
        found = entered("hinge", X[:t], y[:t], p[:t], length=length, most=most).ledger.windows
        counts, L = found.pieces()[:, w.EXAMPLES].tolist(), int(found.clock[w.LENGTH])
        closed = int(found.clock[w.CLOSED])
        assert sum(counts) == t
        assert set(counts[:closed]) <= {L}
        assert len(counts) <= most + 1
        assert all(count <= L / 2 for count in counts[closed:])
        assert length == L or L * most >= t > L * most / 2 - L  # no longer than they must be
    assert_same(
        evidence.ledger.windows, entered("hinge", X, y, p, length=length, most=most, cuts=[3, 50]).ledger.windows
    )


@pytest.mark.usefixtures("interpreted")
def test_window_sums_do_not_cancel():
    """A difference of prefix sums would have lost all digits of the second half."""
    X = np.concatenate([np.full((8, 1), 1e30), np.full((8, 1), 1e-3)])
    evidence = entered("hinge", X, np.ones(16), np.zeros(16), length=8)
    assert evidence.ledger.windows.columns()[0][1:].sum() == pytest.approx(-8e-3, rel=1e-12)


def test_wide_streams_have_the_same_windows_as_narrow_ones():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(3000, 6)), rng.choice([-1.0, 1.0], 3000)
    places = np.array([3, 700, 17_000, 90_000, 90_001, 1_000_000])
    wide = sp.csr_matrix(
        (X.ravel(), np.tile(places, 3000).astype(np.int64), np.arange(0, 18_001, 6)), shape=(3000, 1_000_001)
    )
    narrow, run = (rue.learn(data, y, learner=rue.OGD(domain="ball:1")) for data in (X, wide))
    assert run.ledger.windows.lines.size
    assert not narrow.ledger.windows.lines.size
    for window in ("last:1", (1, 100), (1000, 3000)):
        ours = run.certificate(radius=1, window=window)
        r, s = ours.window
        g = -run.y[r - 1 : s] / (1.0 + np.exp(run.y[r - 1 : s] * run.predictions[r - 1 : s]))
        S = np.append(g @ X[r - 1 : s], g.sum())
        assert ours.slope_norm == pytest.approx(np.linalg.norm(S), rel=1e-9)
    assert [window.last for window in run.windows] == [window.last for window in narrow.windows]


@pytest.mark.parametrize("cut", [63, 150, 256])
def test_wide_streams_go_on_from_a_file_to_the_same_bits(cut, interpreted, tmp_path):
    X, y, _, _ = wide(np.random.default_rng(14), 300)  # windows become four times as long at once, and longer
    whole = rue.learn(X, y, learner=rue.OGD())
    rue.save(rue.learn(X[:cut], y[:cut], learner=rue.OGD()), tmp_path / "m.rue")
    resumed = rue.learn(X[cut:], y[cut:], learner=rue.load(tmp_path / "m.rue"))
    assert whole.ledger.windows.lines.size
    assert resumed.ledger.S.tobytes() == whole.ledger.S.tobytes()
    windows, others = resumed.ledger.windows, whole.ledger.windows
    assert windows.clock[: w.VECTORS].tolist() == others.clock[: w.VECTORS].tolist()
    assert windows.pieces().tobytes() == others.pieces().tobytes()
    for mine, other in zip(windows.columns()[0], others.columns()[0], strict=True):
        mine, other = windows.spread(mine, X.shape[1] + 1), others.spread(other, X.shape[1] + 1)
        assert mine.tobytes() == other.tobytes()
    for how in ({"window": (1, 100)}, {"window": "last:50"}, {"changes": 2}):
        assert resumed.certificate(radius=2, **how) == whole.certificate(radius=2, **how)


def test_windows_of_a_learner_and_of_its_predictions_certified_are_the_same():
    X, y = rue.census()
    X, y = X[:3000], y[:3000]
    run = rue.learn(X, y, learner=rue.OGD(domain="ball:5"))
    for how in ({"window": (1, 900)}, {"window": "last:700"}, {"changes": 3}):
        ours = run.certificate(radius=5, **how)
        assert rue.certify(X, y, run.predictions, radius=5, **how) == ours
    labelled = np.array([window.loss for window in run.windows])
    assert labelled.sum() == pytest.approx(run.loss)
    assert run.windows[-1].last == 3000
    first = run.windows[0]
    assert first.loss == pytest.approx(run.losses[: first.last].sum(), rel=1e-12)
    share = float((y[: first.last] > 0).mean())
    entropy = -(share * math.log(share) + (1 - share) * math.log(1 - share)) * first.examples
    assert first.best_constant == pytest.approx(entropy, rel=1e-9)
    chance = 1.0 / (1.0 + np.exp(-run.predictions[: first.last]))
    assert first.gap == pytest.approx(chance.mean() - share, abs=1e-12)


@pytest.mark.parametrize("learner", [None, rue.SVM(0.1), rue.Perceptron(), rue.AdaGrad(), rue.OGD("square")], ids=str)
def test_every_learner_has_windows_and_goes_on_to_the_same_bits(learner, tmp_path):
    X, y = rue.census()
    X, y = X[:1500], y[:1500]
    whole = rue.learn(X, y, learner=learner)
    rue.save(rue.learn(X[:700], y[:700], learner=learner), tmp_path / "m.rue")
    resumed = rue.learn(X[700:], y[700:], learner=rue.load(tmp_path / "m.rue"))
    assert_same(resumed.ledger.windows, whole.ledger.windows)
    assert [window.examples for window in resumed.windows] == [window.examples for window in whole.windows]
    assert resumed.certificate(radius=2, window="last:100") == whole.certificate(radius=2, window="last:100")
    rue.save(resumed, tmp_path / "m.rue")
    assert_same(rue.load(tmp_path / "m.rue").evidence.ledger.windows, whole.ledger.windows)


def test_more_than_two_classes_have_windows_of_their_losses():
    rng = np.random.default_rng(5)
    run = rue.learn(rng.normal(size=(200, 2)), rng.choice(["a", "b", "c"], 200))
    assert sum(window.loss for window in run.windows) == pytest.approx(run.loss)
    assert sum(window.mistakes for window in run.windows) == run.mistakes


def test_a_file_without_windows_has_one_of_what_was_learnt(tmp_path):
    from rue.models.container import read_container, write_container

    X, y = rue.census()
    run = rue.learn(X[:1000], y[:1000], learner=rue.OGD())
    save_model(Model(run.learner, run.evidence, run.labels), tmp_path / "m")
    head, arrays = read_container(tmp_path / "m")
    head["format"] = 3
    del head["evidence"]["windows"]
    older = {name: array for name, array in arrays.items() if not name.startswith("windows.")}
    write_container(tmp_path / "older", head, older)
    again = load_model(tmp_path / "older")
    assert again.evidence.ledger.windows.pieces()[:, w.EXAMPLES].tolist() == [1000.0]
    more = rue.learn(X[1000:1100], y[1000:1100], learner=again)
    assert [(window.first, window.last) for window in more.windows][:2] == [(1, 1000), (1001, 1032)]
    assert more.windows[0].best_constant is None
    assert more.certificate(radius=1, changes=0).alone == pytest.approx(more.certificate(radius=1).alone)


@pytest.mark.usefixtures("interpreted")
def test_windows_of_parts_follow_each_other():
    rng = np.random.default_rng(6)
    for _ in range(many(20, 300)):
        X, y, p, weights = small(rng, T=int(rng.integers(3, 120)))
        a, b = np.sort(rng.integers(1, len(y), 2)).tolist()
        base = entered("square", X[:a], y[:a], p[:a], weights[:a])
        parts = [copy.deepcopy(base) for _ in range(2)]
        for part, inside in zip(parts, (slice(a, b), slice(b, len(y))), strict=True):
            part.enter(Block(X[inside], y[inside], weights[inside]), p[inside], False, 0)
        both = base.merge(parts)
        windows = both.ledger.windows
        sums = windows.pieces()
        ends = [0, *sums[:, w.EXAMPLES].cumsum().astype(int).tolist()]
        assert ends[-1] == len(y)
        assert len(sums) <= w.MOST_WINDOWS
        g = 2.0 * weights * (p - y)
        for i, S in enumerate(windows.columns()[0]):
            inside = slice(ends[i], ends[i + 1])
            assert windows.spread(S, X.shape[1]) == pytest.approx(g[inside] @ X[inside], rel=1e-9, abs=1e-9)
            assert sums[i, w.LOSS] == pytest.approx(float(weights[inside] @ (p[inside] - y[inside]) ** 2), abs=1e-9)
        both.enter(Block(X, y, weights), p, False, 0)
        assert both.ledger.windows.pieces()[:, w.EXAMPLES].sum() == 2 * len(y)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"window": (0, 5)}, "window (r, s) has 1 ≤ r ≤ s ≤ 100, the number of rounds, not (0, 5)"),
        ({"window": (5, 101)}, "1 ≤ r ≤ s ≤ 100"),
        ({"window": "first:3"}, "window is (r, s), or 'last:N' such as 'last:10000', not 'first:3'"),
        ({"window": 7}, "window is a pair (r, s) of rounds"),
        ({"changes": -1}, "changes is a whole number ≥ 0, not -1"),
        ({"changes": True}, "changes is a whole number ≥ 0, not True"),
        ({"changes": 1, "window": (1, 2)}, "give a window or changes, not both"),
    ],
)
def test_questions_that_make_no_sense(how, why):
    run = rue.learn(np.ones((100, 1)), [1, -1] * 50, learner=rue.OGD())
    with pytest.raises(rue.SettingsError) as error:
        run.certificate(radius=1, **how)
    assert why in str(error.value)


def test_windows_of_an_unbounded_learner_name_their_rounds():
    X, y = rue.census()
    run = rue.learn(X[:2000], y[:2000])
    found = run.certificate(window="last:300")
    assert found.window == (1665, 2000)
    assert found.radius is not None
    assert "on rounds 1,665 to 2,000" in str(found)
    assert "that changes at most 3 times" in str(run.certificate(changes=3))
    windows = windows_of(run.evidence, True)
    assert len(windows) == len(run.windows)
    assert windows[2:4] == tuple(windows)[2:4]


def test_windows_are_in_the_units_of_the_witnesses_too():
    """Magnitudes that only the witnesses have added up serve the windows' certificates as well."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(200, 2)) * [1.0, 100.0], np.where(rng.random(200) < 0.5, 1.0, -1.0)
    p = np.zeros(200)
    settings = {"loss": "logistic", "radius": 3.0, "units": "largest", "witnesses": 3.0}
    window = rue.certify(X, y, p, window=(1, 200), **settings)
    scaled = np.hstack([np.ones((200, 1)), X / np.abs(X).max(axis=0)])
    assert window.slope_norm == pytest.approx(np.linalg.norm((-y / 2.0) @ scaled))
    assert rue.certify(X, y, p, changes=1, **settings).regret_at_most >= 0.0


def test_columns_in_order_are_those_that_are_sorted_each_time(interpreted):
    rng = np.random.default_rng(3)
    X = sp.random(300, 20_000, density=0.001, format="csr", rng=rng)
    y = rng.choice([-1, 1], 300)
    windows = rue.learn(X[:, rng.permutation(20_000)], y, learner=rue.OGD()).evidence.ledger.windows
    assert windows.lines.size
    assert (np.diff(windows.places) < 0).any()  # features came in another order
    sorted_once = windows.in_order()
    for found, wanted in zip(sorted_once.columns(), windows.columns(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(sorted_once.pieces(), windows.pieces())
    assert np.shares_memory(sorted_once.columns()[0], sorted_once.S)


def watched(X, y, p, weights=None, *, radii=2.0, cuts=(), scaled=False, evidence=None):
    """Evidence with witnesses about logistic loss, entered in pieces."""
    from rue.regret.certificates.evidence import open_evidence

    units = "largest" if scaled else "raw"
    evidence = open_evidence(rue.Logistic(), witnesses=radii, units=units) if evidence is None else evidence
    for begin, end in itertools.pairwise([0, *cuts, len(y)]):
        part = slice(begin, end)
        evidence.enter(Block(X[part], y[part], None if weights is None else weights[part]), p[part].copy(), False, 0)
    return evidence


def witness_by_definition(X, y, weights, U, rate):
    """Loss, slope and weight·slope·prediction of each round of projected OGD with A8's step times a rate."""
    value, slope = LOSSES["logistic"]
    v, square, rounds = np.zeros(X.shape[1]), 0.0, []
    for x, label, weight in zip(X, y, weights, strict=True):
        p = float(v @ x)
        g = weight * float(slope(p, label))
        rounds.append((weight * float(value(p, label)), g, g * p))
        square += g * g * float(x @ x)
        v = v - (rate * math.sqrt(2.0) * U / math.sqrt(square) * g * x if square > 0.0 else 0.0)
        v = v * min(1.0, U / max(float(np.linalg.norm(v)), 1e-300))
    return np.array(rounds).T


def proved_by(runs, X, U, begin, end):
    """What each witness has proved about models of norm ≤ U on some rounds: c − U‖S‖."""
    inside = slice(begin, end)
    return [
        float((losses - along)[inside].sum() - U * np.linalg.norm(slopes[inside] @ X[inside]))
        for losses, slopes, along in runs
    ]


@pytest.mark.usefixtures("interpreted")
def test_witnesses_certify_every_window_as_their_definition_says():
    rng = np.random.default_rng(7)
    for _ in range(many(6, 200)):
        X, y, p, weights = small(rng, T=int(rng.integers(40, 160)))
        X = X / np.abs(X).max()
        p[rng.integers(0, len(y), 3)] = np.nan  # rows that are left out
        weights[rng.integers(0, len(y), 3)] = 0.0
        U, used = float(rng.choice([0.3, 2.0, 5.0])), (weights > 0.0) & ~np.isnan(p)
        evidence = watched(X, y, p, weights, radii=U)
        pool, ends = evidence.pool, evidence.witnessed.ends()
        assert ends.tolist() == evidence.ledger.windows.pieces()[:, w.EXAMPLES].cumsum().tolist()
        X, y, weights = X[used], y[used], weights[used]
        runs = [witness_by_definition(X, y, weights, U, rate) for rate in pool.rates]
        for first, last in [(1, int(ends[-1])), *zip([1, *(ends[:-1] + 1)], ends.tolist(), strict=True)]:
            inside = slice(int(first) - 1, last)
            found = evidence_of_window(evidence, *find_window(evidence, (int(first), last))[:2]).certificate(
                rue.Ball(U)
            )
            proved = proved_by(runs, X, U, int(first) - 1, last)
            assert found.comparator_loss_at_least >= max(0.0, *proved) - 1e-9
            best = rue.best_in_hindsight(X[inside], y[inside], radius=U, weights=weights[inside], intercept=False)
            assert found.comparator_loss_at_least <= best.value + 1e-9
            assert found.witnesses == 6

        models, total, borders = changing_models(evidence, rue.Ball(U), "raw"), len(ends), [0, *ends.tolist()]
        for k in (0, 1, total):
            partitions = [
                itertools.pairwise([0, *at, total])
                for changes in range(min(k, total - 1) + 1)
                for at in itertools.combinations(range(1, total), changes)
            ]
            floor = min(
                sum(max(0.0, *proved_by(runs, X, U, borders[a], borders[b])) for a, b in partition)
                for partition in partitions
            )
            assert models.certificate(k).comparator_loss_at_least >= floor - 1e-9
        best = sum(
            rue.best_in_hindsight(X[a:b], y[a:b], radius=U, weights=weights[a:b], intercept=False).value
            for a, b in itertools.pairwise([0, *ends.tolist()])
        )
        assert models.certificate(total).comparator_loss_at_least <= best + 1e-9


@pytest.mark.usefixtures("interpreted")
def test_sums_of_witnesses_never_depend_on_how_the_stream_is_cut():
    rng = np.random.default_rng(8)
    X, y, p, weights = small(rng, T=1500, d=3)
    whole = watched(X, y, p, weights, scaled=True)
    assert whole.witnessed.ends().tolist() == whole.ledger.windows.pieces()[:, w.EXAMPLES].cumsum().tolist()
    assert len(whole.witnessed.ends()) > 20
    for cuts in ([700], sorted(set(rng.integers(1, 1500, 60).tolist()))):
        part = watched(X, y, p, weights, scaled=True, cuts=cuts)
        assert part.witnessed.clock.tolist() == whole.witnessed.clock.tolist()
        assert part.witnessed.vectors(part.pool).tobytes() == whole.witnessed.vectors(whole.pool).tobytes()
    again = copy.deepcopy(watched(X[:500], y[:500], p[:500], weights[:500], scaled=True))
    again = watched(X[500:], y[500:], p[500:], weights[500:], evidence=again)
    assert again.witnessed.vectors(again.pool).tobytes() == whole.witnessed.vectors(whole.pool).tobytes()
    total = whole.witnessed.vectors(whole.pool).sum(axis=0)
    K = whole.pool.radii.size
    assert total[:2] == pytest.approx(whole.pool.state[:2, :K], rel=1e-9)
    sums = whole.pool.table[: len(total) - 2, whole.pool.part.shape[1] :][:, :K]
    assert total[2:] == pytest.approx(sums, rel=1e-9, abs=1e-9)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("sparse", [False, True])
def test_witnesses_of_parts_certify_windows_together(sparse):
    rng = np.random.default_rng(9)
    for _ in range(many(4, 60)):
        X, y, p, weights = small(rng, T=200, d=5)
        X[:, 4] = 0.0
        X[150:, 4] = 1.0  # a feature that one part alone has
        a, b = 70, 110
        X = sp.csr_matrix(X) if sparse else X
        base = watched(X[:a], y[:a], p[:a], weights[:a])
        parts = [copy.deepcopy(base) for _ in range(2)]
        for part, inside in zip(parts, (slice(b, 200), slice(a, b)), strict=True):
            watched(X[inside], y[inside], p[inside], weights[inside], evidence=part)
        both = base.merge(parts)
        order = np.r_[0:a, b:200, a:b]
        X, y, weights = X[order].toarray() if sparse else X[order], y[order], weights[order]
        ends = both.witnessed.ends()
        assert ends.tolist() == both.ledger.windows.pieces()[:, w.EXAMPLES].cumsum().tolist()
        for first, last in itertools.pairwise([0, *ends.tolist()]):
            inside = slice(first, last)
            found = evidence_of_window(both, *find_window(both, (first + 1, last))[:2]).certificate(rue.Ball(2.0))
            best = rue.best_in_hindsight(X[inside], y[inside], radius=2.0, weights=weights[inside], intercept=False)
            assert found.witnesses == 6
            assert found.comparator_loss_at_least <= best.value + 1e-9
        total = both.witnessed.vectors(both.pool).sum(axis=0)
        assert total[:2] == pytest.approx(both.pool.state[:2, : both.pool.radii.size], rel=1e-9)
        sums = both.pool.table[: len(total) - 2, both.pool.part.shape[1] :][:, : both.pool.radii.size]
        assert total[2:] == pytest.approx(sums, rel=1e-9, abs=1e-9)


def test_a_model_goes_on_with_what_its_witnesses_have_proved_in_each_window(tmp_path):
    X, y = rue.census()
    X, y = X[:1500], y[:1500]
    settings = {"learner": rue.AdaGrad(), "witnesses": [1.0, 10.0], "units": "largest"}
    whole = rue.learn(X, y, **settings)
    rue.save(rue.learn(X[:700], y[:700], **settings), tmp_path / "m.rue")
    resumed = rue.learn(X[700:], y[700:], learner=rue.load(tmp_path / "m.rue"))
    ours, theirs = whole.evidence, resumed.evidence
    assert ours.witnessed.clock.tolist() == theirs.witnessed.clock.tolist()
    assert ours.witnessed.vectors(ours.pool).tobytes() == theirs.witnessed.vectors(theirs.pool).tobytes()
    for how in ({"window": "last:200"}, {"changes": 2}):
        assert resumed.certificate(radius=2, **how) == whole.certificate(radius=2, **how)
        assert whole.certificate(radius=2, **how).witnesses == 12


def test_where_features_are_many_witnesses_certify_the_whole_alone():
    from rue.regret.certificates.witnessed import WIDEST

    rng = np.random.default_rng(10)
    X = sp.random(400, 2 * WIDEST, density=0.01, format="csr", rng=rng)
    y = rng.choice([-1, 1], 400)
    run = rue.learn(X, y, learner=rue.AdaGrad(), witnesses=[1.0, 10.0], units="largest")
    assert run.evidence.witnessed is None
    assert run.certificate(radius=1).witnesses == 12
    assert run.certificate(radius=1, window="last:50").witnesses == 0
    assert run.certificate(radius=1, changes=1).witnesses == 0

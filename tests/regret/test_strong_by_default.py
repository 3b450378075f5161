"""What is proved without asking: of narrow streams as much as there is, at a radius that tells something, in words."""

import functools
import re
import sys

import cvxpy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

import rue
from conftest import many
from rue.cli.app import _run, refuse_interactions
from rue.errors import SettingsError
from rue.regret.certificates.certificate import rounded_down, rounded_up
from rue.regret.certificates.digest import REDUCED, open_digest
from rue.regret.certificates.evidence import NARROW, open_evidence
from rue.streams import Block

learn = functools.partial(rue.learn, maps=None)  # the linear mixture

few = settings(max_examples=many(12, 200), deadline=None, suppress_health_check=list(HealthCheck))


def least(loss, Z, y, radius):
    """The least total loss in a ball, by a conic solver."""
    u = cvxpy.Variable(Z.shape[1])
    each = {
        "logistic": cvxpy.logistic(-cvxpy.multiply(y, Z @ u)),
        "square": cvxpy.square(Z @ u - y),
        "absolute": cvxpy.abs(Z @ u - y),
    }[loss]
    return cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(each)), [cvxpy.norm(u) <= radius]).solve(solver="CLARABEL")


def stream(seed, rows, d, loss, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d)) * 10.0 ** rng.integers(-2, 3, size=d)
    score = X / np.abs(X).max(axis=0) @ rng.normal(size=d) * 3.0
    if loss == "logistic":
        return X, np.where(score + rng.logistic(size=rows) > 0.0, 1.0, -1.0)
    return X, size * (score + rng.normal(size=rows) + 2.0)


@few
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(8, 60),
    d=st.integers(1, 4),
    loss=st.sampled_from(["logistic", "square", "absolute"]),
    size=st.sampled_from([0.01, 1.0, 300.0]),
)
def test_every_sentence_is_true_and_says_something(seed, rows, d, loss, size):
    X, y = stream(seed, rows, d, loss, size)
    run = learn(X, y, learner=rue.Mixture(loss))
    found = run.certificate()
    Z = np.c_[np.ones(rows), X / np.abs(X).max(axis=0)]
    true = least(loss, Z, y, found.radius) * (1.0 + 1e-6)
    said = re.fullmatch(
        r"no linear model of norm ≤ (\S+) \(each feature .*?\) could have had a mean loss below (\S+) on this stream; "
        r"this learner had (\S+?), (better than any of them|.*)",
        found.words,
    )
    assert said, found.words
    assert float(said[1].replace(",", "")) == found.radius
    assert float(said[2].replace(",", "")) <= true / rows
    assert found.comparator_loss_at_least >= 0.98 * true  # and nearly as much is said as there is to say
    if "better" in said[4]:
        assert run.loss < true
    elif (near := re.fullmatch(r"within (\S+) % of the best there could have been", said[4])) is not None:
        assert run.loss <= true * (1.0 + float(near[1]) / 100.0)
    else:
        near = re.fullmatch(r"at most (\S+) times the best there could have been", said[4])
        assert run.loss <= true * float(near[1].replace(",", ""))
    assert found == run.evidence.certificate(rue.Ball(found.radius))  # the units are the same everywhere
    assert found.alone == pytest.approx(
        rue.certify(X, y, run.predictions, loss=loss, radius=found.radius, units="largest").alone, rel=1e-9
    )


@few
@given(value=st.floats(-1e20, 1e20), digits=st.integers(1, 6))
def test_rounded_numbers_are_on_the_safe_side(value, digits):
    assert float(rounded_down(value, digits).replace(",", "")) <= value
    up = float(rounded_up(abs(value), digits).replace(",", ""))
    assert abs(value) <= up <= abs(value) * (1.0 + 10.0 ** (2 - digits)) + 1e-300


def test_features_of_a_sparse_stream_count_by_those_in_use(tmp_path):
    """Words hashed to a million slots are as narrow a stream as the same columns side by side."""
    rng = np.random.default_rng(0)
    X, y = stream(1, 300, 6, "logistic")
    places = np.sort(rng.choice(2**20, 6, replace=False))
    wide = sparse.csr_matrix((300, 2**20))
    wide = sparse.csr_matrix((X.ravel(), np.tile(places, 300), np.arange(0, 1801, 6)), shape=(300, 2**20))
    both = [learn(data, y) for data in (X, wide)]
    dense, hashed = (run.certificate(radius=10) for run in both)
    assert hashed.comparator_loss_at_least == pytest.approx(dense.comparator_loss_at_least, rel=1e-5)
    assert hashed.theorem == "D3"
    rue.save(both[1], tmp_path / "m.rue")
    loaded = rue.load(tmp_path / "m.rue").evidence
    assert loaded.certificate(rue.Ball(10)) == both[1].evidence.certificate(rue.Ball(10))
    halves = [learn(data[:150], y[:150]).evidence for data in (X, wide)]
    rests = [learn(data[150:], y[150:]).evidence for data in (X, wide)]
    merged = [a.merged(b).certificate(rue.Ball(10)) for a, b in zip(halves, rests, strict=True)]
    assert merged[1].comparator_loss_at_least == pytest.approx(merged[0].comparator_loss_at_least, rel=1e-5)
    text = sparse.random(50, 2**20, density=20 / 2**20, format="csr", random_state=0)
    assert learn(text, y[:50]).evidence.digest is None  # with more than the NARROW features there is no digest
    numbers = learn(wide, X[:, 0]).certificate(radius=10)
    assert numbers.theorem == "D4"
    assert numbers.comparator_loss_at_least == pytest.approx(
        learn(X, X[:, 0]).certificate(radius=10).comparator_loss_at_least, rel=1e-5, abs=1e-9
    )


@pytest.mark.parametrize("loss", ["logistic", "absolute"])
def test_a_cheap_digest_of_a_long_stream_stays_true(loss):
    """Cells so few that rows are led to them many times; the reference is SciPy's on the whole stream."""
    X, y = stream(2, 900, 3, loss)
    evidence = open_evidence(rue.make("loss", loss), narrow=True)
    evidence.digest = open_digest((), True, cells=24)
    for begin in range(0, 900, 70):
        block = Block(X[begin : begin + 70], y[begin : begin + 70])
        evidence.enter(block, np.zeros(len(block)), True, begin)
    assert evidence.digest.totals[REDUCED] > 6
    found = evidence.certificate(rue.Ball(8), "largest").comparator_loss_at_least
    Z = np.c_[np.ones(900), X / np.abs(X).max(axis=0)]
    if loss == "absolute":
        true = least(loss, Z, y, 8.0)
    else:
        inside = optimize.NonlinearConstraint(lambda u: u @ u, 0.0, 64.0)
        value = optimize.minimize(lambda u: np.logaddexp(0, -y * (Z @ u)).sum(), np.zeros(4), constraints=[inside])
        true = value.fun
    assert 0.85 * true < found <= true * (1.0 + 1e-6)


def test_wide_short_streams_are_held_whole_and_long_ones_are_not():
    X, y = stream(3, 5000, NARROW + 10, "logistic")
    assert learn(X[:1000], y[:1000]).evidence.digest is not None
    assert learn(X, y).evidence.digest is None


def test_radii_of_a_regression_are_in_units_of_the_target():
    from rue.runs.driver import Driver

    X, y = stream(4, 200, 3, "square", 300.0)
    driver = Driver(units="largest", witnesses=(1.0, 10.0, 100.0), quick=True)
    driver.learn_all(X, y)
    unit = 10.0 ** np.floor(np.log10(abs(y[0])))
    assert np.unique(driver.evidence.pool.radii).tolist() == [unit, 10.0 * unit, 100.0 * unit]


@pytest.mark.parametrize("words", [["-q", "ab"], ["-q", "::"], ["-qab"], ["--quadratic", "ab"], ["--interactions=abc"]])
def test_interactions_of_vowpal_wabbit_are_refused_with_what_to_do(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rue", "learn", "day.vw", *words])
    assert _run() == 2
    said = capsys.readouterr().err
    assert "-q alone is short for --quiet" in said
    assert "--interact " in said
    assert "--cross A,B" in said


def test_quiet_before_a_file_is_quiet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ab").touch()
    for words in (["-q", "ab"], ["-q", "day.vw"], ["-q", "--passes", "2"], ["day.vw", "-q"]):
        refuse_interactions(["learn", *words])
    with pytest.raises(SettingsError):
        refuse_interactions(["learn", "-q", "xy"])

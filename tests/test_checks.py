"""`rue.checks` holds for every registered class, and fails where it should."""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import rue
from combinations import DOMAINS, INTERPRETED, LOSSES, STEPS, D, build, everything, pairwise, thinned
from rue.compiled import twin, values
from rue.learners.loop import OK, run_rows
from rue.ledger import Silent
from rue.registry import names

ALL = everything()
PAIRS = pairwise([(*choice, rows) for choice in ALL for rows in ("dense", "sparse")])
FULL = thinned(ALL) + [choice[:5] for choice in PAIRS] if INTERPRETED else pairwise([c[:1] + c[3:] for c in ALL])

if INTERPRETED:  # a round of all stages takes milliseconds there: one loss of each kind is enough
    stages = [choice for choice in FULL if choice[0].startswith("staged")]
    FULL = [choice for choice in FULL if choice not in stages[2:]]


def width(choice):
    return 0 if choice[0] == "leader" and choice[1] == "square" else D


def test_the_combinations_cover_every_registered_name():
    assert {choice[1] for choice in ALL} == set(LOSSES) - {"zero-one"}
    assert {choice[4] for choice in ALL} == set(names("average"))
    assert {choice[0].split()[0] for choice in ALL} == set(names("learner"))


@pytest.mark.parametrize("choice", FULL, ids="-".join)
def test_every_learner_keeps_its_contract(choice):
    if len(choice) == 3:  # compiled: some loss and domain for every learner with every step and every average
        matches = [full for full in ALL if full[:1] + full[3:] == choice]
        choice = matches[len(matches) // 2]
    rue.checks.check_learner(build(*choice), width(choice))


@pytest.mark.skipif(INTERPRETED, reason="there is nothing to compare with when nothing is compiled")
@pytest.mark.parametrize("choice", PAIRS, ids="-".join)
def test_compiled_and_interpreted_agree(choice):
    compiled, interpreted = build(*choice[:5]), build(*choice[:5])
    X, y, weights = rue.checks.sample(compiled, 80, width(choice))
    block = rue.Block(X if choice[5] == "dense" else csr_matrix(X), y, weights)
    found, wanted = np.empty(80), np.empty(80)
    assert compiled.run_block(block, Silent(0), found, 0) == (80, "")
    interpreted.widen(block)
    rows = block.rows(interpreted.intercept)
    args = twin(interpreted._rule), interpreted._point, Silent(0), rows, y, weights, wanted, 0
    assert run_rows.interpreted(*args) == (80, OK)
    scale = 1.0 + np.nanmax(np.abs(wanted))
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12 * scale, equal_nan=True)
    assert np.allclose(compiled.point, interpreted.point, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("loss", rue.checks.examples("loss").values(), ids=repr)
def test_every_loss_keeps_its_contract(loss):
    rue.checks.check_loss(loss)


@pytest.mark.parametrize("loss", [rue.Huber(0.3), rue.Quantile(0.9), rue.EpsilonInsensitive(0.0)], ids=repr)
def test_losses_with_parameters_keep_their_contract(loss):
    rue.checks.check_loss(loss)


@pytest.mark.parametrize("domain", [*DOMAINS.values(), rue.Interval(0, 1)], ids=repr)
def test_every_domain_keeps_its_contract(domain):
    rue.checks.check_domain(domain, d=D + 1)


@pytest.mark.parametrize("step", STEPS.values(), ids=repr)
def test_every_step_keeps_its_contract(step):
    concrete, words = step.resolve(rue.Hinge(), rue.Ball(2), 0.0, 3)
    rue.checks.check_step(concrete)
    assert words


@pytest.mark.parametrize("opponent", [*rue.checks.examples("opponent").values(), rue.MarginAdversary(9)], ids=repr)
def test_every_opponent_keeps_its_contract(opponent):
    rue.checks.check_opponent(opponent)


# Each check fails on a class that breaks it.


class Forgetful(rue.Opponent):
    """Draws lots where no seed reaches them."""

    d, lipschitz = 2, 1.0
    rng = np.random.default_rng(5)

    def begin(self, setting):
        return lambda move: rue.LinearRound(self.rng.normal(size=2))


class Boastful(rue.Opponent):
    """Claims a regret that it does not force."""

    d, lipschitz = 2, 1.0

    def begin(self, setting):
        return lambda move: rue.LinearRound(np.zeros(2))

    def hindsight(self, game):
        return np.zeros(game.T)

    def forced(self, game):
        return rue.Forced("mine", "regret", "at least", 1.0, "the regret is 1")


@pytest.mark.parametrize(("opponent", "words"), [(Forgetful(), "setting.rng"), (Boastful(), "the regret is 1, but")])
def test_check_opponent_fails(opponent, words):
    with pytest.raises(rue.CheckFailed, match=words):
        rue.checks.check_opponent(opponent)


@rue.parameter
class Base(rue.Loss):
    def value(self, p, y):
        return (p - y) ** 2

    def slope(self, p, y):
        return 2.0 * (p - y)


def broken_loss(**parts):
    return rue.parameter(type("Broken", (Base,), parts))()


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (broken_loss(slope=lambda self, p, y: 2.5 * (p - y)), "subgradient"),
        (broken_loss(value=lambda self, p, y: math.sin(p), slope=lambda self, p, y: math.cos(p)), "not convex"),
        (broken_loss(smooth=1.0), "smooth"),
        (broken_loss(strongly_convex=3.0), "strongly_convex"),
        (broken_loss(lipschitz=1.0), "lipschitz"),
        (broken_loss(value=lambda self, p, y: (p - y) ** 2 - 5.0), "never negative"),
        (broken_loss(exp_concave=lambda self, low, high: 1.0), "concave"),
        (broken_loss(accepts=lambda self, y: True), "NaN"),
    ],
)
def test_check_loss_fails(loss, words):
    with pytest.raises(rue.CheckFailed, match=words):
        rue.checks.check_loss(loss)


@rue.parameter
class OwnBall(rue.Domain):
    """The unit ball, done right, so that each broken version differs in one thing."""

    bounded = True

    def onto(self, w, scratch):
        square = 0.0
        for j in range(w.size):
            square += w[j] * w[j]
        if square > 1.0:
            for j in range(w.size):
                w[j] /= math.sqrt(square)
        return 0.0 * square

    def support(self, v):
        return float(np.linalg.norm(v))

    def diameter(self, d):
        return 2.0


def test_check_domain_passes_for_a_domain_of_ones_own():
    rue.checks.check_domain(OwnBall())


@rue.parameter
class HalfMeasured(OwnBall):
    """Measures only some of the coordinates, as a projection that looks at an example's own features does."""

    def onto(self, w, scratch):
        square = 0.0
        for j in range(1, w.size):
            square += w[j] * w[j]
        if square > 1.0:
            for j in range(1, w.size):
                w[j] /= math.sqrt(square)
        return 0.0

    bounded = True
    support = OwnBall.support
    diameter = OwnBall.diameter


@rue.parameter
class Scaled(OwnBall):
    """Onto the sphere of radius ½: inside, but not the nearest point."""

    def onto(self, w, scratch):
        square = 0.0
        for j in range(w.size):
            square += w[j] * w[j]
        if square > 1.0:
            for j in range(w.size):
                w[j] *= 0.5 / math.sqrt(square)
        return 0.0 * square


@rue.parameter
class SmallSupport(OwnBall):
    def support(self, v):
        return 0.5 * float(np.linalg.norm(v))


@rue.parameter
class SmallDiameter(OwnBall):
    def diameter(self, d):
        return 0.5


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (HalfMeasured(), "farther apart|support"),
        (Scaled(), "nearest|apart"),
        (SmallSupport(), "support"),
        (SmallDiameter(), "farther apart"),
    ],
)
def test_check_domain_fails(domain, words):
    with pytest.raises(rue.CheckFailed, match=words):
        rue.checks.check_domain(domain)


@rue.parameter
class Growing(rue.Step):
    def eta(self, t, seen):
        return 0.1 * t


@rue.parameter
class Negative(rue.Step):
    def eta(self, t, seen):
        return -1.0 / t


@pytest.mark.parametrize(("step", "words"), [(Growing(), "grows"), (Negative(), "not a finite number")])
def test_check_step_fails(step, words):
    with pytest.raises(rue.CheckFailed, match=words):
        rue.checks.check_step(step)


@rue.parameter
class Unprojected(OwnBall):
    def onto(self, w, scratch):
        for j in range(w.size):
            w[j] += 0.0
        return 0.0

    def contains(self, w, tolerance=1e-9):
        return bool(np.linalg.norm(w) <= 1.0 + tolerance)


def test_check_learner_fails_when_the_point_leaves_the_domain():
    with pytest.raises(rue.CheckFailed, match="left the domain"):
        rue.checks.check_learner(rue.OGD("square", Unprojected(), "fixed:0.2"))


@rue.parameter
class Late(rue.Average):
    """Weighs the first example apart from what `Uniform` promises."""

    def alpha(self, t, eta):
        return 2.0 if t == 1.0 else 1.0


def test_check_learner_passes_for_an_average_of_ones_own():
    rue.checks.check_learner(rue.OGD("hinge", "ball:1", average=Late()))


def test_check_learner_fails_when_something_beside_the_state_matters():
    class Moody(rue.Learner):
        def run_block(self, block, ledger, out, begin):
            end, why = super().run_block(block, ledger, out, begin)
            if len(block) > 50:
                out += 1e-13
            return end, why

    with pytest.raises(rue.CheckFailed, match="one by one"):
        rue.checks.check_learner(Moody(rue.OGD("hinge", "ball:1").algorithm))


@values
class BrokenFeatures(NamedTuple):
    which: Any

    def fill(self, table, out, at, mask):
        if self.which == 0:
            out[at] = 2 + mask
        elif self.which == 1:
            out[at] = 1
            table.columns[0, 0] += 1.0
        elif self.which == 2:
            for i in range(1000):
                out[at + i] = 1
            return at + 1000
        elif self.which == 3:
            table.scratch[0] = out[at] = 1 + int(table.scratch[0]) % 7
        elif self.which == 4:
            out[at + 1] = out[at] = 1  # and forgets to say so
        elif self.which == 5:
            out[at] = 1 + (table.no_such_thing & mask)
        return at + 1


@rue.parameter
class Broken(rue.maps.Map):
    which: int

    def features(self):
        return BrokenFeatures(self.which)

    def about(self):
        return "broken"


@pytest.mark.parametrize("map_", [*rue.checks.examples("map").values(), rue.Pairs(crosses=False)], ids=repr)
def test_every_map_keeps_its_contract(map_):
    rue.checks.check_map(map_)


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (0, "each feature must be 1 + (hash & mask)"),
        (1, "fill changes the table"),
        (2, "at most 900 features"),
        (3, "fill makes other features of a row when it is asked again"),
        (4, "return the place after them"),
        (5, "fill cannot be called on a row of three columns (AttributeError: "),
    ],
)
def test_a_map_that_compiled_code_would_trip_over_is_refused_before_it_is_used(which, words):
    with pytest.raises(rue.CheckFailed, match=re.escape(words)):
        rue.checks.check_map(Broken(which))
    with pytest.raises(rue.SettingsError, match=re.escape(words)):
        rue.Staged(maps=[Broken(which)])


def test_what_is_only_the_frame_of_a_map_is_refused():
    with pytest.raises(rue.SettingsError, match="NotImplementedError"):
        rue.Staged(maps=[rue.maps.Map()])
    for maps in (3, None, [3], [rue.Hinge()], [], ["pairs"] * 7):
        with pytest.raises(rue.SettingsError, match="maps: "):
            rue.Staged(maps=maps)

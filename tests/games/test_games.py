"""Games: every opponent forces what its theorem says, regrets are the true ones, and nonsense is refused in words."""

import dataclasses
import itertools
import math
import pickle

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rue
from conftest import many
from rue.games import (
    ConvexRound,
    ExampleRound,
    FlipFlop,
    LinearRound,
    MarginAdversary,
    NumberGuessing,
    Opponent,
    OrthogonalAdversary,
    RandomSigns,
    Stochastic,
    play,
)
from rue.games.geometry import orthogonal
from rue.registry import names, registered

T = 400

# Learners that can play linear losses on a bounded set, with an upper bound on their regret in T rounds of slope 1 in
# d coordinates: B3, B5, B6, B9, A10; None where theory has none.
BOUNDED = {
    "theory ball": (lambda: rue.OGD(domain="ball:2"), lambda g, d: 2 * math.sqrt(8 * len(g))),
    "theory box": (lambda: rue.OGD(domain="box:-1,1"), lambda g, d: math.sqrt(2) * 2 * math.sqrt(d * len(g))),
    "theory l1": (lambda: rue.OGD(domain=rue.L1Ball(2.0)), lambda g, d: math.sqrt(2) * 4 * math.sqrt(len(g))),
    "theory off-centre": (
        lambda: rue.OGD(domain=rue.Ball(2.0, [1.0, -3.0, 0.5])),
        lambda g, d: 2 * math.sqrt(8 * len(g)),
    ),
    "horizon": (
        lambda: rue.OGD(domain="ball:2", step=rue.Horizon(T)),
        lambda g, d: 2 / 2 * math.sqrt(T) + (2 / math.sqrt(T)) / 2 * (g**2).sum(),
    ),
    "fixed": (lambda: rue.OGD(domain="ball:2", step="fixed:0.1"), lambda g, d: 4 / 0.2 + 0.05 * (g**2).sum()),
    "sqrt": (
        lambda: rue.OGD(domain="ball:2", step="sqrt:0.3"),
        lambda g, d: 2 * 4 * math.sqrt(len(g)) / 0.3 + 0.3 * math.sqrt(len(g)),
    ),
    "adaptive ball": (
        lambda: rue.AdaptiveOGD(domain="ball:2"),
        lambda g, d: math.sqrt(2) * 4 * math.sqrt((g**2).sum()),
    ),
    "adagrad box": (
        lambda: rue.AdaGrad(domain="box:-1,1"),
        lambda g, d: math.sqrt(2) * 2 * np.sqrt((g**2).sum(axis=0)).sum(),
    ),
    "leader ball": (lambda: rue.FollowTheLeader(domain="ball:2"), None),
    "leader box": (lambda: rue.FollowTheLeader(domain="box:-1,1"), None),
}
bounded = pytest.mark.parametrize("name", BOUNDED)


def fits(domain, d):
    return domain.dimension in (None, d)


def best_linear(domain, S):
    """inf over K of ⟨S, u⟩, by hand."""
    if isinstance(domain, rue.Ball):
        return float(S @ domain.start(S.size)) - domain.radius * float(np.linalg.norm(S))
    if isinstance(domain, rue.L1Ball):
        return -domain.radius * float(np.abs(S).max())
    return float(np.minimum(S * domain.lower, S * domain.upper).sum())


class Signs(Opponent):
    """Slopes as given, one coordinate."""

    lipschitz = 1.0

    def __init__(self, slopes, d=1):
        self.slopes, self.d = np.asarray(slopes, float), d

    def begin(self, setting):
        e = np.zeros(self.d)
        e[0] = 1.0
        return lambda move: LinearRound(self.slopes[move.t - 1] * e)


class Distances(Opponent):
    """‖w − z_t‖, z_t normal."""

    d, lipschitz = 2, 1.0

    def begin(self, setting):
        def reveal(move):
            z = setting.rng.normal(size=2) * 2.0
            return ConvexRound(lambda w: float(np.linalg.norm(w - z)), lambda w: (w - z) / np.linalg.norm(w - z))

        return reveal


class Affine:
    """max_k ⟨a_k, w⟩ + b_k, as a round of one's own class."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def value(self, w):
        return float((self.a @ w + self.b).max())

    def subgradient(self, w):
        return self.a[(self.a @ w + self.b).argmax()]


class Peaks(Opponent):
    """Maxima of affine functions; every third round is linear."""

    d = 3

    def begin(self, setting):
        def reveal(move):
            a, b = setting.rng.normal(size=(4, 3)), setting.rng.normal(size=4)
            return LinearRound(a[0]) if move.t % 3 == 0 else Affine(a, b)

        return reveal


# C2.


@bounded
@pytest.mark.parametrize("d", [2, 3, 7])
def test_the_orthogonal_adversary_holds_everyone_above_its_lower_bound(name, d):
    make, upper = BOUNDED[name]
    if not fits(make().domain, d):
        return
    game = play(make(), OrthogonalAdversary(d=d), rounds=T)
    domain, S = make().domain, game.gradients.sum(axis=0)
    inside = {rue.Ball: 2.0, rue.Box: 1.0, rue.L1Ball: 2.0 / math.sqrt(d)}[type(domain)]
    assert float(game.forced) == pytest.approx(inside * math.sqrt(T), rel=1e-12)
    assert game.regret == pytest.approx(game.losses.sum() - best_linear(domain, S), rel=1e-12)
    assert game.regret >= float(game.forced) * (1 - 1e-12)
    assert game.holds
    assert game.forced.theorem == "C2"
    if upper is not None:
        assert game.regret <= upper(game.gradients, d) * (1 + 1e-12)


@bounded
def test_orthogonal_gradients_are_what_the_theorem_asks(name):
    make, _ = BOUNDED[name]
    game = play(make(), OrthogonalAdversary(d=3, L=2.5), rounds=T)
    before = np.cumsum(game.gradients, axis=0) - game.gradients
    assert np.abs(np.einsum("td,td->t", before, game.gradients)).max() <= 1e-12 * 2.5**2 * math.sqrt(T)
    assert np.allclose(np.linalg.norm(game.gradients, axis=1), 2.5, rtol=1e-14)
    centre = make().domain.centre if isinstance(make().domain, rue.Ball) and make().domain.centre.size else np.zeros(3)
    assert np.einsum("td,td->t", game.gradients, game.points - centre).min() >= -1e-12
    assert game.gradient_bound == pytest.approx(2.5)


def test_orthogonality_lasts_for_a_hundred_thousand_rounds():
    rounds = many(20_000, 100_000)
    game = play(rue.OGD(domain="ball:1"), OrthogonalAdversary(d=4, L=3.0), rounds=rounds)
    S = game.gradients.sum(axis=0)
    assert float(S @ S) == pytest.approx(9.0 * rounds, rel=1e-9)
    assert game.regret >= 3.0 * math.sqrt(rounds) * (1 - 1e-9)
    assert game.regret <= 3.0 * math.sqrt(8 * rounds)


def test_the_fixed_step_for_known_rounds_meets_the_lower_bound():
    game = play(rue.OGD(domain="ball:1", step=rue.Horizon(T)), OrthogonalAdversary(d=5), rounds=T)
    assert game.regret == pytest.approx(math.sqrt(T), rel=1e-9)  # U·G·√T from above (A9) and from below (C2)
    for t in (1, 10, T):
        assert game.regret_at(t) == pytest.approx(game.losses[:t].sum() + math.sqrt(t), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_orthogonal_adversary_in_extreme_units(scale):
    game = play(rue.OGD(domain=rue.Ball(scale)), OrthogonalAdversary(d=3, L=1.0 / scale), rounds=50)
    assert game.regret >= math.sqrt(50) * (1 - 1e-9)
    assert np.linalg.norm(game.gradients.sum(axis=0)) * scale == pytest.approx(math.sqrt(50))


def test_where_the_point_follows_the_gradients_any_orthogonal_direction_serves():
    for lean in (-1e-12, 1e-12):
        v = np.array([1.0, 1.0 + lean, 0.0])
        g = orthogonal(np.array([5.0, 5.0, 0.0]), v)
        assert abs(g[0] + g[1]) <= 1e-15
        assert np.linalg.norm(g) == pytest.approx(1.0)
        assert float(g @ v) >= 0.0
    assert np.linalg.norm(orthogonal(np.zeros(3), np.zeros(3))) == 1.0
    v = np.array([1.0, 1.0 + 1e-12])
    assert float(orthogonal(np.array([3.0, 3.0]), v) @ v) >= 0.0


def test_the_orthogonal_adversary_in_a_thousand_coordinates():
    game = play(rue.OGD(domain="ball:1"), OrthogonalAdversary(d=1000), rounds=200)
    assert math.sqrt(200) * (1 - 1e-12) <= game.regret <= math.sqrt(1600)


# C1.

CLASSIFIERS = {
    "perceptron": rue.Perceptron,
    "ogd logistic": rue.OGD,
    "ogd hinge": lambda: rue.OGD("hinge", "ball:2"),
    "ogd hinge reals": lambda: rue.OGD("hinge", "reals", "fixed:0.3"),
    "ogd perceptron box": lambda: rue.OGD("perceptron", "box:-1,1"),
    "ogd square": lambda: rue.OGD("square", "ball:2"),
    "svm": lambda: rue.SVM(0.1),
    "svm by time": lambda: rue.SVM(0.1, "t"),
    "regularised": lambda: rue.OGD(rue.Regularised(rue.Logistic(), 0.1), "ball:3"),
    "adaptive": lambda: rue.AdaptiveOGD("hinge", "ball:2"),
    "adagrad": rue.AdaGrad,
    "adagrad scaled": lambda: rue.AdaGrad("hinge", scale="largest"),
    "off-centre": lambda: rue.OGD("hinge", rue.Ball(1.0, np.linspace(-1, 1, 12))),
    "linear": lambda: rue.OGD("linear", "ball:1"),
}
classifier = pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)


@classifier
@pytest.mark.parametrize("rounds", [1, 9, 30])
def test_the_margin_adversary_forces_n_mistakes_on_separable_data(make, rounds):
    game = play(make(), MarginAdversary(9, d=12), rounds=rounds)
    shown = min(rounds, 9)
    assert game.forced.value == shown
    assert np.all(game.labels[:shown] * game.predictions[:shown] <= 0.0)
    assert game.mistakes >= shown
    assert game.holds
    u = game.witness
    assert np.linalg.norm(u) == pytest.approx(1.0, rel=1e-12)
    X = np.array([part.x for part in game.rounds])
    assert np.all(np.linalg.norm(X, axis=1) == 1.0)
    assert (game.labels * (X @ u)).min() >= (1 - 1e-12) / 3.0
    low, high = game.regret_interval
    assert low <= high


def test_the_margin_adversary_counts_by_n_and_not_by_a_rounded_margin():
    for n in (1, 3, 7, 25, 49, 300):
        assert play("perceptron", f"margin:{n}").mistakes == n


def test_a_perceptron_meets_its_mistake_bound_exactly():
    game = play(rue.Perceptron(), MarginAdversary(16), rounds=160)
    assert game.mistakes == 16  # B2: (‖u‖X)² with u of margin 1 is n


@pytest.mark.parametrize("loss", ["hinge", "logistic", "perceptron", "squared-hinge"])
@pytest.mark.parametrize("domain", [rue.Ball(1.5), rue.Box(-0.4, 0.4), rue.L1Ball(2.0)], ids=lambda d: type(d).__name__)
def test_the_best_in_hindsight_against_the_margin_adversary(loss, domain):
    game = play(rue.OGD(loss, domain), MarginAdversary(4, d=6), rounds=8)
    value = {
        "hinge": lambda z: cp.pos(1 - z),
        "logistic": lambda z: cp.logistic(-z),
        "perceptron": lambda z: cp.pos(-z),
        "squared-hinge": lambda z: cp.square(cp.pos(1 - z)),
    }[loss]
    for t in (1, 2, 4, 8):
        X, y = np.array([part.x for part in game.rounds[:t]]), game.labels[:t]
        u = cp.Variable(6)
        inside = {rue.Ball: cp.norm(u) <= 1.5, rue.Box: cp.norm(u, "inf") <= 0.4, rue.L1Ball: cp.norm1(u) <= 2.0}
        best = cp.Problem(cp.Minimize(cp.sum(value(cp.multiply(y, X @ u)))), [inside[type(domain)]]).solve()
        assert game.best_losses[t - 1] == pytest.approx(best, abs=2e-6)
        assert game.regret_at(t) == pytest.approx(game.losses[:t].sum() - best, abs=2e-6)
    assert np.isnan(game.best_losses[[4, 5, 6]]).all()


def test_the_best_in_hindsight_is_an_interval_where_examples_come_unequally_often():
    game = play(rue.OGD("hinge", "ball:2"), MarginAdversary(9, d=12), rounds=12)
    X = np.array([part.x for part in game.rounds])
    u = cp.Variable(12)
    loss = cp.sum(cp.pos(1 - cp.multiply(game.labels, X @ u)))
    best = cp.Problem(cp.Minimize(loss), [cp.norm(u) <= 2.0]).solve()
    low, high = game.comparator_loss
    assert low <= best + 1e-6
    assert best - 1e-6 <= high < 1.05 * best


def test_on_the_whole_space_the_separator_pays_nothing():
    game = play(rue.OGD("hinge", "reals", "fixed:0.3"), MarginAdversary(9))
    assert game.comparator_loss == (0.0, 0.0)
    assert game.regret == game.loss
    assert game.loss_of(3.0 * game.witness) == pytest.approx(0.0, abs=1e-12)


# C3.


def test_random_signs_force_their_expectation_exactly_on_average_over_all_signs():
    for make, D in (
        (lambda: rue.OGD(domain="interval:-1,1"), 2.0),
        (lambda: rue.FollowTheLeader(domain="ball:3"), 6.0),
    ):
        for rounds in range(1, 6):
            games = [play(make(), Signs(e), rounds) for e in itertools.product((-1.0, 1.0), repeat=rounds)]
            mean = np.mean([game.regret for game in games])
            walk = rounds * math.comb(rounds - 1, (rounds - 1) // 2) / 2 ** (rounds - 1)  # E|Σε|
            bound = math.sqrt(2) / 4 * D * math.sqrt(rounds)
            assert mean == pytest.approx(D / 2 * walk, rel=1e-12)
            assert mean >= bound * (1 - 1e-12)
            if rounds == 2:
                assert mean == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize(
    "domain",
    [
        rue.Interval(-1, 3),
        rue.Ball(2.0),
        rue.Ball(1.0, [1.0, 2.0]),
        rue.Box([0.0, -1.0, 5.0], [1.0, 1.0, 5.0]),
        rue.Simplex(),
        rue.L1Ball(0.5),
    ],
    ids=repr,
)
def test_random_signs_run_along_the_diameter_of_any_set(domain):
    d, rounds = domain.dimension or 4, 60
    learner = rue.OGD(domain=domain, step="sqrt:0.2")
    games = [play(learner, RandomSigns(L=1.5, d=d), rounds, seed=seed) for seed in range(many(60, 1000))]
    D = {"Ball": 2 * getattr(domain, "radius", 0), "L1Ball": 1.0, "Simplex": math.sqrt(2)}.get(type(domain).__name__)
    D = float(np.linalg.norm(domain.upper - domain.lower)) if D is None else D
    assert float(games[0].forced) == pytest.approx(math.sqrt(2) / 4 * D * 1.5 * math.sqrt(rounds), rel=1e-12)
    assert games[0].forced.in_expectation
    assert games[0].holds is None
    v = games[0].gradients[0] / 1.5
    assert domain.support(v) + domain.support(-v) == pytest.approx(D, rel=1e-12)
    regrets = np.array([game.regret for game in games])
    walk = rounds * math.comb(rounds - 1, (rounds - 1) // 2) / 2 ** (rounds - 1)
    error = regrets.std() / math.sqrt(len(games))
    assert abs(regrets.mean() - D * 1.5 / 2 * walk) <= 4.5 * error
    assert regrets.mean() + 4.5 * error >= float(games[0].forced)


def test_random_signs_are_fair_coins():
    signs = np.array([play("ogd", "signs", 200, seed=seed).gradients[:, 0] for seed in range(20)])
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 4.5 / math.sqrt(signs.size)
    assert abs((signs[:, 1:] * signs[:, :-1]).mean()) < 4.5 / math.sqrt(signs.size)


# C4.


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 1001])
def test_the_leader_pays_T_to_the_flip_flop(rounds):
    game = play(rue.FollowTheLeader(domain="interval:-1,1"), FlipFlop(), rounds)
    assert game.loss == rounds - 1 - game.points[0, 0] / 2
    assert float(game.forced) == game.loss
    assert game.holds
    assert game.loss_of(game.witness) == 0.0
    assert game.regret == game.loss + 0.5
    assert "T − 1 − w_1/2" in str(game)


@pytest.mark.parametrize("domain", ["interval:0.5,2", "interval:-3,1", "ball:4"])
def test_the_flip_flop_on_other_intervals(domain):
    for rounds in (1, 2, 7, 20):
        game = play(rue.FollowTheLeader(domain=domain), FlipFlop(), rounds)
        assert game.loss == pytest.approx(float(game.forced), rel=1e-14)
        assert game.holds


def test_ogd_survives_the_flip_flop():
    game = play(rue.OGD(domain="interval:-1,1"), FlipFlop(), rounds=1000)
    assert game.regret == pytest.approx(43.9, abs=0.05)  # the figure of docs/theory.md, C4: step D/(L√(2t))
    assert game.regret <= math.sqrt(2) * 2 * math.sqrt(1000)  # B6
    assert play(rue.OGD(domain="ball:1"), FlipFlop(), rounds=1000).regret <= math.sqrt(8000)  # B3
    assert game.forced is None
    assert game.holds is None


# C5.


@pytest.mark.parametrize("numbers", ["random", "farthest", [0.0, 1.0, 1.0]])
@pytest.mark.parametrize("domain", ["interval:0,1", "interval:-1,2"])
def test_the_leader_guesses_numbers_with_logarithmic_regret(numbers, domain):
    game = play(rue.FollowTheLeader(domain=domain), NumberGuessing(numbers), 1000)
    t = np.arange(1, 1001)
    guess = game.points[:, 0]
    assert game.regret == pytest.approx(float(((game.labels - guess) ** 2 / t).sum()), rel=1e-9)  # B10
    assert game.regret <= 1 + math.log(1000)
    assert float(game.forced) == 1 + math.log(1000)
    assert game.holds
    for n in (1, 2, 50, 1000):
        u = np.clip(game.labels[:n].mean(), *(float(end) for end in domain[9:].split(",")))
        assert game.best_losses[n - 1] == pytest.approx(((u - game.labels[:n]) ** 2).sum(), rel=1e-11, abs=1e-13)


def test_squares_compare_with_the_clipped_mean():
    game = play(rue.OGD(domain="interval:0.6,0.8"), NumberGuessing([0.1, 0.9, 0.2, 1.0]), 30)
    grid = np.linspace(0.6, 0.8, 2001)
    for t in (1, 2, 3, 30):
        total = ((grid[:, None] - game.labels[:t]) ** 2).sum(axis=1)
        assert game.best_losses[t - 1] == pytest.approx(total.min(), abs=1e-6)
    assert play(rue.FollowTheLeader(domain="interval:0.6,0.8"), "guessing").forced is None
    free = play(rue.FollowTheLeader(), "guessing", 100)
    assert free.best_losses[-1] == pytest.approx(100 * free.labels.var(), rel=1e-12)


def test_the_strongly_convex_step_is_the_leader():
    for numbers in ("random", "farthest"):
        opponent = NumberGuessing(numbers)
        leader = play(rue.FollowTheLeader(domain="interval:0,1"), opponent, 300)
        strong = play(rue.OGD(domain="interval:0,1", step="strong:2"), opponent, 300)
        assert np.allclose(leader.points, strong.points, atol=1e-12)
        assert float(strong.forced) == float(leader.forced)


def test_growth_of_regret_in_number_guessing():
    convex = play(rue.OGD(domain="interval:0,1"), NumberGuessing(), 16_000)
    assert 1.6 <= convex.regret / convex.regret_at(4000) <= 2.4  # √T
    assert convex.regret <= math.sqrt(2) * 2 * math.sqrt(16_000)
    leader = play(rue.FollowTheLeader(domain="interval:0,1"), NumberGuessing("farthest"), 16_000)
    assert leader.regret - leader.regret_at(4000) == pytest.approx(math.log(4) / 4, abs=0.02)  # (y − w)² → ¼


def test_theory_knows_the_gradients_of_number_guessing():
    for domain, G in (("interval:0,1", 2.0), ("interval:-1,0.5", 4.0), ("ball:3", 8.0)):
        game = play(rue.OGD(domain=domain), NumberGuessing("farthest"), 50)
        assert game.learner.algorithm.step == rue.Theory(G=G)
        assert game.gradient_bound <= G
    assert NumberGuessing().lipschitz_on(rue.Reals()) is None
    own = play(rue.OGD(domain="interval:0,1", step=rue.Theory(G=7.0)), "guessing", 10)
    assert own.learner.algorithm.step == rue.Theory(G=7.0)


def test_a_theorem_that_failed_would_be_seen():
    for learner, opponent in (
        (rue.FollowTheLeader(domain="interval:-1,1"), "flip-flop"),
        (rue.OGD(domain="ball:1", step=rue.Horizon(100)), "orthogonal:3"),
    ):
        game = play(learner, opponent, 100)
        assert game.holds is True
        assert dataclasses.replace(game, losses=game.losses - 1e-9).holds is False
    game = play(rue.FollowTheLeader(domain="interval:0,1"), "guessing", 100)
    assert game.holds is True
    assert dataclasses.replace(game, losses=game.losses + 0.05).holds is False
    game = play("perceptron", "margin:9")
    assert dataclasses.replace(game, predictions=game.labels).holds is False


# Convex rounds in general.


def descend(rounds, d, radius, eta):
    """Projected subgradient descent on a ball, in a few lines."""
    w, points = np.zeros(d), []
    for t, part in enumerate(rounds, 1):
        points.append(w)
        w = w - eta / math.sqrt(t) * np.asarray(part.subgradient(w))
        w = w * min(1.0, radius / np.linalg.norm(w))
    return np.array(points)


@pytest.mark.parametrize("opponent", [Distances(), Peaks()], ids=["distances", "peaks"])
def test_general_rounds_move_the_learner_as_projected_descent_does(opponent):
    game = play(rue.OGD(domain="ball:1.5", step="sqrt:0.4"), opponent, 200, seed=3)
    points = descend(game.rounds, opponent.d, 1.5, 0.4)
    assert np.allclose(game.points, points, atol=1e-12)
    losses = [part.value(w) for part, w in zip(game.rounds, points, strict=True)]
    assert np.allclose(game.losses, losses, atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_regret_intervals_of_general_rounds_hold_the_truth(seed):
    for opponent in (Distances(), Peaks()):
        game = play(rue.OGD(domain="ball:1.5", step="adaptive"), opponent, 40, seed=seed)
        u = cp.Variable(opponent.d)
        total = 0
        for part in game.rounds:
            if isinstance(opponent, Distances):
                (z,) = (cell.cell_contents for cell in part.value.__closure__)
                total += cp.norm(u - z)
            else:
                total += part.g @ u if isinstance(part, LinearRound) else cp.max(part.a @ u + part.b)
        best = cp.Problem(cp.Minimize(total), [cp.norm(u) <= 1.5]).solve()
        low, high = game.comparator_loss
        assert low <= best + 1e-5
        assert best - 1e-5 <= high
        assert low == pytest.approx(
            game.loss - game.products.sum() - 1.5 * np.linalg.norm(game.gradients.sum(axis=0)), rel=1e-12
        )
        assert game.regret is None
        assert np.isnan(game.regrets).all()
        assert game.regret_interval == (game.loss - high, game.loss - low)
        assert game.loss_of(u.value) == pytest.approx(best, abs=1e-4)
        assert game.regret_interval[0] - 1e-5 <= game.regret_against(u.value) <= game.regret_interval[1] + 1e-5


@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute", "square", "huber"])
def test_regret_intervals_of_examples_hold_the_truth(loss):
    game = play(rue.OGD(loss, "ball:2"), Stochastic(d=3, noise=0.3), 120)
    X, y = np.array([part.x for part in game.rounds]), game.labels
    u = cp.Variable(3)
    value = {
        "hinge": lambda p: cp.pos(1 - cp.multiply(y, p)),
        "logistic": lambda p: cp.logistic(-cp.multiply(y, p)),
        "absolute": lambda p: cp.abs(p - y),
        "square": lambda p: cp.square(p - y),
        "huber": lambda p: cp.huber(p - y, 1.0) / 2,
    }[loss]
    best = cp.Problem(cp.Minimize(cp.sum(value(X @ u))), [cp.norm(u) <= 2]).solve()
    low, high = game.comparator_loss
    assert low - 1e-6 <= best <= high + 1e-6
    assert game.loss_of(u.value) == pytest.approx(best, abs=1e-4)
    assert np.allclose(game.predictions, np.einsum("td,td->t", X, game.points), atol=1e-12)
    A, S = game.products.sum(), game.gradients.sum(axis=0)
    assert high - low <= 1e-5 * (1 + high)
    assert game.regret_interval[1] <= A + 2 * np.linalg.norm(S)  # D1
    assert (game.mistakes is None) == (loss in ("absolute", "square", "huber"))


def test_a_game_of_examples_is_a_run():
    game = play(rue.OGD("hinge", "ball:2"), Stochastic(d=3, noise=0.3), 120)
    X = np.array([part.x for part in game.rounds])
    run = rue.learn(X, game.labels, learner=rue.OGD("hinge", "ball:2", intercept=False))
    assert np.array_equal(run.predictions, game.predictions)
    assert game.loss == pytest.approx(run.loss, rel=1e-12)
    assert game.mistakes == run.mistakes
    assert game.regret_interval[1] <= run.certificate().regret_at_most


@settings(max_examples=many(25, 1000))
@given(st.data())
def test_regret_of_linear_games_is_the_true_one(data):
    slopes = data.draw(st.lists(st.floats(-2, 2), min_size=1, max_size=20))
    domain = data.draw(st.sampled_from([rue.Ball(2.0), rue.Box(-0.5, 1.5), rue.L1Ball(1.0), rue.Simplex(2.0)]))
    d = data.draw(st.integers(1, 3))
    game = play(rue.OGD(domain=domain, step="sqrt:0.4"), Signs(slopes, d), len(slopes))
    corners = {
        "Ball": [2.0 * s * e for e in np.eye(d) for s in (-1, 1)],
        "L1Ball": [s * e for e in np.eye(d) for s in (-1, 1)],
        "Box": [np.array(c) for c in itertools.product((-0.5, 1.5), repeat=d)],
        "Simplex": [2.0 * e for e in np.eye(d)],
    }[type(domain).__name__]
    for t in range(1, len(slopes) + 1):
        S = game.gradients[:t].sum(axis=0)
        best = min(float(S @ u) for u in corners)  # slopes lie along one axis, so a corner is best on the ball too
        paid = float(np.einsum("td,td->", game.gradients[:t], game.points[:t]))
        assert game.regret_at(t) == pytest.approx(paid - best, abs=1e-12 * (1 + 8 * t))
    assert game.regret == pytest.approx(game.regret_at(len(slopes)), abs=1e-12)


def test_an_intersection_gives_an_interval():
    domain = rue.Intersection("ball:1", rue.Halfspace([1.0, 1.0], 0.5))
    game = play(rue.OGD(domain=domain, step="sqrt:0.3"), Signs([1, -1, -1, 1, -1] * 4, d=2), 20)
    low, high = game.comparator_loss
    best = -4.0 * (0.5 + math.sqrt(1.75)) / 2.0  # where the circle meets the line; the ball alone has −4
    assert low == -4.0
    assert best - 1e-6 <= high
    assert game.regret is None
    assert all(domain.contains(w) for w in game.points)


def test_an_unbounded_set_has_no_best_point_for_linear_losses():
    game = play(rue.OGD(domain="reals", step="fixed:0.1"), Signs([1.0, 1.0]), 2)
    assert game.comparator_loss == (-math.inf, -math.inf)
    assert game.regret == math.inf


# C6 and C7.


@pytest.mark.parametrize("values", [[0.2, 0.9], [0.0, 0.25, 1.0], "uniform"])
def test_a_number_from_a_distribution_costs_at_least_its_variance(values):
    """E(w − Y)² = σ² + (w − μ)², by the definition of an expectation, and by what is drawn."""
    chance = None if isinstance(values, str) else np.arange(1.0, len(values) + 1) / sum(range(1, len(values) + 1))
    opponent = rue.NumberFromDistribution(values, chance)
    if chance is not None:
        mean = sum(p * v for p, v in zip(chance, values, strict=True))
        assert opponent.mean == pytest.approx(mean, rel=1e-12)
        assert opponent.variance == pytest.approx(
            sum(p * v * v for p, v in zip(chance, values, strict=True)) - mean**2, rel=1e-12
        )
    game = play(rue.FollowTheLeader("square", "interval:0,1"), opponent, 4000, seed=3)
    assert abs(game.labels.mean() - opponent.mean) < 4.5 * math.sqrt(opponent.variance / 4000)
    assert game.labels.var() == pytest.approx(opponent.variance, rel=0.1)
    assert np.allclose(opponent.excess(game), np.cumsum((game.points[:, 0] - opponent.mean) ** 2), rtol=1e-12)
    assert opponent.excess(game)[-1] < 1 + opponent.variance * (1 + math.log(4000)) * 5
    assert float(game.forced) == pytest.approx(4000 * opponent.variance)
    assert game.holds is None  # it speaks of an expectation


def test_probabilities_must_be_some():
    for probabilities in ([0.5], [0.5, 0.6], [-0.5, 1.5], ["a", "b"]):
        with pytest.raises(rue.SettingsError, match=r"probabilities must be as many .* with the sum 1\."):
            rue.NumberFromDistribution([0.0, 1.0], probabilities)
    with pytest.raises(rue.SettingsError, match="probabilities belong to a list of values"):
        rue.NumberFromDistribution("uniform", [1.0])


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 0.5), (0.3, 4.0)])
def test_the_slopes_of_guessing_a_drawn_number_are_bounded(low, high):
    slopes = [2.0 * abs(w - y) for w in (low, high) for y in (0.0, 1.0)]  # 2(w − y) is largest at two ends
    opponent = rue.NumberFromDistribution([0.0, 1.0])
    assert opponent.lipschitz_on(rue.Box(low, high, 1)) == pytest.approx(max(slopes))
    assert opponent.lipschitz_on(rue.Reals()) is None


@pytest.mark.parametrize("domain", ["ball:2", "box:-1,3", "l1-ball:2", rue.Ball(1.0, [1.0, -3.0, 0.5])])
def test_absolute_losses_are_linear_on_the_domain_and_cost_as_much(domain):
    """The best in hindsight by cvxpy, and the loss of random points of the domain by the linear function."""
    learner = rue.OGD("absolute", domain)
    game = play(learner, rue.AbsoluteAdversary(3, 0.7), 60)
    K, X = game.domain, np.array([part.x for part in game.rounds])
    assert np.allclose(np.linalg.norm(X, axis=1), 0.7)
    assert (game.labels > 0).any()
    assert (game.labels < 0).any()
    for u in np.random.default_rng(0).normal(size=(20, 3)) * 3:
        u = K.project(u)
        residuals = game.labels - X @ u
        assert np.all(residuals * np.sign(game.labels) >= -1e-9)
        assert game.loss_of(u) == pytest.approx(float(np.abs(residuals).sum()))
    u = cp.Variable(3)
    if isinstance(K, rue.Ball):
        limits = [cp.norm(u - K.start(3)) <= K.radius]
    else:
        limits = [u >= K.lower, u <= K.upper] if isinstance(K, rue.Box) else [cp.norm1(u) <= K.radius]
    best = cp.Problem(cp.Minimize(cp.norm1(game.labels - X @ u)), limits).solve(solver="CLARABEL")
    assert game.comparator_loss[0] == pytest.approx(best, rel=1e-6)
    assert game.holds
    rounds = np.sign(-game.labels)[:, None] * X
    assert np.allclose([rounds[:t].sum(axis=0) @ rounds[t] for t in range(1, 60)], 0.0, atol=1e-9)


def test_absolute_losses_on_a_segment_are_coins():
    games = rue.play_many(rue.OGD("absolute", "interval:-2,2"), rue.AbsoluteAdversary(1, 1.5), 100, games=60, seed=4)
    assert games.forced.in_expectation
    assert float(games.forced) == pytest.approx(math.sqrt(2) / 4 * 4 * 1.5 * 10)
    assert games.holds
    for game in games.games[:5]:
        ends = [np.abs(game.labels - 2.0 * s * np.array([part.x[0] for part in game.rounds])).sum() for s in (-1, 1)]
        assert game.comparator_loss[0] == pytest.approx(min(ends))


# The protocol.


def test_the_learner_given_is_never_changed_and_games_repeat():
    learner = rue.OGD("hinge", "ball:1", average="uniform")
    learner.run(np.eye(3), [1, -1, 1])
    before = learner.copy()
    for opponent in ("margin:3", OrthogonalAdversary(3), "stochastic:3", RandomSigns(d=3)):
        first, second = (play(learner, opponent, 30, seed=5) for _ in range(2))
        assert learner == before
        assert np.array_equal(first.points, second.points)
        assert np.array_equal(first.losses, second.losses)
        assert first.learner == second.learner
        assert first.learner.t == 30
        assert np.array_equal(first.points[0], np.zeros(3))
        assert np.allclose(first.learner.average, first.points.mean(axis=0))
    other = play(learner, "stochastic:3", 30, seed=6)
    assert not np.array_equal(other.losses, play(learner, "stochastic:3", 30, seed=5).losses)


def test_the_opponent_sees_the_point_and_cannot_change_it():
    seen = []

    class Meddler(Opponent):
        d = 1

        def begin(self, setting):
            def reveal(move):
                seen.append((move.t, move.point.copy()))
                move.point[:] = 99.0
                return LinearRound([1.0])

            return reveal

    game = play(rue.OGD(domain="ball:1", step="fixed:0.5"), Meddler(), 4)
    assert [t for t, _ in seen] == [1, 2, 3, 4]
    assert np.array_equal([w for _, w in seen], game.points)
    assert game.points[:, 0].tolist() == [0.0, -0.5, -1.0, -1.0]
    assert game.loss == -2.5


def test_the_prediction_may_be_asked_for_before_the_label_is_chosen():
    asked = []

    class Liar(Opponent):
        d, loss = 2, "hinge"

        def begin(self, setting):
            def reveal(move):
                x = np.array([1.0, move.t])
                asked.append(move.predict(x))
                return ExampleRound(x, -1.0 if asked[-1] > 0 else 1.0)

            return reveal

    game = play("adaptive", Liar(), 20)
    assert np.array_equal(asked, game.predictions)
    assert game.mistakes == 20
    assert game.learner.loss == rue.Hinge()


def test_specs_and_names():
    listed = {"absolute", "distribution", "flip-flop", "guessing", "margin", "orthogonal", "signs", "stochastic"}
    assert set(names("opponent")) == listed
    for name, made in registered("opponent").items():
        opponent = made(4) if name == "margin" else made()
        domain = "interval:-1,1" if opponent.d == 1 else "ball:1"
        game = play(rue.OGD(domain=domain), opponent, 7)
        assert opponent == pickle.loads(pickle.dumps(opponent))
        assert len({opponent, dataclasses.replace(opponent)}) == 1
        assert game.T == 7
        assert game.points.shape == game.gradients.shape == (7, opponent.d or 1)
        assert str(game).startswith(f"OGD against {opponent!r}, 7 rounds")
        assert repr(game).startswith("Game(rounds=7, ")
    assert play("ogd", "orthogonal:3").T == 1000
    assert play("ogd", "margin:6").T == 6
    assert play("ogd", "signs:L=2", 5).opponent == RandomSigns(2)


def test_a_game_reads_as_a_paragraph():
    assert str(play("perceptron", "margin:4")) == (
        "Perceptron against MarginAdversary(n=4, d=4), 4 rounds in Reals(): it lost 0 and the best point in hindsight "
        "0, a regret of +0. It made 4 mistakes. C1: any deterministic learner makes at least 4 mistakes here, though a "
        "unit vector separates the data with margin 1/√4. B1 allows its mistakes at most 4."
    )
    assert " between " in str(play(rue.OGD("hinge", "ball:1"), "stochastic", 10))


def test_an_environment_of_ones_own():
    def draw(rng):
        x = rng.random(2)
        return x, float(x[0] > x[1]) * 2 - 1

    game = play(rue.Perceptron(), Stochastic(d=2, draw=draw), 500)
    assert game.mistakes < 100
    assert set(game.labels) == {-1.0, 1.0}
    assert game.forced is None


def test_the_usual_environment():
    game = play("ogd", Stochastic(d=4, noise=0.2), 4000)
    X = np.array([part.x for part in game.rounds])
    assert np.allclose(np.linalg.norm(X, axis=1), 1.0)
    wrong = np.mean(np.sign(X.sum(axis=1)) != game.labels)
    assert abs(wrong - 0.2) < 4.5 * math.sqrt(0.16 / 4000)
    regression = play(rue.OGD("square", "ball:2"), Stochastic(d=4, noise=0.2), 4000)
    X = np.array([part.x for part in regression.rounds])
    rest = regression.labels - X.sum(axis=1) / 2.0
    assert rest.std() == pytest.approx(0.2, rel=0.06)


# Refusals, each in one sentence.


class Broken(Opponent):
    d = 2

    def __init__(self, part, loss=None):
        self.part, self.loss = part, loss

    def __repr__(self):
        return "Broken()"

    def begin(self, setting):
        return lambda move: self.part


@pytest.mark.parametrize(
    ("learner", "opponent", "words"),
    [
        ("perceptron", "signs", "Perceptron against RandomSigns.*made of its own loss.*Linear"),
        ("svm", "guessing", "SVM against NumberGuessing.*made of its own loss.*Square"),
        (lambda: rue.OGD(rue.Regularised(rue.Hinge(), 0.1), "ball:1"), "orthogonal", "the regulariser belongs to"),
        (lambda: rue.OGD(domain="reals", step="fixed:1"), "orthogonal:5", "its theorem is about a ball.*Reals"),
        (lambda: rue.OGD(domain="reals", step="fixed:1"), "signs", "two far points are known of.*Reals"),
        (lambda: rue.OGD(domain="orthant", step="fixed:1"), "flip-flop", "played on an interval.*Orthant"),
        (lambda: rue.OGD(domain=rue.Box([0, 0, 0], [1, 1, 1])), "orthogonal:5", "has 3 coordinates and the game 5"),
        (lambda: rue.OGD(d=3), "orthogonal:5", "built for 3 features and the game has 5"),
        (lambda: rue.FollowTheLeader(domain="ball:1"), Distances(), "no leader in closed form"),
        (rue.FollowTheLeader, "orthogonal", "FollowTheLeader: linear losses have a leader in closed form on a ball"),
        (lambda: rue.FollowTheLeader(domain="ball:1"), "stochastic", "in one coordinate, and here are 5"),
        (lambda: rue.AdaGrad(scale="largest"), Distances(), "looks at x before it plays"),
        (lambda: rue.OGD("poisson", "ball:1", "sqrt:1"), "margin:3", "does not take the labels −1 and \\+1"),
        (lambda: rue.OGD(domain="ball:1", step="horizon:9"), Peaks(), "needs a bound G"),
        ("ogd", Broken(LinearRound([1.0])), "round 1: the gradient of Broken.*2 finite numbers"),
        ("ogd", Broken(LinearRound(["a", "b"])), "round 1: the gradient of Broken.*must be numbers"),
        ("ogd", Broken(LinearRound([math.nan, 1.0])), "round 1: the gradient of Broken.*2 finite numbers"),
        ("ogd", Broken(7), "must reveal a round with value.w. and subgradient.w., not 7"),
        ("ogd", Broken(LinearRound([1.0, 0.0]), "hinge"), "names a loss, so it must reveal ExampleRounds"),
        ("ogd", Broken(ExampleRound([1.0, 0.0], 3.0), "hinge"), "label"),
        (
            "ogd",
            Broken(ConvexRound(lambda w: math.inf, lambda w: w)),
            "round 1: the loss of Broken.*finite number, not inf",
        ),
        ("ogd", Broken(ConvexRound(lambda w: "much", lambda w: w)), "finite number, not 'much'"),
        ("ogd", Broken(ConvexRound(lambda w: float(w @ w), lambda w: 2 * w - 1.0)), "a subgradient that is none"),
        ("ogd", Broken(ConvexRound(lambda w: -float(w @ w), lambda w: -2 * w + [1, 0])), "a subgradient that is none"),
        ("ogd", Broken(7, loss=3), "loss must be a rue.Loss, a spec, 'own' or None"),
        ("ogd", "orthogonl", "did you mean 'orthogonal'"),
        ("ogd", 3, "opponent must be an opponent"),
        (3, "signs", "learner must be a learner"),
        ("ogd", "orthogonal:1", "d must be a whole number, at least 2, not 1"),
        ("ogd", "margin:0", "n must be a whole number, at least 1, not 0"),
        ("ogd", "margin:5,3", "d must be a whole number, at least 5, not 3"),
        ("ogd", "margin", "margin takes n"),
        ("ogd", "signs:-1", "L must be positive"),
        ("ogd", "guessing:often", "numbers must be 'random', 'farthest' or a list"),
        ("ogd", "guessing:1.5", "between 0 and 1"),
        ("ogd", "stochastic:3,-1", "noise must be a number ≥ 0"),
        ("ogd", "absolute:0", "AbsoluteAdversary: d must be a whole number, at least 1, not 0"),
        ("ogd", "absolute:2,-1", "AbsoluteAdversary: X must be positive"),
        (lambda: rue.OGD(domain="reals", step="fixed:1"), "absolute", "its theorem is about a ball.*Reals"),
        ("ogd", "distribution:normal", "values must be 'uniform' or a list of numbers, not 'normal'"),
        ("ogd", "distribution:2", "values must be a list of numbers between 0 and 1"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(learner, opponent, words):
    with pytest.raises(rue.RueError, match=words) as caught:
        play(learner() if callable(learner) else learner, opponent, 60)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("rounds", [0, -3, 2.5, True, "7"])
def test_rounds_must_be_a_number_of_rounds(rounds):
    with pytest.raises(rue.SettingsError, match="rounds must be a whole number, at least 1"):
        play("ogd", "signs", rounds)


@pytest.mark.parametrize("seed", [-1, 0.5, None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(rue.SettingsError, match="seed must be a whole number ≥ 0"):
        play("ogd", "signs", 5, seed=seed)


def test_a_game_refuses_what_was_not_played():
    game = play("ogd", "signs", 5)
    for t in (0, 6):
        with pytest.raises(rue.DataError, match="the game has the rounds 1 to 5"):
            game.regret_at(t)
    with pytest.raises(rue.DataError, match="2 coordinates, but the game was played in 1"):
        game.loss_of([1.0, 2.0])


def test_the_orthogonal_adversary_holds_descent_between_its_bounds():
    for step in ("theory", "adaptive", "sqrt:0.7"):
        game = play(rue.OGD(domain="ball:2", step=step), "orthogonal:4", 400)
        allowed = [bound for bound in game.bounds if bound.met]
        assert allowed
        assert all(bound.holds for bound in allowed)
        assert 2.0 * np.sqrt(400) * (1 - 1e-12) <= game.regret <= min(bound.value for bound in allowed)
    unsaid = play(rue.SVM(0.1), "margin:9")
    assert all(bound.observed is None for bound in unsaid.bounds)

"""Learners of one's own in a game: they are played as they are, and what cannot be played is refused in words."""

import math
import threading

import numpy as np
import pytest

import rue
from rue.games import LinearRound, Opponent, play, play_many


class Descent:
    """Projected gradient descent with η/√t, written by hand, for rounds that are functions of the point."""

    def __init__(self, eta, U, method=False):
        self.eta, self.U, self.method = eta, U, method

    def begin(self, setting):
        self.w, self.t, self.told = np.zeros(setting.d), 0, setting

    def __getattr__(self, name):
        if name != "point" or "w" not in vars(self):
            raise AttributeError(name)
        return (lambda: self.w) if self.method else self.w

    def update(self, part):
        self.t += 1
        w = self.w - self.eta / math.sqrt(self.t) * part.subgradient(self.w)
        self.w = w * min(1.0, self.U / max(np.linalg.norm(w), 1e-300))


class Rosenblatt:
    """The Perceptron, by hand, as an object that predicts."""

    def __init__(self, d):
        self.w = np.zeros(d)

    def predict(self, x):
        return self.w @ x

    def update(self, x, y):
        if y * (self.w @ x) <= 0:
            self.w = self.w + y * x


class Distances(Opponent):
    """‖w − z_t‖, z_t normal."""

    d, lipschitz = 2, 1.0

    def begin(self, setting):
        def reveal(move):
            z = setting.rng.normal(size=2) * 2.0
            far = lambda w: float(np.linalg.norm(w - z))  # noqa: E731
            return rue.ConvexRound(far, lambda w: (w - z) / far(w))

        return reveal


class Slopes(Opponent):
    """Linear losses with normal gradients."""

    d = 2

    def begin(self, setting):
        return lambda move: LinearRound(setting.rng.normal(size=2))


@pytest.mark.parametrize("method", [False, True], ids=["attribute", "method"])
@pytest.mark.parametrize(
    "opponent", ["orthogonal:3", "signs:d=2", Distances()], ids=["orthogonal", "signs", "distances"]
)
def test_descent_by_hand_plays_what_rues_plays(opponent, method):
    own = play(Descent(0.6, 1.5, method), opponent, 150, seed=2, domain="ball:1.5")
    rues = play(rue.OGD(domain="ball:1.5", step="sqrt:0.6"), opponent, 150, seed=2)
    assert np.allclose(own.points, rues.points, atol=1e-9)
    assert np.allclose(own.losses, rues.losses, atol=1e-9)
    assert own.regret_interval == pytest.approx(rues.regret_interval, abs=1e-7)
    assert own.holds == rues.holds
    assert own.bounds == []
    assert own.algorithm is None
    assert own.learner.told.rounds == 150
    assert str(own).startswith("Descent against ")
    assert own.plot() is not None


@pytest.mark.parametrize("opponent", ["margin:12", "stochastic:4"])
def test_the_perceptron_by_hand_makes_the_same_mistakes(opponent):
    d = 12 if opponent == "margin:12" else 4
    given = Rosenblatt(d)
    own, rues = play(given, opponent, 60, loss="perceptron"), play("perceptron", opponent, 60)
    assert np.array_equal(own.labels, rues.labels)
    assert np.allclose(own.predictions, rues.predictions, atol=1e-12)
    assert own.mistakes == rues.mistakes
    assert np.isnan(own.points).all()
    assert not given.w.any()  # a copy has played
    assert own.learner.w.any()
    assert own.plot() is not None


def test_an_object_with_a_point_learns_examples_as_functions():
    own = play(Descent(0.3, 2.0), "stochastic:3", 80, seed=1, domain="ball:2", loss="logistic")
    rues = play(rue.OGD("logistic", "ball:2", "sqrt:0.3"), "stochastic:3", 80, seed=1)
    assert np.allclose(own.points, rues.points, atol=1e-9)
    assert own.loss == pytest.approx(rues.loss)
    assert own.regret_interval == pytest.approx(rues.regret_interval, abs=1e-4)


@pytest.mark.parametrize("opponent", ["orthogonal:2", Distances(), "same"])
def test_a_learner_may_change_the_gradients_it_is_given(opponent):
    """`g *= eta` in the learner changed the game's record: it seemed to regret less than every learner has to."""
    c = np.array([0.6, -0.8])
    facing = rue.SameFunction(lambda w: float(c @ w), lambda w: c, d=2) if opponent == "same" else opponent

    class InPlace:
        def begin(self, setting):
            self.K, self.point = setting.domain, np.zeros(setting.d)

        def update(self, part):
            g = part.subgradient(self.point)
            g *= 0.1
            self.point = self.K.project(self.point - g)
            if hasattr(part, "g"):
                part.g[:] = 0.0

    def by_the_past(past):
        w = np.zeros(2)
        for part in past:
            g = part.subgradient(w)
            g *= 0.1
            w = rue.Ball(1).project(w - g)
        return w

    rues = play(rue.OGD(domain="ball:1", step="fixed:0.1"), facing, 50)
    for learner in (InPlace(), by_the_past):
        own = play(learner, facing, 50, domain="ball:1")
        assert np.allclose(own.points, rues.points, atol=1e-12)
        assert np.allclose(own.gradients, rues.gradients, atol=1e-12)
        assert own.regret_interval == pytest.approx(rues.regret_interval, abs=1e-9)
    assert c.tolist() == [0.6, -0.8]


def test_an_object_that_predicts_and_has_a_point_plays_both_kinds_of_rounds():
    class Both(Descent):
        def predict(self, x):
            return float(self.w @ x)

        def update(self, *what):
            if len(what) == 1:
                super().update(*what)

    own = play(Both(0.6, 1.5), "orthogonal:3", 30, domain="ball:1.5")
    assert np.allclose(own.points, play(Descent(0.6, 1.5), "orthogonal:3", 30, domain="ball:1.5").points)
    assert play(Both(0.6, 1.5), "margin:4").mistakes == 4


def test_functions_of_the_past_play():
    """The leader by hand: of linear losses on a ball, of squares; and the nearest neighbour."""

    def leader(past):
        S = sum((part.g for part in past), np.zeros(2))
        return -2.0 * S / max(np.linalg.norm(S), 1e-300)

    def mean(past):
        return np.mean([part.y for part in past]) if past else 0.0  # one number is a point too

    def nearest(past, x):
        return min(past, key=lambda one: np.abs(one[0] - x).sum())[1] if past else 1.0

    rues = play(rue.FollowTheLeader("linear", "ball:2"), Slopes(), 50)
    own = play(leader, Slopes(), 50, domain="ball:2")
    assert np.allclose(own.points[1:], rues.points[1:], atol=1e-9)
    assert own.regret == pytest.approx(rues.regret, abs=1e-6)
    guess = play(mean, rue.NumberGuessing([0.1, 0.9, 0.4]), 30, domain="interval:0,1")
    same = play(rue.FollowTheLeader("square", "interval:0,1"), rue.NumberGuessing([0.1, 0.9, 0.4]), 30)
    assert np.allclose(guess.points, same.points)
    assert guess.regret == pytest.approx(same.regret)
    assert guess.forced is None  # what the leader is allowed is not claimed of a function
    assert play(nearest, "margin:9").mistakes == 9
    assert play(nearest, "margin:9").forced.value == 9


def test_a_learner_of_ones_own_that_has_a_domain_needs_no_other():
    one = Descent(0.1, 3.0)
    one.domain, one.loss = "ball:3", "hinge"
    assert play(one, "orthogonal", 5).domain == rue.Ball(3)
    assert play(one, "stochastic:2", 5).loss_named == rue.Hinge()
    assert play(one, "orthogonal", 5, domain="ball:4").domain == rue.Ball(4)
    assert play(lambda past, x: 0.0, "margin:3").domain == rue.Reals()


# Lots.


def test_randomised_learners_draw_from_the_seed_and_not_the_opponents_lots():
    def spin(past, rng):
        return rng.uniform(-1, 1, size=2)

    first, again, other = (play(spin, Slopes(), 40, seed=seed, domain="box:-1,1") for seed in (3, 3, 4))
    assert np.array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)
    still = play(lambda past: [0.0, 0.0], Slopes(), 40, seed=3, domain="box:-1,1")
    assert np.array_equal(first.gradients, still.gradients)  # the opponent draws what it drew
    assert abs(np.corrcoef(first.points[:, 0], first.gradients[:, 0])[0, 1]) < 0.5


def test_a_learner_and_its_opponent_do_not_draw_the_same_numbers():
    """One that draws as the opponent does would play the gradients before they are revealed."""
    game = play(lambda past, rng: rng.normal(size=2), Slopes(), 20, seed=3, domain="box:-9,9")
    assert np.abs(game.points - game.gradients).min() > 1e-9


def test_the_coins_of_a_round_fall_once():
    """The opponent sees the prediction that is scored."""
    game = play(lambda past, x, rng: rng.normal(), "margin:30")
    assert game.mistakes == 30
    assert np.unique(game.predictions).size == 30


class Coin:
    """Predicts by a coin, from the lots it is given."""

    def begin(self, setting):
        self.rng = setting.rng

    def predict(self, x):
        return self.rng.choice([-1.0, 1.0])

    def update(self, x, y):
        pass


def test_expectations_are_estimated_with_their_errors():
    games = play_many(Coin(), "stochastic:3", 50, games=200, seed=7, loss="hinge")
    seen = np.array([game.mistakes for game in games.games])
    assert games.mistakes.mean == seen.mean()
    assert games.mistakes.error == pytest.approx(math.sqrt(((seen - seen.mean()) ** 2).sum() / 199 / 200))
    assert abs(games.mistakes.mean - 25) < 4.5 * math.sqrt(12.5 / 200)  # Binomial(50, ½)
    assert games.mistakes.error == pytest.approx(math.sqrt(12.5 / 200), rel=0.2)
    assert float(games.loss) == games.loss.mean
    assert games.regret is None  # no closed form
    assert games.holds is None
    alone = play(Coin(), "stochastic:3", 50, seed=7 + 3, loss="hinge")
    assert alone.loss == games.games[3].loss
    assert str(games).startswith("Coin against Stochastic(d=3, noise=0.1, draw=None), 50 rounds in Reals(): it lost ")
    assert "standard error, 200 games" in str(games)


def test_a_claim_about_an_expectation_is_held_against_the_mean():
    """C3 for a randomised learner: expected regret ≥ (√2/4)DL√T; and a claim that is false is found out."""
    games = play_many(lambda past, rng: rng.uniform(-1, 1, 1), "signs", 100, games=100, domain="ball:1")
    assert games.holds
    assert games.regret.mean + 3 * games.regret.error >= math.sqrt(2) / 4 * 2 * 10
    assert "so it was" in str(games)

    class Boaster(rue.RandomSigns):
        def begin(self, setting):
            signs = 2.0 * setting.rng.integers(0, 2, size=setting.rounds) - 1.0
            return lambda move: LinearRound([signs[move.t - 1]])

        def forced(self, game):
            return rue.Forced("X1", "regret", "at least", 15.0, "too much", in_expectation=True)

    boasted = play_many(lambda past: [0.0], Boaster(), 100, games=100, domain="ball:1")
    assert boasted.regret.mean == pytest.approx(math.sqrt(200 / math.pi), rel=0.2)  # E abs of a sum of 100 signs
    assert boasted.holds is False
    assert "it was NOT so" in str(boasted)
    certain = play_many("ogd:domain=ball:1", "orthogonal", 20, games=3)
    assert certain.holds
    assert certain.regret.error == pytest.approx(0.0, abs=1e-9)


# Refusals, each in one sentence.


class Silent:
    """Has neither of the two pairs of methods."""

    def predict(self, x):
        return 0.0


class Locked(Rosenblatt):
    def __init__(self):
        super().__init__(3)
        self.lock = threading.Lock()


class River:
    def predict_one(self, x):
        return 0.0

    def learn_one(self, x, y):
        return self


class Sklearn:
    def predict(self, X):
        return np.zeros(len(X))

    def partial_fit(self, X, y, classes=None):
        return self


def _needs(past, x, z):
    return 0.0


@pytest.mark.parametrize(
    ("learner", "opponent", "settings", "words"),
    [
        (3, "signs", {}, "learner must be a learner such as rue.OGD.*or a function of the past, not 3"),
        (Silent(), "margin:3", {}, "with predict.x. and update.x, y. or with point and update.part"),
        (Rosenblatt, "margin:3", {}, r"Rosenblatt is a class: give an object of it, Rosenblatt\(\)"),
        (Rosenblatt(2), "orthogonal", {"domain": "ball:1"}, "functions of the point, and Rosenblatt only predicts"),
        (lambda past, x: 0.0, "signs", {"domain": "ball:1"}, "a function only predicts"),
        (River(), "margin:3", {}, "River learns by learn_one: wrap it in an object of your own, whose predict.x."),
        (Sklearn(), "margin:3", {}, "Sklearn learns by partial_fit: wrap it .* made of its predict and whose update"),
        (Coin(), "orthogonal", {"domain": "ball:1"}, "round 1: Coin has no point: set one in begin"),
        (lambda rng, past: [0.0], "signs", {"domain": "ball:1"}, "with rng as a further argument"),
        (_needs, "margin:3", {}, "_needs must take .past. and return a point, or .past, x. and return a prediction"),
        (lambda *past: 0.0, "margin:3", {}, "must take .past. and return a point"),
        (max, "margin:3", {}, "max must take .past."),
        (
            lambda past: [0.0, 0.0],
            "orthogonal",
            {},
            "say which set the points are chosen from, such as domain='ball:1'",
        ),
        (lambda past: [0.0], "orthogonal", {"domain": 7}, "say which set the points are chosen from"),
        (lambda past: [0.0], "orthogonal", {"domain": "ball:1"}, r"round 1: the point of a function must be 2 finite"),
        (lambda past: "x", "signs", {"domain": "ball:1"}, "round 1: the point of a function must be 1 finite numbers"),
        (lambda past: [math.nan], "signs", {"domain": "ball:1"}, "must be 1 finite numbers, not .nan."),
        (
            lambda past: [len(past)],
            "signs",
            {"domain": "ball:1"},
            r"round 3: a function plays \[2.0\], which is not",
        ),
        (lambda past, x: math.inf, "margin:3", {}, "round 1: the prediction of a function must be a finite number"),
        (lambda past, x: x, "margin:3", {}, "the prediction of a function must be a finite number, not an ndarray"),
        (lambda past, x: 0.0, "stochastic", {}, "say which loss its predictions are scored by, such as loss='square'"),
        (lambda past: [0.0], "orthogonal:3", {"domain": rue.Box([0, 0], [1, 1])}, "has 2 coordinates and the game 3"),
        (lambda past: [0.0, 0.0], "orthogonal", {"domain": "reals"}, "its theorem is about a ball"),
        (Locked(), "margin:3", {}, "Locked cannot be copied .*: make it one that copy.deepcopy copies"),
        ("ogd", "signs", {"domain": "ball:1"}, "domain= is for learners of your own; OGD is built with its domain"),
        ("ogd", "margin:3", {"loss": "hinge"}, "loss= is for learners of your own; OGD is built with its loss"),
    ],
)
def test_what_cannot_play_is_refused_in_a_sentence(learner, opponent, settings, words):
    with pytest.raises(rue.RueError, match=words) as caught:
        play(learner, opponent, 10, **settings)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("name", "value"), [("games", 1), ("games", 2.5), ("games", True), ("seed", -1), ("seed", 0.5)]
)
def test_how_many_games_is_a_number(name, value):
    with pytest.raises(rue.SettingsError, match=f"play_many: {name} must be a whole number"):
        play_many("ogd", "signs", 5, **{name: value})


def test_a_mistake_in_a_learner_of_ones_own_is_shown_as_it_is():
    def wrong(past):
        raise ZeroDivisionError("in the learner")

    with pytest.raises(ZeroDivisionError, match="in the learner"):
        play(wrong, "signs", 3, domain="ball:1")

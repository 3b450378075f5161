"""The learners once more, each in at most fifteen lines of NumPy, written from docs/theory.md without rue's code.

X holds the intercept's column of ones, c the weights of the examples, `slope(p, y)` a subgradient of the loss,
`project` is Π_K and w is w_1. Round t's loss is weight·ℓ; t counts the examples whose weight is not 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Played(NamedTuple):
    """For each example (p, w, η): the prediction, the point it was made with and the step; and the point at the end."""

    rounds: list
    point: np.ndarray

    @property
    def p(self):
        return np.array([p for p, _, _ in self.rounds])

    def average(self, c, kind):
        """Σα_t w_t / Σα_t over the points played, α_t = weight · (1, t or η_t)."""
        W, eta = np.array([w for _, w, _ in self.rounds]), np.array([eta for _, _, eta in self.rounds])
        alpha = c * {"uniform": np.ones(c.size), "t": np.cumsum(c > 0), "steps": eta}[kind]
        return alpha @ W / alpha.sum() if alpha.any() else W[0]


# Losses (section 2): value and slope.


def squared_hinge(p, y):
    return np.maximum(0, 1 - y * p) ** 2


def huber(delta):
    def value(p, y):
        r = np.abs(p - y)
        return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2))

    return value, lambda p, y: np.clip(p - y, -delta, delta)


def quantile(tau):
    def value(p, y):
        return np.maximum(tau * (y - p), (1 - tau) * (p - y))

    return value, lambda p, y: (1 - tau) * (p > y) - tau * (p < y)


def insensitive(epsilon):
    def value(p, y):
        return np.maximum(0, np.abs(p - y) - epsilon)

    return value, lambda p, y: np.sign(p - y) * (np.abs(p - y) > epsilon)


LOSSES = {
    "square": (lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y)),
    "absolute": (lambda p, y: np.abs(p - y), lambda p, y: np.sign(p - y)),
    "hinge": (lambda p, y: np.maximum(0, 1 - y * p), lambda p, y: -y * (y * p <= 1)),
    "perceptron": (lambda p, y: np.maximum(0, -y * p), lambda p, y: -y * (y * p <= 0)),
    "logistic": (lambda p, y: np.logaddexp(0, -y * p), lambda p, y: -y * expit(-y * p)),
    "linear": (lambda p, y: y * p, lambda p, y: y),
    "squared-hinge": (squared_hinge, lambda p, y: -2 * y * np.maximum(0, 1 - y * p)),
    "poisson": (lambda p, y: np.exp(p) - y * p, lambda p, y: np.exp(p) - y),
    "huber:0.5": huber(0.5),
    "huber:1": huber(1.0),
    "quantile:0.25": quantile(0.25),
    "epsilon-insensitive:0.5": insensitive(0.5),
}


# Projections (section 3).


def anywhere(w):
    return w


def ball(U, centre=0.0):
    def project(w):
        far = np.linalg.norm(w - centre)
        return centre + (w - centre) * U / far if far > U else w

    return project


def box(low, high):
    return lambda w: np.clip(w, low, high)


def orthant(w):
    return np.maximum(w, 0)


def simplex(total):
    def project(w):
        high = np.sort(w)[::-1]
        tau = (np.cumsum(high) - total) / np.arange(1, w.size + 1)
        return np.maximum(w - tau[np.nonzero(high > tau)[0][-1]], 0)

    return project


def l1_ball(U):
    return lambda w: np.sign(w) * simplex(U)(np.abs(w)) if np.abs(w).sum() > U else w


def halfspace(normal, offset):
    return lambda w: w - max(0.0, normal @ w - offset) / (normal @ normal) * normal


def hyperplane(normal, offset):
    return lambda w: w - (normal @ w - offset) / (normal @ normal) * normal


def ball_of_orthant(U):
    """Onto the ball around 0 ∩ the orthant: first onto the cone, then onto the ball."""
    return lambda w: ball(U)(np.maximum(w, 0))


# Algorithms (section 3).


def perceptron(X, y, c, eta=1.0):
    """A1."""
    w, rounds = np.zeros(X.shape[1]), []
    for x, label, a in zip(X, y, c, strict=True):
        p = w @ x
        rounds.append((p, w, eta))
        if label * p <= 0:
            w = w + eta * a * label * x
    return Played(rounds, w)


def descent(X, y, c, slope, project, w, eta, lambda_=0.0):
    """A2 and A3: the step is eta(t)."""
    t, rounds = 0, []
    for x, label, a in zip(X, y, c, strict=True):
        p, t = w @ x, t + (a > 0)
        step = eta(t) if a > 0 else 0.0
        rounds.append((p, w, step))
        if a > 0:
            w = project(w - step * a * (slope(p, label) * x + lambda_ * w))
    return Played(rounds, w)


def strong(X, y, c, slope, project, w, lambda_, sigma=None, by_time=False):
    """A4 and A5, and A6 by time: η_t = 1/Σσ_i, σ_i = σ·weight, times i by time."""
    t, total, rounds = 0, 0.0, []
    for x, label, a in zip(X, y, c, strict=True):
        p, t = w @ x, t + (a > 0)
        a = a * t if by_time else a
        total += (sigma or lambda_) * a
        rounds.append((p, w, 1 / total if a > 0 else 0.0))
        if a > 0:
            w = project(w - a * (slope(p, label) * x + lambda_ * w) / total)
    return Played(rounds, w)


def adaptive(X, y, c, slope, project, w, D, lambda_=0.0):
    """A8."""
    total, rounds = 0.0, []
    for x, label, a in zip(X, y, c, strict=True):
        p = w @ x
        g = a * (slope(p, label) * x + lambda_ * w)
        total += g @ g
        step = D / np.sqrt(2 * total) if total > 0 else 0.0
        rounds.append((p, w, step))
        w = project(w - step * g) if a > 0 else w
    return Played(rounds, w)


def theory(X, y, c, slope, project, w, length, L, power=1, T=None):
    """A9: η_t = length/(G√t), or length/(G√T), with G = L·max weight·‖x‖^power so far."""
    t, G, rounds = 0, 0.0, []
    for x, label, a in zip(X, y, c, strict=True):
        p, t, G = w @ x, t + (a > 0), max(G, L * a * np.linalg.norm(x) ** power)
        step = length / (G * np.sqrt(T or t)) if G > 0 else 0.0
        rounds.append((p, w, step))
        w = project(w - step * a * slope(p, label) * x) if a > 0 else w
    return Played(rounds, w)


def adagrad(X, y, c, slope, project, w, rate, beta):
    """A10: one step for each coordinate."""
    total, rounds = np.zeros(w.size), []
    for x, label, a in zip(X, y, c, strict=True):
        p = w @ x
        rounds.append((p, w, np.nan))
        g = a * slope(p, label) * x
        total = total + g**2
        below = beta + np.sqrt(total)
        w = project(w - rate * g / np.where(below > 0, below, 1.0))
    return Played(rounds, w)


def adagrad_scaled(X, y, c, slope, rate, beta):
    """A10 on x_j / max |x_j| so far, this round included; a point is in the units of the features it has seen."""
    w, total, largest, rounds = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for x, label, a in zip(X, y, c, strict=True):
        now = np.maximum(largest, np.abs(x))
        unit = np.where(now > 0, now, 1.0)
        p = w @ (x / unit)
        rounds.append((p, w / np.where(largest > 0, largest, 1.0), np.nan))
        if a > 0:
            g, largest = a * slope(p, label) * x / unit, now
            total = total + g**2
            w = w - rate * g / (beta + np.sqrt(total))
    return Played(rounds, w / np.where(largest > 0, largest, 1.0))


def leader_linear(X, y, c, lowest, w):
    """A7 for linear losses: lowest(θ, w) minimises ⟨θ, u⟩ over K, and where all are equal stays at w."""
    theta, rounds = np.zeros(X.shape[1]), []
    for x, g, a in zip(X, y, c, strict=True):
        rounds.append((w @ x, w, np.nan))
        theta = theta + a * g * x
        w = lowest(theta, w) if a > 0 else w
    return Played(rounds, w)


def leader_square(X, y, c, project, w):
    """A7 for squares in one coordinate."""
    xx, xy, rounds = 0.0, 0.0, []
    for x, label, a in zip(X, y, c, strict=True):
        rounds.append((w @ x, w, np.nan))
        xx, xy = xx + a * x * x, xy + a * x * label
        if xx > 0:
            w = project(xy / xx)
    return Played(rounds, w)


# The certificate D1 (section 6).


def certificate(X, y, c, p, slope):
    """A = Σ g_t p_t and S = Σ g_t x_t."""
    g = c * np.array([slope(a, b) for a, b in zip(p, y, strict=True)])
    return g @ p, g @ X

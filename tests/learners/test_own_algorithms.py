"""Algorithms and losses of a user's own: their mistakes are reported as theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rue
from rue.learners.gradient import Gradient


@rue.parameter
class Faulty:
    """A rule with a mistake in it, which shows at labels above 0."""

    loss: Any

    def learn(self, point, row, y, weight):
        return (0.0, True) if y < 0.0 else len(y)  # a number has no length


@rue.parameter
class Mistaken(Gradient):
    def start(self, size, first=None, room=None):
        return Faulty(self.loss), Gradient.start(self, size, first, room)[1]


@pytest.fixture
def faulty(interpreted):
    settings = "Mistaken", rue.Hinge(), rue.Ball(1), rue.Fixed(1), rue.Uniform()
    learner = rue.Learner(Mistaken(*settings))
    learner.update([1.0, 2.0], -1)
    return learner


@pytest.mark.parametrize("x", [[1.0, 2.0], np.array([1.0, 2.0]), ([0], [1.0])], ids=["list", "array", "pair"])
def test_a_type_error_in_an_algorithm_is_not_a_bad_label(faulty, x):
    with pytest.raises(TypeError, match="has no len") as caught:
        faulty.update(x, 1.0)
    assert not isinstance(caught.value, rue.RueError)
    with pytest.raises(TypeError, match="has no len"):
        faulty.run(np.eye(2), [1.0, 1.0])
    with pytest.raises(TypeError, match="has no len"):
        rue.learn(np.eye(2), [-1.0, 1.0], learner=faulty)


@pytest.mark.parametrize(("label", "weight"), [("1", 1.0), (None, 1.0), (1.0, "2"), (1.0, [1.0, 2.0])])
def test_a_label_that_is_no_number_is_refused(faulty, label, weight):
    for x in ([1.0, 2.0], np.array([1.0, 2.0])):
        with pytest.raises(rue.DataError, match=r"the label .*(must be numbers, not|is not −1 or \+1)"):
            faulty.update(x, label, weight)

"""Alarms (B17) against a NumPy reference, the coverage of each confidence sequence, and delays."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rue
from rue.errors import DataError, SettingsError
from rue.regret.risk.alarms import EVERY, Alarm
from rue.regret.risk.bernstein import deviation, variances


def by_definition(x, alpha):
    """The first look at which a later sequence, of those not thinned out, lies above what an earlier one ever was.

    Upper ends of sequences that were thinned out count for those that started later than the next one that was not.
    """
    highs, due = {}, {}
    for t in range(EVERY, x.size + 1, EVERY):
        newest = t // EVERY - 1
        highs[newest], due[newest], carried = math.inf, 0.0, math.inf
        for i in sorted(highs):
            carried = min(carried, highs.pop(i))
            if i % 2 ** max(0, math.floor(math.log2(max(1, (newest - i) / 4)))) == 0:
                highs[i], carried = carried, math.inf
        lowest = math.inf
        for i in sorted(highs):
            part = x[i * EVERY : t]
            away = deviation(variances(part)[-1], alpha / 2) / part.size
            if part.mean() - away > lowest:
                return t, i * EVERY + 1
            if part.size >= due[i]:
                highs[i], due[i] = min(highs[i], part.mean() + away), 1.25 * part.size
            lowest = min(lowest, highs[i])
    return None


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.5), (0.3, 0.9), (0.0, 0.05), (0.2, 0.2), (0.6, 0.1)])
def test_alarms_are_those_of_the_definition(low, high):
    rng = np.random.default_rng(1)
    x = np.where(np.arange(1200) < 700, low, high) * rng.random(1200) * 2 % 1.0
    alarm = Alarm(16 * 999.0)
    found = alarm.enter(x)
    assert alarm.alpha == pytest.approx(1e-3)
    wanted = by_definition(x, 1e-3)
    assert [(change.round, change.since) for change in found[:1]] == ([] if wanted is None else [wanted])


def test_means_before_and_after():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.random(2000) * 0.2, 0.5 + rng.random(1000) * 0.2]) * 8.0
    alarm = Alarm(1e6, bound=8.0)
    change = alarm.enter(x)[0]
    assert change in alarm.changes
    assert change.after == pytest.approx(x[change.since - 1 : change.round].mean())
    assert 0.5 < change.before < 1.1
    assert 2000 <= change.round < 2200
    assert "rose from" in str(change)


def test_pieces_of_any_size_give_the_same_alarms():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.random(700) < 0.1, rng.random(700) < 0.6, rng.random(900) < 0.95]).astype(float)
    whole, pieces = Alarm(1e5), Alarm(1e5)
    whole.enter(x)
    for begin in range(0, x.size, 13):
        pieces.enter(x[begin : begin + 13])
    assert len(whole.changes) == 2
    assert pieces.changes == whole.changes
    assert np.array_equal(pieces.table, whole.table)


def test_each_sequence_covers_its_mean_at_every_look():
    """The promise rests on this: each sequence misses its mean at any time with probability at most α."""
    alpha, missed, sequences = 0.1, 0, 0
    rng = np.random.default_rng(4)
    for _ in range(60):
        mean = rng.choice([0.02, 0.1, 0.5])
        alarm = Alarm(EVERY * (1 / alpha - 1))
        out = set()
        for _ in range(40):
            alarm.enter(rng.random(EVERY) < mean)
            if alarm.changes:
                break
            rows = alarm.intervals()
            out |= {row[0] for row in rows if not row[1] <= mean <= row[2]}
        missed, sequences = missed + len(out), sequences + alarm.seen // EVERY
    assert missed <= (alpha + 0.03) * sequences


def test_a_falling_loss_is_no_alarm():
    rng = np.random.default_rng(5)
    mean = np.repeat([0.9, 0.5, 0.2, 0.05], 3000)
    alarm = Alarm(1e4)
    assert alarm.enter(rng.random(mean.size) < mean) == []


def test_false_alarms_are_rare():
    rng = np.random.default_rng(6)
    alarm = Alarm(2000)
    alarm.enter(rng.random(200_000) < 0.1)
    assert len(alarm.changes) <= 100  # one in 2,000 rounds on average; hardly any is seen


def test_refusals():
    with pytest.raises(SettingsError, match="mean number of rounds between false alarms"):
        rue.Alarm(3)
    with pytest.raises(SettingsError, match="at least 16, not 'often'"):
        rue.Alarm("often")
    with pytest.raises(SettingsError, match="above 0"):
        rue.Alarm(1e6, bound=0.0)
    with pytest.raises(DataError, match="between 0 and their bound, 1"):
        rue.Alarm(1e6).enter([0.5, 1.5])

"""Intervals and alarms in words, for the page that a run ends with."""

from __future__ import annotations

from typing import Any

__all__ = ["watched_in_words"]


def watched_in_words(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines about intervals or sets, and about alarms, of a report; none where they were not asked for."""
    rows: list[tuple[str, str]] = []
    interval = summary["interval"]
    for found in [] if interval is None else interval.get("levels", [interval]):
        rows += _of_level(found)
    if interval is not None:
        rows += _observed(interval)
    if summary["alarms"] is not None:
        rows += _alarms(summary["alarms"])
    return rows


def _of_level(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What was asked for, promised and observed at one level."""
    sets = found["side"] == "classes"
    name = "sets" if sets else "intervals"
    if not found["examples"]:
        return [(name, "there is no label yet")]
    size = f"{found['mean_width']:.4g} classes on average" if sets else f"mean width {found['mean_width']:.4g}"
    if found["side"] in ("upper", "lower"):
        size = f"the {found['side']} end {found['mean_width']:.4g} from the prediction on average"
    proof = f"within {found['promised_within']:.2%} of it on any data"
    if found["free"]:
        proof = f"at least {max(0.0, found['level'] - found['promised_within']):.2%} on any data"
    words = f"{found['covered']:.2%} of the labels inside, asked for {found['level']:.2%}; by proof {proof}; {size}"
    free = f"{found['free']:,} hits are no part of the promise from above: nothing could have been narrower"
    return [(name, words)] + ([("", free)] if found["free"] else [])


def _observed(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The window and the group with the lowest share, where nothing is promised."""
    rows = []
    whole = [one for one in found["windows"] if one["last"] - one["first"] == found["windows"][0]["last"] - 1]
    if len(whole) > 1:
        low = min(whole, key=lambda window: window["covered"])
        rows.append(("", f"lowest of {len(whole)} windows: {low['covered']:.2%}, {low['first']:,} to {low['last']:,}"))
    if found["groups"]:
        low = found["groups"][0]
        rows.append(("", f"lowest of {len(found['groups']):,} groups: {low['covered']:.2%}, {low['group']}"))
        rows[-1] = "", f"{rows[-1][1]} ({low['examples']:,} labels)"
    return rows


def _alarms(found: dict[str, Any]) -> list[tuple[str, str]]:
    """How many alarms there were, and each of the last few."""
    bound = "" if found["bound"] is None else f", clipped at {found['bound']:.4g}" * found["watched"].startswith("abs")
    rate = f"a false alarm at most once in {found['rounds']:,.7g} rounds on average"
    many = len(found["alarms"])
    rows = [("alarms", f"{many:,}; watched is {found['watched']}{bound}; {rate} while it does not rise")]
    for alarm in found["alarms"][-3:]:
        words = (
            f"at {alarm['round']:,}: from {alarm['before']:.4g} to {alarm['after']:.4g}, since about {alarm['since']:,}"
        )
        rows.append(("", words))
    return rows

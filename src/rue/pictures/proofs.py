"""The picture of a proof: how the pieces of a telescoping sum add up to the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rue.errors import SettingsError, shown
from rue.pictures.curves import times
from rue.pictures.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SIZE, Panel
from rue.regret.bounds.telescope import Telescope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_proof"]

FINE = 500
"""How many points a curve has."""


def plot_proof(proof: Telescope, ax: Axes | None = None) -> Axes:
    """How the pieces of a `Telescope` add up to the bound, after every round t.

    From 0 upwards, one on top of the other: start ‖w_1 − u‖²/(2η_1), drift ½Σ‖w_i − u‖²(1/η_i − 1/η_{i−1}), gradients
    ½Ση_i‖g_i‖². Lines: the regret R_t(u); the linear losses Σ⟨g_i, w_i − u⟩ above it (P1); the telescoped sum above
    those, which is the pieces less ‖w_{t+1} − u‖²/(2η_t) (P2); and the bound, with distances at most D. Where losses
    are strongly convex, all lines are lower by Σ(σ_i/2)‖w_i − u‖², which about equals the drift (P3). `ax` is where to
    draw.

    >>> import rue
    >>> X, y = rue.census()
    >>> proof = rue.trace(rue.OGD("hinge", "ball:2"), X[:100], y[:100], points=True).telescope()
    >>> sorted(line.get_label() for line in rue.plot_proof(proof).lines)
    ['bound', 'linear', 'regret', 'telescoped']

    docs/theory.md, P1 to P3.
    """
    if not isinstance(proof, Telescope):
        raise SettingsError(f"plot_proof: give rue.trace(…, points=True).telescope(u), not {shown(proof)}.")
    panel, at = Panel(ax), times(proof.T, FINE)
    pieces = {name: values[at - 1] for name, values in proof.running_pieces().items()}
    below = np.zeros(at.size)
    for name, colour in (("start", GREY), ("drift", ORANGE), ("gradient", GREEN)):
        above = below + pieces[name]
        panel.ax.fill_between(at, below, above, color=colour, alpha=0.25, lw=0, label=name)
        panel.ends.append((float(below[-1] + above[-1]) / 2.0, name, colour))
        below = above
    curved = proof.running("curvature")
    panel.line(at, proof.bounds[at - 1], "bound", PURPLE, ls="--")
    panel.line(at, (proof.running("projected") - curved)[at - 1], "telescoped", PURPLE)
    panel.line(at, (proof.running("linear") - curved)[at - 1], "linear", RED)
    panel.line(at, proof.running("regret")[at - 1], "regret", BLUE, lw=2.2)
    panel.ax.set_xlim(*((1, proof.T) if proof.T > 1 else (0.5, 1.5)))
    panel.ax.set_xlabel("rounds t", fontsize=SIZE + 0.5)
    return panel.finish("sums over the first t rounds", "How the pieces of the proof add up")

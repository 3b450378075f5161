"""The state of `Staged`, declared: the numbers and arrays that it has in addition to its pools' and its table's."""

from __future__ import annotations

from rue.layout import Array, Layout
from rue.learners.mixture.layout import COPY, MEMBERS, MIXING, MIXING_MEMORY, SCRATCH

__all__ = ["LIVE", "STAGED", "TRIALS"]

TRIALS = COPY
"""What frozen copies of the stages have lost, over the periods of the raw pool's trials."""
LIVE = 0
"""The column of `trials` for what the learner itself lost on the same examples; the raw stage has its own trials."""

STAGED = Layout(
    Array("members", "The stages' losses and shares.", (MEMBERS, "member")),
    Array("kinds", "The weight of the one kind that all stages are of: 1.", ("kind",)),
    Array("memory", "The numbers.", (MIXING_MEMORY,)),
    Array("running", "Which stages run (1) or have retired (0).", ("member",), least=0.0),
    Array("gradients", "S = Σ g_t φ_t of the features of each map (D1).", ("own coordinate", "map"), merge="added"),
    Array("trials", "What frozen copies of the stages have lost.", (TRIALS, "member")),
    Array("scratch", "The stages' predictions in the present round.", (SCRATCH, "member"), saved=False),
    Array("work", "The mixture of the predictions.", (MIXING, "kind"), saved=False),
    Array("features", "The features of the present row, a row for each stage.", ("stage", "feature"), saved=False),
    Array("values", "Their values.", ("stage", "feature"), saved=False),
    Array("ends", "How many there are.", ("stage",), saved=False),
)

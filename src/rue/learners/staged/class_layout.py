"""The state of `StagedSoftmax`, declared: that of a stage over mapped features, and that of the stages together."""

from __future__ import annotations

from typing import Any

from rue.layout import Array, Layout, Number, Numbers
from rue.learners.mixture.layout import COPY, MEMBERS, MIXING, MIXING_MEMORY, RATED_MEMBERS, SCRATCH
from rue.learners.softmax.layout import CLASS_MEMORY

__all__ = ["CLASS_STAGE", "FORGETS", "KINDS", "STAGED_CLASSES"]

KINDS = 2
"""How many kinds of members a stage has: sums of squared gradients that are kept, and that are forgotten."""
FORGETS = 1
"""The kind that forgets 1 % of its sums at each visit."""

SUMS = Numbers(
    Number("sum_0", "Kind 0: Σg².", least=0.0),
    Number("sum_1", "Kind 1: Σg², of which 1 % is forgotten at each visit.", merge="maximum", least=0.0),
)
_COPIED: dict[str, Any] = {"dtype": "float32", "since": 7}
CLASS_STAGE = Layout(
    Array("weights", "Weights of the mapped features.", ("coordinate", "class", "member"), dtype="float32"),
    Array("sums", "Sums of the kinds.", ("coordinate", "class", SUMS)),
    Array("offered", "Weights of the predictions that are offered, less 1/their number.", ("offer", "class", "member")),
    Array("offered_sums", "Their sums.", ("offer", "class", SUMS)),
    Array("copies", "The members' mean weights when they were last copied.", ("coordinate", "class"), **_COPIED),
    Array("offered_copies", "Those of the predictions that are offered.", ("offer", "class"), since=7),
    Array("members", "The members' losses, shares and rates.", (RATED_MEMBERS, "member")),
    Array("kinds", "The weight of each kind.", ("kind",)),
    Array("memory", "The numbers.", (CLASS_MEMORY,)),
    Array("counts", "How many examples of each class were learnt.", ("class",), merge="added", least=0.0),
    Array("scratch", "Rows of working memory for sums over members.", (SCRATCH, "member"), saved=False),
    Array("scores", "The members' scores, then their steps.", ("class of member",), saved=False),
    Array("chances", "The members' probabilities; 0 for a class never seen.", ("class of member",), saved=False),
    Array("mixed", "The probability by the mixture, then by each kind.", ("class", "kind and one"), saved=False),
    Array("along", "⟨f, x⟩ of each kind.", ("class", "kind"), saved=False),
    Array("squares", "The squared gradient of each kind.", ("class", "kind"), saved=False),
    Array("left", "What is left of its sums after a visit.", ("class", "kind"), saved=False),
    Array("notes", "Directions of the features of the row.", ("feature", "class", "kind"), saved=False),
    Array("offered_notes", "Those of the predictions that are offered.", ("offer", "class", "kind"), saved=False),
)
"""As a file has it, with a row for each mapped feature: `ClassStage.laid_out`."""

STAGED_CLASSES = Layout(
    Array("members", "The stages' losses and shares.", (MEMBERS, "member")),
    Array("kinds", "The weight of the one kind that all stages are of: 1.", ("kind",)),
    Array("memory", "The numbers.", (MIXING_MEMORY,)),
    Array("running", "Which stages run (1) or have retired (0).", ("member",), least=0.0),
    Array("trials", "What frozen copies of the stages have lost.", (COPY, "member"), since=7, least=0.0),
    Array("scratch", "Working memory of the weights.", (SCRATCH, "member"), saved=False),
    Array("work", "The same.", (MIXING, "kind"), saved=False),
    Array("mixed", "The probability of each class.", ("class", "one"), saved=False),
    Array("logs", "The logarithm of the probability of each class by each stage.", ("class", "member"), saved=False),
    Array("features", "The features of the present row, a row for each stage.", ("stage", "feature"), saved=False),
    Array("ends", "How many there are.", ("stage",), saved=False),
)

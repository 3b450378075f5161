"""The state of `SoftmaxMixture`, declared: every number and array by name."""

from __future__ import annotations

from rue.layout import Array, Layout, Number, Numbers
from rue.learners.mixture.layout import CANDIDATES, COPY, MIXING_MEMORY, RATED_MEMBERS, SCRATCH, STATS

__all__ = [
    "CENTRED",
    "CENTRES",
    "CLASS_MEMORY",
    "CLASS_POOL",
    "CLOSED",
    "COPIED_CLOSED",
    "COPIED_ROUNDS",
    "COPIED_USED",
    "FEATURE_STATS",
    "HIGHEST",
    "KINDS",
    "MEAN",
    "NARROW",
    "PRODUCT",
    "ROOM",
    "ROW",
    "SEEN",
    "SINCE",
    "SPREAD",
    "TRIAL",
    "USED",
    "WIDE",
]

KINDS, WIDE = 6, 3
"""How many kinds there are, and how many of them have numbers for every feature: kinds 0 to 2."""
NARROW = 128
"""The most features for which kinds 3 to 5 run."""

CLASS_MEMORY = MIXING_MEMORY.followed_by(
    Number("since", "How many rounds ago the last new class came.", merge="derived"),
    Number("highest", "The highest number of a class that was learnt.", merge="maximum"),
    Number("seen", "How many classes were learnt.", merge="derived"),
    Number("used", "How many features have a line.", merge="derived"),
    Number("closed", "1 when kinds 3 to 5 have retired.", merge="maximum"),
)
SINCE, HIGHEST, SEEN = CLASS_MEMORY.indices("since", "highest", "seen")
USED, CLOSED = CLASS_MEMORY.indices("used", "closed")

FEATURE_STATS = Numbers(*list(STATS)[:4])
"""The first four statistics of a feature in `Mixture()`: largest, squares, visits and first."""

SUMS = Numbers(
    Number("sum_0", "Kind 0: Σg²x².", least=0.0),
    Number("sum_1", "Kind 1: Σhx².", least=0.0),
    Number("sum_2", "Kind 2: Σg²x², of which 1 % is forgotten at each visit.", merge="maximum", least=0.0),
)

CENTRES = Numbers(
    Number("mean", "The mean of the line's feature; 0 without an intercept.", merge="derived"),
    Number("spread", "Σ(x − mean)².", merge="derived"),
)
MEAN, SPREAD = CENTRES.indices("mean", "spread")

ROOM = Numbers(
    Number("row", "The present row in lines."),
    Number("centred", "The present row in lines, centred and divided by the deviations."),
    Number("product_0", "Its product with the inverse of kind 4."),
    Number("product_1", "Its product with the inverse of kind 5."),
)
ROW, CENTRED, PRODUCT = ROOM.indices("row", "centred", "product_0")

TRIAL = COPY.followed_by(
    Number("due", "The round after which the weights are copied next.", merge="derived", least=0.0),
    Number("copied_rounds", "How many rounds had been learnt when they were copied.", merge="derived", least=0.0),
    Number("copied_used", "How many features had a line then.", merge="derived", least=0.0),
    Number("copied_closed", "1 if kinds 3 to 5 had retired then.", merge="derived", least=0.0),
)
"""About frozen copies (`rue.learners.softmax.frozen`); `due` is where that of `Mixture` is."""
COPIED_ROUNDS, COPIED_USED, COPIED_CLOSED = TRIAL.indices("copied_rounds", "copied_used", "copied_closed")

CLASS_POOL = Layout(
    Array("weights", "Weights of kinds 0 to 2.", ("coordinate", "class", "member"), dtype="float32"),
    Array("sums", "Sums of kinds 0 to 2.", ("coordinate", "class", SUMS)),
    Array("stats", "Statistics of the feature.", ("coordinate", FEATURE_STATS)),
    Array("slots", "The line of the feature plus 1, or 0.", ("coordinate",), least=0.0, dtype="int64"),
    Array("lines", "Weights of kinds 3 to 5, of centred features.", ("line", "class", "member")),
    Array("line_sums", "Kind 3: Σg²x² of centred features.", ("line", "class"), merge="added", least=0.0),
    Array("centres", "Mean and deviation of the line's feature.", ("line", CENTRES)),
    Array("inverses", "Of kinds 4 and 5 the inverse of 1 + Σh̄xxᵀ.", ("line", "kind", "line")),
    Array("members", "The members' losses, shares and rates.", (RATED_MEMBERS, "member")),
    Array("kinds", "The weight of each kind that runs; −1 for one that has retired.", ("kind",)),
    Array("memory", "The numbers.", (CLASS_MEMORY,)),
    Array("counts", "How many examples of each class were learnt.", ("class",), merge="added", least=0.0),
    Array("copies", "Weights of kinds 0 to 2 when they were last copied.", ("coordinate", "class", "member"), since=6),
    Array("copied_lines", "Weights of kinds 3 to 5 then.", ("line", "class", "member"), since=6),
    Array("copied_stats", "Statistics of the feature then.", ("coordinate", FEATURE_STATS), since=6),
    Array("copied_centres", "Mean and deviation of the line's feature then.", ("line", CENTRES), since=6),
    Array("copied_counts", "How many examples of each class had been learnt then.", ("class",), least=0.0, since=6),
    Array("candidates", "What frozen copies of each candidate have lost.", (CANDIDATES, "candidate"), since=6),
    Array("trial", "Σ weight of the examples that this is about, and more numbers.", (TRIAL,), since=6),
    Array("scratch", "Rows of working memory for sums over members.", (SCRATCH, "member"), saved=False),
    Array("scores", "The members' scores, then their steps.", ("class of member",), saved=False),
    Array("chances", "The members' probabilities; 0 for a class never seen.", ("class of member",), saved=False),
    Array("mixed", "The probability by the mixture, then by each kind.", ("class", "kind"), saved=False),
    Array("along", "⟨f, x⟩ of each kind.", ("class", "kind"), saved=False),
    Array("room", "The present row in lines.", (ROOM, "line"), saved=False),
    Array("notes", "Directions of the first features of the row.", ("feature", "class", "kind"), saved=False),
)

"""The state of the mixtures, declared: the numbers and arrays of `Mixture()` and `Mixture(members=…)`, by name.

Not declared, because a file does not have them, are `PoolPoint.lines`, `spots` and `given`: which table row a feature
has is settled anew when a file is read (`PoolPoint.gathered`).

What `SoftmaxMixture` has in addition to what all mixtures share is in `rue.learners.softmax.layout`.
"""

from __future__ import annotations

from rue.layout import Array, Layout, Number, Numbers
from rue.learners.points import MEMORY

__all__ = [
    "ALONG",
    "CANDIDATES",
    "CENTRE",
    "COLUMNS",
    "COMMITTEE",
    "CONSTANT",
    "COPIED",
    "COPY",
    "COST",
    "CURVATURE",
    "DIAGONAL",
    "DIRECTION",
    "DIVISORS",
    "DUE",
    "EARLIER",
    "ETA",
    "FIRST",
    "GAPS",
    "HEAVIEST",
    "HELD",
    "HIGH",
    "KINDS",
    "KNOWN",
    "LABELS",
    "LARGEST",
    "LAST",
    "LATEST",
    "LOSSES",
    "LOW",
    "LOWEST",
    "MATRICES",
    "MEAN",
    "MEMBERS",
    "MIXED",
    "MIXED_NO",
    "MIXED_YES",
    "MIXING",
    "MIXING_MEMORY",
    "NARROW",
    "NO",
    "NOTED",
    "POOL",
    "POOL_MEMORY",
    "PREDICTION",
    "PRODUCT",
    "RATED_MEMBERS",
    "RATES",
    "ROOM",
    "ROW",
    "SCALED",
    "SCRATCH",
    "SHARES",
    "SLOPE",
    "SLOPES",
    "SPREAD_OF_LABELS",
    "SQUARES",
    "STATS",
    "STEP",
    "SUMS",
    "TRIAL",
    "UNIT",
    "USED",
    "VALUE",
    "VISITS",
    "WEIGHED",
    "WORK",
    "YES",
]

DIAGONAL, MATRICES = 4, 2
"""How many kinds have a number, and how many a matrix, for the features: kinds 0 to 3, and 4 and 5."""
KINDS = DIAGONAL + MATRICES
COLUMNS = (0, 2, 3, 1)
"""Where in a row of `weights` the members of kinds 0 to 3 stand: those that divide alike share a cache line."""
NARROW = 64
"""The most features for which kinds 4 and 5 run."""

# What all mixtures share.

MIXING_MEMORY = MEMORY.followed_by(
    Number("eta", "The rate η of the exponential weights.", merge="derived", least=0.0),
    Number("gaps", "Σ gaps: how much the mixture may have lost beyond its mix losses.", least=0.0),
    Number("heaviest", "The largest weight of an example, but at least 1.", merge="maximum", least=0.0),
    Number("mixed", "What the mixture has lost."),
)
ETA, GAPS, HEAVIEST, MIXED = MIXING_MEMORY.indices("eta", "gaps", "heaviest", "mixed")

MEMBERS = Numbers(
    Number("losses", "What each member has lost."),
    Number("shares", "The share of each member in the weight of its kind.", merge="derived"),
    Number("cost", "What the present round costs each member.", merge="derived"),
)
LOSSES, SHARES, COST = MEMBERS.indices("losses", "shares", "cost")
RATED_MEMBERS = MEMBERS.followed_by(Number("rates", "The rate of each member.", merge="same"))
RATES = RATED_MEMBERS.index("rates")

SCRATCH = Numbers(
    Number("prediction", "The prediction of each member."),
    Number("yes", "The probability of yes that it stands for."),
    Number("no", "The probability of no."),
    Number("step", "The step that each member takes; before that, whatever a sum over members needs."),
)
PREDICTION, YES, NO, STEP = SCRATCH.indices("prediction", "yes", "no", "step")

MIXING = Numbers(
    Number("mixed_yes", "Of the mixture of a kind's members: the probability of yes; for `ByMean` the mean."),
    Number("mixed_no", "The probability of no."),
    Number("lowest", "What the best member of the kind has lost."),
)
MIXED_YES, MIXED_NO, LOWEST = MIXING.indices("mixed_yes", "mixed_no", "lowest")

# `Mixture(members=…)`.

COMMITTEE = Layout(
    Array("members", "The members' losses and shares.", (MEMBERS, "member")),
    Array("kinds", "The weight of the one kind that all members are of: 1.", ("kind",)),
    Array("memory", "The numbers.", (MIXING_MEMORY,)),
    Array("scratch", "The members' predictions in the present round.", (SCRATCH, "member"), saved=False),
    Array("work", "The mixture of the predictions.", (MIXING, "kind"), saved=False),
    Array("room", "`members` for a round in which some sleep.", (MEMBERS, "member"), saved=False),
)

# `Mixture()`: the pool of all rates and kinds.

POOL_MEMORY = MIXING_MEMORY.followed_by(
    Number("centre", "The labels' centre: the first label, 0 without an intercept.", merge="derived"),
    Number("unit", "The labels' unit, a power of 2.", merge="derived", least=0.0),
    Number("low", "The lowest label so far, from the centre, in units.", merge="derived"),
    Number("high", "The highest label so far.", merge="derived"),
    Number("held", "Σ weight of the labels.", least=0.0),
    Number("mean", "The mean of the labels, from the centre, in units.", merge="derived"),
    Number("spread_of_labels", "Σ weight·(y − mean)², in units².", merge="derived", least=0.0),
    Number("slopes", "Σ weight·slope² at the mean of the labels as a prediction.", least=0.0),
    Number("used", "How many matrix rows are in use; −1 when their kinds have retired.", merge="derived"),
)
CENTRE, UNIT, LOW, HIGH = POOL_MEMORY.indices("centre", "unit", "low", "high")
HELD, MEAN, SPREAD_OF_LABELS = POOL_MEMORY.indices("held", "mean", "spread_of_labels")
SLOPES, USED = POOL_MEMORY.indices("slopes", "used")

STATS = Numbers(
    Number("largest", "The largest magnitude of the feature.", merge="maximum", least=0.0),
    Number("squares", "Σx², or Σ(UP·x)² while the feature is tiny (`columns`).", least=0.0),
    Number("visits", "How many examples had the feature.", least=0.0),
    Number("first", "The first magnitude.", merge="first", least=0.0),
    Number("sum_0", "Kind 0: Σg²x².", least=0.0),
    Number("sum_1", "Kind 1: Σg²x².", least=0.0),
    Number("sum_2", "Kind 2: Σg²x², of which 1 % is forgotten at each visit.", merge="maximum", least=0.0),
    Number("sum_3", "Kind 3: Σhx².", least=0.0),
)
LARGEST, SQUARES, VISITS, FIRST, SUMS = STATS.indices("largest", "squares", "visits", "first", "sum_0")

WORK = MIXING.followed_by(
    Number("along", "⟨f, x⟩, f the direction of the kind."),
    Number("slope", "The slope at the kind's mixed prediction."),
    Number("curvature", "The curvature there."),
)
ALONG, SLOPE, CURVATURE = WORK.indices("along", "slope", "curvature")

NOTED = Numbers(
    Number("value", "The feature as it is."),
    *(Number(f"scaled_{kind}", f"The feature divided as kind {kind} divides it.") for kind in range(3)),
    *(Number(f"direction_{kind}", f"Its entry in the direction of kind {kind}.") for kind in range(DIAGONAL)),
    *(Number(f"known_{number.name}", f"{number.name} of its statistics.") for number in STATS),
)
VALUE, SCALED = NOTED.indices("value", "scaled_0")
DIRECTION, KNOWN = NOTED.indices("direction_0", "known_largest")

ROOM = Numbers(
    Number("row", "The present example, a number for each matrix row."),
    *(Number(f"product_{which}", f"Its product with the inverse of kind {DIAGONAL + which}.") for which in (0, 1)),
)
ROW, PRODUCT = ROOM.indices("row", "product_0")

# What is frozen when a model is saved is chosen by how well frozen copies do (`rue.learners.mixture.frozen`). Copies
# are taken at some rounds; between two of them lies a *period*.

COPY = Numbers(
    Number("earlier", "Over the periods before the last one."),
    Number("last", "Over the period before the present one."),
    Number("latest", "Over the present period."),
)
EARLIER, LAST, LATEST = COPY.indices("earlier", "last", "latest")
CANDIDATES = COPY.followed_by(
    Number("copied", "The candidate's share in the mixture when the weights were copied.", merge="same", least=0.0)
)
COPIED = CANDIDATES.index("copied")
TRIAL = COPY.followed_by(
    Number("due", "The round after which the weights are copied next.", merge="derived", least=0.0),
    Number("weighed", "Σ weight of all examples.", least=0.0),
    Number("labels", "Σ weight·y of all examples."),
    Number("constant", "The constant prediction of the present copy, in units of the labels.", merge="same"),
)
DUE, WEIGHED, LABELS, CONSTANT = TRIAL.indices("due", "weighed", "labels", "constant")
DIVISORS = Numbers(
    Number("by_root", "The root mean square of the feature.", merge="same", least=0.0),
    Number("by_first", "Its first magnitude, or a thousandth of the largest.", merge="same", least=0.0),
    Number("by_largest", "Its largest magnitude.", merge="same", least=0.0),
    Number("by_matrix", "What kinds 4 and 5 divide by.", merge="same", least=0.0),
)

POOL = Layout(
    Array("weights", "Weights of kinds 0 to 3, of scaled features, in units of the labels.", ("coordinate", "member")),
    Array("stats", "Statistics of the feature, and sums of kinds 0 to 3.", ("coordinate", STATS)),
    Array("slots", "Matrix row of the feature plus 1, or 0.", ("coordinate",), least=0.0, dtype="int64"),
    Array("matrices", "Of kinds 4 and 5: members' weights, then the inverse.", ("kind", "line", "column")),
    Array("members", "The members' losses, shares and rates.", (RATED_MEMBERS, "member")),
    Array("kinds", "The weight of each kind that runs; −1 for one that has retired.", ("kind",)),
    Array("seats", "Index of each kind among those that run; −1 − index if retired.", ("kind",), dtype="int64"),
    Array(
        "carried",
        "The mean weight of each kind, round t counted t times, where weights are shared.",
        ("kind",),
        merge="averaged",
        least=0.0,
        since=5,
    ),
    Array("memory", "The numbers.", (POOL_MEMORY,)),
    Array(
        "copies", "Weights of kinds 0 to 3 when they were last copied.", ("coordinate", "member"), merge="same", since=3
    ),
    Array("divisors", "What the features were divided by then.", ("coordinate", DIVISORS), since=3),
    Array("copied_matrices", "Weights of kinds 4 and 5 then.", ("kind", "line", "member"), merge="same", since=3),
    Array("candidates", "What frozen copies of each candidate have lost.", (CANDIDATES, "candidate"), since=3),
    Array("trial", "Σ weight of the examples that this is about, and more numbers.", (TRIAL,), since=3),
    Array("scratch", "The members' predictions and steps in the present round.", (SCRATCH, "member"), saved=False),
    Array("work", "What the present round needs of each kind.", (WORK, "kind"), saved=False),
    Array("room", "The present example by matrix rows, and its products.", (ROOM, "line"), saved=False),
    Array("notes", "What one pass over the row leaves for the next.", (NOTED, "feature"), saved=False),
)
"""As a file has it, with a row for each coordinate: `PoolPoint.laid_out`."""

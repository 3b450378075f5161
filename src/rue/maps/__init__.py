"""Maps: features made from features, so that a linear learner is linear in more than the columns (docs/theory.md, §12).

A map sees only the past, its state is bounded, and what it makes is hashed: a learner over a map is a linear learner
over more features, so every bound and certificate holds for it as it stands.
"""

from rue.maps.base import FEATURES, Features, Map, chained
from rue.maps.choice import require_maps
from rue.maps.pairs import Pairs
from rue.maps.replay import map_rows
from rue.maps.table import ColumnTable, open_table
from rue.maps.trees import Trees
from rue.registry import import_modules

__all__ = [
    "FEATURES",
    "ColumnTable",
    "Features",
    "Map",
    "Pairs",
    "Trees",
    "chained",
    "map_rows",
    "open_table",
    "require_maps",
]

import_modules(__name__, __path__)

"""A model for every key: very many small learners in one pass, each of which learns the rows of its own key.

- `fleet`: `Fleet`, and the function that learns one;
- `keys`: what keys are called, and their numbers;
- `packing`: a learner's state as one record;
- `arena`: the records of all keys;
- `learning`: the rows of a block put together by key, on one thread or several;
- `table`: the report of each key;
- `file`: the model file.

The compiled loops are in `rue.learners.keyed`.
"""

from rue.fleets.fleet import Fleet, FleetModels, fleet

__all__ = ["Fleet", "FleetModels", "fleet"]

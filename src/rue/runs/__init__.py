"""One pass over a stream: predict, add up, update.

- `learn`: `rue.learn`; `run`: `Run`, what it leaves behind; `certifying`: what its evidence proves; `prediction_log`:
  its predictions row by row; `replay`: `rue.trace`, the same with every round written down;
- `driver`: the one loop through a stream, for `learn`, the command line, races and estimators; `accounts` is what it
  writes down on the way, `resuming` how it goes on with an earlier run;
- `baselines`, `metrics`: what a constant would have lost, and accuracy, AUC and the like; `scores` has the sums of two
  classes, `counts` those of several, and of numbers;
- `evaluation`, `holdout`: how the finished model does on examples that it does not learn;
- `class_weights`: examples that count by their class;
- `predicting`: data in any form to scores, probabilities or labels.
"""

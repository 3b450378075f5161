"""The default learner: many rates of several kinds of gradient descent, mixed by exponential weights."""

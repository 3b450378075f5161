"""The default learner for more than two classes."""

"""Learners side by side on one stream."""

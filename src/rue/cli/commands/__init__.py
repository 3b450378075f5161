"""One module a command; importing this registers them all."""

from rue.cli.commands import audit, certify, inspect, learn, play, predict, race, theorems, weights

__all__ = ["audit", "certify", "inspect", "learn", "play", "predict", "race", "theorems", "weights"]

"""The commands, a module each, named like it; `register` imports them, and each enters itself into the program."""

from __future__ import annotations

import importlib

from rue.cli.app import app

__all__ = ["NAMES", "register"]

NAMES = (
    "audit",
    "certify",
    "export",
    "inspect",
    "learn",
    "play",
    "predict",
    "race",
    "replay",
    "serve",
    "theorems",
    "weights",
)


def register(asked: str = "") -> None:
    """Enter the command that is asked for, or all of them where that is none: to make one takes 5 ms and more."""
    for name in (asked,) if asked in NAMES else NAMES:
        importlib.import_module(f"rue.cli.commands.{name}")
    app.registered_commands.sort(key=lambda command: NAMES.index(command.callback.__name__))  # type: ignore[union-attr]

"""Random commands on damaged data, interrupted, killed and out of disk: see command_fuzzing.py for what must hold."""

import random

import command_fuzzing
from conftest import many


def test_random_commands_keep_to_the_contract(tmp_path, monkeypatch):
    monkeypatch.setattr(command_fuzzing.tempfile, "tempdir", str(tmp_path))
    assert command_fuzzing.fuzz(many(20, 1200), many(0, random.randrange(2**40))) > 0

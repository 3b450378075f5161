"""Groups of options: one dataclass, one parameter of a command, many options on the command line."""

import dataclasses
import inspect
import re
from typing import Annotated

import pytest
import typer

from rue.cli import options as o
from rue.cli.app import app
from rue.cli.commands import register
from rue.errors import SettingsError
from rue.registry import names
from rue.streams.stream import ReadOptions


@pytest.fixture
def entering(monkeypatch):
    """A command that a test enters is forgotten after it."""
    monkeypatch.setattr(app, "registered_commands", [])
    app.command("other")(lambda: None)  # with a single command, its name is left out


def test_a_group_of_options_is_one_parameter(entering, capsys):
    @o.command
    def sample(
        paths: o.DataPaths,
        data: Annotated[o.DataOptions, "bad format"],
        learning: o.LearnerOptions,
        often: Annotated[int, typer.Option(min=1)] = 2,
    ) -> int:
        print(paths, data, learning, often)
        return 0

    assert list(inspect.signature(sample).parameters) == [
        *("paths", "bad", "format", "learner", "loss", "domain", "step", "budget", "linear", "maps", "lags"),
        *("no_intercept", "often"),
    ]
    args = ["sample", "x.svm", "--bad", "skip", "--no-intercept", "--loss", "hinge", "--often", "3"]
    app(args, standalone_mode=False)
    wanted = ["x.svm"], o.DataOptions(bad="skip"), o.LearnerOptions(loss="hinge", no_intercept=True), 3
    assert capsys.readouterr().out == " ".join(map(str, wanted)) + "\n"
    assert o.changed(wanted[2]) == {"--loss": "hinge", "--no-intercept": True}
    assert o.changed(o.DataOptions()) == {}


def test_every_option_of_the_data_is_one_of_read_too():
    """But `task` and `bad`, which concern the run."""
    options = {field.name for field in dataclasses.fields(o.DataOptions)}
    assert options - {"task", "bad", "weight", "positive", "class_weight"} == set(ReadOptions.__annotations__)


def test_commands_that_read_data_share_their_options():
    register()
    commands = {command.callback.__name__: inspect.signature(command.callback) for command in app.registered_commands}
    options = {field.name for field in dataclasses.fields(o.DataOptions)}
    # Bins are made by a learner, and `certify` has none.
    left_outs = {"learn": set(), "audit": set(), "race": set(), "certify": {"bins", "task", "expert_column"}}
    for name, left_out in left_outs.items():
        assert options - set(commands[name].parameters) == left_out
    assert options & set(commands["predict"].parameters) == {"format", "id", "separator", "max_line", "bad"}


def test_options_make_a_learner_or_leave_it_to_the_labels():
    assert o.LearnerOptions(budget=48).make() == (None, "auto")
    learner, task = o.LearnerOptions(loss="square", step="fixed:0.1", no_intercept=True).make()
    assert (learner.algorithm.name, learner.intercept, task) == ("OGD", False, "regress")
    with pytest.raises(SettingsError, match="the learner 'perceptron' takes no --domain"):
        o.LearnerOptions(learner="perceptron", domain="ball:1").make()


@pytest.mark.parametrize(("name", "text"), [("s.vw", "1 |a x y\n-1 |a z\n"), ("s.svm", "1 1:2\n-1 2:1\n")])
def test_bits_may_be_repeated_when_resuming_but_not_changed(name, text, tmp_path, inside):
    (tmp_path / name).write_text(text)
    inside("learn", tmp_path / name, "--bits", 18, "--model", tmp_path / "m.rue", "-q")
    resume = "learn", tmp_path / name, "--resume", tmp_path / "m.rue", "-q"
    inside(*resume, "--bits", 18)
    for other in (19, 20):  # 20 is the default
        assert "--bits contradicts --resume" in inside(*resume, "--bits", other, ok=2).err


def test_help_lists_what_is_registered(inside):
    for command, kinds in {"learn": ("learner", "loss", "domain", "step"), "play": ("learner", "opponent")}.items():
        words = set(re.findall(r"[\w-]+", inside(command, "--help").out))
        for kind in kinds:
            assert set(names(kind)) - {"zero-one"} <= words  # it is not convex: no learner takes it

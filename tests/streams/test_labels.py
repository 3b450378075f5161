"""Which of two classes is +1: the same for any cut of a stream, in a pipe and after resuming (docs/decisions/0024)."""

import csv
import io
import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rue
from rue.models.file import load_model
from rue.streams import labels as labels_module
from rue.streams import settling
from rue.streams.data import Data
from rue.streams.formats.csv import Csv
from rue.streams.labels import Labels
from rue.streams.settling import settle
from rue.streams.stream import read

MEANING = {"no": -1, "false": -1, "yes": 1, "true": 1, 0: -1, -1: -1}


def rule(labels, most):
    """The class that is +1, None if only one class came, by the sentence in the docs."""
    classes = list(dict.fromkeys(labels))
    if len(set(labels[:most])) == 1:
        means_one = MEANING.get(classes[0]) == 1 or classes[0] == 1
        return classes[0] if means_one else classes[1] if len(classes) == 2 else None
    for name, other in (classes, classes[::-1]):
        if name in MEANING:
            return name if MEANING[name] > 0 else other
    return max(classes)


def meaning_of(labels, cuts):
    """What the labels of a stream that is cut there are found to mean."""
    edges = [0, *sorted(cuts), len(labels)]
    parts = [labels[a:b] for a, b in itertools.pairwise(edges) if b > a]
    blocks = [rue.Block(np.zeros((len(part), 1)), np.array(part)) for part in parts]
    found = []
    chunks = list(settle(read(blocks).reads(), lambda y: found.append(Labels.of(y, "classify")), "classify"))
    assert [chunk.block.y.tolist() for chunk in chunks] == parts
    [meaning] = found
    for chunk in chunks:
        meaning = meaning.extended(chunk.block.y)
    return meaning


@given(
    st.sampled_from([("ham", "spam"), ("no", "maybe"), ("yes", "abc"), ("no", "yes"), (0, 1), (0, 5), ("b", "a")]),
    st.lists(st.booleans(), min_size=1, max_size=12),
    st.sets(st.integers(1, 11)),
    st.sampled_from([4, 65_536]),
)
def test_the_meaning_of_classes_does_not_depend_on_blocks(classes, which, cuts, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels_module, "FIRST_ROWS", most)
        patch.setattr(settling, "FIRST_ROWS", most)
        labels = [classes[i] for i in which]
        meaning = meaning_of(labels, {cut for cut in cuts if cut < len(labels)})
        assert meaning == meaning_of(labels, set())
        wanted = rule(labels, most)
        assert meaning.positive == wanted or (wanted is None and meaning.encode([labels[0]]) == -1.0)


def test_a_lone_1_is_learnt_at_once_and_a_later_2_needs_a_word():
    assert Labels.settled_by(np.array([1.0]), "classify")
    assert meaning_of([1, 2, 1], set()).positive == 2
    assert meaning_of([1, 1, 0], {1}).positive == 1
    with pytest.raises(rue.DataError, match=r"classes are 1 and 2, and 1 came alone .* --positive 1 or --positive 2"):
        meaning_of([1, 1, 2], {1})


@pytest.mark.parametrize(("wanted", "y"), [("ham", ["spam", "ham"]), ("2", [1.0, 2.0]), (True, [False]), ("x", ["y"])])
def test_whoever_asks_decides(wanted, y):
    found = Labels.of(np.array(y), positive=wanted)
    assert str(labels_module.plain(found.positive)) == str(wanted)
    assert type(found.positive) is type(np.array(y)[0].item())
    assert Labels.settled_by(np.array(y[:1]), "auto", wanted)
    first = Labels.of(np.array([found.positive]), positive=wanted)
    assert first.extended(np.array(y)) == Labels("classify", y[0], found.positive)


@pytest.mark.parametrize(
    ("y", "options", "sentence"),
    [
        (["a", "b"], {"positive": "c"}, "positive (--positive) is 'c', but the classes are 'a' and 'b'."),
        ([1.0, 2.0, 3.0], {"positive": "3"}, "there are more than two classes (1, 2, 3): leave out positive"),
        ([1.0], {"positive": "yes"}, "positive (--positive) is 'yes', but the labels are such as 1."),
        ([0.5], {"task": "regress", "positive": "1"}, "positive (--positive) is for two classes, not for the task re"),
    ],
)
def test_a_positive_class_that_cannot_be(y, options, sentence):
    with pytest.raises((rue.DataError, rue.SettingsError)) as caught:
        Labels.of(np.array(y), **options)
    assert str(caught.value).startswith(sentence)


def table(path, labels, seed=0):
    x = np.random.default_rng(seed).integers(0, 9, len(labels))
    path.write_text("x,mail\n" + "".join(f"{a},{label}\n" for a, label in zip(x, labels, strict=True)))
    return path


def test_files_pipes_and_resumed_runs_agree(tmp_path, inside, interpreted, monkeypatch):
    """A file that begins with one class, as a whole, in pieces of a few rows, and as if these came from a pipe."""
    labels = ["spam"] * 30 + ["ham", "spam"] * 30
    options = ["--target", "mail", "--learner", "ogd"]
    whole = table(tmp_path / "w.csv", labels)
    said = inside("learn", whole, *options, "--model", tmp_path / "w.rue", "-q", "--report", tmp_path / "w.json").out
    assert "classes      −1 is 'ham', +1 is 'spam'" in said
    assert json.loads((tmp_path / "w.json").read_text())["labels"] == {"-1": "ham", "+1": "spam"}
    monkeypatch.setattr(Csv.open, "__defaults__", (40,))
    whole_again = inside("learn", whole, *options, "--model", tmp_path / "p.rue", "-q").out
    assert whole_again.split("\n\n")[:2] == said.split("\n\n")[:2]
    monkeypatch.setattr(Data, "piped", True)
    piped = inside("learn", whole, *options, "--model", tmp_path / "q.rue")
    assert piped.err.count("note: all labels so far are of one class, which is learnt as −1") == 1
    assert "note:" not in inside("learn", whole, *options, "--positive", "spam").err
    parts = [table(tmp_path / "a.csv", labels[:50]), table(tmp_path / "b.csv", labels[50:], seed=1)]
    models = {name: load_model(tmp_path / f"{name}.rue") for name in "wpq"}
    assert models["p"].learner == models["w"].learner == models["q"].learner
    for k, path in enumerate(parts):
        again = ["--resume", tmp_path / "r.rue"] if k else options
        inside("learn", path, *again, "--model", tmp_path / "r.rue", "-q")
    assert load_model(tmp_path / "r.rue").labels == models["w"].labels == Labels("classify", "ham", "spam")


def test_a_saved_model_keeps_its_mapping(tmp_path, inside, interpreted):
    """One class alone was −1 when it was saved, as both are in files of older versions, and stays so."""
    first, more = table(tmp_path / "a.csv", ["spam"] * 5), table(tmp_path / "b.csv", ["ham", "spam"] * 5)
    inside("learn", first, "--target", "mail", "--learner", "ogd", "--model", tmp_path / "m.rue", "-q")
    said = inside("learn", more, "--resume", tmp_path / "m.rue", "--model", tmp_path / "m.rue", "-q").out
    assert "−1 is 'spam', +1 is 'ham'" in said
    for wanted, code in (("ham", 0), ("spam", 2)):
        said = inside("learn", more, "--resume", tmp_path / "m.rue", "--positive", wanted, "-q", ok=code).err
        assert ("--positive contradicts --resume" in said) == (wanted == "spam")


def test_the_head_of_probabilities_names_the_class(tmp_path, inside, interpreted):
    path = table(tmp_path / "a.csv", ['"a, b"', '"say ""x"""'] * 9)
    options = ["--target", "mail", "--learner", "ogd", "--positive", 'say "x"', "--model", tmp_path / "m.rue", "-q"]
    inside("learn", path, *options)
    inside("predict", tmp_path / "m.rue", path, "--as", "probability", "-o", tmp_path / "p.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "p.csv").read_text())))
    assert rows[0] == ['probability of say "x"']
    assert all(0.0 < float(p) < 1.0 for (p,) in rows[1:])
    assert len(rows) == 19
    other = inside("predict", tmp_path / "m.rue", path, "--as", "score").out.splitlines()
    np.testing.assert_allclose([float(p) for (p,) in rows[1:]], 1 / (1 + np.exp(-np.array(other[1:], dtype=float))))
    options = ["--target", "mail", "--loss", "logistic", "--radius", 1, "--positive", 'say "x"', "-q"]
    inside("certify", path, "--predictions", tmp_path / "p.csv", "--as", "probability", *options)


def test_few_whole_numbers_are_noted(tmp_path, inside, interpreted):
    X, y = np.zeros((60, 1)), np.arange(60) % 10
    with pytest.warns(UserWarning, match="the labels are 10 whole numbers, 0 to 9, learnt as numbers to predict"):
        rue.learn(X, y)
    for quiet in (
        lambda: rue.learn(X, y, task="regress"),
        lambda: rue.learn(X, y, learner=rue.OGD("square")),
        lambda: rue.learn(X, y + 0.5),
        lambda: rue.learn(X, np.arange(60)),
        lambda: rue.learn(X[:5], y[:5]),
    ):
        quiet()  # a warning would be an error
    path = table(tmp_path / "d.csv", y)
    said = inside("learn", path, "--target", "mail", "--report", tmp_path / "r.json")
    note = (
        "the labels are 10 whole numbers, 0 to 9, learnt as numbers to predict; if they are classes, say --task class"
    )
    assert f"note: {note}" in said.err
    assert f"note         {note}" in said.out
    assert json.loads((tmp_path / "r.json").read_text())["notes"][0].startswith(note)


def test_a_class_that_is_called_as_missing_values_are_is_noted(tmp_path, inside):
    rows = "".join(f"{i},{('MALE', 'FEMALE', 'NA')[i % 3]}\n" for i in range(30))
    (tmp_path / "birds.csv").write_text(f"weight,sex\n{rows}")
    said = inside("learn", tmp_path / "birds.csv", "--target", "sex").err
    assert "the label 'NA' is learnt as a class of its own; if it says that the label is missing" in said
    (tmp_path / "mended.csv").write_text(f"weight,sex\n{rows.replace('NA', '')}")
    assert "class of its own" not in inside("learn", tmp_path / "mended.csv", "--target", "sex").err
    with pytest.warns(UserWarning, match="the label 'NA' is learnt as a class"):
        rue.learn(np.ones((4, 1)), ["a", "b", "NA", "a"])

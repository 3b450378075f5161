"""Products of namespaces, in the slots that Vowpal Wabbit gives them."""

import json
import random

import numpy as np
import pytest

import rue
from commands import run as rue_command
from rue.errors import SettingsError
from rue.streams.formats.vw import VW
from rue.streams.text import interactions as at
from rue.streams.text.interactions import interactions_in

LINES = """\
1 |a x y:2 |b z:5
1 |a x |b z |c w:3 | 7
1 |b:2 z:3 |a:0.5 x |a y
1 |apple x |azure w:2 |b z
1 |a x x x:2 |b x
-1 | 1 2 3:0.5 |b 4:0 k:v
1 |a
1 | a |b"""
"""Letters of ASCII: VW's wildcards leave out namespaces that begin with others."""


def read(line, pairs, bits=18, names=None):
    """The features of a line by slot, and what is bad."""
    format_ = VW(bits=bits)
    format_.interact = pairs
    chunk = format_.parse(line.encode(), 1, names)
    rows = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in _rows(chunk.block.X)]
    return rows, chunk.bad, dict(chunk.names)


def _rows(X):
    from scipy import sparse

    matrix = sparse.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr), shape=(X.indptr.size - 1, X.shape[1]))
    return [matrix[i] for i in range(matrix.shape[0])]


def same_as_vw(line, pairs, bits=18):
    """Whether VW has the same features with the same values."""
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    options = " ".join(f"-q {pair}" for pair in pairs)
    workspace = vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits} --sgd -l 1 {options}")
    # One step of SGD from 0 with squared loss of a label moves each weight in proportion to its feature.
    workspace.learn(line)
    theirs = {slot: workspace.get_weight(slot) for slot in range(2**bits)}
    theirs = {slot: weight for slot, weight in theirs.items() if weight}
    workspace.finish()
    rows, bad, _ = read(line, pairs, bits)
    assert not bad
    ours = {slot: value for slot, value in rows[0].items() if value}
    assert sorted(ours) == sorted(theirs), (line, pairs)
    scale = max(theirs.values(), key=abs, default=1.0) / max(ours.values(), key=abs, default=1.0)
    for slot, value in ours.items():
        assert theirs[slot] == pytest.approx(value * scale, rel=1e-4), (line, pairs, slot)


@pytest.mark.parametrize("pairs", [("ab",), ("ba",), ("aa",), ("::",), ("b:",), (":b",), ("ab", "bb")], ids="+".join)
@pytest.mark.parametrize("line", LINES.splitlines())
def test_products_are_those_of_vowpal_wabbit(line, pairs):
    same_as_vw(line, pairs, bits=12)


def products(segments, pairs, bits):
    """The reference: features and products of (letter, slot, value), by the definition."""
    found = {}
    for _, slot, value in segments:
        found[slot] = found.get(slot, 0.0) + value
    for n, (a, i, x) in enumerate(segments):
        for b, j, y in segments[n:]:
            if (a + b in pairs or (":" + ":" in pairs and a <= b)) or (a == b and a + a in pairs):
                first, second = i, j
            elif b + a in pairs or "::" in pairs:
                first, second = j, i
            else:
                continue
            slot = ((16777619 * first) ^ second) % 2**bits
            found[slot] = found.get(slot, 0.0) + x * y
    return found


@pytest.mark.parametrize("seed", range(40))
def test_products_are_those_of_the_definition(seed):
    rng = random.Random(seed)
    bits, pairs = rng.choice([6, 18, 31]), rng.choice([("ab",), ("ca",), ("::",), ("aa", "bc")])
    segments, text = [], "1"
    for _ in range(rng.randint(1, 5)):
        letter = rng.choice("abcd")
        text += f" |{letter}"
        base = int(read(f"1 |{letter} 0", (), bits)[0][0].popitem()[0])
        for _ in range(rng.randint(0, rng.choice([3, 60]))):
            number, value = rng.randint(0, 40), rng.choice([1.0, 2.0, -0.5])
            text += f" {number}:{value}"
            segments.append((letter, (base + number) % 2**bits, value))
    [row], bad, _ = read(text, pairs, bits)
    wanted = products(segments, pairs, bits)
    assert not bad
    assert row.keys() == wanted.keys()
    assert all(row[slot] == pytest.approx(wanted[slot]) for slot in wanted)


def test_lines_that_need_more_room_are_read_again():
    wide = "1 |a " + " ".join(map(str, range(300))) + " |b " + " ".join(map(str, range(300)))
    text = "\n".join(["1 |a 1 |b 2", wide, "1 |a 3 |b 4", wide])
    format_ = VW(bits=31)
    format_.interact = ("ab",)
    block = format_.parse(text.encode(), 1).block
    assert np.diff(block.X.indptr).tolist() == [3, 90_600, 3, 90_600]


def test_what_cannot_be_multiplied_is_a_bad_row():
    many = " ".join(map(str, range(600)))
    rows, bad, _ = read(f"1 |a {many}\n1 |a 1\n1 |a x:1e200\n1 |a x:1e-200", ("aa",))
    assert len(rows) == 2
    assert ["131,072 products" in bad[0].why, "multiply to more" in bad[1].why] == [True, True]
    assert [row.line for row in bad] == [1, 3]
    assert f"{int(at.MOST):,}" in bad[0].why


def test_products_are_called_by_their_factors():
    names = rue.streams.names.Names()
    _, _, found = read("1 |a x |b z:2 7", ("ab",), names=names)
    assert {"a^x", "b^z", "a^x*b^z", "a^x*b^7"} <= set(found.values())
    names.add(found.items())
    assert set(read("1 |a x |b y", ("ab",), names=names)[2].values()) == {"b^y", "a^x*b^y"}


@pytest.mark.parametrize("given", ["a", "abc", "a|", "ab,", [3], "aé"])
def test_what_is_no_pair_is_refused(given):
    with pytest.raises(SettingsError, match="is no pair of namespaces"):
        interactions_in(given)


@pytest.fixture
def stream(tmp_path):
    """An exclusive or of two namespaces, which no linear model of the features learns."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(2000):
        user, item = rng.integers(0, 2, 2)
        lines.append(f"{1 if user == item else -1} |user u{user} |item i{item} price:{rng.random():.3f}")
    path = tmp_path / "s.vw"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_products_make_learnable_what_was_not(stream, tmp_path):
    linear = rue.learn(str(stream), maps=None)
    run = rue.learn(str(stream), maps=None, interact="ui")
    assert linear.mistakes > 800
    assert run.mistakes < 50
    assert any(name == "user^u0*item^i0" for name in run.names.values())
    rue.save(run, tmp_path / "m.rue")
    model = rue.load(tmp_path / "m.rue")
    assert (model.predict(str(stream)) == run.predict(str(stream))).all()
    more = rue.learn(str(stream), learner=model)
    twice = rue.learn([str(stream)] * 2, maps=None, interact=["ui"])
    assert more.loss == twice.loss
    with pytest.raises(SettingsError, match="interact"):
        rue.learn(str(stream), learner=model, interact="iu")


def test_the_command_line_multiplies_saves_and_resumes(stream, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rue_command("learn", "s.vw", "--linear", "--interact", "ui", "--model", "m.rue", "--report", "r.json", "-q")
    assert json.loads((tmp_path / "r.json").read_text())["mistakes"] < 50
    rue_command("predict", "m.rue", "s.vw", "-o", "p.csv")
    right = (
        np.loadtxt("p.csv", skiprows=1) * np.array([float(line.split()[0]) for line in stream.read_text().splitlines()])
        > 0
    )
    assert right.all()
    rue_command("learn", "s.vw", "--resume", "m.rue", "--model", "n.rue", "-q")
    assert "contradicts --resume" in rue_command("learn", "s.vw", "--resume", "m.rue", "--interact", "iu", ok=2).stderr
    (tmp_path / "s.csv").write_text("a,b,y\n1,2,0\n")
    assert "use --cross" in rue_command("learn", "s.csv", "--target", "y", "--interact", "ab", ok=2).stderr

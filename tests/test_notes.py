"""The reader's map misses no numbered item of the lecture notes, and everything on it runs."""

import html
import re

import make_notes
import numpy as np
import pytest

import rue
from conftest import ROOT

# What the notes have, paragraph by paragraph: items with a number by it, the others by their first words. The notes are
# not in here; the lists were written beside them, and `notes.txt` must have the same items in the same order.
ITEMS = {
    "000": """
        the protocol (box) / the update is local / A mistake bound for the Perceptron / ‖w_M‖‖u‖ from above /
        ‖w_M‖‖u‖ from below / (1) / hinge loss / the mistake bound / linearly separable streams / sequential risk /
        Sequential risk and regret / gradient descent / linear predictors and their losses / footnote 1 / Projected
        OGD (box) / step 2 / u*_T / Lemma 1 / (2) / (3) / (4) / (5) / (6) / (7) / the facts used / the choice of η /
        (8) / a value for G / (8) cannot be improved / (9) / ½‖w‖² / Support Vector Machines / no projection step /
        OGD for σ-strongly convex functions (box) / the proof / the last display / note the improved dependence
    """,
    "001": """
        15.1 Recapitulation / Algorithm 1 / 15.2 General Setting / Algorithm 2 / K is a convex set / Gradient
        Descent / Proj_K / 15.3 Regret / Realizability / Proof: convexity / We claim / Summing over t / the sign of
        a line / η_t = 1/t / Strong convexity: first order / ∇²f ≥ αI / f − (α/2)‖x‖² is convex / the minimizer is
        unique / Again, we claim / Summing over t, strongly convex / η_t = 1/(αt) / a better regret / 15.4 Lower
        Bound / Theorem 15.1 / Construction of the Dataset / Remark
    """,
    "002": """
        A Repeated-game Example / What is “winning strategy”? / A Winning Strategy / Theorem 1.2 / Remark / Example:
        Failure of FTL / i_V(x) / Definition 2.2 / Definition 2.3 / Theorem 2.4 / Theorem 2.7 / (Projected) Online
        Gradient Descent / Projection (figure) / Theorem 2.13 / Section 4.2.1 (adaptive η_t) / Definition 2.15 /
        ∂f(x) / Projected Online Subgradient Descent / Lemma 2.23 / From Convex Losses to Linear Losses / the
        guessing game by OGD / Theorem 5.1 / Theorem 5.1: (possibly randomized) / Theorem 3.1 / Example 3.2 /
        Example 3.3 / Example 3.4 / Example 3.13 / Definition 4.1 / strongly convex, and only convex (figures) /
        Theorem 4.7 / Example 4.12 / argmin F ∈ B(0; √(1/λ)) / Example 4.12 (cont.) / Summary
    """,
    "003": """
        the protocol (box) / the update is local / sequential risk / regret / gradient descent / linear predictors
        and their losses / Projected OGD (box) / step 2 / u*_T / Lemma 1 / (1) / (2) / (3) / (4) / (5) / (6) / the
        facts used / the choice of η / (7) / a value for G / (8) / [−y⟨w, x⟩]₊ / Figure 1 / (9) / (6) on mistakes
        only / η = ‖u‖/(X√M_T) / the mistake bound / linearly separable streams / η is immaterial / (7) cannot be
        improved / (10) / ½‖w‖² / Support Vector Machines / no projection step / OGD for σ-strongly convex functions
        (box) / the proof / the last display / note the improved dependence
    """,
    "004": """
        il protocollo / rischio sequenziale / la perdita di w / rischio sequenziale, in generale / apprendimento
        incrementale / discesa del gradiente / Algoritmo OGD con proiezione (box) / passo 2 / scopo dell'analisi /
        Lemma 1 / la disuguaglianza / (1) / (2) / i fatti usati / la scelta di η / (3) / un valore per G / Figura 1
        / il gradiente della hinge loss / (4) / (2) sui soli errori / il maggiorante al numero di errori / sequenze
        linearmente separabili / η è ininfluente / non è possibile migliorare (3) / convessità forte / ½‖w‖² / non
        ha bisogno della proiezione / Algoritmo OGD per funzioni fortemente convesse (box) / per l'analisi / il
        risultato finale / il confronto con (3)
    """,
}
MAPS = make_notes.maps()
CALLS = sorted({row.call for _, rows in MAPS.values() for row in rows if not row.call.startswith("rue.theorems()")})


def test_there_is_a_section_for_each_set_of_notes():
    assert list(MAPS) == list(ITEMS)
    assert re.findall(r"^## (00\d): ", make_notes.page(), re.M) == list(ITEMS)


@pytest.mark.parametrize("number", ITEMS)
def test_every_item_of_the_notes_is_on_the_map_in_its_order(number):
    wanted = " ".join(ITEMS[number].split()).split(" / ")
    assert [row.place for row in MAPS[number][1]] == wanted


@pytest.mark.parametrize("number", ITEMS)
def test_every_theorem_and_every_misprint_is_where_the_notes_have_it(number):
    rows = MAPS[number][1]
    for theorem in rue.theorems():
        linked = [row for row in rows if theorem.id in row.ids]
        assert linked or not re.search(rf"\b{number}\b", theorem.source), (
            f"{theorem.id} names notes {number}, whose map does not name it"
        )
        about = [text for text in make_notes.sentences(theorem) if re.match(rf"(?:00\d,? |and )*{number}", text)]
        assert not about or any(row.wrong for row in linked), f"{theorem.id}: {about[0]}"
    known = {theorem.id for theorem in rue.theorems()}
    for row in rows:
        assert row.ids, row.place
        assert set(row.ids) <= known, row.place
        assert number in make_notes.misprint(row) or not row.wrong or row.wrong.startswith("Example"), row.place


def test_the_page_is_up_to_date():
    assert (ROOT / "docs/notes.md").read_text() == make_notes.page(), "run: make pages"


@pytest.fixture(scope="module")
def scope():
    found = {}
    exec(make_notes.BEGINNING, found)
    return found


@pytest.mark.parametrize("call", CALLS)
def test_every_call_runs_and_shows_what_holds(call, scope, interpreted, capsys):
    result = eval(call, dict(scope))
    assert not isinstance(result, rue.Learner), "it builds a learner and shows nothing"
    assert not isinstance(result, rue.Game) or result.losses.any() or result.mistakes, "nothing happens in this game"
    assert not isinstance(result, np.ndarray) or result.any(), "it shows zeros alone"
    assert getattr(result, "holds", True) is not False
    words = capsys.readouterr().out + ("" if result is None else str(result))
    assert words.strip(), "it shows nothing"
    assert not re.search("FAILS|NOT|VIOLATED|not met", words), words


def test_the_five_are_side_by_side_with_every_theorem_where_a_row_has_it():
    table = make_notes.page().split("## The five side by side")[1].strip().splitlines()
    assert table[0] == f"| | {' | '.join(ITEMS)} |"
    cells = {re.search(r"\[(\w+)\]", line)[1]: line.strip("|").split(" | ")[1:] for line in table[2:]}
    for i, (_, rows) in enumerate(MAPS.values()):
        for row in rows:
            for name in row.ids:
                assert row.place in html.unescape(cells[name][i].replace("\\", "")), (name, row.place)


def test_a_misprint_that_no_theorem_has_is_noticed():
    wrong = make_notes.Row("(1)", "nothing", ("B1",), "", "000 prints nothing")
    with pytest.raises(
        LookupError, match=r"\(1\): none of \('B1',\) has a misprint that begins with '000 prints nothing'"
    ):
        make_notes.misprint(wrong)

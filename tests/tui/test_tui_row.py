"""Rows are cut and wrapped to the cell, and no text is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from triage.text import clean
from triage.tui.row import Row, cut, lay_out, mark, shift, width_of, wrap
from triage.tui.rows import changed, joined

TEXTS = st.text(alphabet=st.sampled_from("ab 漢é字🚀─\u0301x"), max_size=60)


@given(TEXTS, TEXTS, st.integers(1, 50))
def test_a_laid_out_row_has_exactly_its_width(left: str, right: str, width: int) -> None:
    spans = lay_out(Row(((clean(left), "text"),), ((clean(right), "dim"),)), width)
    assert width_of(spans) == width


@given(TEXTS, st.integers(0, 50))
def test_a_cut_text_never_exceeds_its_width(text: str, width: int) -> None:
    assert width_of(cut([(clean(text), "text")], width)) <= width


def test_what_is_cut_off_is_shown() -> None:
    assert cut([("abcdef", "text"), ("gh", "dim")], 4) == [("abc…", "text")]


@given(st.lists(TEXTS, max_size=4), st.integers(1, 30), st.integers(0, 20))
def test_wrapping_keeps_every_sign_but_blanks(texts: list[str], width: int, hang: int) -> None:
    spans = [(clean(text), "text") for text in texts]
    rows = list(wrap(spans, width, hang))
    kept = "".join(content for row in rows for content, _ in row.spans).replace(" ", "")
    assert kept == "".join(content for content, _ in spans).replace(" ", "")


@given(TEXTS, st.integers(2, 30))
def test_a_wrapped_row_never_exceeds_its_width(text: str, width: int) -> None:
    assert all(width_of(row.spans) <= width for row in wrap([(clean(text), "text")], width))


def test_words_are_kept_whole_where_they_fit() -> None:
    rows = wrap([("one two three", "text")], 8)
    assert ["".join(content for content, _ in row.spans) for row in rows] == ["one two", "three"]


@given(TEXTS, st.integers(0, 40))
def test_shifting_takes_cells_from_the_left(text: str, cells: int) -> None:
    before = cell_len(clean(text))
    assert before - width_of(shift([(clean(text), "text")], cells)) <= cells


def test_a_match_is_marked_without_losing_text() -> None:
    assert mark([("a refund Refund", "dim")], "refund") == [
        ("a ", "dim"),
        ("refund", "match"),
        (" ", "dim"),
        ("Refund", "match"),
    ]


def test_upper_case_in_a_search_is_minded() -> None:
    assert mark([("refund", "dim")], "Refund") == [("refund", "dim")]


def test_neighbours_of_one_style_are_joined() -> None:
    assert joined([("a", "x"), ("b", "x"), ("", "y"), ("c", "y")]) == [("ab", "x"), ("c", "y")]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("abcdef", "abXdef", (2, 3)),
        ("abc   ", "ab    ", (2, 3)),
        ("abcdef", "abcdef", (0, 0)),
        ("漢字ab", "漢字cd", (0, 6)),
    ],
)
def test_only_the_cells_that_changed_are_painted(before: str, now: str, expected: tuple[int, int]) -> None:
    assert changed([(before, "text")], [(now, "text")], 6) == expected

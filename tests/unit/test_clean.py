"""`clean()`: log text is data, and can't move a terminal, hide, or reorder what stands around it."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triage.text import clean, clean_lines

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)  # with lone surrogates and controls

# Format characters (category Cf) that are visible signs with a width, and reorder nothing.
SIGNS = set(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)))
# Characters of other categories that paint nothing.
BLANK = {
    "\u034f",
    "\u115f",
    "\u1160",
    "\u17b4",
    "\u17b5",
    "\u2800",
    "\u3164",
    "\uffa0",
    *map(chr, range(0xFE00, 0xFE10)),
}
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN", "B", "S"}


def is_harmful(char: str) -> bool:
    """Said anew from the character database, and not with the pattern that is under test."""
    category = unicodedata.category(char)
    return (
        category in {"Cc", "Cs", "Co", "Zl", "Zp"}
        or (category == "Cf" and char not in SIGNS)
        or unicodedata.bidirectional(char) in BIDI
        or char in BLANK
    )


@given(ANY_TEXT)
@example("\x1b[2J\x1b]0;title\x07")
@example("a\u202eb\u2066c\u200dd\ufeffe\ud800f\udcffg\U000e0041h")
def test_nothing_that_moves_hides_or_reorders_is_left(text: str) -> None:
    assert [char for char in clean(text) if is_harmful(char)] == []


def test_no_character_there_is_gets_through_harmful() -> None:
    everything = (chr(point) for point in range(0x110000))
    assert [f"U+{ord(char):04X}" for char in everything if is_harmful(char) and char in clean(char)] == []


@given(ANY_TEXT)
def test_the_result_is_one_line_and_can_be_written_as_utf_8(text: str) -> None:
    result = clean(text)
    assert len(result.splitlines()) <= 1
    result.encode("utf-8")


@given(ANY_TEXT, st.none() | st.integers(0, 80))
def test_cleaning_twice_changes_nothing_more(text: str, limit: int | None) -> None:
    once = clean(text, limit=limit)
    assert clean(once, limit=limit) == once


@given(ANY_TEXT, st.integers(0, 80))
def test_the_result_is_never_longer_than_the_limit(text: str, limit: int) -> None:
    assert len(clean(text, limit=limit)) <= limit


@given(ANY_TEXT)
def test_a_limit_that_fits_changes_nothing(text: str) -> None:
    assert clean(text, limit=len(clean(text)) + len(text)) == clean(text)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("abcdef", 1, "…"),
        ("abcdef", 0, ""),
        ("", 0, ""),
        ("\x1b\x1b\x1b", 3, "␛␛␛"),
        ("\u202e\u202e", 2, "<…"),
        ("e" + "\u0301" * 99 + "abc", 20, "e\u0301\u0301\u0301\u0301…"),
    ],
)
def test_a_text_that_was_cut_ends_in_an_ellipsis(text: str, limit: int, expected: str) -> None:
    assert clean(text, limit=limit) == expected


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\n", "⏎"),
        ("\r", "␍"),
        ("\t", "→"),
        ("\x1b", "␛"),
        ("\0", "␀"),
        ("\x7f", "␡"),
        ("\x9b", "<U+009B>"),
        ("\u202e", "<U+202E>"),
        ("\u200b", "<U+200B>"),
        ("\ud800", "<U+D800>"),
        ("\udcff", "<U+DCFF>"),
        ("\U000e0041", "<U+E0041>"),
    ],
)
def test_what_is_taken_out_is_made_visible_and_not_dropped(char: str, shown: str) -> None:
    assert clean(f"a{char}b") == f"a{shown}b"


@pytest.mark.parametrize(
    "text", ["", "plain", "naïve – “quoted” ✅", "日本語のログ", "a b\u00a0c", "שלום", "नमस्ते", "[bold]x[/]"]
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


def test_marks_that_pile_up_are_thinned_out() -> None:
    assert clean("e" + "\u0301" * 1000 + "f") == "e" + "\u0301" * 4 + "f"
    assert clean("e" + "\u20dd" * 1000) == "e" + "\u20dd" * 4


def test_lines_are_split_at_newlines_and_each_is_cleaned() -> None:
    assert clean_lines("a\r\nb\x1b\n\nc\u2028d\r") == ["a", "b␛", "", "c<U+2028>d␍"]
    assert clean_lines("") == [""]


@given(ANY_TEXT)
def test_no_cleaned_line_holds_a_line_break(text: str) -> None:
    for line in clean_lines(text):
        assert len(line.splitlines()) <= 1

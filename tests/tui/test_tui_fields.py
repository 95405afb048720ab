"""JSON as fields: exact, complete, and of bounded cost."""

from __future__ import annotations

import json

import pytest

from triage.tui.fields import fields, pieces, read_json
from triage.tui.paper import Line, Paper


def shown(value: object, **options: int) -> list[str]:
    return ["".join(content for content, _ in line.spans) for line in fields(value, **options)]


def test_nested_values_are_indented_under_their_names() -> None:
    assert shown({"a": 1, "body": {"id": "x", "n": [True, None]}}) == [
        "a     1",
        "body",
        "  id  x",
        "  n",
        "    0  true",
        "    1  null",
    ]


def test_numbers_stay_as_they_were_written() -> None:
    value = read_json(b'{"a": 1.50, "b": 12345678901234567890123, "c": 1e400}')
    assert shown(value) == ["a  1.50", "b  12345678901234567890123", "c  1e400"]


def test_arguments_that_are_a_json_text_are_read() -> None:
    assert shown({"arguments": '{"path": "x"}'}) == ["arguments", "  path  x"]


def test_a_long_text_is_folded_and_says_so() -> None:
    lines = shown({"t": "x" * 1000}, limit=100)
    assert lines[0] == "t  " + "x" * 100
    assert lines[1].strip() == "… 900 characters more, enter to page"


def test_a_text_is_broken_at_its_newlines_and_cleaned() -> None:
    assert list(pieces("a\nb\r\nc\x1b[2J\n")) == ["a", "b", "c␛[2J", ""]


def test_no_sign_of_a_very_long_text_is_lost() -> None:
    text = "0123456789" * 1234
    assert "".join(pieces(text)) == text


def test_very_deep_values_are_shown_as_json() -> None:
    value: object = "end"
    for _ in range(40):
        value = {"k": value}
    assert '"k"' in shown(value)[-1]


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b"[" * 5000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_what_is_no_json_raises_value_error_or_is_read(raw: bytes) -> None:
    try:
        read_json(raw)
    except ValueError:
        pass


def test_a_paper_reads_on_only_as_far_as_it_is_looked_at() -> None:
    taken = []

    def lines():  # type: ignore[no-untyped-def]
        for number in range(1_000_000):
            taken.append(number)
            yield Line(((str(number), "text"),), 0, number)

    paper = Paper(lines, lambda at: f"… {1_000_000 - at} more")
    paper.count(20, 80)
    assert len(taken) < 5000
    assert "more" in paper.row(paper.count(20, 80) - 1, 80).spans[0][0]


def test_a_paper_that_was_read_to_its_end_says_nothing_of_more() -> None:
    paper = Paper(lambda: iter([Line((("one", "text"),)), Line((("two", "text"),))]))
    assert paper.count(10, 80) == 2
    assert paper.row(1, 80).spans == (("two", "text"),)


def test_an_embedded_json_text_elsewhere_stays_text() -> None:
    text = json.dumps({"type": "turn_end"})
    assert shown({"content": text}) == [f"content  {text}"]

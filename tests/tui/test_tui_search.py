"""The search finds what stands in the log, however it is written there, and can be stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import speaks
from tests.tui.demo import NAME, write
from triage.log.journal import read_journal
from triage.tui import search as searching
from triage.tui.search import search


def found(text: str) -> list[int]:
    return list(search(read_journal(NAME), text, lambda: False, lambda *_: None))


def test_it_finds_each_line_once_in_order(tmp_path: Path) -> None:
    write(tmp_path, [speaks("a refund, a refund"), speaks("none"), speaks("Refund")])
    assert found("refund") == [1, 3]
    assert found("Refund") == [3]


@pytest.mark.parametrize("text", ['say "hi"', "naïve", "日本", "a\\b"])
def test_it_finds_text_as_json_escapes_it(tmp_path: Path, text: str) -> None:
    write(tmp_path, [speaks("no"), speaks(f"<{text}>")])
    assert found(text) == [2]


def test_it_crosses_no_line(tmp_path: Path) -> None:
    write(tmp_path, [speaks("one"), speaks("two")])
    assert found("}\n{") == []


def test_small_stretches_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [speaks(f"n{number % 7}") for number in range(200)])
    whole = found("n3")
    monkeypatch.setattr(searching, "STRETCH", 100)
    assert found("n3") == whole != []


def test_it_stops_when_it_is_told_to(tmp_path: Path) -> None:
    write(tmp_path, [speaks("x")] * 10)
    assert list(search(read_journal(NAME), "x", lambda: True, lambda *_: None)) == []

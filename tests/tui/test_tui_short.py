"""Log values on one line: the telling part first, and never the frame around it."""

from __future__ import annotations

from triage.tui.short import content_in_short, record_in_short


def test_a_record_is_told_by_what_it_holds_and_not_by_its_envelope() -> None:
    record = {
        "parentUuid": "00000000-0000-4000-8000-000000000003",
        "isNull": None,
        "type": "progress",
        "cwd": "/srv/app",
        "data": {"output": "uploading"},
    }
    assert record_in_short("progress", record) == 'data={"output":"uploading"}  cwd=/srv/app'


def test_the_text_of_a_result_is_found_inside_its_blocks() -> None:
    inner = [{"type": "text", "text": "ok"}]
    assert content_in_short([{"type": "tool-result", "content": inner}]) == "ok"
    assert content_in_short([{"type": "tool_result", "content": "done"}]) == "done"
    assert content_in_short([{"type": "tool_result", "content": [7, {"text": 8}]}]) == "tool_result"


def test_the_kinds_of_blocks_stand_in_for_a_text_only_where_nothing_else_tells() -> None:
    content = [{"type": "tool_use", "id": "a"}, {"type": "image"}]
    assert content_in_short(content) == "tool_use, image"
    assert content_in_short(content, kinds=False) == ""

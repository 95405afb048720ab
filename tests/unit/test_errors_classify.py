"""Which events are failures, and what a failure is called."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.errors.classify import (
    COUNTED,
    TRACEBACK,
    UNRESOLVED_REVISION,
    Judgement,
    classify,
    classify_native,
    error_signature,
    execution_of,
    has_warning,
    operation_of,
    revision_of,
    workspace_of,
)

CASES = Path(__file__).parents[1] / "fixtures" / "cases" / "diagnostics.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
NORMAL = Judgement("NormalOutput")
SKIPPED = Judgement("SkippedPeerCall")


def failure(signature):
    return Judgement("ExecutionFailure", signature)


def stderr(*texts, **more):
    output = [{"stream": "stderr", "text": text} for text in texts]
    return {"state": "ok", "outcome": {"output": output}} | more


def tool(**fields):
    return {"type": "tool_result", **fields}


@pytest.mark.parametrize("row", ROWS)
def test_each_recorded_case_gets_its_class_and_signature(row):
    expected = (row["classification"], row["signature"])
    assert classify(row["kind"], row["payload"]) == expected


@pytest.mark.parametrize("row", ROWS)
def test_exactly_the_classes_that_recurrence_counts_have_a_signature(row):
    judged = classify(row["kind"], row["payload"])
    assert (judged.classification in COUNTED) is (judged.signature is not None)


# --- executions


def test_an_execution_in_error_is_a_failure_whatever_else_it_holds():
    payload = {"state": "error", "outcome": {"error": "warning: only this"}}
    assert classify("execution.completed", payload) == failure("warning: only this")


@pytest.mark.parametrize("outcome", [None, {}, {"error": None}, {"error": " \n\t"}, "text", []])
def test_a_failed_execution_without_text_is_called_execution_error(outcome):
    payload = {"state": "error", "outcome": outcome}
    assert classify("execution.completed", payload) == failure("ExecutionError")


def test_an_error_on_stderr_of_an_execution_that_went_well_is_recovered():
    payload = stderr("note\nKeyError: 'k'")
    assert classify("execution.completed", payload) == ("RecoveredError", "KeyError: 'k'")


@pytest.mark.parametrize("state", [None, "ERROR", "cancelled"])
def test_an_execution_in_any_state_but_error_did_not_fail(state):
    judged = classify("execution.completed", stderr("KeyError: 'k'", state=state))
    assert judged == ("RecoveredError", "KeyError: 'k'")


def test_only_the_first_stderr_output_that_is_not_blank_is_judged():
    judged = classify("execution.completed", stderr(" \n", "fine", "KeyError: 'k'"))
    assert judged == Judgement("Uncertain")


def test_an_error_signature_goes_before_a_warning():
    judged = classify("execution.completed", stderr("warning: x\nOSError: y"))
    assert judged == ("RecoveredError", "OSError: y")


def test_a_warning_on_stderr_is_no_failure_and_has_no_signature():
    assert classify("execution.completed", stderr("warning: x")) == Judgement("StderrWarning")


def test_stderr_that_says_neither_is_uncertain():
    assert classify("execution.completed", stderr("npm ERR!")) == Judgement("Uncertain")


@pytest.mark.parametrize(
    "output",
    [
        None,
        "Error: x",
        [],
        ["Error: x"],
        [{"text": "Error: x"}],
        [{"stream": "stdout", "text": "Error: x"}],
        [{"stream": "stderr"}],
        [{"stream": "stderr", "text": 3}],
        [{"stream": "stderr", "text": " \n "}],
    ],
)
def test_an_execution_without_text_on_stderr_is_normal(output):
    payload = {"state": "ok", "outcome": {"output": output}}
    assert classify("execution.completed", payload) == NORMAL


# --- tool results


@pytest.mark.parametrize("kind", ["tool.result", "scratchpad"])
def test_a_tool_result_in_error_is_a_failure_named_by_its_error(kind):
    payload = tool(status="error", error="Error: e", content="Error: c")
    assert classify(kind, payload) == failure("Error: e")


@pytest.mark.parametrize("error", [None, "", " \n", {"code": 3}])
def test_a_tool_result_without_a_readable_error_is_named_by_its_content(error):
    assert classify("tool.result", tool(status="error", error=error, content="bad")) == failure("bad")


def test_a_failed_tool_result_without_text_is_called_tool_error():
    assert classify("tool.result", tool(status="error", reason="why")) == failure("ToolError")


def test_a_skipped_peer_call_is_no_failure_and_has_no_signature():
    assert classify("tool.result", tool(status="skipped", error="Error: x")) == SKIPPED


@pytest.mark.parametrize("status", ["ok", None, "ERROR", ["error"]])
def test_a_tool_result_with_another_status_is_normal(status):
    assert classify("tool.result", tool(status=status, content="Error: x")) == NORMAL


@pytest.mark.parametrize("kind", ["execution.started", "user.message", "tool_result", ""])
def test_other_kinds_are_not_judged(kind):
    assert classify(kind, tool(status="error", state="error", error="Error: x")) == NORMAL


@pytest.mark.parametrize("payload", [None, "Error: x", ["Error: x"], 3])
def test_a_payload_that_is_no_object_is_normal(payload):
    assert classify("tool.result", payload) == NORMAL
    assert classify_native(payload) == NORMAL


# --- native results


@pytest.mark.parametrize(
    "marks",
    [
        {"status": "error"},
        {"is_error": True},
        {"metadata": {"status": "error"}},
        {"metadata": {"is_error": True}},
        {"status": "ok", "metadata": {"is_error": True}},
        {"status": "skipped", "metadata": {"status": "error"}},
    ],
)
def test_a_native_result_is_a_failure_when_status_or_is_error_says_so(marks):
    assert classify_native({"content": "Error: x", **marks}) == failure("Error: x")


@pytest.mark.parametrize(
    "marks",
    [
        {"status": "skipped"},
        {"metadata": {"status": "skipped"}},
        {"status": "skipped", "is_error": True},
    ],
)
def test_a_native_result_that_was_skipped_is_no_failure(marks):
    assert classify_native({"content": "Error: x", **marks}) == SKIPPED


@pytest.mark.parametrize(
    "marks", [{}, {"status": "ok"}, {"is_error": False}, {"is_error": "true"}, {"metadata": "x"}]
)
def test_a_native_result_that_does_not_say_error_is_normal(marks):
    assert classify_native({"content": "Error: x", **marks}) == NORMAL


def test_a_native_failure_is_named_by_its_error_before_its_content():
    data = {"status": "error", "error": "fatal: e", "content": "fatal: c"}
    assert classify_native(data) == failure("fatal: e")


def test_a_native_content_of_parts_is_read_as_their_texts_on_separate_lines():
    parts = [{"text": "note"}, "odd", {"type": "image"}, {"text": 3}, {"text": "OSError: y"}]
    assert classify_native({"status": "error", "content": parts}) == failure("OSError: y")


def test_a_native_failure_without_text_is_called_tool_error():
    assert classify_native({"status": "error"}) == failure("ToolError")


# --- signatures


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("ValueError: bad", "ValueError: bad"),
        ("java.lang.Exception: bad", "java.lang.Exception: bad"),
        ("MyError : spaced", "MyError : spaced"),
        ("AssertionError", "AssertionError"),
        ("error", "error"),
        ("FATAL: x", "FATAL: x"),
        ("panic: x", "panic: x"),
        ("  Panic:x", "Panic:x"),
        ("first\nsecond error: no\nIOError: yes\nOSError: later", "IOError: yes"),
        ("note\r\nerror: x\r\nmore", "error: x"),
        ("TypeError:\ta \t\u2028 b", "TypeError: a b"),
    ],
)
def test_the_signature_is_the_first_line_whose_head_says_error(text, signature):
    assert error_signature(text) == signature


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        "some error: x",
        "valueerror: x",
        "Errors: 3",
        "panicked at 'x'",
        "error x",
        "x: ValueError: y",
        "Timeout: read",
    ],
)
def test_a_text_that_says_no_error_has_no_signature(text):
    assert error_signature(text) == ""


def test_the_signature_of_a_traceback_is_its_last_line_that_is_not_blank():
    text = "Error: early\nTraceback (most recent call last):\n  File x\ninterrupted   here\n \n"
    assert error_signature(text) == "interrupted here"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1e", "\r"])
def test_only_newlines_end_a_line(separator):
    assert error_signature(f"note {separator}error: x") == ""
    assert classify_native({"status": "error", "error": f"a{separator}b"}) == failure("a b")


def test_a_signature_is_cut_at_96_characters_not_bytes():
    assert error_signature("Error: " + "語" * 200) == "Error: " + "語" * 89
    assert classify_native({"status": "error", "error": "語" * 200}) == failure("語" * 96)
    traceback = "Traceback (most recent call last):\n" + "語" * 200
    assert error_signature(traceback) == "語" * 96


PIECES = ["Error", ":", " ", "\n", "\r\n", "\u2028", "x" * 60, "panic", TRACEBACK, TRACEBACK[:9]]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


@given(TEXTS)
def test_a_signature_is_one_short_line_of_collapsed_white_space(text):
    signature = error_signature(text)
    assert len(signature) <= 96
    assert signature.split(" ") == signature.split() or len(signature) == 96 or not signature


@given(TEXTS)
def test_a_signature_is_part_of_its_text_with_white_space_aside(text):
    assert "".join(error_signature(text).split()) in "".join(text.split())


@given(st.lists(TEXTS))
def test_windows_newlines_change_no_signature(lines):
    lines = [line.replace("\n", " ") for line in lines]
    assert error_signature("\r\n".join(lines)) == error_signature("\n".join(lines))


@given(TEXTS)
def test_a_failure_always_has_a_signature_and_a_normal_output_never(text):
    judged = classify_native({"status": "error", "error": text})
    assert judged.classification == "ExecutionFailure"
    assert judged.signature
    assert classify_native({"status": "ok", "error": text}) == NORMAL


@given(TEXTS)
def test_a_signature_that_was_not_cut_names_itself(text):
    judged = classify_native({"status": "error", "error": text})
    if "Traceback" not in text and len(judged.signature) < 96:
        assert classify_native({"status": "error", "error": judged.signature}) == judged


# --- warnings


@pytest.mark.parametrize(
    "text",
    [
        "warning: x",
        "WARN: x",
        "  [Warning] x",
        "note\nwarn: x",
        "app.py:3: DeprecationWarning: x",
        "Warning : x",
        "Compiler Warning",
    ],
)
def test_a_line_that_says_warning_is_a_warning_letter_case_aside(text):
    assert has_warning(text)


@pytest.mark.parametrize(
    "text", ["", "forewarn: x", "x [warning] y", "warnings: 3", "a warning here: x", "warn x"]
)
def test_a_line_that_only_looks_like_a_warning_is_none(text):
    assert not has_warning(text)


# --- operation, revision, workspace


def test_the_operation_of_an_execution_is_the_cell_and_of_the_rest_the_tool():
    assert operation_of("execution.completed") == "cell.execution"
    assert [operation_of(k) for k in ("tool.result", "tool_result")] == ["tool.execution"] * 2


@pytest.mark.parametrize(
    ("value", "name"), [("e1", "e1"), (7, "7"), (None, None), ("", None), (True, None), ([], None)]
)
def test_an_execution_is_named_by_a_string_or_by_an_integer_as_its_text(value, name):
    assert execution_of({"execution_id": value}) == name


@pytest.mark.parametrize(
    ("payload", "started", "revision"),
    [
        ({"execution_id": "e", "revision": "own"}, {"revision": "r1"}, "r1"),
        ({"execution_id": "e", "revision": "own"}, {}, "own"),
        ({"execution_id": "e", "revision": "own"}, None, "own"),
        ({"execution_id": "e"}, {"revision": ""}, UNRESOLVED_REVISION),
        ({"execution_id": "e"}, None, UNRESOLVED_REVISION),
        ({"revision": "own"}, None, "own"),
        ({}, None, "today"),
    ],
)
def test_the_revision_of_today_is_stamped_only_on_events_that_name_no_execution(payload, started, revision):
    assert revision_of(payload, started, "today") == revision


def test_without_a_default_an_unknown_revision_is_unresolved():
    assert revision_of({}, None) == "unresolved_revision"


@pytest.mark.parametrize(
    ("payload", "started", "workspace"),
    [
        ({"workspace": "/w", "workspace_path": "/p"}, {"workspace": "/s"}, "/w"),
        ({"workspace_path": "/p"}, {"workspace": "/s"}, "/p"),
        ({"workspace": ""}, {"workspace": "/s", "workspace_path": "/t"}, "/s"),
        ({}, {"workspace_path": "/t"}, "/t"),
        ({}, {}, "/logs"),
        ({"workspace": None}, None, "/logs"),
    ],
)
def test_the_workspace_is_the_payloads_else_the_executions_else_the_logs_folder(payload, started, workspace):
    assert workspace_of(payload, started, "/logs") == workspace

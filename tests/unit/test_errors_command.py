"""`triage errors`: each failure counts once, however often, in whatever pieces and whoever else reads."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.formats.repairs import FIXTURES, log_of
from tests.helpers import log, result, turn_start
from triage.cli import main
from triage.errors.classify import UNRESOLVED_REVISION
from triage.failure_store import Store
from triage.failures import PAGE, read_failures

BAD = "ValueError: bad"


def row(id: int, kind: str, at: int | None = None, /, **payload: Any) -> dict[str, Any]:
    created = 1000 * id if at is None else at
    return {"id": id, "session_id": "s1", "kind": kind, "payload": payload, "created_ms": created}


def started(id: int, execution: str = "x1", **payload: Any) -> dict[str, Any]:
    return row(id, "execution.started", execution_id=execution, **payload)


def failed(
    id: int, execution: str | None = "x1", error: str = BAD, at: int | None = None, **more: Any
) -> dict[str, Any]:
    named = {} if execution is None else {"execution_id": execution}
    return row(id, "execution.completed", at, **named, state="error", outcome={"error": error}, **more)


def passed(id: int) -> dict[str, Any]:
    return row(id, "scratchpad", type="tool_result", status="ok", content="3 rows")


class Errors:
    """The command over logs in a folder, with one state file beside them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.state = folder / "state.db"
        self.code = 0
        self.said = ""
        self._capsys = capsys

    def write(self, name: str, rows: Sequence[Mapping[str, Any]] | bytes) -> Path:
        path = self.logs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rows if isinstance(rows, bytes) else log_of(rows))
        return path

    def __call__(self, *arguments: Any, state: Any = None) -> list[dict[str, Any]]:
        """The rows of the command, with `--json`."""
        where = self.state if state is None else state
        self.code = main(["errors", *map(str, arguments), "--state", str(where), "--json"])
        captured = self._capsys.readouterr()
        self.said = captured.err
        return [json.loads(line) for line in captured.out.splitlines()]

    def plain(self, *arguments: Any) -> str:
        self.code = main(["errors", *map(str, arguments), "--state", str(self.state)])
        return self._capsys.readouterr().out


@pytest.fixture
def errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Errors:
    return Errors(tmp_path, capsys)


def counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {row["signature"]: row["count"] for row in rows}


# ---- what a row says


def test_a_failure_is_one_row_of_the_contract(errors: Errors) -> None:
    log = errors.write(
        "k.jsonl", [started(1, revision="r1", workspace="/srv"), failed(2), failed(3, at=40_000)]
    )
    (found,) = errors(log)
    assert found == {
        "schema": "triage.error/1",
        "class": "ExecutionFailure",
        "signature": BAD,
        "operation": "cell.execution",
        "revision": "r1",
        "workspace": "/srv",
        "count": 2,
        "first": {"path": str(log), "line": 2, "time": 2000},
        "last": {"path": str(log), "line": 3, "time": 40_000},
        "decision": "BurstThresholdReached",
        "action": "CreateWork",
    }
    assert errors.code == 0


def test_only_failures_and_recovered_errors_are_counted(errors: Errors) -> None:
    rows = errors(FIXTURES / "klbr" / "classes.jsonl")
    assert [(r["class"], r["operation"], r["signature"]) for r in rows] == [
        ("ExecutionFailure", "cell.execution", "ValueError: no such charge"),
        ("ExecutionFailure", "tool.execution", "fatal: not a git repository"),
        ("RecoveredError", "cell.execution", "ConnectionError: reset by peer"),
    ]


def test_one_signature_as_a_failure_and_as_a_recovered_error_is_two_rows(errors: Errors) -> None:
    outcome = {"output": [{"stream": "stderr", "text": BAD}]}
    recovered = row(3, "execution.completed", execution_id="x1", state="ok", outcome=outcome)
    rows = errors(errors.write("k.jsonl", [failed(2), recovered]))
    assert sorted(r["class"] for r in rows) == ["ExecutionFailure", "RecoveredError"]


@pytest.mark.parametrize(
    "data",
    [{"is_error": True}, {"status": "error"}, {"metadata": {"is_error": True}}],
)
def test_native_tool_results_are_judged_too(errors: Errors, data: dict[str, Any]) -> None:
    text = log(turn_start(1), result("c1", "KeyError: 'id'", **data), result("c2", "KeyError: not one"))
    (found,) = errors(errors.write("n.jsonl", text))
    assert (found["operation"], found["signature"], found["first"]["line"]) == (
        "tool.execution",
        "KeyError: 'id'",
        2,
    )
    assert found["first"]["time"] == "2026-05-20T09:00:01.000Z"


def test_times_of_a_native_log_make_a_burst(errors: Errors) -> None:
    bad = result("c1", BAD, is_error=True)
    (found,) = errors(errors.write("n.jsonl", log(turn_start(1), bad, bad)), "--window-ms", "1000")
    assert found["decision"] == "BurstThresholdReached"
    (found,) = errors(errors.logs / "n.jsonl", "--window-ms", "999")
    assert found["decision"] == "ChronicRecurrence"


def test_failures_in_one_document_are_counted(errors: Errors) -> None:
    events = [
        {"seq": 0, "type": "tool_result", "data": {"tool_call_id": "a", "is_error": True, "content": BAD}}
    ]
    document = errors.write("d.json", json.dumps({"version": 2, "events": events}).encode())
    assert counts(errors(document)) == {BAD: 1}
    events.append(events[0])
    document.write_text(json.dumps({"version": 2, "events": events}))
    assert counts(errors(document)) == {BAD: 2}
    document.write_text(json.dumps({"version": 2, "events": events[1:]}))
    assert counts(errors(document)) == {BAD: 1}


def test_a_failed_tool_of_a_run_folder_is_counted(errors: Errors) -> None:
    folder = FIXTURES / "maka" / "non_terminal_run_recovered"
    (found,) = errors(folder)
    assert (found["signature"], found["first"]) == (
        "exit code 1",
        {"path": str(folder), "line": 8, "time": 1779267607000},
    )


# ---- the revision and the workspace


def test_the_revision_is_looked_up_on_an_earlier_page_and_before_the_cursor(errors: Errors) -> None:
    rows = [started(1, revision="r1", workspace_path="/srv"), *(passed(n) for n in range(2, PAGE + 50))]
    path = errors.write("k.jsonl", [*rows, failed(900)])
    assert [(r["revision"], r["workspace"]) for r in errors(path)] == [("r1", "/srv")]
    errors.write("k.jsonl", [*rows, failed(900), failed(901)])
    (found,) = errors(path, "--revision", "today")
    assert (found["revision"], found["count"]) == ("r1", 2)


def test_the_latest_start_of_an_execution_counts_for_what_follows_it(errors: Errors) -> None:
    rows = [started(1, revision="r1"), failed(2), started(3, revision="r2"), failed(4)]
    assert [r["revision"] for r in errors(errors.write("k.jsonl", rows))] == ["r1", "r2"]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (failed(2, "x9"), UNRESOLVED_REVISION),
        (failed(2, "x9", revision="own"), "own"),
        (failed(2, None), "today"),
        (failed(2, None, revision="own"), "own"),
    ],
)
def test_todays_revision_is_only_for_events_that_name_no_execution(
    errors: Errors, event: dict[str, Any], expected: str
) -> None:
    (found,) = errors(errors.write("k.jsonl", [event]), "--revision", "today")
    assert found["revision"] == expected


def test_a_stored_failure_keeps_the_revision_that_it_was_read_with(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1, None)])
    errors(path, "--revision", "monday")
    assert [r["revision"] for r in errors(path, "--revision", "tuesday")] == ["monday"]


def test_the_workspace_is_the_payloads_else_the_logs_folder(errors: Errors) -> None:
    rows = [
        failed(1, None, "A: 1", workspace="/a"),
        failed(2, None, "A: 2", workspace_path="/b"),
        failed(3, None),
    ]
    found = errors(errors.write("k.jsonl", rows))
    assert [r["workspace"] for r in found] == ["/a", "/b", str(errors.logs)]


def test_the_folder_of_a_log_that_is_named_from_inside_it_is_its_full_path(
    errors: Errors, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors.write("k.jsonl", [failed(1, None)])
    monkeypatch.chdir(errors.logs)
    (found,) = errors("k.jsonl")
    assert (found["workspace"], found["first"]["path"]) == (str(errors.logs), "k.jsonl")


# ---- counting once


def test_reading_a_log_twice_counts_once(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1), failed(2)])
    assert errors(path) == errors(path)
    assert counts(errors(path)) == {BAD: 2}


@pytest.mark.parametrize("state", [None, "none"])
def test_the_same_log_named_twice_counts_once(errors: Errors, state: str | None) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    link = errors.logs / "link.jsonl"
    link.symlink_to(path)
    hard = errors.logs / "hard.jsonl"
    os.link(path, hard)
    named = [path, path, errors.logs, errors.logs / ".." / "logs" / "k.jsonl", link, hard]
    assert counts(errors(*named, state=state)) == {BAD: 1}


def test_without_a_state_everything_counts_afresh(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    assert counts(errors(path, state="none")) == counts(errors(path, state="none")) == {BAD: 1}
    assert not (errors.folder / "none").exists()


def test_what_was_appended_is_counted_on_top(errors: Errors) -> None:
    rows = [failed(n) for n in range(1, 4)]
    for upto in (1, 2, 2, 3):
        path = errors.write("k.jsonl", rows[:upto])
        assert counts(errors(path)) == {BAD: upto}


def test_a_log_that_is_read_after_every_byte_counts_as_one_that_is_read_whole(errors: Errors) -> None:
    text = log_of([started(1, revision="r1"), failed(2), passed(3), failed(4)])
    path = errors.logs / "k.jsonl"
    store = Store(None)
    for size in range(len(text) + 1):
        path.write_bytes(text[:size])
        if text[:size]:
            try:
                number = read_failures(store, str(path), UNRESOLVED_REVISION)
            except Exception as error:
                assert "no session log" in str(error)
    assert number is not None
    (found,) = store.rows([number])
    assert (found.count, found.key.revision, found.last.line) == (2, "r1", 4)


def test_failures_of_other_logs_count_for_the_same_failure_and_no_other_is_shown(errors: Errors) -> None:
    first = errors.write("a.jsonl", [failed(1, error=BAD), failed(2, error="KeyError: 'a'")])
    second = errors.write("b.jsonl", [failed(100)])
    errors(first)
    assert counts(errors(second)) == {BAD: 2}
    assert counts(errors(second, state="none")) == {BAD: 1}


def test_several_logs_are_counted_in_the_order_of_time_whatever_order_they_are_named_in(
    errors: Errors,
) -> None:
    late = errors.write("a.jsonl", [failed(1, at=90_000)])
    early = errors.write("b.jsonl", [failed(1, at=40_000)])
    for named in ((late, early), (early, late)):
        (found,) = errors(*named, state="none")
        assert (found["first"]["path"], found["last"]["path"]) == (str(early), str(late))
        assert found["decision"] == "BurstThresholdReached"


def test_a_clock_that_runs_backwards_inside_a_log_is_no_burst(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1, at=90_000), failed(2, at=80_000)])
    (found,) = errors(path)
    assert (found["last"]["line"], found["decision"]) == (2, "ChronicRecurrence")


# ---- the identity of a session


def test_a_log_that_moved_is_the_same_session(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    errors(path)
    moved = path.rename(errors.logs / "k.1.jsonl")
    (found,) = errors(moved)
    assert (found["count"], found["first"]["path"]) == (1, str(moved))


def test_a_log_that_was_cut_is_read_again_and_counts_what_it_holds(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1), failed(2), failed(3)])
    errors(path)
    errors.write("k.jsonl", [failed(1), failed(2)])
    assert counts(errors(path)) == {BAD: 2}


def test_a_log_that_was_rewritten_in_its_place_is_read_again(errors: Errors) -> None:
    path = errors.write("k.jsonl", [passed(1), failed(2), failed(3)])
    errors(path)
    copy = errors.write("new", [passed(1), failed(2, error="KeyError: 'a'"), failed(3), failed(4)])
    copy.replace(path)
    assert counts(errors(path)) == {BAD: 2, "KeyError: 'a'": 1}


def test_another_session_under_the_same_name_is_counted_beside_the_old_one(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    errors(path)
    errors.write("k.jsonl", [failed(100), failed(101)])
    assert counts(errors(path)) == {BAD: 3}


def test_an_empty_log_is_no_session_and_no_fault(errors: Errors) -> None:
    assert errors(errors.write("k.jsonl", b"")) == []
    assert errors.code == 0


# ---- many sessions, some of them bad


def test_a_folder_is_looked_through_and_what_is_no_log_is_counted(errors: Errors) -> None:
    errors.write("a/b/k.jsonl", [failed(1)])
    errors.write("a/notes.txt", b"hello\n")
    errors.write("data.bin", b"\x00\x01\x02")
    assert counts(errors(errors.logs)) == {BAD: 1}
    assert "2 files skipped: no session log" in errors.said
    assert errors.code == 0


def test_the_state_file_in_the_folder_is_no_log(errors: Errors) -> None:
    errors.write("k.jsonl", [failed(1)])
    state = errors.logs / "state.db"
    errors(errors.logs, state=state)
    assert counts(errors(errors.logs, state=state)) == {BAD: 1}
    assert errors.said == ""


def test_a_bad_session_stops_no_other(errors: Errors, monkeypatch: pytest.MonkeyPatch) -> None:
    errors.write("a.jsonl", [failed(1)])
    errors.write("b.jsonl", b"nothing that anyone knows\n")
    errors.write("c.jsonl", [failed(100)])
    assert counts(errors(errors.logs / "missing", errors.logs)) == {BAD: 2}
    assert errors.code == 3
    assert "does not exist" in errors.said


def test_a_session_that_a_reader_stumbles_over_stops_no_other(
    errors: Errors, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors.write("a.jsonl", [row(1, "execution.completed", execution_id="x", state="error", stumble=True)])
    errors.write("b.jsonl", [failed(100)])
    from triage import failures

    judge = failures.classify
    monkeypatch.setattr(failures, "classify", lambda kind, p: 1 / 0 if "stumble" in p else judge(kind, p))
    assert counts(errors(errors.logs)) == {BAD: 1}
    assert "a.jsonl could not be read (ZeroDivisionError)" in errors.said
    assert errors(errors.logs / "a.jsonl") == []
    assert errors.code == 3


def test_a_damaged_log_is_read_as_far_as_it_is_certain(errors: Errors) -> None:
    text = log_of([failed(1)]) + b"\x00" * 30 + b"\n" + log_of([failed(2)]) + log_of([failed(3)])[:-20]
    assert counts(errors(errors.write("k.jsonl", text))) == {BAD: 2}


def test_texts_that_are_no_unicode_and_numbers_without_bounds_are_kept(errors: Errors) -> None:
    line = log_of([failed(1, error="E: @@", at=10**30)]).replace(b"@@", b"\xff\\u0000")
    (found,) = errors(errors.write("k.jsonl", line))
    assert found["signature"].startswith("E: ")
    assert (found["count"], float(found["first"]["time"])) == (1, 1e30)


# ---- the policy


@pytest.mark.parametrize(
    ("minimum", "window", "expected"),
    [
        ("0", "60000", ("Reject", "Reject")),
        ("1", "60000", ("BurstThresholdReached", "CreateWork")),
        ("2", "1000", ("BurstThresholdReached", "CreateWork")),
        ("2", "999", ("ChronicRecurrence", "CreateWork")),
        ("3", "60000", ("BurstCoalesced", "GroupOnly")),
    ],
)
def test_the_policy_decides_over_what_is_stored(
    errors: Errors, minimum: str, window: str, expected: tuple[str, str]
) -> None:
    path = errors.write("k.jsonl", [failed(1), failed(2)])
    errors(path)
    (found,) = errors(path, "--min-recurrence", minimum, "--window-ms", window)
    assert (found["decision"], found["action"]) == expected


@pytest.mark.parametrize("bad", [["--min-recurrence", "-1"], ["--window-ms", "x"], []])
def test_wrong_usage_is_said(errors: Errors, bad: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["errors", *bad])
    assert left.value.code == 2


# ---- for people


def test_the_table_can_be_read_at_80_columns(errors: Errors) -> None:
    errors.write("k.jsonl", [failed(1), failed(2), failed(3, error="KeyError: " + "x" * 200)])
    shown = errors.plain(errors.logs)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "worth an issue" in shown and "grouped" in shown
    assert "at most 5 issues a turn (shown only" in shown


def test_the_table_shows_log_text_as_text(errors: Errors) -> None:
    shown = errors.plain(errors.write("k.jsonl", [failed(1, error="E: \x1b[31m[bold]red[/]\x1b]0;x\x07")]))
    assert "\x1b" not in shown
    assert "[bold]red[/]" in shown


def test_nothing_failed_is_said(errors: Errors) -> None:
    assert errors.plain(errors.write("k.jsonl", [passed(1)])) == "No failure in 1 session.\n"


def test_the_command_is_listed_and_has_a_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in ((["--help"], "errors"), (["errors", "--help"], "--min-recurrence N")):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 0
        assert text in capsys.readouterr().out


# ---- the state file


def test_the_state_is_kept_in_the_users_state_folder_and_for_its_owner_alone(
    errors: Errors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(errors.folder / "home"))
    path = errors.write("k.jsonl", [failed(1)])
    assert main(["errors", str(path)]) == 0
    state = errors.folder / "home" / "triage" / "errors.sqlite3"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_state_file_is_made_for_its_owner_alone(errors: Errors, umask: int) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    old = os.umask(umask)
    try:
        errors(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(errors.state.stat().st_mode) == 0o600


def test_a_file_of_another_program_is_left_as_it_is(
    errors: Errors, capsys: pytest.CaptureFixture[str]
) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    other = errors.folder / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE event (id)")
    database.close()
    text = errors.write("text", b"not a database, but somebody's notes\n" * 100)
    for state in (other, text):
        before, mode = state.read_bytes(), state.stat().st_mode
        assert main(["errors", str(path), "--state", str(state)]) == 2
        assert (state.read_bytes(), state.stat().st_mode) == (before, mode)
    assert "name another" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["folder", "pipe", "under a file"])
def test_a_state_that_is_no_file_is_said(errors: Errors, kind: str) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    state = errors.folder / "odd"
    if kind == "folder":
        state.mkdir()
    elif kind == "pipe":
        os.mkfifo(state)
    else:
        state = path / "state.db"
    assert errors(path, state=state) == []
    assert errors.code == 2


# ---- two processes, and one that dies


def test_a_page_that_another_process_has_read_already_is_not_stored_again(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(n, at=1000) for n in range(1, 3 * PAGE)])
    mine, other = Store(str(errors.state)), Store(str(errors.state))
    keep = mine.keep

    def late(session: Any, page: Any) -> bool:
        read_failures(other, str(path), UNRESOLVED_REVISION)  # the other is quicker, each time
        return keep(session, page)

    mine.keep = late  # type: ignore[method-assign]
    number = read_failures(mine, str(path), UNRESOLVED_REVISION)
    assert number is not None
    assert [found.count for found in mine.rows([number])] == [3 * PAGE - 1]


def test_a_process_that_saw_the_log_before_it_grew_forgets_nothing(errors: Errors) -> None:
    path = errors.write("k.jsonl", [failed(1)])
    mine, other = Store(str(errors.state)), Store(str(errors.state))
    find = mine.session

    def late(*arguments: Any) -> Any:
        with path.open("ab") as file:
            file.write(log_of([failed(2)]))
        read_failures(other, str(path), UNRESOLVED_REVISION)
        mine.session = find  # type: ignore[method-assign]
        return find(*arguments)

    mine.session = late  # type: ignore[method-assign]
    number = read_failures(mine, str(path), UNRESOLVED_REVISION)
    assert number is not None
    assert [found.count for found in mine.rows([number])] == [2]


def test_a_page_of_a_log_that_was_rewritten_meanwhile_is_not_stored(errors: Errors) -> None:
    path = errors.write("k.jsonl", [passed(1), failed(2)])
    mine, other = Store(str(errors.state)), Store(str(errors.state))
    keep, kept = mine.keep, []

    def late(session: Any, page: Any) -> bool:
        if not kept:
            errors.write("k.jsonl", [passed(1), failed(2, error="KeyError: 'a'"), failed(3)])
            read_failures(other, str(path), UNRESOLVED_REVISION)
        kept.append(keep(session, page))
        return kept[-1]

    mine.keep = late  # type: ignore[method-assign]
    number = read_failures(mine, str(path), UNRESOLVED_REVISION)
    assert number is not None
    assert kept[0] is False
    assert sorted((found.key.signature, found.count) for found in mine.rows([number])) == [
        ("KeyError: 'a'", 1),
        (BAD, 1),
    ]


CHILD = """
import os, signal, sqlite3, sys
from triage.cli import main

when, at = sys.argv[1], int(sys.argv[2])
commits = 0
connect = sqlite3.connect

def watched(statement):
    # SQLite tells of a statement before it runs it: at a COMMIT, the page is written and not yet kept.
    global commits
    if statement.startswith("COMMIT"):
        commits += 1
    if commits == at and (when == "before" or not statement.startswith("COMMIT")):
        os.kill(os.getpid(), signal.SIGKILL)

def connecting(*arguments, **keywords):
    database = connect(*arguments, **keywords)
    database.set_trace_callback(watched)
    return database

sqlite3.connect = connecting
sys.exit(main(sys.argv[3:]))
"""


def killed(when: str, at: int, *arguments: str) -> int:
    """Run the command in a process that kills itself at its `at`-th commit. Returns its exit status."""
    command = [sys.executable, "-c", CHILD, when, str(at), *arguments]
    return subprocess.run(command, capture_output=True, timeout=60).returncode


def deaths() -> Iterator[tuple[str, int]]:
    """Before the COMMIT of each page and right after it."""
    for at in range(1, 8):
        yield "before", at
        yield "after", at


def test_a_process_that_is_killed_at_any_page_loses_and_doubles_nothing(errors: Errors) -> None:
    rows = [started(1, revision="r1"), *(failed(n, at=1000) for n in range(2, 2 * PAGE + 40))]
    errors.write("a.jsonl", rows)
    errors.write("b.jsonl", [failed(9000, error="KeyError: 'b'")])
    command = ["errors", str(errors.logs), "--json"]
    whole = errors(errors.logs, state="none")
    assert counts(whole) == {BAD: len(rows) - 1, "KeyError: 'b'": 1}
    dead = 0
    for when, at in deaths():
        state = errors.folder / f"{when}-{at}.db"
        status = killed(when, at, *command, "--state", str(state))
        dead += status == -signal.SIGKILL
        assert errors(errors.logs, state=state) == whole, f"killed {when} commit {at}"
    assert dead >= 10  # schema, two sessions, three pages and one page, at both of their ends


def test_a_process_that_is_killed_again_and_again_gets_there(errors: Errors) -> None:
    errors.write("a.jsonl", [failed(n, at=1000) for n in range(1, 4 * PAGE)])
    whole = errors(errors.logs, state="none")
    for _ in range(12):
        if killed("after", 2, "errors", str(errors.logs), "--json", "--state", str(errors.state)) == 0:
            break
    assert errors(errors.logs) == whole

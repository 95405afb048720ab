"""A log that grows, is replaced or is in use while it is open: said, refused, and planned again."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.conftest import Run, Sample, Start
from tests.e2e.steps import accept, appended, moved

REMARK = (
    b'{"seq":90,"type":"user_message","time":"2026-05-20T12:11:00.000Z","data":{"content":"still there?"}}\n'
)


def write(log: Path, text: bytes) -> None:
    """What an agent does: append, and leave the log alone again."""
    with open(log, "ab") as file:
        file.write(text)


def test_the_header_says_that_the_log_grew_and_r_reads_it_again(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered")
    screen.press("esc")
    screen.wait_for("nothing appended yet")
    screen.press("down", "enter")
    screen.wait_for("[1] timeline")
    write(log, REMARK)
    screen.wait_for(f"grew by {len(REMARK)} bytes: r reads it again")
    assert "90 lines" in screen.lines[1]
    screen.press("r")
    screen.wait_for("91 lines")
    screen.wait_gone("grew by")
    accept(screen)  # the answer is kept: its entry is still the same
    screen.wait_for("1 of 1 answered · A appends", "after line 91")
    screen.press("A")
    screen.wait_for("the log is clean now")
    records = appended(log, before + REMARK)
    assert [record["seq"] for record in records] == [91, 92, 93, 94]


def test_following_reads_the_log_again_by_itself(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    screen = start(log)
    screen.press("F")
    screen.wait_for("[1] timeline · following")
    screen.wait_until(lambda: "end of log" in screen.marked, "the end of the log")
    write(log, REMARK)
    screen.wait_for("91 lines", "still there?")
    assert "end of log" in screen.marked
    screen.press("F")
    screen.wait_gone("· following")


def test_an_append_to_a_log_that_grew_is_refused_with_both_states_then_planned_again(
    sample: Sample, start: Start, run: Run
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("D")
    screen.wait_for("1 of 1 answered · A appends")
    write(log, REMARK)
    size = len(before)
    screen.press("A")
    screen.wait_for(
        "NOTHING WAS APPENDED",
        f"from {size:,} bytes, last seq 89, to {size + len(REMARK):,} bytes, last seq 90",
        "The plan was made again",
        "1 of 1 answer kept",
        "after line 91",
        "1 of 1 answered · A appends",
    )
    assert log.read_bytes() == before + REMARK
    screen.press("A")
    screen.wait_for("the log is clean now")
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert [record["seq"] for record in appended(log, before + REMARK)] == [91, 92, 93, 94]
    assert run("plan", log).returncode == 0


def test_only_the_answers_of_entries_that_are_still_the_same_are_kept(sample: Sample, start: Start) -> None:
    log = sample("double-started.jsonl")
    before = log.read_bytes()
    screen = start(log, size=(80, 24))
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 2 answered")
    moved(screen, "n")
    screen.press("D")
    screen.wait_for("2 of 2 answered · A appends")
    result = b'{"seq":33,"type":"tool_result","time":null,"data":{"tool_call_id":"n5","content":"done"}}\n'
    write(log, result)
    screen.press("A")
    screen.wait_for("NOTHING WAS APPENDED", "1 of 2 answers kept", "1 of 1 answered · A appends")
    screen.press("G")  # n5 was answered by the agent itself, nobody owes it any more
    screen.wait_until(lambda: "n3" in screen.marked, "the last entry")
    assert "n5" not in screen.text
    screen.press("A")
    screen.wait_for("the log is clean now")
    records = appended(log, before + result)
    assert [r["data"].get("tool_call_id") for r in records] == ["n6", None, "n2", "n3", None]
    assert records[2]["data"]["metadata"]["acknowledged"]["finding"] == "did-not-run"


def test_another_operator_was_faster_and_nothing_is_appended_twice(
    sample: Sample, start: Start, run: Run
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    other = run("apply", log, "--ack", "call_0a92=did-not-run", "--operator", "bob")
    assert other.returncode == 0, other.stderr
    repaired = log.read_bytes()
    screen.press("A")
    screen.wait_for("✓ CLEAN  nothing to repair", "nothing was appended", "bob repaired it")
    said = " ".join(" ".join(screen.lines).split())
    assert "You disagree on call_0a92: bob found “it did not run” (line 92), you “it ran”" in said
    screen.press("q")
    assert screen.wait_for_exit() == 0
    assert "appended" not in screen.said
    assert log.read_bytes() == repaired
    assert len(appended(log, before)) == 4


def test_a_log_that_was_replaced_is_refused(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    other = sample("crashed-dispatched.jsonl", "other.jsonl")
    os.replace(other, log)
    screen.press("A")
    screen.wait_for("NOTHING WAS APPENDED", "the file was replaced by another one", "A appends")
    assert log.read_bytes() == before
    os.unlink(log)
    screen.press("A")
    screen.wait_for("NOTHING WAS APPENDED")
    assert not log.exists()  # nothing is made in its place
    screen.press("q")
    screen.wait_until(lambda: "─ accept ─" not in screen.lines[0], "out of the accept screen")
    assert screen.alive


AGENT = """
import fcntl, sys
file = open(sys.argv[1], sys.argv[2])
if "lock" in sys.argv:
    fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def agent(log: Path, *how: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the log in hand."""
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(log), *how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_log_that_another_process_writes_is_refused_and_the_process_named(
    sample: Sample, start: Start, run: Run
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    with agent(log, "ab") as process:
        screen.press("A")
        screen.wait_for(
            "NOTHING WAS APPENDED", f"(pid {process.pid}) holds it open for writing", "Stop it first"
        )
        assert log.read_bytes() == before

        done = run("apply", log, "--ack", "call_0a92=ran", "--json")
        refusal = json.loads(done.stdout)
        assert done.returncode == 4
        assert (refusal["code"], refusal["retryable"]) == ("live_writer", True)
        assert f"(pid {process.pid})" in refusal["says"]
        assert f"(pid {process.pid})" in done.stderr
        assert log.read_bytes() == before
    screen.press("A")
    screen.wait_for("the log is clean now")
    assert len(appended(log, before)) == 4


def test_a_log_that_another_process_has_locked_is_refused_and_the_process_named(
    sample: Sample, start: Start
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    screen = start(log)
    accept(screen)
    screen.press("R")
    screen.wait_for("1 of 1 answered · A appends")
    with agent(log, "rb", "lock") as process:
        screen.press("A")
        screen.wait_for("appending…")
        screen.press("A", "R", "esc")  # it waits a while for the lock; nothing else happens meanwhile
        screen.wait_for("NOTHING WAS APPENDED", f"(pid {process.pid}) holds a lock on it")
        assert log.read_bytes() == before
    screen.press("A")
    screen.wait_for("the log is clean now")
    assert len(appended(log, before)) == 4


def test_a_reader_of_the_log_disturbs_nobody(sample: Sample, start: Start) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    with open(log, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_UN)
        screen = start(log)
        accept(screen)
        screen.press("R")
        screen.wait_for("1 of 1 answered · A appends")
        screen.press("A")
        screen.wait_for("the log is clean now")
    assert len(appended(log, before)) == 4

"""A disk that takes a part, nothing, or will not say: what is said, and what is in the log afterwards."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.child import Outcome, become_nobody, elsewhere, triage
from tests.faults.converge import SAMPLES, Owing, acks, complete, expect_repaired
from tests.faults.namespaces import make_read_only, own_processes, small_disk
from tests.faults.tracer import Stop, places_to_try, reach, traced
from triage.session import open_session

PAGE = 4096
Count = Callable[[str, int], None]


@pytest.fixture
def owing(log: Path) -> Owing:
    return Owing.of(str(log))


def expect_untouched(log: Path, owing: Owing) -> None:
    assert log.read_bytes() == owing.log


def expect_whole(log: Path, owing: Owing) -> None:
    text = log.read_bytes()
    assert text.startswith(owing.log)
    expect_repaired(text[len(owing.log) :], owing.plan)
    assert open_session(str(log)).plan.repairs == ()


def refused(outcome: Outcome) -> str:
    """The code of a refusal that was printed as JSON, after its exit code was checked."""
    assert outcome.code == 4, outcome
    row = json.loads(outcome.out)
    assert row["says"] in outcome.err.replace("triage: ", "", 1)
    return str(row["code"])


# ---- a write that takes only a part


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_short_writes_are_carried_on_until_the_whole_repair_is_in_the_log(
    log: Path, owing: Owing, size: int, count: Count
) -> None:
    with traced("apply", log, *acks(owing.plan)) as child:
        is_write = child.at("write", log)
        writes = 0
        for stop in child.stops():
            if is_write(stop):
                child.shorten(min(size, stop.arguments[2]))
                writes += 1
        outcome = child.finish()
    assert outcome.code == 0, outcome
    assert writes == -(-(len(log.read_bytes()) - len(owing.log)) // size)
    expect_whole(log, owing)
    count("short writes that were carried on", writes)


def test_the_rest_of_a_short_write_is_not_put_behind_what_another_process_wrote_meanwhile(
    log: Path, owing: Owing
) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("write", log))
        child.shorten(100)
        child.step()
        with log.open("ab") as other:
            other.write(b"{}\n")
        outcome = child.finish()
    assert refused(outcome) == "write_failed"
    assert "only 100 of " in outcome.err and "another process wrote at the same time" in outcome.err
    assert log.read_bytes()[len(owing.log) + 100 :] == b"{}\n"


@pytest.mark.parametrize("call", ["openat", "flock", "write", "fsync"])
def test_an_interrupted_system_call_is_made_again(log: Path, owing: Owing, call: str) -> None:
    with traced("apply", log, *acks(owing.plan)) as child:
        child.until(child.at(call, log))
        child.refuse(errno.EINTR)
        outcome = child.finish()
    assert outcome.code == 0, outcome
    expect_whole(log, owing)


# ---- no room


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EPERM])
def test_a_disk_that_takes_nothing_leaves_the_log_as_it_was_and_that_is_said(
    log: Path, owing: Owing, error: int
) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("write", log))
        child.refuse(error)
        outcome = child.finish()
    assert refused(outcome) == "write_failed"
    assert os.strerror(error) in outcome.err and "Nothing was written" in outcome.err
    expect_untouched(log, owing)


def test_a_full_disk_takes_a_part_and_the_rest_is_planned_when_there_is_room_again(tmp_path: Path) -> None:
    def fill_up() -> tuple[Outcome, int]:
        small_disk(str(tmp_path), "64k")
        log = tmp_path / "log.jsonl"
        text = (SAMPLES / "crashed-dispatched.jsonl").read_bytes()
        log.write_bytes(text + b"\n" * (-len(text) % PAGE - 300))  # 300 bytes of its last page are free
        owing = Owing.of(str(log))
        ballast = tmp_path / "ballast"
        with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        outcome = triage("apply", log, "--json", *acks(owing.plan))
        assert log.read_bytes().startswith(owing.log)
        part = log.stat().st_size - len(owing.log)
        ballast.unlink()
        complete(open_session(str(log)), owing)
        return outcome, part

    outcome, part = elsewhere(fill_up)()
    assert refused(outcome) == "write_failed"
    assert part == 300 and f"only {part:,} of " in outcome.err and "No space left" in outcome.err


@pytest.mark.parametrize("room", [0, 1, 100, 500])
def test_a_limit_on_the_size_of_files_is_a_full_disk_too(log: Path, owing: Owing, room: int) -> None:
    limit = len(owing.log) + room
    outcome = triage(
        "apply", log, "--json", *acks(owing.plan),
        first=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert refused(outcome) == "write_failed" and "File too large" in outcome.err
    assert len(log.read_bytes()) == limit
    assert (f"only {room} of " if room else "Nothing was written") in outcome.err
    complete(open_session(str(log)), owing)


# ---- not certain to be on disk


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINVAL])
def test_a_repair_that_was_not_synced_is_not_called_a_success(log: Path, owing: Owing, error: int) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("fsync", log))
        child.refuse(error)
        outcome = child.finish()
    assert refused(outcome) == "not_synced"
    assert "not certain to be on disk" in outcome.err and os.strerror(error) in outcome.err
    expect_whole(log, owing)
    again = triage("apply", log)
    assert (again.code, "nothing to repair, nothing written" in again.out) == (0, True)


def test_what_is_appended_is_synced_before_it_is_called_a_success(log: Path, owing: Owing) -> None:
    with traced("apply", log, *acks(owing.plan)) as child:
        child.until(child.at("fsync", log))
        assert len(log.read_bytes()) > len(owing.log)
        assert os.pread(child.child.out.fileno(), 1, 0) == b""
        assert child.finish().code == 0


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_report_that_a_full_disk_does_not_take_does_not_deny_the_repair(
    log: Path, owing: Owing, how: list[str]
) -> None:
    outcome = triage("apply", log, *how, *acks(owing.plan), first=lambda: send_output_to("/dev/full"))
    assert outcome.code == 0, outcome
    assert "the repair was appended; the report of it could not be written (No space left" in outcome.err
    expect_whole(log, owing)


def send_output_to(path: str) -> None:
    os.dup2(os.open(path, os.O_WRONLY), 1)


# ---- no permission


def test_a_read_only_file_is_refused(everybodys: Path) -> None:
    log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", everybodys))
    owing = Owing.of(str(log))
    log.chmod(0o444)
    outcome = triage("apply", log, "--json", *acks(owing.plan), first=become_nobody)
    assert refused(outcome) == "not_writable"
    assert "can't be opened for appending (Permission denied). Nothing was written" in outcome.err
    expect_untouched(log, owing)


def test_a_read_only_file_system_is_refused(tmp_path: Path) -> None:
    def apply() -> tuple[Outcome, bool]:
        small_disk(str(tmp_path), "1m")
        log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", tmp_path / "log.jsonl"))
        owing = Owing.of(str(log))
        make_read_only(str(tmp_path))
        return triage("apply", log, "--json", *acks(owing.plan)), log.read_bytes() == owing.log

    outcome, untouched = elsewhere(apply)()
    assert refused(outcome) == "not_writable"
    assert "Read-only file system). Nothing was written" in outcome.err and untouched


@pytest.mark.parametrize("error", [errno.EROFS, errno.EPERM, errno.ETXTBSY, errno.EIO])
def test_a_log_that_cannot_be_opened_for_appending_is_refused(log: Path, owing: Owing, error: int) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("openat", log))
        child.refuse(error)
        outcome = child.finish()
    assert refused(outcome) == "not_writable"
    assert f"({os.strerror(error)}). Nothing was written" in outcome.err
    expect_untouched(log, owing)


def test_a_folder_that_may_not_be_entered_makes_its_log_unreadable(everybodys: Path) -> None:
    folder = everybodys / "closed"
    folder.mkdir()
    log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", folder))
    owing = Owing.of(str(log))
    folder.chmod(0)
    outcome = triage("apply", log, *acks(owing.plan), first=become_nobody)
    folder.chmod(0o700)
    assert outcome.code == 3 and "may not be read by this user" in outcome.err
    expect_untouched(log, owing)


def test_a_folder_that_may_not_be_written_is_enough_for_nothing_is_made_beside_the_log(
    everybodys: Path,
) -> None:
    folder = everybodys / "fixed"
    folder.mkdir()
    log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", folder))
    owing = Owing.of(str(log))
    log.chmod(0o666)
    folder.chmod(0o555)
    outcome = triage("apply", log, *acks(owing.plan), first=become_nobody)
    assert outcome.code == 0, outcome
    assert list(folder.iterdir()) == [log]
    expect_whole(log, owing)


# ---- no locks


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_a_log_that_cannot_be_locked_is_refused(log: Path, owing: Owing, error: int) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("flock", log))
        child.refuse(error)
        outcome = child.finish()
    assert refused(outcome) == "no_lock"
    assert "can't be locked" in outcome.err and os.strerror(error) in outcome.err
    expect_untouched(log, owing)


def test_a_log_that_cannot_be_compared_is_refused(log: Path, owing: Owing) -> None:
    with traced("apply", log, "--json", *acks(owing.plan)) as child:
        child.until(child.at("flock", log))
        asks = [child.at(name, log) for name in ("fstat", "newfstatat")]  # one or the other, by the C library
        for _ in ("is it the same file", "how does it end"):
            child.until(lambda stop: any(ask(stop) for ask in asks))
        child.refuse(errno.EIO)
        outcome = child.finish()
    assert refused(outcome) == "write_failed"
    assert "(Input/output error). Nothing was written" in outcome.err
    expect_untouched(log, owing)


# ---- an error anywhere


def test_an_io_error_at_any_file_call_never_makes_it_say_what_is_not_so(tmp_path: Path, count: Count) -> None:
    owing = Owing.of(str(SAMPLES / "crashed-dispatched.jsonl"))
    untrue, tried = elsewhere(fail_at_each_call, owing, tmp_path / "log.jsonl", prepare=own_processes)()
    assert not untrue, "\n".join(untrue)
    count("I/O errors, one at each file call of `triage apply`", tried)


def fail_at_each_call(owing: Owing, log: Path) -> tuple[list[str], int]:
    """Let one file call of an append fail with EIO, then another, …, and collect what is not so."""
    untrue, tried = [], 0
    log.write_bytes(owing.log)
    with traced("apply", log, *acks(owing.plan)) as child:
        _, chosen = places_to_try(child, is_file_call)
    for place in chosen:
        log.write_bytes(owing.log)
        with traced("apply", log, *acks(owing.plan)) as child:
            stop = reach(child, place)
            if stop is None or not is_file_call(stop):
                continue
            about = child.file(stop)
            child.refuse(errno.EIO)
            outcome = child.finish()
        tried += 1
        says = untruth(outcome, log.read_bytes(), owing)
        if says:
            untrue.append(f"{place}: {stop.name} {about}: {says}: {outcome}")
    return untrue, tried


def is_file_call(stop: Stop) -> bool:
    return stop.entry and stop.name != ""


def untruth(outcome: Outcome, text: bytes, owing: Owing) -> str:
    """What an outcome says or does not say against what is in the log; "" where it is all true."""
    said = outcome.out + outcome.err
    changed = text != owing.log
    if not text.startswith(owing.log):
        return "bytes were lost"
    if outcome.code not in (0, 3, 4) or "a fault in triage itself" in said:
        return "an error of the disk is no fault of triage"
    if outcome.code == 0 and not changed:
        return "a success that wrote nothing"
    if changed and ("othing was written" in said or "not changed" in said):
        return "it says that nothing was written"
    if changed and not any(word in said for word in ("appended", "was written", "were written")):
        return "it does not say that something was written"
    return ""

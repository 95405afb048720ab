"""A log that somebody still has in hand: refused, and who it is."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.child import Child, become_nobody, elsewhere, standing, triage
from tests.faults.converge import SAMPLES, Owing, acks, expect_repaired
from tests.faults.namespaces import mount, other_numbers, own_mounts
from triage.cli import main
from triage.log import append, writers
from triage.log.writers import find_writers
from triage.session import open_session

AGENT = "agent-loop"
CODEX = Path(__file__).parents[1] / "fixtures" / "codex" / "killed.jsonl"
NOTHING_WRITTEN = "Stop it first, then look at the log again. Nothing was written"


@pytest.fixture
def log(log: Path) -> Path:
    """The log, written an hour ago."""
    an_hour_ago = time.time() - 3600
    os.utime(log, (an_hour_ago, an_hour_ago))
    return log


@pytest.fixture
def owing(log: Path) -> Owing:
    return Owing.of(str(log))


def expect_refused(agent: Child, log: Path, owing: Owing, does: str) -> None:
    outcome = triage("apply", log, "--json", *acks(owing.plan))
    assert outcome.code == 4, outcome
    assert json.loads(outcome.out)["code"] == "live_writer"
    assert f"{AGENT} (pid {agent.pid}) {does}" in outcome.err and NOTHING_WRITTEN in outcome.err
    assert log.read_bytes() == owing.log


def expect_repair(log: Path, owing: Owing) -> None:
    outcome = triage("apply", log, *acks(owing.plan))
    assert outcome.code == 0, outcome
    expect_repaired(log.read_bytes()[len(owing.log) :], owing.plan)


@pytest.mark.parametrize("mode", ["ab", "r+b", "a+b"])
def test_an_agent_with_the_log_open_for_writing_is_named_and_once_it_is_killed_the_append_goes_through(
    log: Path, owing: Owing, mode: str
) -> None:
    with standing(lambda: log.open(mode), AGENT) as agent:
        expect_refused(agent, log, owing, "holds it open for writing")
        agent.kill()
        expect_repair(log, owing)


def test_an_agent_that_opened_the_log_by_another_name_is_found(log: Path, owing: Owing) -> None:
    other = log.with_name("other")
    other.hardlink_to(log)
    with standing(lambda: other.open("ab"), AGENT) as agent:
        expect_refused(agent, log, owing, "holds it open for writing")


def test_an_agent_that_holds_the_log_since_before_it_was_moved_here_is_found(log: Path, owing: Owing) -> None:
    moved = log.with_name("moved.jsonl")
    with standing(lambda: log.open("ab"), AGENT) as agent:
        log.rename(moved)
        expect_refused(agent, moved, owing, "holds it open for writing")


def test_somebody_who_only_reads_the_log_is_no_agent(log: Path, owing: Owing) -> None:
    with standing(lambda: log.open("rb"), AGENT):
        expect_repair(log, owing)


def flocked(log: Path, how: int, mode: str = "rb") -> Callable[[], object]:
    def lock() -> object:
        file = log.open(mode)
        fcntl.flock(file, how)
        return file

    return lock


@pytest.mark.parametrize("how", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_an_agent_with_an_flock_on_the_log_is_named_and_once_it_is_killed_the_append_goes_through(
    log: Path, owing: Owing, how: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "LOCK_SECONDS", 0.0)  # it may be another triage, which is waited for
    with standing(flocked(log, how), AGENT) as agent:
        outcome = triage("apply", log, "--json", *acks(owing.plan))
        assert outcome.code == 4 and json.loads(outcome.out)["code"] == "locked"
        assert f"{AGENT} (pid {agent.pid}) holds a lock on it" in outcome.err
        assert log.read_bytes() == owing.log
        agent.kill()
        expect_repair(log, owing)


def posix_locked(log: Path) -> Callable[[], object]:
    def lock() -> object:
        file = log.open("rb")
        fcntl.lockf(file, fcntl.LOCK_SH)
        return file

    return lock


def ofd_locked(log: Path) -> Callable[[], object]:
    def lock() -> object:
        file = log.open("rb")
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        return file

    return lock


@pytest.mark.parametrize("lock", [posix_locked, ofd_locked])
def test_an_agent_with_another_kind_of_lock_on_the_log_is_named_and_once_it_is_killed_the_append_goes_through(
    log: Path, owing: Owing, lock: Callable[[Path], Callable[[], object]]
) -> None:
    with standing(lock(log), AGENT) as agent:
        expect_refused(agent, log, owing, "holds a lock on it")
        agent.kill()
        expect_repair(log, owing)


def test_an_agent_is_found_on_a_file_system_that_numbers_its_files_its_own_way(tmp_path: Path) -> None:
    def look() -> list[str]:
        own_mounts()
        folders = [tmp_path / name for name in ("lower", "upper", "work", "merged", "ram")]
        for folder in folders:
            folder.mkdir()
        lower, upper, work, merged, ram = folders
        mount("tmpfs", str(ram), "tmpfs", 0, "")
        for folder in (upper, work):
            folder.rmdir()
            folder.symlink_to(ram / folder.name)
            (ram / folder.name).mkdir()
        shutil.copy(SAMPLES / "crashed-dispatched.jsonl", lower)
        options = f"lowerdir={lower},upperdir={ram}/upper,workdir={ram}/work"
        mount("overlay", str(merged), "overlay", 0, options)
        log = merged / "crashed-dispatched.jsonl"
        with standing(posix_locked(log), AGENT):
            return [str(holder) for holder in find_writers(log.stat()).holders]

    (found,) = elsewhere(look)()
    assert found.startswith(AGENT) and found.endswith("holds a lock on it")


def test_an_agent_whose_child_inherited_the_lock_is_not_lost_with_it(log: Path, owing: Owing) -> None:
    def lock_and_leave() -> object:
        lock = ofd_locked(log)()
        if os.fork():
            os._exit(0)
        return lock

    with standing(lock_and_leave, AGENT) as gone:
        outcome = triage("apply", log, "--json", *acks(owing.plan))
    assert outcome.code == 4 and f"{AGENT} (pid " in outcome.err
    assert f"(pid {gone.pid})" not in outcome.err


def test_a_lock_of_a_process_whose_files_are_hidden_is_found_too(everybodys: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not permitted here: a process of another user takes root to start")
    log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", everybodys))
    log.chmod(0o666)
    owing = Owing.of(str(log))
    with standing(posix_locked(log), AGENT) as agent:
        outcome = triage("apply", log, *acks(owing.plan), first=become_nobody)
    assert outcome.code == 4
    assert f"{AGENT} (pid {agent.pid}) holds a lock on it" in outcome.err
    assert log.read_bytes() == owing.log


# ---- what only warns, and what can't be seen


def test_a_log_that_was_written_lately_is_repaired_with_a_warning(log: Path, owing: Owing) -> None:
    os.utime(log)
    outcome = triage("apply", log, *acks(owing.plan))
    assert outcome.code == 0
    assert "written in the last seconds: is its agent still alive?" in outcome.err


def test_a_log_that_was_written_long_ago_is_repaired_without_a_warning(log: Path, owing: Owing) -> None:
    outcome = triage("apply", log, *acks(owing.plan))
    assert outcome.code == 0 and "is its agent still alive?" not in outcome.err


def test_processes_that_could_not_be_looked_at_are_said(everybodys: Path) -> None:
    log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", everybodys))
    log.chmod(0o666)
    owing = Owing.of(str(log))
    if os.geteuid() != 0 and not find_writers(log.stat()).unchecked:
        pytest.skip("not permitted here: every process belongs to this user")
    outcome = triage("apply", log, *acks(owing.plan), first=become_nobody)
    assert outcome.code == 0, outcome
    assert "of other users could not be checked" in outcome.err


def test_a_proc_that_hides_the_processes_of_others_is_said(everybodys: Path) -> None:
    log = Path(shutil.copy(SAMPLES / "crashed-dispatched.jsonl", everybodys))
    log.chmod(0o666)
    owing = Owing.of(str(log))

    def apply() -> str:
        own_mounts()
        mount("proc", "/proc", "proc", 0, "hidepid=invisible")
        return triage("apply", log, *acks(owing.plan), first=become_nobody).err

    assert "processes of other users are hidden here and could not be checked" in elsewhere(apply)()


def test_a_system_without_proc_is_said_to_be_unchecked(log: Path, owing: Owing) -> None:
    def apply() -> tuple[int, str]:
        own_mounts()
        mount("tmpfs", "/proc", "tmpfs", 0, "size=4k")
        outcome = triage("apply", log, *acks(owing.plan))
        return outcome.code, outcome.err

    code, says = elsewhere(apply)()
    assert code == 0
    assert "other processes could not be checked; locks of other processes could not be checked" in says


def test_a_triage_whose_number_in_proc_is_another_does_not_take_itself_for_an_agent(
    log: Path, owing: Owing
) -> None:
    def apply() -> int:
        return main(["apply", str(log), *acks(owing.plan)])

    assert elsewhere(apply, prepare=other_numbers)() == 0


# ---- the same in what the screen asks all the time


def test_the_activity_of_a_log_names_its_agent_and_what_moved(log: Path) -> None:
    session = open_session(str(log))
    assert session.activity().refuses == ""
    with standing(lambda: log.open("ab"), AGENT) as agent:
        assert f"in use: {AGENT} (pid {agent.pid}) holds it open for writing" == session.activity().refuses
    with log.open("ab") as file:
        file.write(b"\n")
    activity = session.activity()
    assert (activity.grown, activity.lately) == (1, True)
    assert activity.refuses == "the log grew by 1 byte since it was opened: reload it"
    os.truncate(log, 0)
    assert session.activity().refuses.startswith("the log was cut by ")
    shutil.copy(log, log.with_name("other"))
    log.with_name("other").rename(log)
    assert session.activity().refuses == "the file was replaced since it was opened: reload it"


def test_an_agent_that_holds_its_own_lock_file_is_named_by_the_header_and_by_the_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "rollout.jsonl"
    shutil.copy(CODEX, log)
    an_hour_ago = time.time() - 3600
    os.utime(log, (an_hour_ago, an_hour_ago))
    locks = tmp_path / "thread-writer-locks"
    locks.mkdir()
    lock = locks / f"{json.loads(log.read_bytes().splitlines()[0])['payload']['id']}.lock"
    lock.touch()
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    session, owing = open_session(str(log)), Owing.of(str(log))
    assert session.activity().refuses == ""
    with standing(flocked(lock, fcntl.LOCK_EX), AGENT) as agent:
        says = f"in use: {AGENT} (pid {agent.pid}) holds its agent's lock"
        assert session.activity().refuses == says
        expect_refused(agent, log, owing, "holds its agent's lock")
        agent.kill()
        assert triage("apply", log, *acks(owing.plan)).code == 0
    assert open_session(str(log)).plan.repairs == ()


def test_a_file_that_is_closed_while_writers_are_looked_for_hides_no_other(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not list a process's descriptors")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: ["4000000", *listed(folder)])
    status = log.stat()
    with log.open("ab"):
        assert (status.st_dev, status.st_ino) in set(writers._written_files(str(os.getpid())))

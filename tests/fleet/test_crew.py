"""The worker processes: rows as they are read, a scan that is stopped, a worker that is killed."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.fleet import scan
from triage.fleet.find import files
from triage.fleet.row import Row, read_row
from triage.fleet.scan import Crew, Scan

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew(2)
    yield made
    made.close()


def fill(folder: Path, count: int = 60) -> list[str]:
    for number in range(count):
        shutil.copy(SAMPLES / "clean.jsonl", folder / f"{number:03}.jsonl")
    return list(files([str(folder)]))


def read(crew: Crew, paths: list[str]) -> dict[str, Row | None]:
    return {path: row for part in crew.parts(paths) for path, row in part.rows}


def test_each_file_is_read_once_and_says_what_it_says_alone(crew: Crew, tmp_path: Path) -> None:
    paths = [*files([str(SAMPLES)]), *fill(tmp_path)]
    rows = [one for part in crew.parts(paths) for one in part.rows]
    assert sorted(path for path, _ in rows) == sorted(paths)
    assert dict(rows) == {path: read_row(path) for path in paths}


def test_rows_come_while_another_file_is_still_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = multiprocessing.get_context("fork").Event()

    def slow(path: str) -> Row | None:
        assert not path.endswith("000.jsonl") or goes_on.wait(30)
        return read_row(path)

    monkeypatch.setattr(scan, "read_row", slow)
    crew, paths, rows = Crew(2), fill(tmp_path, 400), dict[str, Row | None]()
    for part in crew.parts(paths):
        rows.update(part.rows)
        if len(rows) == len(paths) - max(len(worker.left) for worker in crew._workers):
            assert paths[0] not in rows or goes_on.is_set()
            goes_on.set()  # all has come but what waits behind that file
    crew.close()
    assert rows == {path: read_row(path) for path in paths}


def test_files_are_looked_for_while_others_are_read(crew: Crew, tmp_path: Path) -> None:
    paths = fill(tmp_path, 3) * 300
    parts = list(crew.parts(paths))
    found = [part.found for part in parts]
    assert found[0] == scan.AHEAD and found == sorted(found) and found[-1] == 900
    assert not parts[0].whole and parts[-1].whole


def test_a_scan_that_is_stopped_leaves_nothing_to_the_next(crew: Crew, tmp_path: Path) -> None:
    paths = fill(tmp_path)
    asked = iter((False, True))
    assert len(list(crew.parts(paths, lambda: next(asked)))) == 1
    assert read(crew, paths[:3]) == {path: read_row(path) for path in paths[:3]}


def test_what_a_stopped_scan_had_handed_out_is_not_read_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, seen = multiprocessing.get_context("fork").Event(), tmp_path / "seen"

    def slow(path: str) -> Row | None:
        with seen.open("a") as file:
            file.write(f"{path}\n")
        assert goes_on.wait(30)
        return None

    monkeypatch.setattr(scan, "read_row", slow)
    crew, paths = Crew(2), fill(tmp_path)
    asked = iter((False, True))
    assert len(list(crew.parts(paths, lambda: next(asked)))) == 1
    goes_on.set()
    assert read(crew, ["the next"]) == {"the next": None}
    crew.close()
    assert seen.read_text().count("the next") == 1
    assert len(seen.read_text().splitlines()) <= 3, "one file at each worker, and the next scan's"


def test_a_worker_that_is_killed_costs_the_file_that_it_was_at_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadly(path: str) -> Row | None:
        if path.endswith("020.jsonl"):
            os.kill(os.getpid(), signal.SIGKILL)
        return read_row(path)

    monkeypatch.setattr(scan, "read_row", deadly)
    crew, paths = Crew(2), fill(tmp_path)
    rows = read(crew, paths)
    crew.close()
    lost = rows.pop(paths[20])
    assert lost is not None and lost.status == "unreadable" and "the process that read it ended" in lost.why
    assert rows == {path: read_row(path) for path in paths if path != paths[20]}


def test_a_worker_that_is_killed_when_it_has_nothing_to_do_costs_no_file(crew: Crew, tmp_path: Path) -> None:
    paths = fill(tmp_path)
    read(crew, paths)
    for worker in crew._workers:
        worker.process.kill()
        worker.process.join()
    assert read(crew, paths) == {path: read_row(path) for path in paths}


def test_paths_and_rows_larger_than_a_pipe_are_no_scan_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def wordy(path: str) -> Row:
        return Row(path, None, "unreadable", why=path * 5)

    monkeypatch.setattr(scan, "read_row", wordy)
    signal.alarm(60)  # ends a test that would wait for ever
    crew, paths = Crew(2), [f"{number:06}" + "\udcff" * 3000 for number in range(600)]
    try:
        assert read(crew, paths) == {path: wordy(path) for path in paths}
    finally:
        crew.close()
        signal.alarm(0)


def test_a_time_that_is_nested_deeper_than_a_worker_can_tell_is_none(crew: Crew, tmp_path: Path) -> None:
    paths = fill(tmp_path)
    deep = b'{"seq":0,"type":"turn_start","time":' + b"[" * 1010 + b"]" * 1010 + b',"data":{}}\n'
    Path(paths[20]).write_bytes(deep)
    rows = read(crew, paths)
    assert rows == {path: read_row(path) for path in paths}
    assert (row := rows[paths[20]]) is not None and (row.status, row.last_time) == ("crashed", None)


def test_without_workers_the_files_are_read_here(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes((SAMPLES / "clean.jsonl").read_bytes())
    (tmp_path / "notes.txt").write_text("no log\n")
    parts = list(Scan([str(tmp_path)], Crew(0)).parts(lambda: False))
    rows = dict(one for part in parts for one in part.rows)
    assert rows[str(tmp_path / "notes.txt")] is None and len(rows) == 2


def test_a_fault_of_ours_at_one_file_is_its_row_and_its_trace_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(path: str) -> Row | None:
        raise KeyError("text of the log")

    monkeypatch.setattr(scan, "read_row", faulty)
    (row,) = read(Crew(0), ["a.jsonl"]).values()
    assert row is not None and row.status == "unreadable" and "KeyError" in row.why
    assert "text of the log" not in row.why
    assert list(Path(os.environ["XDG_STATE_HOME"]).rglob("fault-*.txt"))


def test_nobody_to_read_is_no_scan_without_end(crew: Crew) -> None:
    assert read(crew, []) == {}


def test_workers_end_with_the_process_that_made_them(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        made = Crew(2)
        os.write(theirs, " ".join(str(worker.process.pid) for worker in made._workers).encode())
        os._exit(0)  # as if it had been killed: nothing is closed or joined
    os.waitpid(child, 0)
    assert [pid for pid in os.read(ours, 99).split() if not _ends(int(pid))] == []


def _ends(pid: int) -> bool:
    """Whether a process ends by itself; it is ended anyway."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = bool(multiprocessing.connection.wait([descriptor], 20))
    if not ended:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
    return ended

"""One row a session: which files are sessions, what a row says, and the order of the rows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from triage.cli import main

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FIELDS = {
    *("schema", "path", "format", "status", "owed", "unknown", "waiting"),
    *("boundary", "bytes", "events", "last_time", "title", "why"),
}


def scanned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, object]], str]:
    code = main(["scan", "--json", *arguments])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def test_every_row_has_the_fields_of_the_contract_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    code, rows, _ = scanned(capsys, str(SAMPLES))
    assert code == 1
    assert len(rows) == len(list(SAMPLES.glob("*.jsonl")))
    assert all(set(row) == FIELDS and row["schema"] == "triage.session/1" for row in rows)


def test_a_session_that_may_have_charged_a_card_stands_above_one_that_was_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    charge = (SAMPLES / "crashed-dispatched.jsonl").read_bytes()
    (tmp_path / "b.jsonl").write_bytes(charge)
    (tmp_path / "a.jsonl").write_bytes(charge.replace(b"http_post", b"read_file"))
    shutil.copy(SAMPLES / "clean.jsonl", tmp_path / "0.jsonl")
    shutil.copy(SAMPLES / "boundary-calls-named.jsonl", tmp_path / "1.jsonl")
    _, rows, _ = scanned(capsys, str(tmp_path))
    assert [os.path.basename(str(row["path"])) for row in rows] == [
        "b.jsonl",
        "a.jsonl",
        "1.jsonl",
        "0.jsonl",
    ]


def test_a_clean_folder_exits_0_and_one_crash_in_it_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLES / "clean.jsonl", tmp_path)
    assert scanned(capsys, str(tmp_path))[0] == 0
    shutil.copy(SAMPLES / "torn-tail.jsonl", tmp_path)
    assert scanned(capsys, str(tmp_path))[0] == 1


def test_what_is_no_session_log_is_skipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    shutil.copy(SAMPLES / "clean.jsonl", tmp_path / "deep" / "er")
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "image").write_bytes(bytes(range(256)))
    code, rows, err = scanned(capsys, str(tmp_path))
    assert (code, len(rows)) == (0, 1)
    assert "2 files skipped" in err


def test_links_are_never_followed_out_of_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    shutil.copy(SAMPLES / "torn-tail.jsonl", outside)
    (inside / "folder").symlink_to(outside)
    (inside / "file.jsonl").symlink_to(outside / "torn-tail.jsonl")
    assert scanned(capsys, str(inside))[:2] == (0, [])


def test_folders_may_lie_as_deep_as_the_system_lets_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [f"{tmp_path}{'/d' * depth}" for depth in range(1, 1500)]
    for folder in folders:
        os.mkdir(folder)
    log = shutil.copy(SAMPLES / "clean.jsonl", folders[-1])
    try:
        assert len(scanned(capsys, str(tmp_path))[1]) == 1
    finally:
        os.unlink(log)
        for folder in reversed(folders):  # pytest would not get so deep
            os.rmdir(folder)


def test_a_named_file_that_cannot_be_read_exits_3_and_one_that_was_found_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = str(tmp_path / "gone.jsonl")
    code, rows, err = scanned(capsys, gone)
    assert code == 3 and rows[0]["status"] == "unreadable" and "gone.jsonl" in err
    os.mkfifo(tmp_path / "pipe")
    assert scanned(capsys, str(tmp_path))[0] == 0


def test_needs_and_since_narrow_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = scanned(capsys, str(SAMPLES), "--needs", "unknown")[1]
    any_repair = scanned(capsys, str(SAMPLES), "--needs", "any")[1]
    assert all(row["unknown"] for row in unknown) and len(unknown) < len(any_repair)
    assert not any(row["status"] == "clean" for row in any_repair)
    dated = [row for row in scanned(capsys, str(SAMPLES), "--since", "1m")[1] if row["last_time"]]
    assert dated == []
    for nonsense in ("soon", "99999999999999d", "nanh", "infm"):
        assert main(["scan", str(SAMPLES), "--since", nonsense]) == 2


def test_many_files_go_through_worker_processes_and_give_the_same_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        shutil.copytree(SAMPLES, tmp_path / str(number))
    many = scanned(capsys, str(tmp_path))
    monkeypatch.setattr("triage.fleet.scan.FEW", 10_000)
    assert scanned(capsys, str(tmp_path)) == many


def test_a_log_that_a_process_writes_is_live(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    shutil.copy(SAMPLES / "torn-tail.jsonl", log)
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        with open(log, "ab"):
            os.write(ready[1], b"x")
            os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    try:
        code, rows, _ = scanned(capsys, str(tmp_path))
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)
    assert (code, rows[0]["status"]) == (0, "live")
    assert str(child) in str(rows[0]["why"])


def test_a_folder_is_listed_worst_first_with_how_to_open_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(SAMPLES)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("CRASHED") and out.splitlines()[-1].startswith("CLEAN")
    assert "open one with: triage LOG" in err


def test_the_agents_own_folders_are_found_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--agents"]) == 0
    assert "none of the agents' folders" in capsys.readouterr().err
    fixtures = Path(__file__).parents[1] / "fixtures"
    for folder, format in ((".claude/projects/-srv", "claude"), (".codex/sessions/2026", "codex")):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(min((fixtures / format).glob("*.jsonl")), tmp_path / folder)
    main(["--agents"])
    out = capsys.readouterr().out
    assert ".claude/projects" in out and ".codex/sessions" in out


def test_no_log_at_all_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2

"""The one bulk repair: it closes exactly the sessions in which nothing needs a person."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from triage.cli import main
from triage.session import open_session

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES, tmp_path / "logs"))


def test_it_closes_exactly_what_needs_nobody_and_touches_nothing_else(folder: Path) -> None:
    plans = {path: open_session(str(path)) for path in sorted(folder.iterdir())}
    before = {path: path.read_bytes() for path in plans}
    assert main(["apply", "--not-started-only", str(folder)]) == 0
    for path, session in plans.items():
        plan = session.plan
        safe = bool(plan.repairs) and not any(owed.needs_acknowledgement for owed in plan.owed)
        assert path.read_bytes().startswith(before[path])
        if safe and not session.corrupt_lines:
            assert open_session(str(path)).plan.status == "clean"
        else:
            assert path.read_bytes() == before[path], path.name
    assert sum(path.read_bytes() != before[path] for path in before) >= 4


def test_no_unknown_outcome_is_ever_closed_by_it(folder: Path) -> None:
    main(["apply", "--not-started-only", str(folder)])
    for path in folder.iterdir():
        original = (SAMPLES / path.name).read_bytes()
        assert b"tool_outcome_unknown" not in path.read_bytes()[len(original) :]


def test_each_one_is_printed_and_each_skipped_one_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["apply", "--not-started-only", str(folder)])
    out, err = capsys.readouterr()
    assert "boundary-calls-named.jsonl: appended 3 records" in out
    assert "crashed-dispatched.jsonl: skipped, 1 call of it needs a person" in err
    assert "doubtful.jsonl: skipped, doubtful: line 15 can't be read" in err
    assert "clean.jsonl" not in out + err


def test_a_crash_with_an_unreadable_line_in_its_turn_is_left_to_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes((SAMPLES / "boundary-stable.jsonl").read_bytes() + b"garbage\n")
    before = log.read_bytes()
    assert main(["apply", "--not-started-only", str(log)]) == 0
    assert log.read_bytes() == before
    assert "can't be read and may have been anything" in capsys.readouterr().err


def test_it_takes_no_answers() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["apply", "--not-started-only", "x", "--ack", "a=ran"])
    assert caught.value.code == 2

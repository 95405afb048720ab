"""klbr event exports: an execution that started and never completed is open, and nothing is ever appended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.repairs import FIXTURES, plan_of_log, records_of, session_of
from tests.helpers import codes, ids, owed, recognise, risk, rule
from triage.cli import main
from triage.contract import plan_row
from triage.log.formats import klbr
from triage.session import open_session

# An export of a session that ended well, and one that was taken after klbr died inside a cell.
COMPLETED, OPEN = "completed", "open"


def fixture(name: str) -> str:
    return str(FIXTURES / "klbr" / f"{name}.jsonl")


def row(id: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"id": id, "session_id": "s1", "kind": kind, "payload": payload, "created_ms": 1000 * id}


def started(id: int, execution: Any, **payload: Any) -> dict[str, Any]:
    return row(id, "execution.started", execution_id=execution, **payload)


def completed(id: int, execution: Any, **payload: Any) -> dict[str, Any]:
    return row(id, "execution.completed", execution_id=execution, state="ok", **payload)


def test_an_execution_that_never_completed_is_open_and_its_outcome_unknown() -> None:
    plan = open_session(fixture(OPEN)).plan
    assert (plan.status, plan.boundary.name) == ("crashed", "tool_open")
    assert ids(plan) == ["x2"]
    assert (risk(plan, "x2"), rule(plan, "x2")) == ("unknown", 1)


def test_an_open_execution_shows_what_it_was_given_and_what_it_recorded() -> None:
    entry = owed(open_session(fixture(OPEN)).plan, "x2")
    assert entry.name == "cell.execution"
    assert entry.arguments == {"revision": "9f1c", "workspace": "/srv/pay", "code": "refund()"}
    assert [line.line for line in entry.evidence] == [3, 4]
    assert "status 'ok'" in entry.evidence[1].says


def test_an_export_in_which_every_execution_completed_is_clean() -> None:
    session = open_session(fixture(COMPLETED))
    assert (session.plan.status, session.plan.boundary.name) == ("clean", "terminal")
    assert main(["plan", fixture(COMPLETED), "--json"]) == 0


def test_executions_that_ran_at_once_or_again_are_each_followed_to_their_end() -> None:
    session = open_session(fixture("parallel"))
    assert ids(session.plan) == ["x1"]
    assert session.plan.owed[0].line == 1  # that of the session s1; the one of s2 completed
    assert codes(session.plan) == []


def test_an_execution_that_is_logged_again_while_it_runs_is_one_execution(tmp_path: Path) -> None:
    plan = plan_of_log(tmp_path, [started(1, "x1"), started(2, "x1"), completed(3, "x1")])
    assert plan.status == "clean"


def test_an_execution_id_that_is_a_number_is_taken_as_its_text(tmp_path: Path) -> None:
    assert plan_of_log(tmp_path, [started(1, 7), completed(2, "7")]).status == "clean"


def test_an_execution_id_that_ran_and_ended_before_is_owed_when_it_runs_again(tmp_path: Path) -> None:
    rows = [started(1, "x0"), started(2, "x1"), completed(3, "x1"), started(4, "x1")]
    assert sorted(ids(plan_of_log(tmp_path, rows))) == ["x0", "x1"]


def test_many_open_executions_are_found_without_a_turn_that_closes_another(tmp_path: Path) -> None:
    plan = plan_of_log(tmp_path, [started(n, f"x{n}") for n in range(1, 301)])
    assert len(plan.owed) == 300
    assert plan.left == ()


def test_a_completion_whose_start_the_export_lacks_owes_nothing(tmp_path: Path) -> None:
    assert plan_of_log(tmp_path, [completed(9, "x1"), row(10, "note.added")]).status == "clean"


def test_other_kinds_are_shown_and_not_judged() -> None:
    session = open_session(fixture("classes"))
    events = session.journal.events(9)
    assert [event.type for event in events] == ["note.added"]
    assert [a.says for a in session.plan.anomalies] == ["1 of type 'note.added': shown, not judged"]


def test_a_row_keeps_its_committed_sequence_and_its_time() -> None:
    (event,) = open_session(fixture(OPEN)).journal.events(2)
    assert (event.seq, event.time, event.ms) == (13, 1779267602000, 1779267602000)
    assert plan_row(open_session(fixture(OPEN)))["log"]["next_seq"] == 16


def test_the_session_is_described_by_its_first_execution() -> None:
    facts = open_session(fixture(OPEN)).journal.decoder.facts()
    assert facts == {"agent": "klbr", "cwd": "/srv/pay", "started": "1779267601000"}


@pytest.mark.parametrize("key", ["workspace", "workspace_path"])
def test_the_workspace_is_known_by_either_of_its_names(tmp_path: Path, key: str) -> None:
    session = session_of(tmp_path, [started(1, "x1", **{key: "/srv/pay"})])
    assert session.journal.decoder.facts()["cwd"] == "/srv/pay"


def test_a_plan_of_an_export_is_shown_and_carries_the_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", fixture(OPEN), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert [r["type"] for r in shown["repairs"]] == ["tool_result"]
    assert shown["lines"] == []
    assert shown["refusal"]["code"] == "database_owned"
    assert shown["refusal"]["ids"] == ["x2"]
    assert "a database that klbr owns" in shown["refusal"]["says"]


@pytest.mark.parametrize("answers", [[], ["--ack", "x2=ran"]])
def test_an_append_to_an_export_is_refused_whatever_was_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: list[str]
) -> None:
    log = tmp_path / "export.jsonl"
    log.write_bytes(Path(fixture(OPEN)).read_bytes())
    assert main(["apply", str(log), *answers, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["code"] == "database_owned"
    assert log.read_bytes() == Path(fixture(OPEN)).read_bytes()


def test_a_start_that_was_cut_short_makes_the_export_doubtful() -> None:
    plan = open_session(fixture("torn-start")).plan  # what it started may run, and nothing names it
    assert plan.status == "doubtful"
    assert codes(plan) == ["torn_tail"]


def test_a_scratchpad_that_was_cut_short_moved_no_execution() -> None:
    assert open_session(fixture("torn-scratchpad")).plan.status == "clean"


@pytest.mark.parametrize("damage", [b"\x00" * 40, b"{'}\n", b"\xef\xbb\xbf", b"\r"])
def test_a_damaged_export_is_read_as_far_as_it_is_certain(tmp_path: Path, damage: bytes) -> None:
    first, rest = Path(fixture(OPEN)).read_bytes().split(b"\n", 1)
    plan = session_of(tmp_path, first + (b"\r\n" if damage == b"\r" else b"\n" + damage) + rest).plan
    assert ids(plan) == ["x2"]


def test_rows_that_were_glued_onto_one_line_are_each_read(tmp_path: Path) -> None:
    log = Path(fixture(OPEN)).read_bytes().replace(b"\n", b"", 1)
    assert ids(session_of(tmp_path, log).plan) == ["x2"]


def test_a_line_separator_inside_a_text_ends_no_row(tmp_path: Path) -> None:
    rows = [started(1, "x1", code="a\u2028b"), completed(2, "x1")]
    assert plan_of_log(tmp_path, rows).status == "clean"


@pytest.mark.parametrize("odd", [None, 3, "x", [], {"execution_id": None}, {"execution_id": ["x"]}])
def test_an_odd_payload_stops_nothing(tmp_path: Path, odd: Any) -> None:
    rows = [started(1, "x1"), {**started(2, "x2"), "payload": odd}, {**completed(3, "x2"), "payload": odd}]
    assert "x1" in ids(plan_of_log(tmp_path, rows))


def test_rows_of_klbr_are_recognised_and_no_others_are() -> None:
    assert recognise([records_of("klbr", COMPLETED)[0]]) is klbr
    assert not klbr.recognise({"kind": "execution.started", "payload": {}})
    assert not klbr.recognise({"seq": 0, "type": "turn_start", "data": {}})

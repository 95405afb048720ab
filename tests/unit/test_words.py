"""The sentences that a person reads: one for each thing, and no two alike."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from triage import words
from triage.cli import main
from triage.fleet.find import candidates
from triage.log.source import Unreadable
from triage.recovery.boundary import Boundary
from triage.recovery.plan import synthetic_content
from triage.recovery.verdict import FAILURE_SENTENCES, REASON_SENTENCES
from triage.session import open_session

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def sample(name: str):
    return open_session(str(ROOT / "sample_logs" / f"{name}.jsonl"))


def refusals() -> dict[str, str]:
    """A sentence for each refusal code of the fixtures, without the names of their files."""
    found = {}
    for path in candidates(str(ROOT / "tests" / "fixtures")):
        try:
            refusal = open_session(path).plan.refusal
        except Unreadable:
            continue
        if refusal is not None:
            found[refusal.code] = refusal.says.replace(path, "")
    return found


def test_no_two_boundaries_risks_reasons_or_refusals_share_a_sentence() -> None:
    said = [
        *words.NEXT.values(),
        *words.RISKS.values(),
        *REASON_SENTENCES.values(),
        *FAILURE_SENTENCES.values(),
        *refusals().values(),
    ]
    assert len({text.strip().lower() for text in said}) == len(said)
    assert len(said) > 25


def test_each_risk_has_words_of_its_own_in_the_history_too() -> None:
    said = {}
    for name in ("crashed-dispatched", "waiting"):
        for owed in sample(name).plan.owed:
            said[owed.label] = synthetic_content(owed)
    assert set(said) == {"UNKNOWN", "NOT STARTED", "WAITING", "DENIED"}
    assert len(set(said.values())) == 4


@pytest.mark.parametrize("name", sorted(words.NEXT))
def test_each_boundary_has_a_sample_that_died_there(name: str) -> None:
    paths = sorted((ROOT / "sample_logs").glob("*.jsonl"))
    assert any(open_session(str(path)).plan.boundary.name == name for path in paths)


def test_the_figures_of_the_end_and_a_deadline_that_has_passed_are_said() -> None:
    said = " ".join(words.at_the_end(sample("boundary-model-attempt-open").plan, NOW))
    assert "round 2" in said and "16,384 tokens reserved" in said and "53,900 tokens of input left" in said
    assert "has passed: resuming ends at once" in said


def test_a_deadline_that_has_not_passed_is_not_said() -> None:
    before = datetime(2026, 1, 1, tzinfo=UTC)
    said = words.at_the_end(sample("boundary-model-attempt-open").plan, before)
    assert not any("deadline" in sentence for sentence in said)


def test_a_pending_decision_is_named() -> None:
    assert "cmd_7" in words.what_next(Boundary("resolution_pending", command_id="cmd_7"))


def test_the_verdict_of_a_parallel_call_stands_beside_the_unknown_call() -> None:
    plan = sample("parallel-two-started").plan
    assert plan.unknown == 1
    assert any(sentence.startswith("Run: ") for sentence in words.at_the_end(plan, NOW))


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "1.0 MB"),
        (2_000_000, "2.0 MB"),
    ],
)
def test_a_size_reads_as_a_person_says_it(size: int, says: str) -> None:
    assert words.size_in_words(size) == says


def test_times_are_read_as_iso_and_as_numbers_since_1970_and_odd_ones_are_none() -> None:
    assert words.parse_time("2026-05-20T08:15:03Z") == datetime(2026, 5, 20, 8, 15, 3, tzinfo=UTC)
    assert words.parse_time(1_779_264_903_000) == words.parse_time(1_779_264_903)
    assert [words.parse_time(odd) for odd in (None, True, "soon", [], 10**30)] == [None] * 5


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (1_779_264_903_040, "2026-05-20T08:15:03.040Z"),
        ("2026-05-20T10:15:03+02:00", "2026-05-20T10:15:03+02:00"),
        ("soon", "soon"),
        (10**30, "1" + "0" * 30),
        ({"at": [True]}, '{"at":[true]}'),
    ],
)
def test_a_time_stands_as_it_was_written_and_a_number_as_the_time_that_it_is(
    written: object, says: str
) -> None:
    assert words.time_in_words(written) == says


def test_a_time_that_is_nested_as_deep_as_a_log_likes_is_told_in_every_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    (tmp_path / "log.jsonl").write_bytes(b'{"seq":0,"type":"turn_start","time":' + deep + b',"data":{}}\n')
    for command in (["plan"], ["--plain"], ["report"], ["scan", "--json"], ["history"], ["plan", "--json"]):
        main([*command, str(tmp_path / "log.jsonl")])
        said = capsys.readouterr()
        assert "fault" not in said.err + said.out, command


def test_every_text_says_the_times_of_a_log_that_counts_milliseconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "session.jsonl"
    log.write_bytes((ROOT / "tests" / "fixtures" / "dsh" / "killed.jsonl").read_bytes())
    session = open_session(str(log))
    acks = [f"--ack={owed.key}=ran" for owed in session.plan.owed if owed.needs_acknowledgement]
    for command in (["--plain"], ["report"], ["apply", *acks], ["history"], ["report"]):
        main([*command, str(log)])
        said = capsys.readouterr().out
        assert not re.search(r"\b1[0-9]{12}\b", said), command
        assert command[0] == "apply" or re.search(r"\d-\d\dT[\d:.]{12}Z", said), command

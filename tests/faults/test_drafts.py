"""Answers that were given and not applied: kept for the next person, private, dropped when stale."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
from pathlib import Path

import pytest

from tests.faults.child import triage
from tests.faults.converge import SAMPLES, Owing, acks, answers
from tests.faults.tracer import traced
from triage import draft
from triage.recovery.acknowledge import Answer
from triage.session import Session, open_session

ANSWER = Answer("ran", "seen in the ledger", "ann", "2026-05-20T10:00:00.000Z")
LATER = Answer("did-not-run", "", "ben", "2026-05-20T11:00:00.000Z")


@pytest.fixture
def session(log: Path) -> Session:
    return open_session(str(log))


def files(state_home: Path) -> list[Path]:
    return sorted((state_home / "triage" / "drafts").iterdir())


def test_a_draft_and_its_folder_are_for_their_owner_alone(session: Session, state_home: Path) -> None:
    os.umask(mask := os.umask(0))
    try:
        os.umask(0)
        draft.save(session, "ann", {"call_0a92": ANSWER})
    finally:
        os.umask(mask)
    (file,) = files(state_home)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parents[1])]
    assert modes == [0o600, 0o700, 0o700]


def test_a_draft_holds_ids_findings_notes_and_names_and_no_text_of_the_log(
    tmp_path: Path, state_home: Path
) -> None:
    for name in ("crashed-dispatched", "waiting", "double-started"):
        session = open_session(str(SAMPLES / f"{name}.jsonl"))
        draft.save(session, "ann", answers(session.plan))
    for file in files(state_home):
        row = json.loads(file.read_text())
        assert set(row) == {"base", "operator", "answers"}
        assert set(row["base"]) == {"device", "inode", "size", "tail", "ends_with_newline", "last_seq"}
        assert len(row["base"]["tail"]) == 64, "a digest, not the text"
        for answer in row["answers"].values():
            assert set(answer) == {"finding", "note", "operator", "at"}


def test_two_operators_keep_a_draft_each_and_the_next_person_sees_both(session: Session) -> None:
    draft.save(session, "ben", {"call_0a92": LATER})
    draft.save(session, "ann", {"call_0a92": ANSWER})
    draft.save(session, "ann", {"call_0a92": ANSWER, "call_0a91": ANSWER})
    found = draft.load(session)
    assert [(d.operator, d.at, len(d.answers)) for d in found] == [
        ("ann", ANSWER.at, 2),
        ("ben", LATER.at, 1),
    ]
    assert found[0].answers["call_0a92"] == ANSWER and found[1].answers["call_0a92"] == LATER


def test_names_that_look_like_paths_stay_in_the_folder(session: Session, state_home: Path) -> None:
    for operator in ("../../x", "a/b", "", "\0", "\udce4", "x" * 5000):
        draft.save(session, operator, {"call_0a92": ANSWER})
    assert len(files(state_home)) == len(draft.load(session)) == 6


def test_a_draft_with_no_answer_left_is_dropped(session: Session, state_home: Path) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})
    draft.save(session, "ann", {})
    assert files(state_home) == [] == draft.load(session)


def test_a_draft_of_a_log_that_grew_is_stale_and_dropped(
    log: Path, session: Session, state_home: Path
) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})
    with log.open("ab") as file:
        file.write(b"\n")
    assert draft.load(open_session(str(log))) == []
    assert files(state_home) == []


def test_a_draft_of_a_log_that_was_replaced_is_stale_and_dropped(
    log: Path, session: Session, state_home: Path
) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})
    Path(shutil.copy(log, log.with_name("other"))).rename(log)
    assert draft.load(open_session(str(log))) == []
    assert files(state_home) == []


def test_a_screen_that_was_opened_before_the_log_grew_does_not_drop_the_draft_of_one_opened_after(
    log: Path, session: Session
) -> None:
    with log.open("ab") as file:
        file.write(b"\n")
    newer = open_session(str(log))
    draft.save(newer, "ben", {"call_0a92": LATER})
    assert draft.load(session) == []
    assert [kept.operator for kept in draft.load(newer)] == ["ben"]


def test_drafts_of_other_logs_are_left_alone(log: Path, session: Session, tmp_path: Path) -> None:
    other = open_session(shutil.copy(log, tmp_path / "other.jsonl"))
    draft.save(session, "ann", {"call_0a92": ANSWER})
    draft.save(other, "ann", {"call_0a92": LATER})
    draft.drop(session)
    assert draft.load(session) == [] and len(draft.load(other)) == 1


def test_a_log_has_one_draft_by_whatever_name_it_is_opened(log: Path, session: Session) -> None:
    link = log.with_name("link")
    link.symlink_to(log)
    draft.save(session, "ann", {"call_0a92": ANSWER})
    assert len(draft.load(open_session(str(link)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"base": {}, "operator": "x", "answers": {}}',
        '{"base": 1, "answers": 2}',
        "\udc00",
    ],
)
def test_a_broken_draft_is_dropped_and_never_a_crash(session: Session, state_home: Path, text: str) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})
    files(state_home)[0].write_bytes(text.encode("utf-8", "surrogatepass"))
    assert draft.load(session) == []
    assert files(state_home) == []


@pytest.mark.parametrize("answer", [{"finding": 1}, {"finding": "ran", "note": ["x"]}, {"finding": None}, 3])
def test_a_draft_whose_answers_are_no_answers_is_broken(
    session: Session, state_home: Path, answer: object
) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})
    (file,) = files(state_home)
    row = json.loads(file.read_text())
    file.write_text(json.dumps({**row, "answers": {"call_0a92": answer}}))
    assert draft.load(session) == []
    assert files(state_home) == []


def test_a_draft_that_a_full_disk_did_not_take_leaves_the_one_before(
    session: Session, state_home: Path
) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            draft.save(session, "ann", {"call_0a92": LATER})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [kept.answers["call_0a92"] for kept in draft.load(session)] == [ANSWER]
    assert len(files(state_home)) == 1


def test_an_apply_that_lacks_answers_says_who_gave_some_and_when(log: Path, session: Session) -> None:
    draft.save(session, "ann", {"call_0a92": ANSWER})
    outcome = triage("apply", log)
    assert outcome.code == 4
    assert f"ann answered call_0a92 at {ANSWER.at} and did not apply it" in outcome.err
    assert len(draft.load(session)) == 1


def test_an_append_drops_the_drafts_of_everybody(log: Path, session: Session, state_home: Path) -> None:
    for operator in ("ann", "ben"):
        draft.save(session, operator, {"call_0a92": ANSWER})
    assert triage("apply", log, *acks(session.plan)).code == 0
    assert files(state_home) == []


def test_an_append_that_is_killed_once_it_was_written_leaves_drafts_that_are_stale(
    log: Path, session: Session, state_home: Path
) -> None:
    owing = Owing.of(str(log))
    draft.save(session, "ann", {"call_0a92": ANSWER})
    with traced("apply", log, *acks(owing.plan)) as child:
        child.until(child.at("fsync", log))
        child.kill()
    assert len(files(state_home)) == 1
    assert draft.load(open_session(str(log))) == []
    assert files(state_home) == []


def test_an_append_without_a_state_folder_to_look_into_is_an_append(log: Path, state_home: Path) -> None:
    state_home.write_text("no folder")
    owing = Owing.of(str(log))
    assert triage("apply", log, *acks(owing.plan)).code == 0

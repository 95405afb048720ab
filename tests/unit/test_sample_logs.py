"""What triage says of each sample log: the samples are promises too."""

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from triage.session import open_session

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_logs"
NOT_STARTED, UNKNOWN = "tool_not_started", "tool_outcome_unknown"
Owed = tuple[str, str, int | str]  # key, risk, rule


@dataclass(frozen=True)
class Says:
    """The heart of a plan. `open_turns` are (seq, turn), innermost first; `anomalies` are sorted codes."""

    status: str
    boundary: str
    owed: tuple[Owed, ...] = ()
    open_turns: tuple[tuple[int, int | None], ...] = ()
    left: int = 0
    anomalies: tuple[str, ...] = ()


def clean(left: int = 0) -> Says:
    return Says("clean", "terminal", left=left)


def crashed(boundary: str, *owed: Owed, turns: Any, anomalies: tuple[str, ...] = ()) -> Says:
    return Says("crashed", boundary, owed, tuple(turns), anomalies=anomalies)


FORGED = "\u2713 CLEAN  nothing to repair"
SAYS = {
    "boundary-awaiting-approval.jsonl": crashed(
        "awaiting_approval",
        ("b2", NOT_STARTED, "W1"),
        turns=[(1, 1)],
    ),
    "boundary-calls-named.jsonl": crashed(
        "calls_named",
        ("b2", NOT_STARTED, 2),
        ("b3", NOT_STARTED, 2),
        turns=[(1, 1)],
    ),
    "boundary-model-attempt-open.jsonl": crashed("model_attempt_open", turns=[(1, 1)]),
    "boundary-prepared.jsonl": crashed("prepared", turns=[(8, 2)]),
    "boundary-resolution-pending.jsonl": crashed(
        "resolution_pending",
        ("b2", NOT_STARTED, 2),
        turns=[(1, 1)],
    ),
    "boundary-stable.jsonl": crashed("stable", turns=[(1, 1)]),
    "clean.jsonl": clean(),
    "corrupt-middle.jsonl": crashed(
        "tool_open",
        ("v4", UNKNOWN, 1),
        ("v5", UNKNOWN, 4),
        turns=[(22, 2)],
        anomalies=(*["corrupt_line"] * 4, "glued_records", "unknown_type"),
    ),
    "crashed-dispatched.jsonl": crashed(
        "tool_open",
        ("call_0a91", NOT_STARTED, 2),
        ("call_0a92", UNKNOWN, 1),
        ("call_0a93", NOT_STARTED, 2),
        turns=[(78, 4)],
    ),
    "crashed-no-dispatch.jsonl": crashed(
        "tool_open",
        ("tc_103", NOT_STARTED, 3),
        ("tc_104", UNKNOWN, 4),
        turns=[(11, 2)],
    ),
    "dangling-closed-turn.jsonl": clean(left=1),
    "double-started.jsonl": crashed(
        "tool_open",
        ("n5", UNKNOWN, 1),
        ("n6", NOT_STARTED, 2),
        ("n2", UNKNOWN, 1),
        ("n3", NOT_STARTED, 2),
        turns=[(21, 3), (14, 2)],
    ),
    "doubtful.jsonl": Says("doubtful", "terminal", left=1, anomalies=("corrupt_line",)),
    "errors-recurring.jsonl": crashed("tool_open", ("e10", UNKNOWN, 1), turns=[(46, 3)]),
    "hostile.jsonl": crashed(
        "tool_open",
        (f"call = 7: refund\n{FORGED}", UNKNOWN, 1),
        ("--help", UNKNOWN, 1),
        ("a=ran:b", NOT_STARTED, 2),
        ("\u202ecall_9\u202c", NOT_STARTED, 2),
        ("call\u200b_9", NOT_STARTED, 2),
        ("call_9", NOT_STARTED, 2),
        ("call_" + "9" * 600, NOT_STARTED, 2),
        ("\ud800lone", NOT_STARTED, 2),
        ("", NOT_STARTED, 2),
        ("\U0001f469\u200d\U0001f469\u200d\U0001f467 \uff57\uff49\uff44\uff45", NOT_STARTED, 2),
        ("wait\t[/red] = :", NOT_STARTED, "W1"),
        turns=[(18, None)],
        anomalies=("corrupt_line", "unknown_type"),
    ),
    "ids-reused.jsonl": crashed(
        "tool_open",
        ("call_0", UNKNOWN, 1),
        ("call_1", NOT_STARTED, 2),
        turns=[(29, 3)],
    ),
    "large.jsonl": crashed(
        "tool_open",
        ("call_01ab3a", UNKNOWN, 1),
        ("call_01ab3b", NOT_STARTED, 2),
        ("call_01ab3c", NOT_STARTED, 2),
        turns=[(6825, 257)],
        anomalies=("torn_tail",),
    ),
    "no-final-newline.jsonl": crashed("tool_open", ("p2", UNKNOWN, 1), turns=[(1, 1)]),
    "odd-records.jsonl": crashed(
        "tool_open",
        ("s43", UNKNOWN, 4),
        turns=[(17, None)],
        anomalies=(
            *("call_without_id", "duplicate_result", "id_reused", "odd_data", "result_without_id"),
            *("seq_duplicate", "seq_gap", "seq_gap", "seq_missing", "seq_out_of_order"),
            *("step_end_without_start", "turn_end_without_start", "unknown_type"),
        ),
    ),
    "parallel-two-started.jsonl": crashed("tool_open", ("q2", UNKNOWN, 1), turns=[(1, 1)]),
    "same-id-two-open-turns.jsonl": crashed(
        "tool_open",
        ("7/call_0", UNKNOWN, 1),
        ("1/call_0", UNKNOWN, 1),
        ("call_1", NOT_STARTED, 2),
        turns=[(7, 2), (1, 1)],
    ),
    "streamed-no-turns.jsonl": clean(left=1),
    "torn-harmless.jsonl": crashed(
        "tool_open",
        ("m2", UNKNOWN, 1),
        ("m3", NOT_STARTED, 2),
        turns=[(1, 1)],
        anomalies=("torn_tail",),
    ),
    "torn-tail.jsonl": crashed(
        "tool_open",
        ("dns_2", UNKNOWN, 1),
        turns=[(1, 1)],
        anomalies=("torn_tail",),
    ),
    "waiting-input.jsonl": crashed("awaiting_input", ("i2", NOT_STARTED, "W1"), turns=[(1, 1)]),
    "waiting.jsonl": crashed(
        "tool_open",
        ("w2", UNKNOWN, 4),
        ("w3", NOT_STARTED, "W2"),
        ("w4", NOT_STARTED, "W1"),
        turns=[(14, 2)],
    ),
}


@pytest.mark.parametrize("name", SAYS)
def test_a_sample_log_gets_the_plan_that_it_was_written_to_show(name: str) -> None:
    plan = open_session(str(SAMPLES / name)).plan
    assert SAYS[name] == Says(
        status=plan.status,
        boundary=plan.boundary.name,
        owed=tuple((owed.key, owed.risk, owed.rule) for owed in plan.owed),
        open_turns=tuple((turn.seq, turn.turn) for turn in plan.open_turns),
        left=len(plan.left),
        anomalies=tuple(sorted(anomaly.code for anomaly in plan.anomalies)),
    )


def test_every_sample_log_is_in_the_table() -> None:
    assert sorted(path.name for path in SAMPLES.iterdir()) == sorted(SAYS)


def test_the_large_sample_is_what_its_generator_writes() -> None:
    lines = runpy.run_path(str(ROOT / "tests" / "make_samples.py"))["large"]()
    same = (SAMPLES / "large.jsonl").read_bytes() == "".join(lines).encode()
    assert same, "run `python -m tests.make_samples`"

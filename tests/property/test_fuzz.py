"""Random damage to real logs of every format: the reader and the planner take anything.

In CI a fixed number of cases, always the same. By hand as many as one likes, from any case on:

    python -m tests.property.test_fuzz --cases 200000 --first 1000

A case that fails is printed with its number and kept in `--keep` (default: fuzz-findings/). What was
found goes into tests/fixtures/fuzz/ once it is fixed: a log alone, or a log and its `.damaged` copy.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from triage import contract
from triage.log.append import text_to_append
from triage.log.json_text import dumps
from triage.log.source import Unreadable
from triage.recovery.acknowledge import Answer, answered
from triage.recovery.plan import Plan
from triage.recovery.rules import NOT_STARTED, OUTCOME_UNKNOWN
from triage.report import markdown
from triage.session import Session, open_session

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "fixtures" / "fuzz"
CASES = 4000  # in CI
SEED_BYTES = 8000  # of one seed; a larger one gives its first and its last lines
CPU_SECONDS = 20  # for one case: a hang, not a slow machine
MEMORY_KB = 400_000  # that all cases together may take, whatever is in them

Damage = Callable[[random.Random, bytes], bytes]


@cache
def seeds() -> dict[str, bytes]:
    fixtures = ROOT / "tests" / "fixtures"
    paths = [
        *sorted((ROOT / "sample_logs").glob("*.jsonl")),
        *(path for path in sorted(fixtures.rglob("*.json*")) if path.parent.name not in ("cases", "fuzz")),
    ]
    return {path.relative_to(ROOT).as_posix(): _shortened(path.read_bytes()) for path in paths}


def seed_of(number: int) -> str:
    """One seed for each number. A new seed takes over some numbers and leaves all others as they are."""
    return max(seeds(), key=lambda name: zlib.crc32(f"{number} {name}".encode()))


def _shortened(text: bytes) -> bytes:
    if len(text) <= SEED_BYTES:
        return text
    head, tail = text[: SEED_BYTES // 4], text[-SEED_BYTES * 3 // 4 :]
    return head[: head.rfind(b"\n") + 1] + tail[tail.find(b"\n") + 1 :]


# ---- damage that shows: what is left of a line is no whole record, or all of the records that were there


def cut_a_line_short(dice: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b"\n"]
    at = dice.randrange(len(lines))
    body = lines[at].rstrip(b"\r\n")
    body = body[: dice.randrange(len(body)) + 1] if body else b""
    return b"".join([*lines[:at], body, b"\n", *lines[at + 1 :]])


def lose_the_start_of_a_line(dice: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b"\n"]
    at = dice.randrange(len(lines))
    return b"".join([*lines[:at], b"\0#", lines[at][dice.randrange(len(lines[at]) + 1) :], *lines[at + 1 :]])


def lose_a_newline(dice: random.Random, text: bytes) -> bytes:
    ends = [at for at, byte in enumerate(text) if byte == ord("\n")]
    if not ends:
        return text
    at = dice.choice(ends)
    return text[:at] + text[at + 1 :]


def zero_a_range(dice: random.Random, text: bytes) -> bytes:
    start, stop = _range(dice, text)
    return text[:start] + b"\0" * (stop - start) + text[stop:]


def put_a_garbage_line_in(dice: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    garbage = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 40))).replace(b"\n", b"?")
    return b"".join(_put(dice, lines, b"\xff" + garbage + b"\n"))


def cut_and_write_on(dice: random.Random, text: bytes) -> bytes:
    """A crash in the middle of a line, and a writer that goes on without a newline."""
    lines = text.splitlines(keepends=True) or [b"\n"]
    at = dice.randrange(len(lines))
    return b"".join([*lines[:at], lines[at][: dice.randrange(1, len(lines[at]) + 1)], *lines[at + 1 :]])


# ---- damage that may give another log, and a valid one


def cut_off(dice: random.Random, text: bytes) -> bytes:
    return text[: dice.randrange(len(text) + 1)]


def flip_bytes(dice: random.Random, text: bytes) -> bytes:
    raw = bytearray(text)
    for _ in range(dice.randrange(1, 6) if raw else 0):
        raw[dice.randrange(len(raw))] = dice.randrange(256)
    return bytes(raw)


def delete_a_range(dice: random.Random, text: bytes) -> bytes:
    start, stop = _range(dice, text)
    return text[:start] + text[stop:]


def repeat_a_line(dice: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b"\n"]
    return b"".join(_put(dice, lines, dice.choice(lines)))


def swap_two_lines(dice: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b"\n"]
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def put_a_line_of_another_log_in(dice: random.Random, text: bytes) -> bytes:
    other = seeds()[seed_of(dice.getrandbits(32))].splitlines(keepends=True)
    return b"".join(_put(dice, text.splitlines(keepends=True), dice.choice(other))) if other else text


TOKENS = [
    *[b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\n", b"\r\n", b"\0", b"\xff", b"\xed\xa0\x80"],
    *[b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"null", b"true", b"-1", b"1e999", b"9" * 30, b"0.1", b"[" * 3000],
    *[b'{"a":' * 500, b"\\ud800", b"\\u0000", b'"type":', b'"turn_start"', b'"turn_end"', b'"tool_result"'],
    *[b'"tool_call"', b'"id":', b'"seq":', b'"data":{', b'"tool_calls":[', b'"events":[', b'"version":2'],
    *[b'{"type":"turn_start","data":{}}\n', b'{"type":"turn_end","data":{}}\n', b'{"type":[],"data":7}\n'],
    *[b'{"seq":1,"type":"tool_result","data":{"tool_call_id":7}}\n', b'"metadata":{"synthetic":true}'],
]


def put_a_token_in(dice: random.Random, text: bytes) -> bytes:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(TOKENS) + text[at + dice.choice((0, 0, 1, 4)) :]


def _range(dice: random.Random, text: bytes) -> tuple[int, int]:
    start = dice.randrange(len(text) + 1)
    return start, min(len(text), start + dice.choice((1, 3, 20, 200, 4096)))


def _put(dice: random.Random, lines: list[bytes], line: bytes) -> list[bytes]:
    at = dice.randrange(len(lines) + 1)
    return [*lines[:at], line, *lines[at:]]


# In this order, and each once at most: a cut of what was two lines before would take one without a trace.
SHOWS: list[Damage] = [
    *(cut_a_line_short, lose_the_start_of_a_line, put_a_garbage_line_in),
    *(cut_and_write_on, lose_a_newline, zero_a_range),
]
ANY: list[Damage] = [
    *(*SHOWS, cut_off, flip_bytes, delete_a_range, repeat_a_line, swap_two_lines),
    *(put_a_line_of_another_log_in, put_a_token_in),
]


# ---- what holds


def check(text: bytes, dice: random.Random, folder: Path) -> Session | None:
    """What holds for the log of these bytes, whatever they are. Returns it as it was read, if it was."""
    session = opened(text, folder)
    if session is None:
        return None
    dumps(contract.plan_row(session))
    markdown(session)
    check_a_prefix(session, text[: dice.randrange(len(text) + 1)], folder)
    check_the_repair(session, text, folder)
    return session


def opened(text: bytes, folder: Path) -> Session | None:
    """A log of these bytes; None where it is none, which is the one way in which reading may fail."""
    path = folder / "log.jsonl"
    path.write_bytes(text)
    try:
        return open_session(str(path))
    except Unreadable:
        return None


def check_a_prefix(whole: Session, text: bytes, folder: Path) -> None:
    """A shorter log is planned too, and what was read in it is read in the longer one."""
    records = [whole.journal.records(line) for line in range(1, whole.journal.lines + 1)]
    prefix = opened(text, folder)
    if prefix is None or prefix.journal.format is not whole.journal.format:
        return
    if prefix.journal.one_document or whole.journal.one_document:
        documents = prefix.journal.documents
        assert documents == whole.journal.documents[: len(documents)], "a record that was read is gone"
        return
    for line in range(1, prefix.journal.lines):
        assert prefix.journal.records(line) == records[line - 1], f"line {line} is read another way"


def check_the_repair(session: Session, text: bytes, folder: Path) -> None:
    """Once it is repaired, a log owes nothing."""
    if session.plan.refusal is not None or not session.plan.repairs:
        return
    opened(text, folder)
    given = {
        owed.key: Answer("deny" if owed.rule == "W1" else "ran", "checked", "mara", "2026-05-20T10:00:00Z")
        for owed in session.plan.owed
        if owed.needs_acknowledgement
    }
    repairs = answered(session.plan, given)
    repair = text_to_append(session.journal, repairs, "2026-05-20T10:00:00.000Z")
    after = opened(text + repair, folder)
    assert after is not None, "the repaired log can't be read"
    assert after.plan.repairs == (), "the repaired log still owes something"


def check_pessimism(before: Plan, named: Counter[str], after: Plan) -> None:
    """No call whose outcome was unknown did not start, or owes nothing, because the log was damaged."""
    for owed in before.owed:
        id = owed.tool_call_id
        if owed.risk != OUTCOME_UNKNOWN or named[id] != 1:
            continue
        now = [other for other in after.owed if other.tool_call_id == id]
        assert not [o for o in now if o.risk == NOT_STARTED], f"{id!r} is said not to have started"
        assert now or after.status != "clean" or after.anomalies, f"{id!r} vanished without a trace"
        left = [other for other in after.left if other.tool_call_id == id]
        assert now or not left or after.status != "clean", f"{id!r} is left, in a log that is called clean"


def named_calls(session: Session) -> Counter[str]:
    """How many different calls there are of an id, as far as the log's lines tell one by one."""
    found: Counter[str] = Counter()
    for line in range(1, session.journal.lines + 1):
        for event in session.journal.events(line):
            for call in event.data.get("tool_calls") or () if event.type == "assistant_message" else ():
                if isinstance(call, dict):
                    found[str(call.get("id", call.get("tool_call_id")))] += 1
    return found


@cache
def undamaged(seed: str) -> tuple[Plan, Counter[str]] | None:
    with tempfile.TemporaryDirectory() as folder:
        session = opened(seeds()[seed], Path(folder))
        return None if session is None else (session.plan, named_calls(session))


# ---- cases


def text_of(number: int) -> tuple[str, bytes, bool]:
    """The seed of a case, its damaged bytes, and whether all of its damage shows."""
    dice, seed = random.Random(number), seed_of(number)
    text, shows, times = seeds()[seed], number % 2 == 1, dice.choice((1, 1, 2, 4))
    kinds = sorted(dice.sample(SHOWS, times), key=SHOWS.index) if shows else dice.choices(ANY, k=times)
    for damage in kinds:
        text = damage(dice, text)
    return seed, text, shows


def run(number: int, folder: Path) -> None:
    """One case. Raises where something does not hold."""
    seed, text, shows = text_of(number)
    with no_hang():
        session = check(text, random.Random(-number - 1), folder)
        before = undamaged(seed)
        if shows and session is not None and before is not None:
            check_pessimism(*before, session.plan)


@contextmanager
def no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {CPU_SECONDS} seconds of CPU")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def memory() -> int:
    """The most that this process ever took, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("part", range(10))
def test_damaged_logs_of_every_format_are_read_and_planned_and_stay_in_bounds(
    part: int, tmp_path: Path
) -> None:
    before = memory()
    for number in range(part, CASES, 10):
        try:
            run(number, tmp_path)
        except Exception as error:
            raise AssertionError(
                f"case {number}: python -m tests.property.test_fuzz --first {number}"
            ) from error
    assert memory() - before < MEMORY_KB


KEPT = [path for path in sorted(CORPUS.glob("*")) if ".damaged" not in path.suffixes]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_what_was_found_once_stays_fixed(path: Path, tmp_path: Path) -> None:
    text = path.read_bytes()
    with no_hang():
        for number in range(50):
            session = check(text, random.Random(number), tmp_path)
        damaged = path.with_suffix(f".damaged{path.suffix}")
        if damaged.exists() and session is not None:
            before = opened(text, tmp_path)
            assert before is not None
            named = named_calls(before)  # while its file is still there
            after = opened(damaged.read_bytes(), tmp_path)
            assert after is not None
            check_pessimism(session.plan, named, after.plan)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.property.test_fuzz")
    options.add_argument("--cases", type=int, default=1)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    given = options.parse_args()
    start, found = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.first, given.first + given.cases):
            try:
                run(number, Path(folder))
            except Exception as error:
                found += 1
                given.keep.mkdir(exist_ok=True)
                seed, text, _ = text_of(number)
                given.keep.joinpath(f"{number}.jsonl").write_bytes(seeds()[seed])
                given.keep.joinpath(f"{number}.damaged.jsonl").write_bytes(text)
                sys.stdout.write(f"case {number}: {type(error).__name__}: {error}\n")
    took = time.monotonic() - start
    sys.stdout.write(f"{given.cases:,} cases in {took:,.0f} s, {found} findings, {memory():,} kB\n")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())

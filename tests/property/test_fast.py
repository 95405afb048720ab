"""The quick way through a native log gives what a full parse of every line gives, on every input.

Each input is read three times: line by line, the quick way, and either by types or with helpers that look
ahead from places taken at random. How many inputs there were is said at the end.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.benchmarks.logs import SHAPES, Writer
from tests.helpers import (
    Happening,
    dispatch,
    log,
    names,
    result,
    speaks,
    step_end,
    step_start,
    turn_end,
    turn_start,
)
from triage.contract import plan_row
from triage.fleet.find import candidates
from triage.log import ahead, fast, helpers, journal
from triage.log.source import Unreadable
from triage.session import open_session

SAMPLES = sorted((Path(__file__).parents[2] / "sample_logs").glob("*.jsonl"))
CASES = 100  # damaged versions of each sample
LARGEST = 20 << 20  # bytes of a log of the corpus that is read
ALL, NEVER = 0, 1 << 60  # from how many bytes lines are glanced at


inputs = 0


@pytest.fixture(autouse=True)
def _tell(count: Callable[[str, int], None]) -> Iterator[None]:
    before = inputs
    yield
    if inputs > before:
        count("logs that are read the same quickly and line by line", inputs - before)


class NeverQuick:
    """Stands in for the quick way: every line is parsed whole."""

    def __init__(self, scan, index, slow, see) -> None:
        self.slow, self.offsets = slow, index.offsets

    def feed(self, blocks) -> None:
        for lines, _ in blocks:
            for raw in lines:
                self.offsets.append(self.offsets[-1] + len(raw))
                self.slow(len(self.offsets) - 1, raw)

    def finish(self) -> None:
        pass


class Beside:
    """A helper that looks in this process: at its next piece, whenever it is heard."""

    def __init__(self, descriptor: int, pieces: Sequence[helpers.Piece]) -> None:
        self.descriptor, self.pieces = descriptor, list(pieces)
        self.left = {start: stop - start for start, stop in pieces}
        self.found: dict[int, helpers.Found] = {}
        self.done = 0

    @property
    def at(self) -> int:
        return self.pieces[0][0] if self.pieces else -1

    def hear(self, seconds: float = 0) -> None:
        if self.pieces:
            start, stop = self.pieces.pop(0)
            self.found[start] = helpers.Found(ahead.look(self.descriptor, start, stop).pack())
            self.done += self.left.pop(start)

    def stop(self) -> None:
        pass


def cut_anywhere(rng: random.Random) -> Callable[[int, int], list[helpers.Piece]]:
    """Stands in for `helpers.pieces_of`: two to four pieces that begin with any line."""

    def pieces_of(descriptor: int, size: int) -> list[helpers.Piece]:
        raw = os.pread(descriptor, size, 0)
        cuts = {raw.find(b"\n", rng.randrange(size)) + 1 for _ in range(rng.randint(1, 3))}
        return list(pairwise(sorted({0, *cuts, size})))

    return pieces_of


def helped(rng: random.Random) -> Callable[[int, Sequence[helpers.Piece]], list[Beside]]:
    """Stands in for `helpers.start`: one or two helpers, each with any pieces in any order."""

    def start(descriptor: int, pieces: Sequence[helpers.Piece]) -> list[Beside]:
        return [
            Beside(descriptor, rng.sample(pieces, rng.randint(1, len(pieces))))
            for _ in range(rng.randint(1, 2))
        ]

    return start


def seen(path: Path) -> tuple[object, ...]:
    """Everything that a reader of the log sees of it."""
    try:
        session = open_session(str(path))
    except Unreadable as error:
        return (error.code,)
    j = session.journal
    return (
        plan_row(session),
        session.last_time,
        bytes(j.codes),
        bytes(j.depths),
        list(j.mates),
        list(j.offsets),
    )


def compare(path: Path, glance_from: int, rng: random.Random) -> None:
    """Read a log line by line, the quick way, and by types or with helpers; all three see the same."""
    global inputs
    inputs += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "GLANCE_FROM", glance_from)
        quick = seen(path)
        if glance_from == ALL and path.stat().st_size:
            patch.setattr(journal, "HELP_FROM", 1)
            patch.setattr(helpers, "pieces_of", cut_anywhere(rng))
            patch.setattr(helpers, "start", helped(rng))
            with_help = seen(path)
        else:
            patch.setattr(fast, "TYPES_FROM", 0)
            with_help = seen(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "Quick", NeverQuick)
        whole = seen(path)
    assert quick == whole
    assert with_help == whole


def damage(lines: list[bytes], rng: random.Random, kinds: int = 14) -> list[bytes]:
    """One or two things that happen to real files, of the first `kinds` below."""
    lines = list(lines)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(lines))
        line = lines[at]
        cut = rng.randrange(len(line)) if line else 0
        kind = rng.randrange(kinds)
        if kind == 0:
            lines[at] = line[:cut] + lines[(at + 1) % len(lines)]  # torn, and glued to another
        elif kind == 1:
            lines[at] = line[:cut] + line  # torn, and written again
        elif kind == 2:
            lines[at] = line.replace(b"\n", b"")
        elif kind == 3:
            lines[at] = b"\xef\xbb\xbf" + line
        elif kind == 4:
            lines[at] = line[:cut] + b"\0" * rng.randrange(1, 9) + line[cut:]
        elif kind == 5:
            del lines[at : at + rng.randint(1, 3)]
        elif kind == 6:
            lines.insert(rng.randrange(len(lines) + 1), line)
        elif kind == 7:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], line
        elif kind == 8:
            lines[at] = line.replace(b'":', b'": ').replace(b',"', b', "')
        elif kind == 9:
            lines[at:] = [*lines[at:-1], lines[-1][:cut]]
        elif kind == 10:
            lines[at] = line.replace(b"\n", b"\r\n")
        elif kind == 11:
            lines[at] = line[:cut] + bytes([rng.randrange(256)]) + line[cut + 1 :]
        elif kind == 12:
            lines[at] = line[:cut] + line[cut + rng.randint(1, 400) :]
        else:
            lines[at] = line[:-3] + b',"tool_call_id":"x"}}\n'
        lines = lines or [b"\n"]
    return lines


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("glance_from", [NEVER, ALL], ids=["parsed", "glanced"])
def test_a_damaged_sample_reads_the_same_each_way(sample: Path, glance_from: int, tmp_path: Path) -> None:
    rng = random.Random(sample.name)
    lines = sample.read_bytes().splitlines(keepends=True)
    large = len(lines) > 1000
    path = tmp_path / "log.jsonl"
    for case in range(CASES // 30 if large else CASES):
        path.write_bytes(b"".join(damage(lines, rng) if case else lines))
        compare(path, glance_from, rng)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("glance_from", "kinds"), [(NEVER, 14), (ALL, 11)], ids=["parsed", "glanced"])
def test_a_generated_log_reads_the_same_each_way(
    shape: str, glance_from: int, kinds: int, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    for seed in range(CASES):
        rng = random.Random(seed)
        writer = Writer(shape, seed, odd=rng.choice((0.0, 0.02, 0.2)))
        lines = [line for _ in range(rng.randint(2, 8)) for line in writer.turn()]
        lines += writer.turn(crash=True)
        path.write_bytes(b"".join(damage(lines, rng, kinds) if seed % 4 else lines))
        compare(path, glance_from, rng)


TURN = [turn_start(1), step_start(), names(("call_1", "bash", {})), dispatch("call_1"), result("call_1")]
CLOSED = [*TURN, step_end(), turn_end()]


def numbered(*happenings: Happening) -> list[bytes]:
    return log(*happenings).splitlines(keepends=True)


def said(says: bytes) -> list[bytes]:
    """Two closed turns, of the first of which a result says this."""
    return [*TWO[:4], TWO[4].replace(b'"ok"', says), *TWO[5:]]


TWO = numbered(*CLOSED, *CLOSED)
HALF = b',"data"'
ODD = {
    "two records on a line and a blank line": [TWO[0][:-1] + TWO[1], b"\n", *TWO[2:]],
    "two records on a line and one on two": [
        TWO[0][:-1] + TWO[1], *TWO[2].replace(HALF, b"\n" + HALF).splitlines(keepends=True), *TWO[3:],
    ],
    "a byte that is no UTF-8": said(b'"\xff"'),
    "an id that is no UTF-8": [line.replace(b"call_1", b"call_\xff") for line in TWO],
    "no object": [b"[1]\n", *TWO],
    "carriage returns": [line.replace(b"\n", b"\r\n") for line in TWO],
    "a lone surrogate": said(b'"\\ud800"'),
    "a number beyond a double": said(b"1e999"),
    "an object that is left open": [*TWO[:4], TWO[4].replace(b"}}", b"}"), *TWO[5:]],
    "deeper than a parser goes": said(b"[" * 5000 + b"]" * 5000),
    "a seq that is no integer": [TWO[0].replace(b'"seq":0', b'"seq":0.0'), *TWO[1:]],
    "a seq that is true": [TWO[0], TWO[1].replace(b'"seq":1', b'"seq":true'), *TWO[2:]],
    "a seq below 0": [TWO[0].replace(b'"seq":0', b'"seq":-1'), *numbered(*CLOSED[1:])],
    "a seq twice": [TWO[0], TWO[1].replace(b'"seq":1', b'"seq":7,"seq":1'), *TWO[2:]],
    "an escaped key": [TWO[0].replace(b'"seq"', b'"s\\u0065q"'), *TWO[1:]],
    "a call that names no id": [line.replace(b'"id":"call_1",', b"") for line in TWO],
    "ids that are numbers": [line.replace(b'"call_1"', b"1") for line in TWO],
    "calls that are no list": [line.replace(b"[", b'{"x":[').replace(b"]", b"]}") for line in TWO],
    "calls that are an object": numbered(turn_start(1), speaks(tool_calls={}), turn_end()),
    "calls that are a text": numbered(turn_start(1), speaks(tool_calls=""), turn_end()),
    "no calls at all": numbered(turn_start(1), speaks(tool_calls=None), speaks(), turn_end()),
    "another type": numbered(*CLOSED, {"type": "heartbeat", "data": {}}, *CLOSED),
    "the same id in each turn": TWO,
    "a call before its message": numbered(turn_start(1), TURN[3], TURN[2], TURN[4], turn_end()),
    "a result before its message": numbered(turn_start(1), result("call_1"), *TURN[2:3], turn_end()),
    "a result twice": numbered(*TURN, result("call_1"), step_end(), turn_end()),
    "a call answered twice, another never": numbered(
        turn_start(1), names(("call_1", "bash", {}), ("call_2", "bash", {})), TURN[4], TURN[4], turn_end()
    ),
    "a result in the next turn": numbered(*TURN[:4], *CLOSED[5:], turn_start(2), TURN[4], turn_end()),
    "a call in the next turn": numbered(*CLOSED, turn_start(2), dispatch("call_1"), turn_end()),
    "a call named twice": numbered(*TURN[:3], *TURN[2:], step_end(), turn_end()),
    "a call named twice, by other names": numbered(
        *TURN[:3], names(("call_1", "python", {})), *TURN[3:], step_end(), turn_end()
    ),
    "a call named before its turn": numbered(TURN[2], turn_start(1), TURN[4], turn_end()),
    "a call named outside": numbered(TURN[2], *TURN[4:], turn_start(1), turn_end()),
    "a result that nothing named": numbered(turn_start(1), result("call_9"), turn_end()),
    "steps that nest": numbered(turn_start(1), step_start(), *TURN[1:], step_end(), step_end(), turn_end()),
    "a step that is left open": numbered(*TURN, turn_end(), *CLOSED),
    "a step end too many": numbered(*TURN, step_end(), step_end(), turn_end(), *CLOSED),
    "turns that nest": numbered(turn_start(1), *CLOSED, turn_end()),
    "a turn end too many": numbered(*CLOSED, turn_end(), *CLOSED),
    "a turn end without a time": [line.replace(b'_end","time"', b'_end","when"') for line in TWO],
    "an answer to an earlier turn": numbered(*TURN[:4], turn_end(), *CLOSED),
}  # fmt: skip


@pytest.mark.parametrize("glance_from", [NEVER, ALL], ids=["parsed", "glanced"])
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_lines_read_the_same_each_way(odd: str, long: bool, glance_from: int, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    text = b"".join(ODD[odd])
    path.write_bytes(text.replace(b'"ok"', b'"' + b"ok" * 1000 + b'"') if long else text)
    compare(path, glance_from, random.Random(odd))


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_damage_reads_the_same_each_way(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seed = data.draw(st.integers(0, 50))
    writer = Writer("chatty", seed, odd=0.1)
    raw = bytearray().join(line for _ in range(4) for line in writer.turn())
    ends = [at for at, byte in enumerate(raw) if byte == 10]
    edits = st.tuples(
        st.sampled_from(ends),
        st.integers(-30, 30),
        st.integers(0, 300),
        st.binary(max_size=12) | st.just(b"\n"),
    )
    for end, off, gone, new in sorted(data.draw(st.lists(edits, max_size=4)), reverse=True):
        at = max(0, end + off)
        raw[at : at + gone] = new
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    path.write_bytes(raw)
    compare(path, NEVER, random.Random(seed))


@pytest.mark.skipif("TRIAGE_CORPUS" not in os.environ, reason="TRIAGE_CORPUS names no folder of real logs")
def test_real_logs_read_the_same_each_way() -> None:
    for path in map(Path, candidates(os.environ["TRIAGE_CORPUS"])):
        if path.stat().st_size < LARGEST:
            for glance_from in (NEVER, ALL):
                compare(path, glance_from, random.Random(path.name))


def test_a_large_log_is_read_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "GLANCE_FROM", ALL)
    sample = next(sample for sample in SAMPLES if sample.stem == "large")
    slow = []
    index = journal._index

    def counted(journal, line, pieces):
        slow.append(line)
        return index(journal, line, pieces)

    monkeypatch.setattr(journal, "_index", counted)
    lines = open_session(str(sample)).journal.lines
    assert 0 < len(slow) < lines / 10


def written(path: Path, turns: int = 60) -> int:
    """Write a log of some turns and a crash. Returns how many bytes it has."""
    writer = Writer("mixed", odd=0.0)
    lines = [line for _ in range(turns) for line in writer.turn()]
    return path.write_bytes(b"".join([*lines, *writer.turn(crash=True)]))


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a log and however few the cores, other processes help and are waited for."""
    monkeypatch.setattr(fast, "GLANCE_FROM", ALL)
    monkeypatch.setattr(journal, "HELP_FROM", 1)
    monkeypatch.setattr(helpers, "PIECE", 1)
    monkeypatch.setattr(helpers, "_cores", lambda: 2)
    monkeypatch.setattr(helpers, "_aside", lambda: True)


def test_what_another_process_found_is_taken_over(
    tmp_path: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    written(path)
    taken = []
    take_over = fast.Quick.take_over
    monkeypatch.setattr(
        fast.Quick, "take_over", lambda *these: taken.append(len(these[3])) or take_over(*these)
    )
    with_help = seen(path)
    assert sum(taken) > len(with_help[2]) * 0.9, "but for the open turn the lines came from the others"
    monkeypatch.setattr(fast, "Quick", NeverQuick)
    monkeypatch.setattr(journal, "HELP_FROM", NEVER)
    assert seen(path) == with_help


def test_a_gap_in_the_seqs_where_another_process_began_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join([*TWO[:7], *numbered(*CLOSED, *CLOSED, *CLOSED)[14:]]))
    alone = seen(path)
    monkeypatch.setattr(fast, "GLANCE_FROM", ALL)
    monkeypatch.setattr(journal, "HELP_FROM", 1)
    cut = len(b"".join(TWO[:7]))
    monkeypatch.setattr(helpers, "pieces_of", lambda _, size: [(0, cut), (cut, size)])
    monkeypatch.setattr(helpers, "start", lambda descriptor, pieces: [Beside(descriptor, pieces)])
    assert seen(path) == alone


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true", "/nowhere/python", "/bin/cat"])
def test_a_process_that_comes_to_nothing_changes_nothing(
    program: str, tmp_path: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    written(path)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "HELP_FROM", NEVER)
        alone = seen(path)
    monkeypatch.setattr("sys.executable", program)
    assert seen(path) == alone


@pytest.mark.parametrize(
    "says",
    [
        "HEAD.pack(start, 0)",
        "HEAD.pack(start, 0) + HEAD.pack(start, 100) + b'x' * 20",
        "HEAD.pack(start, 0) + HEAD.pack(start, 20) + b'x' * 20",
        "HEAD.pack(start, len(marshal.dumps(5))) + marshal.dumps(5)",
        "HEAD.pack(start + 1, len(marshal.dumps(([], b'', b'')))) + marshal.dumps(([], b'', b''))",
        "b'x' * 40",
    ],
)
def test_a_process_that_is_killed_amid_its_answer_changes_nothing(
    says: str, tmp_path: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    written(path)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "HELP_FROM", NEVER)
        alone = seen(path)
    code = (
        "import marshal, os, struct, sys; HEAD, start = struct.Struct('QQ'), int(sys.argv[3]); os.write(1, "
    )
    monkeypatch.setattr(helpers, "_CODE", f"{code}{says}); os.abort()")
    assert seen(path) == alone


def test_what_a_process_that_ended_left_unread_is_not_said_to_be_read(
    tmp_path: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    size = written(path)
    monkeypatch.setattr("sys.executable", "/bin/false")
    told: list[int] = []
    open_session(str(path), lambda done, _: told.append(done))
    assert told[0] < size / 2 and told[-1] == size


def test_a_call_that_nobody_answered_keeps_later_turns_with_its_id_from_being_taken_over(
    tmp_path: Path,
) -> None:
    def turn(number: int, *calls: str, answered: bool = True) -> list[Happening]:
        named = [names(*((id, "bash", {}) for id in calls))]
        return [
            turn_start(number), *named, *(result(id, "done") for id in calls if answered),
            turn_end(turn=number),
        ]  # fmt: skip

    path = tmp_path / "log.jsonl"
    later = [happening for number in range(2, 9) for happening in turn(number, "call_0", f"call_{number}")]
    path.write_bytes(log(*turn(1, "call_0", answered=False), *later, result("call_0", "late")))
    for seed in range(20):
        compare(path, ALL, random.Random(seed))


def test_beside_a_screen_all_of_a_log_is_read_by_other_processes(tmp_path: Path, two_cores: None) -> None:
    path = tmp_path / "log.jsonl"
    size = written(path)
    told: list[tuple[int, int]] = []
    with ThreadPoolExecutor(1) as thread:
        aside = thread.submit(open_session, str(path), lambda *these: told.append(these)).result()
    assert told == sorted(told) and told[-1] == (size, size)
    assert aside.journal.lines == open_session(str(path)).journal.lines
    assert plan_row(aside) == plan_row(open_session(str(path)))


def test_a_reading_that_is_given_up_ends_its_processes(tmp_path: Path, two_cores: None) -> None:
    path = tmp_path / "log.jsonl"
    written(path)

    def stop(done: int, size: int) -> None:
        raise ZeroDivisionError

    before = set(psutil.Process().children())
    for read in (open_session, lambda *these: ThreadPoolExecutor(1).submit(open_session, *these).result()):
        with pytest.raises(ZeroDivisionError):
            read(str(path), stop)
        assert set(psutil.Process().children()) <= before


def test_a_log_that_is_cut_while_several_read_it_is_said_to_have_moved(
    tmp_path: Path, two_cores: None
) -> None:
    path = tmp_path / "log.jsonl"
    size = written(path, turns=400)
    with pytest.raises(Unreadable) as caught:
        open_session(str(path), lambda *_: os.truncate(path, size // 3))
    assert caught.value.code == "log_moved"


def test_damage_that_no_glance_sees_still_makes_a_log_doubtful(tmp_path: Path) -> None:
    """An unanswered call outside every turn, after a line of a closed turn with a control character in it."""
    turn = [turn_start(1), names(("call_1", "bash", {})), result("call_1", "text")]
    text = log(*turn, turn_end(turn=1), names(("call_2", "bash", {})))
    path = tmp_path / "log.jsonl"
    path.write_bytes(text.replace(b'"text"', b'"te\x01xt' + b"x" * 2000 + b'"'))
    compare(path, ALL, random.Random(1))
    assert open_session(str(path)).plan.status == "doubtful"

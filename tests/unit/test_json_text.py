"""JSON read exactly: what is whole, what merely stops too early, what breaks the grammar."""

import json
import math
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.log import json_text
from triage.log.json_text import (
    DEEPEST,
    Fragment,
    Malformed,
    Unfinished,
    dumps,
    parse,
    salvage,
    starts_with,
)

TEXTS = [
    '{"seq":0,"type":"tool_call","data":{"tool_call_id":"c1","arguments":{"a":[1,-2.5e3,true,null]}}}',
    ' { "a" : [ ] , "b" : { } , "c" : [ [ ] , { "d" : "e" } ] } ',
    '["", "\\u00e9\\n\\\\\\"\\/", "\\ud83d\\ude00", "\u2028", false, 0, -0, 1E+2, 0.5e-1]',
    '{"a":1,"a":2,"b":{"b":{"b":{}}}}',
]
SCALARS = ['"text"', '"\\ud800"', "true", "false", "null"]


@pytest.mark.parametrize("text", TEXTS + SCALARS)
def test_a_whole_text_is_read_as_json_reads_it(text: str) -> None:
    value, end = parse(text)
    assert value == json.loads(text)
    assert text[end:].strip() == ""


@pytest.mark.parametrize("text", TEXTS)
def test_every_prefix_of_a_whole_text_is_unfinished_and_none_is_an_error(text: str) -> None:
    for stop in range(len(text.rstrip())):
        with pytest.raises(Unfinished):
            parse(text[:stop])


@pytest.mark.parametrize("text", TEXTS)
def test_a_prefix_shows_what_was_read_of_it(text: str) -> None:
    whole = json.loads(text)
    for stop in range(len(text.rstrip())):
        with pytest.raises(Unfinished) as caught:
            parse(text[:stop])
        root = caught.value.root
        assert root is None or (type(root) is type(whole) and len(root) <= len(whole))
        if isinstance(root, dict):
            assert set(root) <= set(whole)


def test_an_unfinished_text_names_what_was_left_open_outermost_first() -> None:
    with pytest.raises(Unfinished) as caught:
        parse('{"a":[1,{"b":"x')
    root = caught.value.root
    assert root == {"a": [1, {}]}
    assert [
        piece is expected
        for piece, expected in zip(caught.value.open, (root, root["a"], root["a"][1]), strict=True)
    ] == [True] * 3


@pytest.mark.parametrize(
    "text", ["", " ", "\n", '"', '"\\', '"\\u', '"\\u12', "t", "fals", "n", "-", "1", "12.", "1e", "1e+"]
)
def test_a_text_that_may_go_on_is_unfinished(text: str) -> None:
    with pytest.raises(Unfinished) as caught:
        parse(text)
    assert caught.value.root is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("}", 0),
        ("x", 0),
        ("\0", 0),
        ("{]", 1),
        ("{1:2}", 1),
        ('{"a"}', 4),
        ('{"a" 1}', 5),
        ('{"a":}', 5),
        ('{"a":1,}', 7),
        ("[1,]", 3),
        ("[1 2]", 3),
        ("[01]", 2),
        ("[truu]", 1),
        ("[+1]", 1),
        ("[1.x]", 2),
        ('["\n"]', 2),
        ('["\t"]', 2),
        ('["\\x"]', 2),
        ('["\\u12g4"]', 6),
        ("[1}", 2),
        ('{"a":1]', 6),
    ],
)
def test_a_text_that_breaks_the_grammar_says_where(text: str, at: int) -> None:
    with pytest.raises(Malformed) as caught:
        parse(text)
    assert abs(caught.value.at - at) <= 1
    assert caught.value.at <= len(text)


def test_a_text_is_unfinished_up_to_where_it_breaks() -> None:
    for text in [
        '{"a":[1,2}',
        '{"seq":1,"type":"x{"seq":2}',
        '{"a":1]',
        '["\\u12g4"]',
        "[truu]",
        "[-x]",
        "[01]",
    ]:
        with pytest.raises(Malformed) as caught:
            parse(text)
        with pytest.raises(Unfinished):
            parse(text[: caught.value.at])


def test_a_value_ends_where_the_next_begins() -> None:
    text = '{"a":1}{"b":2} [3]'
    first, at = parse(text)
    second, then = parse(text, at)
    third, end = parse(text, then)
    assert (first, second, third, end) == ({"a": 1}, {"b": 2}, [3], len(text))


def test_the_last_of_two_equal_keys_wins() -> None:
    assert parse('{"a":1,"a":2}')[0] == {"a": 2}


def test_integers_beyond_64_bits_are_exact_and_absurd_ones_stay_text() -> None:
    assert parse("[18446744073709551616]")[0] == [2**64]
    assert parse(f"[{'9' * 4000}]")[0] == [int("9" * 4000)]
    assert parse(f"[{'9' * 5000}]")[0] == ["9" * 5000]


def test_numbers_that_only_python_writes_are_read() -> None:
    value = parse("[NaN,Infinity,-Infinity]")[0]
    assert math.isnan(value[0])
    assert value[1:] == [math.inf, -math.inf]


def test_lone_surrogates_and_bytes_that_are_no_utf_8_are_kept() -> None:
    assert parse('["\\ud800"]')[0] == ["\ud800"]
    text = b'["\xff\xc3"]'.decode("utf-8", "surrogateescape")
    assert parse(text)[0][0].encode("utf-8", "surrogateescape") == b"\xff\xc3"


def test_nesting_has_no_limit() -> None:
    depth = 100_000
    value, end = parse('{"a":' * depth + "1" + "}" * depth)
    assert end == 7 * depth + 1 - depth
    for _ in range(depth):
        value = value["a"]
    assert value == 1
    with pytest.raises(Unfinished):
        parse("[" * depth)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_json_writes_is_read_back(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps({"v": value}, ensure_ascii=ascii_only, indent=indent)
    assert parse(text) == ({"v": value}, len(text))


@given(st.text(alphabet='{}[]",:\\u0123456789.eE+-truefalsn \n\0\x1fé', max_size=30))
def test_it_accepts_what_json_accepts_and_nothing_else(text: str) -> None:
    try:
        expected = json.loads(f"[{text}]")
    except ValueError:
        expected = None
    try:
        value, end = parse(f"[{text}]")
        value = value if end == len(text) + 2 else None
    except (Unfinished, Malformed):
        value = None
    assert value == expected


# ---- writing


@given(json_values)
def test_what_is_written_is_one_line_that_reads_back(value: Any) -> None:
    text = dumps({"v": value})
    assert "\n" not in text
    assert json.loads(text) == {"v": value}


def test_what_json_can_not_say_is_written_all_the_same() -> None:
    deep: Any = "core"
    for _ in range(100_000):
        deep = [deep]
    text = dumps({"deep": deep, "lone": "\ud800", "big": 2**70, "nan": math.nan, "inf": -math.inf})
    back = json.loads(text)
    assert (back["lone"], back["big"], back["nan"], back["inf"]) == ("\ud800", 2**70, "nan", "-inf")
    assert str(DEEPEST) in text
    text.encode("ascii")


# ---- salvage: what of a damaged line can be read with certainty


NATIVE = starts_with(("seq", "type", "time", "data"))


def pieces(text: str) -> list[Mapping[str, Any] | Fragment]:
    return salvage(text, NATIVE, lambda value: isinstance(value.get("type"), str) and "data" in value)


def read_of(text: str) -> list[Any]:
    """What was read, in order: the seq of a record; a fragment's text."""
    return [text[p.start : p.stop] if isinstance(p, Fragment) else p.get("seq", p) for p in pieces(text)]


def record(seq: int, type: str = "user_message", **data: Any) -> str:
    return json.dumps({"seq": seq, "type": type, "data": data}, separators=(",", ":"))


A, B, C = record(1, content="first"), record(2, "tool_result", id="x"), record(3)


@pytest.mark.parametrize("between", ["", " ", "\t", "\r"])
def test_glued_records_are_each_read(between: str) -> None:
    assert read_of(between.join((A, B, C))) == [1, 2, 3]


@pytest.mark.parametrize("nuls", ["\0", "\0" * 5000], ids=["one", "many"])
def test_nul_runs_around_records_are_fragments(nuls: str) -> None:
    assert read_of(f"{nuls}{A}") == [nuls, 1]
    assert read_of(f"{A}{nuls}{B}") == [1, nuls, 2]
    assert read_of(f"{A}{nuls}") == [1, nuls]
    assert read_of(nuls) == [nuls]


def test_a_blank_line_is_nothing() -> None:
    assert pieces("") == pieces(" \t\r\n") == []


@pytest.mark.parametrize("value", ["[1,2]", '"text"', "null", "true"])
def test_a_value_that_is_no_object_is_a_fragment(value: str) -> None:
    assert read_of(f"{value} ") == [value]


def test_every_cut_of_a_record_is_a_fragment_and_shows_what_is_certain() -> None:
    for stop in range(1, len(B)):
        (fragment,) = pieces(B[:stop])
        assert isinstance(fragment, Fragment)
        assert (fragment.start, fragment.stop) == (0, stop)
        shown = fragment.record.get("type")
        assert shown == ("tool_result" if stop > B.index('"data"') - 2 else None)


def test_a_record_after_every_cut_is_read_only_where_the_cut_one_breaks_on_the_way() -> None:
    """Certain or not, decided here by the text alone: what a parser says of the prefix and the record."""
    certain = 0
    for stop in range(1, len(A)):
        text = A[:stop] + B
        try:
            json.loads(text)
            broken = False
        except json.JSONDecodeError as error:
            broken = "Unterminated" not in error.msg and error.pos < len(text)
        if broken:
            assert read_of(text) == [A[:stop], 2], text
            certain += 1
        else:
            assert 2 not in read_of(text), text
    assert certain > len(A) / 2


@pytest.mark.parametrize(
    "prefix", ['{"seq":1,"type":"x","data":', '{"seq":1,"data":{"v":[', '{"a":1,"b":[0,']
)
def test_a_record_that_may_be_a_part_of_the_cut_one_is_not_read(prefix: str) -> None:
    (fragment,) = pieces(prefix + B)
    assert isinstance(fragment, Fragment)
    assert fragment.record == {}  # its type can't be trusted: anything may hide in it


@pytest.mark.parametrize("prefix", ['{"seq":1,"type":"x","data":', '{"seq":1,"data":{"v":['])
def test_what_breaks_only_after_a_record_does_not_make_that_record_certain(prefix: str) -> None:
    assert read_of(prefix + B + "\0") == [prefix + B + "\0"]
    assert read_of(prefix + B + A) == [prefix + B, 1]  # the first may be a part of it, the second can't


def test_a_quoted_record_inside_a_broken_one_is_not_read() -> None:
    quoted = json.dumps({"seq": 1, "type": "tool_result", "data": {"content": B}})
    assert [type(piece) for piece in pieces(quoted[:40] + "\0" + quoted[40:])] == [Fragment]


def test_an_object_inside_a_broken_record_is_not_read() -> None:
    inside = '{"seq":1,"type":"x" \0 ,"data":{"nested":' + B + "}}"
    assert [type(piece) for piece in pieces(inside)] == [Fragment]


def test_a_mere_object_after_a_break_is_not_read_as_a_record() -> None:
    assert [type(piece) for piece in pieces('\0{"data":{"x":1}}')] == [Fragment]


def test_several_cuts_on_one_line_are_told_apart() -> None:
    text = A[:30] + B[:30] + C
    assert read_of(text)[-1] == 3
    assert "".join(piece for piece in read_of(text)[:-1]) == A[:30] + B[:30]


def test_the_fragment_before_a_record_shows_its_own_type_only_where_it_is_certain() -> None:
    first, _ = pieces(A[:-4] + B)
    assert isinstance(first, Fragment)
    assert first.record.get("type") == "user_message"
    hides, _ = pieces('{"seq":1,"type":"user_message","data":{"v":[{"seq":9,"type":"tool_call\0' + B)
    assert isinstance(hides, Fragment)
    assert hides.record == {}


@given(
    st.lists(
        st.sampled_from([A, B, C, A[:33], B[:50], "\0\0", "{", '{"seq":', "x", '"', "[", "]", "}}"]),
        max_size=8,
    )
)
def test_pieces_come_in_order_and_overlap_nowhere(parts: list[str]) -> None:
    text = "".join(parts)
    found = pieces(text)
    at = 0
    for piece in found:
        if isinstance(piece, Fragment):
            assert at <= piece.start < piece.stop <= len(text)
            at = piece.stop
    assert bool(found) == bool(text.strip(" \t\r\n"))


@given(st.text(alphabet='{"seq":typ,da}[]\\\0é0 \n', max_size=200))
def test_any_text_is_salvaged_without_an_error(text: str) -> None:
    pieces(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"seq":' * 9_000,
        '{"seq":"' * 9_000,
        "}" + '{"seq":[' * 9_000,
        ("\0" + A[:-2]) * 2_000,
        (A + "\0") * 2_000,
    ],
    ids=["nested", "strings", "behind a break", "cut records", "whole records"],
)
def test_the_work_on_a_hostile_line_is_a_few_times_its_length(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a naive search is quadratic. Counted in characters that were parsed, not in seconds."""
    parsed = 0

    def counting(text: str, at: int = 0) -> tuple[Any, int]:
        nonlocal parsed
        try:
            value, end = parse(text, at)
        except (Unfinished, Malformed) as error:
            parsed += (error.at if isinstance(error, Malformed) else len(text)) - at
            raise
        parsed += end - at
        return value, end

    monkeypatch.setattr(json_text, "parse", counting)
    pieces(text)
    assert 0 < parsed < 8 * len(text) + 100_000


def test_a_random_damage_never_makes_up_a_record() -> None:
    """Whatever is read of a damaged line was written as a record there."""
    rng = random.Random(7)
    written = [1, 2, 3]
    for _ in range(2000):
        text = list(A + B + C)
        for _ in range(rng.randint(1, 3)):
            text[rng.randrange(len(text))] = rng.choice('\0x{}"')
        for piece in pieces("".join(text)):
            if not isinstance(piece, Fragment) and isinstance(piece.get("seq"), int):
                assert piece["seq"] in written

"""A playbook says how to check a call. It is shown and copied, never run, and nothing breaks out of it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import event, plan_of, turn_start
from triage.playbook import BadPlaybook, fill, hint_for, load, parse
from triage.recovery.plan import Owed
from triage.report import markdown, plain
from triage.session import open_session
from triage.words import hint_in_words


def owed_call(arguments: object = None, id: str = "c", name: str = "bash") -> Owed:
    """An owed call with these arguments."""
    calls = [{"id": id, "name": name, "arguments": arguments}]
    return plan_of(turn_start(1), event("assistant_message", tool_calls=calls)).owed[0]


OWED = owed_call()
SAMPLE = Path(__file__).parents[2] / "sample_logs" / "crashed-dispatched.jsonl"


def test_the_first_entry_whose_pattern_fits_the_tool_gives_the_hint() -> None:
    entries = parse(
        {"tool": [{"name": "http_*", "note": "first"}, {"name": "http_post", "note": "second"}]}, "f"
    )
    hint = hint_for(owed_call(name="http_post"), entries)
    assert hint is not None and hint.note == "first"
    assert hint_for(owed_call(name="bash"), entries) is None


def test_arguments_are_filled_in_by_name_and_by_path_and_what_is_missing_stays() -> None:
    owed = owed_call(arguments={"url": "https://x", "body": {"id": 7}}, id="c1", name="http_post")
    assert (
        fill("check {url} {body.id} {id} {tool} {nothing}", owed)
        == "check https://x 7 c1 http_post {nothing}"
    )


def test_what_a_call_has_no_argument_for_is_said_beside_the_check() -> None:
    entries = parse({"tool": [{"name": "bash", "check": "ls {path} {nope} {a.b} {nope} {id}"}]}, "f")
    hint = hint_for(owed_call(arguments={"path": "/srv"}), entries)
    assert hint is not None and hint.missing == ("nope", "a.b")
    assert hint_in_words(hint) == [
        "check: ls /srv {nope} {a.b} {nope} c",
        "this call has no argument for {nope}, {a.b}: fill it in yourself",
    ]


def test_arguments_that_are_a_json_string_are_read_too() -> None:
    assert fill("ls {path}", owed_call(arguments='{"path": "/a b"}')) == "ls '/a b'"


@given(st.text())
def test_whatever_an_argument_holds_it_stays_one_word_of_the_command(text: str) -> None:
    command = fill("printf %s {value}", OWED._replace(arguments={"value": text}))
    assert "\n" not in command and "\x1b" not in command
    if text.isprintable():
        assert shlex.split(command) == ["printf", "%s", text]


@pytest.mark.parametrize(
    "text", ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "\n touch pwned\n", "\x1b[201~"]
)
def test_a_hostile_argument_pasted_into_a_shell_is_only_text(text: str, tmp_path: Path) -> None:
    command = fill("printf %s {value}", owed_call(arguments={"value": text}))
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == text.encode()
    assert list(tmp_path.iterdir()) == []


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_in_a_url_an_argument_is_percent_encoded_whole(text: str) -> None:
    url = fill("https://x/{value}?q=1", OWED._replace(arguments={"value": text}))
    inside = url.removeprefix("https://x/").removesuffix("?q=1")
    assert not set(inside) & set("/?#&<>\"' ")
    assert unquote(inside) == text


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"tols": []}, "unknown key 'tols'"),
        ({"tool": {"name": "x"}}, "two brackets"),
        ({"tool": [{"check": "x"}]}, "needs a name"),
        ({"tool": [{"name": "x", "chek": "y"}]}, "unknown key 'chek'"),
        ({"tool": [{"name": "x", "read_only": "yes"}]}, "read_only must be a bool"),
        ({"tool": [{"name": "x", "check": "curl '{url}'"}]}, "without quotes"),
        ({"tool": [{"name": "x", "check": 'a "b {url}"'}]}, "without quotes"),
    ],
)
def test_a_mistake_is_one_clear_line_that_names_the_file(table: dict[str, object], says: str) -> None:
    with pytest.raises(BadPlaybook) as caught:
        parse(table, "triage.toml")
    assert says in str(caught.value) and "triage.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_the_playbook_beside_the_log_comes_before_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "triage").mkdir(parents=True)
    (tmp_path / "config" / "triage" / "triage.toml").write_text('[[tool]]\nname = "x"\nnote = "user"\n')
    (tmp_path / "triage.toml").write_text('[[tool]]\nname = "x"\nnote = "beside"\n')
    assert [entry.note for entry in load(str(tmp_path / "log.jsonl"))] == ["beside", "user"]


def test_the_hint_stands_beside_the_call_and_changes_no_risk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(SAMPLE.read_bytes())
    before = open_session(str(log)).plan
    playbook = (
        '[[tool]]\nname = "http_post"\ncheck = "curl -s {url}"\nnote = "look twice"\nread_only = true\n'
    )
    (tmp_path / "triage.toml").write_text(playbook)
    session = open_session(str(log))
    plain(session)
    text = capsys.readouterr().out
    assert "check: curl -s https://pay.example/v1/refunds" in text and "playbook: look twice" in text
    assert "- playbook: look twice" in markdown(session)
    assert session.plan == before


def test_a_broken_playbook_is_said_and_the_report_still_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(SAMPLE.read_bytes())
    (tmp_path / "triage.toml").write_text("[[tool]\n")
    plain(open_session(str(log)))
    assert "no valid TOML" in capsys.readouterr().out

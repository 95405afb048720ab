"""`--redact` takes secrets out of what leaves the machine, and changes nothing else, least of all a log."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.child import fork, triage
from tests.faults.converge import SAMPLES, WITH_PLAN, acks
from triage.redact import GONE, redact, redact_text
from triage.session import open_session

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
# Put together here, so that no scanner takes this file for a leak.
TOKENS = {
    "AWS key id": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "0123456789abcdef" * 2,
    "GitHub fine-grained token": "github_pat_" + "11ABCDEFG0123456789_abcdefghij",
    "GitLab token": "glpat-" + "abcdefghij0123456789",
    "Anthropic key": "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz",
    "OpenAI key": "sk-proj-" + "abcdefghijklmnopqrstuvwxyz",
    "Stripe key": "sk_live_" + "abcdefghijklmnop1234",
    "Slack token": "xoxb-" + "1234567890-abcdefghij",
    "Google key": "AIza" + "SyAabcdefghijklmnopqrstuvwxyz012345",
    "npm token": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "PyPI token": "pypi-" + "AgEIcHlwaS5vcmcabcdefghijklmnopqrstuvwxyz012",
    "SendGrid key": "SG." + "abcdefghijklmnop1234" + "." + "abcdefghijklmnop1234",
    "Hugging Face token": "hf_" + "abcdefghijklmnopqrstuvwxyz012345",
    "JSON web token": JWT,
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----",
    "private key without an end": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA",
}
SECRET_KEYS = [
    *("password", "passwd", "db_password", "PGPASSWORD", "secret", "client_secret", "client-secret"),
    *("api_key", "apiKey", "x-api-key", "OPENAI_API_KEY", "accessKey", "private_key", "Authorization"),
    *("cookie", "Set-Cookie", "token", "access_token", "refreshToken", "sessionToken", "credentials"),
]
PLAIN_KEYS = [
    "tokens",
    "max_tokens",
    "input_tokens",
    "author",
    "keyboard",
    "secretary",
    "passwordless",
    "key",
]
SECRET = "hunter2-and-more"


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_well_known_token_is_taken_out_wherever_it_stands(token: str) -> None:
    for text in (token, f"before {token} after", f"({token})", f"x={token}", f"['{token}']"):
        assert token not in redact_text(text) and GONE in redact_text(text)
    assert redact_text(f"before {token.partition(chr(10))[0]} after").startswith("before ")


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_what_stands_under_a_secret_name_is_taken_out_of_values_and_of_text(key: str) -> None:
    assert redact({key: SECRET, "b": 1}) == {key: GONE, "b": 1}
    assert redact({key: 12345}) == {key: GONE}
    assert redact({key: {"a": [SECRET, 7], "b": None}}) == {key: {"a": [GONE, GONE], "b": None}}
    for text in (
        f"{key}={SECRET}",
        f"{key}: {SECRET}",
        f'"{key}": "{SECRET}"',
        f'{{\\"{key}\\":\\"{SECRET}\\"}}',
    ):
        assert SECRET not in redact_text(text), text


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_what_stands_under_a_name_that_only_looks_secret_stays(key: str) -> None:
    assert redact({key: "a value", "n": {key: 5}}) == {key: "a value", "n": {key: 5}}
    assert redact_text(f"{key}=value {key}: 5") == f"{key}=value {key}: 5"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("curl https://me:pw@host/x", f"curl https://me:{GONE}@host/x"),
        ("psql postgres://u:p@ss@db/x", f"psql postgres://u:{GONE}@db/x"),
        ("Authorization: Bearer abcdefghijkl", f"Authorization: {GONE}"),
        ("Authorization: Token abcdefghijkl", f"Authorization: {GONE}"),
        ("-H 'Authorization: Basic dXNlcjpwYXNz' -v", f"-H 'Authorization: {GONE}' -v"),
        ("Cookie: a=b; session=c", f"Cookie: {GONE}"),
        ("use bearer abcdefghijkl here", f"use bearer {GONE} here"),
        ("login --password hunter2 --user me", f"login --password {GONE} --user me"),
        ("login --api-key=abc", f"login --api-key={GONE}"),
        ('password: "two words" next', f'password: "{GONE}" next'),
        ('"auth": {"user": "me", "pin": "1"} next', f'"auth": {GONE} next'),
        ("the token is in the vault", "the token is in the vault"),
        ("bearer of news", "bearer of news"),
    ],
)
def test_a_text_keeps_all_but_its_secret(text: str, expected: str) -> None:
    assert redact_text(text) == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(SECRET_KEYS + PLAIN_KEYS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def shape(value: Any) -> Any:
    """Keys and lengths; each scalar is alike."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else "scalar"


@given(values)
def test_any_value_keeps_its_shape(value: Any) -> None:
    fresh = redact(value)
    assert shape(fresh) == shape(value)
    assert redact(fresh) == fresh, "nothing is left for a second time"


@given(values)
def test_a_text_that_is_json_stays_json_of_the_same_shape(value: Any) -> None:
    fresh = redact({"arguments": json.dumps(value)})["arguments"]
    if isinstance(value, dict | list):
        assert shape(json.loads(fresh)) == shape(value)


pieces = st.sampled_from(
    [
        *TOKENS.values(),
        *SECRET_KEYS,
        "=",
        ": ",
        '"',
        "'",
        "\\",
        " ",
        "\n",
        "{",
        "}",
        "[",
        "]",
        "://a:b@",
        "eyJ",
        "-",
    ]
)


@given(st.lists(pieces | st.text(max_size=3)).map("".join))
def test_any_text_is_redacted_without_an_error_and_keeps_no_token(text: str) -> None:
    fresh = redact_text(text)
    assert redact({"a": [text]})["a"]
    for name in ("AWS key id", "GitHub token", "Hugging Face token"):
        assert f" {TOKENS[name]} " not in fresh


@pytest.mark.parametrize(
    "text",
    [
        *("-eyJ", "eyJ.", "SG.", "sk-", "token=", 'token="', 'token=\\"', "token  ", "://a:", "bearer "),
        *("-----BEGIN ", "-----BEGIN RSA PRIVATE KEY-----", "--token ", "cookie:", "[", "{", "aA", "_", "\\"),
    ],
)
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    """200 kB in far less than the ten seconds of CPU after which the child would be killed."""

    def run() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        redact({"a": text * (200_000 // len(text)), text * (200_000 // len(text)): "b"})
        return 0

    assert fork(run).wait().code == 0


def test_arguments_that_are_nested_too_deep_for_recursion_are_redacted() -> None:
    value: Any = {"password": SECRET}
    for _ in range(5000):
        value = [value]
    fresh = redact(value)
    for _ in range(5000):
        (fresh,) = fresh
    assert fresh == {"password": GONE}


# ---- the plan, and the log


@pytest.mark.parametrize("name", WITH_PLAN)
def test_a_redacted_plan_is_the_plan_in_the_same_shape(name: str) -> None:
    bare = json.loads(triage("plan", SAMPLES / name, "--json").out)
    fresh = json.loads(triage("plan", SAMPLES / name, "--json", "--redact").out)
    assert shape(fresh) == shape(bare)
    for key in ("schema", "log", "base", "status", "open_turns", "boundary"):
        assert fresh[key] == bare[key]
    for line in fresh["lines"]:
        json.loads(line)


@pytest.fixture
def secretive(tmp_path: Path) -> Path:
    """A crashed log with secrets in it."""
    log = tmp_path / "secretive.jsonl"
    calls = [
        {"id": "a", "name": "login", "arguments": {"password": SECRET, "url": f"https://me:{SECRET}@x/"}}
    ]
    events = [
        ("turn_start", {"turn": 1}),
        ("assistant_message", {"content": f"I use {TOKENS['GitHub token']}", "tool_calls": calls}),
        ("tool_call", {"tool_call_id": "a", "name": "login"}),
    ]
    rows = [{"seq": seq, "type": type, "data": data} for seq, (type, data) in enumerate(events)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return log


def test_no_secret_is_in_what_is_printed_redacted(secretive: Path) -> None:
    for command in (["plan", "--json"], ["plan"], ["--plain"]):
        bare = triage(*command, secretive).out
        assert SECRET in bare, "so that its absence means something"
        fresh = triage(*command, "--redact", secretive).out
        assert SECRET not in fresh and TOKENS["GitHub token"] not in fresh and GONE in fresh


def test_a_redacted_plan_can_be_applied(secretive: Path) -> None:
    plan = secretive.with_name("plan.json")
    plan.write_text(triage("plan", secretive, "--json", "--redact").out)
    assert triage("apply", secretive, "--plan", plan, "--ack", "a=ran").code == 0
    assert triage("apply", secretive, "--plan", plan).code == 0, "it has landed"


def test_what_is_appended_is_never_redacted(secretive: Path) -> None:
    session = open_session(str(secretive))
    note = f"rotated {TOKENS['GitHub token']}"
    before = secretive.read_bytes()
    assert triage("apply", secretive, "--ack", f"a=ran:{note}").code == 0
    text = secretive.read_bytes()
    assert text.startswith(before)
    assert note.encode() in text[len(before) :] and GONE.encode() not in text
    assert acks(session.plan)

"""The commands, from outside: what they print, their exit codes, and what they never do."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.e2e.conftest import SAMPLES, Run, Sample
from tests.e2e.steps import appended
from tests.e2e.terminal import COMMAND, environment
from tests.helpers import dispatch, log, names, turn_start

SMALL = sorted(path.name for path in SAMPLES.glob("*.jsonl") if path.stat().st_size < 100_000)
CODES = {"clean": 0, "crashed": 1, "doubtful": 1}

# ---- the contract of `plan --json`

Text, Number, Flag, Null = str, int, bool, type(None)
ROW: dict[str, Any] = {
    "schema": Text,
    "log": {"path": Text, "format": Text, "bytes": Number, "events": Number, "next_seq": Number},
    "base": dict,
    "status": Text,
    "interrupted": Flag,
    "open_turns": [{"seq": Number, "line": Number, "turn": (Number, Null)}],
    "boundary": {
        "name": Text,
        "line": (Number, Null),
        "round": (Number, Null),
        "request_id": (Text, Null),
        "output_tokens_reserved": (Number, Null),
        "input_tokens_left": (Number, Null),
    },
    "verdict": (dict, Null),
    "owed": [
        {
            "key": Text,
            "tool_call_id": Text,
            "name": (Text, Null),
            "arguments": object,
            "risk": Text,
            "rule": (Number, Text),
            "needs_acknowledgement": Flag,
            "turn_seq": Number,
            "step_seq": (Number, Null),
            "evidence": [{"line": Number, "says": Text}],
            "trace": [{"rule": (Number, Text), "asked": Flag, "held": Flag, "lines": [Number]}],
        }
    ],
    "left": [{"tool_call_id": Text, "name": (Text, Null), "why": Text, "line": Number}],
    "repairs": [{"type": Text, "data": dict}],
    "lines": [Text],
    "refusal": (dict, Null),
    "anomalies": [{"code": Text, "line": (Number, Null), "says": Text}],
}


def lacks(value: Any, shape: Any, where: str = "row") -> list[str]:
    """Where a value does not have the fields and types of a shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where} is {value!r}"]
        missing = [f"{where}.{name} is missing" for name in shape if name not in value]
        inner = [lacks(value[name], shape[name], f"{where}.{name}") for name in shape if name in value]
        return [*missing, *(fault for faults in inner for fault in faults)]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is {value!r}"]
        return [fault for n, entry in enumerate(value) for fault in lacks(entry, shape[0], f"{where}[{n}]")]
    types = shape if isinstance(shape, tuple) else (shape,)
    wrong = not isinstance(value, types) or (isinstance(value, bool) and not {bool, object} & set(types))
    return [f"{where} is {value!r}"] if wrong else []


def test_plan_json_has_every_field_of_the_contract_in_the_order_of_the_logs(run: Run) -> None:
    done = run("plan", "--json", *(SAMPLES / name for name in SMALL))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["log"]["path"] for row in rows] == [str(SAMPLES / name) for name in SMALL]
    assert done.returncode == 1
    assert done.stderr == ""
    seen: set[str] = set()
    for row in rows:
        assert lacks(row, ROW) == []
        assert row["schema"] == "triage.plan/1"
        assert row["interrupted"] == bool(row["open_turns"])
        assert len(row["lines"]) == len(row["repairs"])
        assert row["status"] in CODES
        assert row["log"]["bytes"] == os.path.getsize(row["log"]["path"])
        for owed in row["owed"]:
            assert owed["rule"] in (1, 2, 3, 4, "W1", "W2")
            assert owed["risk"] in ("tool_not_started", "tool_outcome_unknown")
            needs = owed["risk"] == "tool_outcome_unknown" or owed["rule"] == "W1"
            assert owed["needs_acknowledgement"] == needs
            assert [asked["held"] for asked in owed["trace"] if asked["rule"] == owed["rule"]] == [True]
        seen |= {row["status"], *(owed["rule"] for owed in row["owed"] if isinstance(owed["rule"], str))}
    assert seen == {"clean", "crashed", "doubtful", "W1", "W2"}


@pytest.mark.parametrize("name", ["clean.jsonl", "crashed-dispatched.jsonl", "doubtful.jsonl"])
def test_the_exit_code_is_that_of_the_status(name: str, run: Run) -> None:
    row = json.loads(run("plan", "--json", SAMPLES / name).stdout)
    for command in (["plan"], ["plan", "--json"], ["--plain"], []):
        assert run(*command, SAMPLES / name).returncode == CODES[row["status"]], command


def test_of_several_logs_the_highest_exit_code_counts(run: Run, tmp_path: Path) -> None:
    clean, crashed, gone = SAMPLES / "clean.jsonl", SAMPLES / "crashed-dispatched.jsonl", tmp_path / "gone"
    assert run("plan", clean, clean).returncode == 0
    assert run("plan", clean, crashed, clean).returncode == 1
    done = run("plan", "--json", gone, crashed, clean)
    assert done.returncode == 3
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["log"]["path"] for row in rows] == [str(gone), str(crashed), str(clean)]
    assert rows[0]["schema"] == "triage.plan/1"
    assert set(rows[0]) == {"schema", "log", "error"}
    assert set(rows[0]["error"]) == {"code", "says"}
    done = run("--plain", crashed, clean, gone)
    assert done.returncode == 3
    assert "✖ CRASHED" in done.stdout
    assert "✓ CLEAN" in done.stdout
    assert done.stderr.count("\n") == 1


def test_an_output_that_has_no_glyphs_still_says_what_is_owed(run: Run) -> None:
    log = SAMPLES / "crashed-dispatched.jsonl"
    for command in (["plan"], ["--plain"], ["scan"]):
        done = run(*command, log, env={"PYTHONIOENCODING": "ascii"})
        assert done.returncode == 1 and "CRASHED" in done.stdout and "fault" not in done.stderr


# ---- apply


def test_apply_without_every_answer_is_refused_names_the_ids_and_writes_nothing(
    sample: Sample, run: Run
) -> None:
    log = sample("double-started.jsonl")
    before, was = log.read_bytes(), os.stat(log)
    for acks, missing in (([], ["n5", "n2"]), (["--ack", "n5=ran"], ["n2"])):
        done = run("apply", log, *acks)
        assert done.returncode == 4
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert all(id in done.stderr for id in missing)
        done = run("apply", log, *acks, "--json")
        refusal = json.loads(done.stdout)
        assert done.returncode == 4
        assert refusal["schema"] == "triage.refusal/1"
        assert refusal["missing"] == refusal["ids"] == missing
        assert (refusal["code"], refusal["retryable"]) == ("unacknowledged", True)
    assert log.read_bytes() == before
    assert os.stat(log).st_mtime_ns == was.st_mtime_ns


def test_what_apply_asks_for_can_be_pasted_even_for_an_id_like_an_option(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(turn_start(1), names(("--help", "bash", {})), dispatch("--help")))
    asked = run("apply", path).stderr.strip().rpartition("then add ")[2]
    assert run("apply", path, *shlex.split(asked.replace("FINDING", "ran"))).returncode == 0
    assert run("plan", path).returncode == 0


def test_apply_with_every_answer_appends_and_says_what(sample: Sample, run: Run) -> None:
    log = sample("double-started.jsonl")
    before = log.read_bytes()
    planned = json.loads(run("plan", "--json", log).stdout)["repairs"]
    done = run(
        "apply",
        log,
        "--ack",
        "n5=ran:it is = in the ledger: yes",
        "--ack=n2=did-not-run",
        "--operator",
        "ann",
    )
    assert done.returncode == 0, done.stderr
    assert "n5" in done.stdout
    records = appended(log, before)
    assert [record["type"] for record in records] == [repair["type"] for repair in planned]
    found = {
        r["data"]["tool_call_id"]: r["data"]
        for r in records
        if "acknowledged" in r["data"].get("metadata", {})
    }
    assert set(found) == {"n5", "n2"}
    note = found["n5"]["metadata"]["acknowledged"]
    assert (note["finding"], note["note"], note["operator"]) == ("ran", "it is = in the ledger: yes", "ann")
    assert "it is = in the ledger: yes" in found["n5"]["content"]
    again = run("apply", log, "--ack", "n5=ran", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["appended"] == []
    assert len(appended(log, before)) == len(records)
    assert run("plan", log).returncode == 0


def test_apply_json_names_each_appended_line(sample: Sample, run: Run) -> None:
    log = sample("crashed-dispatched.jsonl")
    size = os.path.getsize(log)
    row = json.loads(run("apply", log, "--ack", "call_0a92=could-not-tell", "--json").stdout)
    assert row["schema"] == "triage.applied/1"
    assert row["path"] == str(log)
    assert (row["bytes_before"], row["bytes_after"]) == (size, os.path.getsize(log))
    kinds = [(e["line"], e["type"], e["tool_call_id"], e["risk"], e["finding"]) for e in row["appended"]]
    assert kinds == [
        (91, "tool_result", "call_0a91", "tool_not_started", None),
        (92, "tool_result", "call_0a92", "tool_outcome_unknown", "could-not-tell"),
        (93, "tool_result", "call_0a93", "tool_not_started", None),
        (94, "turn_end", None, None, None),
    ]


@pytest.mark.parametrize(
    "acks",
    [
        ["--ack", "call_0a99=ran"],
        ["--ack", "call_0a92=maybe"],
        ["--ack", "call_0a92=deny"],
        ["--ack", "call_0a92"],
        ["--ack", "=ran"],
        ["--ack", ""],
        ["--ack"],
        ["--ack", "call_0a92=ran", "--ack", "call_0a92=did-not-run"],
        ["--ack-all"],
        ["--plan", "/no/such/plan"],
        ["--no-such-option"],
    ],
    ids=lambda acks: " ".join(acks),
)
def test_an_answer_that_fits_nothing_is_wrong_usage(acks: list[str], sample: Sample, run: Run) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    done = run("apply", log, *acks)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    assert log.read_bytes() == before


def test_a_plan_is_bound_to_the_log_it_was_made_from(sample: Sample, run: Run, tmp_path: Path) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    plan = tmp_path / "plan.json"
    plan.write_text(run("plan", "--json", log).stdout)
    remark = b'{"seq":90,"type":"user_message","time":null,"data":{"content":"still there?"}}\n'
    with open(log, "ab") as file:
        file.write(remark)
    size = len(before)
    for acks in (["--ack", "call_0a92=ran"], ["--ack", "nonsense=ran"], []):  # that it moved is asked first
        done = run("apply", log, *acks, "--plan", plan, "--json")
        refusal = json.loads(done.stdout)
        assert done.returncode == 4
        assert refusal["code"] == "log_moved"
        assert (
            f"from {size:,} bytes, last seq 89, to {size + len(remark):,} bytes, last seq 90"
            in refusal["says"]
        )
        assert refusal["says"] in done.stderr
        assert log.read_bytes() == before + remark
    plan.write_text(run("plan", "--json", log).stdout)
    done = run("apply", log, "--ack", "call_0a92=ran", "--plan", plan)
    assert done.returncode == 0, done.stderr
    assert len(appended(log, before + remark)) == 4
    done = run("apply", log, "--ack", "call_0a92=ran", "--plan", plan)  # all of it has landed already
    assert done.returncode == 0
    assert len(appended(log, before + remark)) == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"base":{}}', "no json", '{"base":{"size":"x"}}'])
def test_a_file_that_holds_no_plan_is_wrong_usage(
    text: str, sample: Sample, run: Run, tmp_path: Path
) -> None:
    log = sample("crashed-dispatched.jsonl")
    before = log.read_bytes()
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    done = run("apply", log, "--ack", "call_0a92=ran", "--plan", plan)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert log.read_bytes() == before


# ---- what can't be read


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line on stderr of a command that failed as it should."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("triage: ")
    assert "Traceback" not in done.stderr
    return done.stderr


COMMANDS = (["plan", "--json"], ["--plain"], ["apply"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_no_readable_log_gets_one_clear_line_and_exit_3(
    command: list[str], run: Run, tmp_path: Path
) -> None:
    folder, fifo, binary = tmp_path / "folder", tmp_path / "fifo", tmp_path / "binary"
    folder.mkdir()
    os.mkfifo(fifo)
    binary.write_bytes(bytes(range(256)) * 64)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (
        tmp_path / "gone",
        folder,
        fifo,
        binary,
        loop,
        "/dev/null",
        "/dev/zero",
        "/proc/self/mem",
        "x" * 5000,
    ):
        started = time.monotonic()
        says = one_line(run(*command, path), 3)
        assert time.monotonic() - started < 20
        assert str(path)[:40] in says


@pytest.mark.parametrize("command", [["plan"], ["--plain"], ["apply"], ["history"]], ids=" ".join)
def test_an_empty_file_is_a_clean_log_and_said_to_be_empty(
    command: list[str], run: Run, tmp_path: Path
) -> None:
    log = tmp_path / "empty.jsonl"
    log.touch()
    done = run(*command, log)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert ("is empty" in done.stderr) or command == ["apply"]
    row = json.loads(run("plan", "--json", log).stdout)
    assert (row["status"], row["log"]["format"], row["log"]["events"]) == ("clean", "native", 0)
    assert log.read_bytes() == b""


AS_NOBODY = """
import contextlib, io, os, sys
from triage.cli import main
known, *arguments = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for words in (["--plain"], ["plan"], ["history"], ["apply"], ["apply", "--ack", "call_0a92=ran"]):
        main([*words, known])  # whatever a command imports is there before the rights go
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(main(arguments))
"""


def test_a_log_without_permission_gets_one_clear_line_and_the_right_exit_code(home: Path) -> None:
    text = (SAMPLES / "crashed-dispatched.jsonl").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # others may look into it; not so into a folder of this test run
        log = Path(folder, "log.jsonl")
        log.write_bytes(text)
        known = Path(folder, "known.jsonl")

        def nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
            known.write_bytes(text)
            words = [sys.executable, "-c", AS_NOBODY, str(known), *arguments]
            return subprocess.run(
                words, env=environment(home), cwd="/", capture_output=True, text=True, timeout=60, check=False
            )

        log.chmod(0o444)
        assert nobody("plan", str(log)).returncode == 1
        refused = nobody("apply", str(log), "--ack", "call_0a92=ran")
        assert "can't be opened for appending" in one_line(refused, 4)
        log.chmod(0o000)
        for command in ("plan", "--plain", "history", "apply"):
            assert "may not be read" in one_line(nobody(command, str(log)), 3)
        log.chmod(0o644)
        assert log.read_bytes() == text


def test_a_line_of_fifty_megabytes_is_read_and_planned(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "long.jsonl"
    text = (SAMPLES / "crashed-dispatched.jsonl").read_bytes()
    long = b'{"seq":90,"type":"user_message","time":null,"data":{"content":"' + b"x" * 50_000_000 + b'"}}\n'
    log.write_bytes(text + long)
    started = time.monotonic()
    done = run("plan", "--json", log)
    assert done.returncode == 1
    assert done.stderr == ""
    row = json.loads(done.stdout)
    assert len(row["owed"]) == 3
    assert row["log"]["next_seq"] == 91
    log.write_bytes(text + long[:-4])  # and torn
    assert [a["code"] for a in json.loads(run("plan", "--json", log).stdout)["anomalies"]] == ["torn_tail"]
    assert time.monotonic() - started < 30


# ---- how it prints


def test_the_report_is_readable_at_80_columns_and_in_a_pipe(run: Run) -> None:
    for command in (["--plain"], ["plan"], []):
        done = run(*command, *SMALL, cwd=SAMPLES)
        assert done.returncode == 1
        assert done.stdout.count("✖ CRASHED") + done.stdout.count("✓ CLEAN") >= len(SMALL) - 1
        for line in done.stdout.splitlines():
            assert line == line.rstrip(), line
            unbreakable = [word for word in line.split() if cell_len(word) > 70]
            pasted = line.startswith("  triage apply ")  # a command stays whole
            assert cell_len(line) <= 80 or unbreakable or pasted, line
            assert line.isascii() or all(char.isprintable() for char in line)


def test_a_command_that_is_to_be_pasted_stays_on_one_line(run: Run) -> None:
    text = run("--plain", "hostile.jsonl", "double-started.jsonl", cwd=SAMPLES).stdout
    commands = [line for line in text.splitlines() if line.startswith("  triage apply ")]
    assert [command.count("--ack=") for command in commands] == [3, 2]


def test_a_reader_that_leaves_and_a_closed_stdout_are_no_faults(run: Run, home: Path) -> None:
    logs = [str(SAMPLES / name) for name in SMALL]
    for command in (["plan", "--json"], ["--plain"]):
        with subprocess.Popen(
            [COMMAND, *command, *logs], env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(10)
            process.stdout.close()
            says = process.stderr.read()
            assert process.wait(60) in (0, 1)
            assert says == b""
        for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-", ">/dev/full"):
            words = ["sh", "-c", f'"$0" "$@" {closed}', COMMAND, *command, str(SAMPLES / "doubtful.jsonl")]
            done = subprocess.run(
                words, env=environment(home), capture_output=True, text=True, timeout=60, check=False
            )
            assert "Traceback" not in done.stderr, closed
            full = closed == ">/dev/full"
            assert done.returncode == (3 if full else 1), closed
            says = "triage: the output can't be written: No space left on device\n" if full else ""
            assert done.stderr == says


IMPORTS = """
import contextlib, io, sys
from triage.cli import main
crashed = sys.argv[1]
for words in (
    ["--help"], ["--version"], ["--nonsense"], [], ["plan", "--help"], ["apply", "--help"],
    ["GONE"], ["plan", "GONE"], ["plan", crashed], ["plan", "--json", crashed], ["--plain", crashed],
    [crashed], ["apply", crashed], ["apply", "--json", crashed], ["apply", "GONE"], ["history", crashed],
    ["scan", crashed], ["errors", "--state", "none", crashed],
):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            main(words)
    if "textual" in sys.modules:
        sys.exit(f"{words} imports textual")
"""


def test_nothing_but_the_screen_imports_textual(home: Path) -> None:
    words = [sys.executable, "-c", IMPORTS, str(SAMPLES / "crashed-dispatched.jsonl")]
    done = subprocess.run(
        words, env=environment(home), cwd=home, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0


def test_version_help_and_wrong_usage(run: Run) -> None:
    done = run("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"triage \d+\.\d+\.\d+\S*\n", done.stdout)
    for command in ([], ["plan"], ["apply"], ["history"]):
        done = run(*command, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith("usage: triage")
        assert done.stderr == ""
        assert all(cell_len(line) <= 120 for line in done.stdout.splitlines())
    for wrong in ([], ["--nonsense"], ["plan"], ["apply"], ["plan", "--nonsense", "x"], ["apply", "a", "b"]):
        done = run(*wrong)
        assert done.returncode == 2, wrong
        assert done.stdout == ""
        assert "usage: triage" in done.stderr


@pytest.mark.parametrize(("word", "meant"), [("aply", "apply"), ("hist", "history"), ("Scan", "scan")])
def test_a_mistyped_command_is_no_log_but_a_command_that_was_meant(
    word: str, meant: str, run: Run, tmp_path: Path
) -> None:
    says = one_line(run(word, "x", "--ack", "call_0a92=ran", cwd=tmp_path), 2)
    assert f"did you mean triage {meant}?" in says
    (tmp_path / word).write_bytes((SAMPLES / "clean.jsonl").read_bytes())
    assert run(word, cwd=tmp_path).returncode == 0, "a log of that name"
    assert "did you mean" not in one_line(run("plan.jsonl", cwd=tmp_path), 3)


# ---- names of files

NAMES = [
    b"not \xff\xfe utf-8.jsonl",
    b"new\nline.jsonl",
    b"esc\x1b[2J\x1b]0;x\x07.jsonl",
    "\u202ebidi\u200b 漢字 🧨.jsonl".encode(),
    b"--plain",
    b"plan",
    b" [red]'quotes\" $(reboot) `x`.jsonl",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_log_of_any_name_is_read_and_repaired(name: bytes, run: Run, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    path = os.path.join(folder, name)
    text = (SAMPLES / "crashed-dispatched.jsonl").read_bytes()
    with open(path, "wb") as file:
        file.write(text)
    word = b"./" + name if name in (b"--plain", b"plan") else name
    done = run("plan", "--json", word, cwd=tmp_path)
    assert done.returncode == 1
    shown = json.loads(done.stdout)["log"]["path"]
    assert os.fsencode(shown) in (word, word.decode("utf-8", "replace").encode())
    done = run("--plain", word, cwd=tmp_path)
    assert done.returncode == 1
    assert not set(done.stdout) & set("\x1b\x07\u202e\u200b")
    if name == b"--plain":
        assert run("plan", "--", name, cwd=tmp_path).returncode == 1
    done = run("apply", word, "--ack", "call_0a92=ran", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout + done.stderr) & set("\x1b\x07\u202e\u200b")
    with open(path, "rb") as file:
        assert file.read().startswith(text)

"""What the README says is so: its commands run, its codes are all of them, its files are there."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from triage import words
from triage.fleet.find import candidates
from triage.log.formats import in_order
from triage.log.source import Unreadable
from triage.session import open_session

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(kind: str) -> list[str]:
    """The lines of the code blocks of one kind."""
    found = re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)
    return [line for block in found for line in block.splitlines() if line]


def test_the_shown_commands_run_one_after_the_other_and_leave_no_trace_behind(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sample_logs", tmp_path / "sample_logs")
    for line in blocks("sh"):
        program, *arguments = shlex.split(line)
        assert program == "triage", line
        command = [sys.executable, "-m", "triage", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), f"{line}\n{done.stderr}"
        assert done.stdout, line
        assert "Traceback" not in done.stderr


def test_the_first_command_opens_a_crashed_sample_and_the_second_is_what_ci_runs() -> None:
    first, second = blocks("sh setup")
    sample = first.split()[-1]
    assert open_session(str(ROOT / sample)).plan.status == "crashed"
    assert second in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_commands_for_developers_are_modules_that_are_there() -> None:
    for line in blocks("sh dev"):
        program, flag, module = line.split()
        assert (program, flag) == ("python", "-m")
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()


def test_every_sample_stands_in_the_table_and_nothing_else_does() -> None:
    listed = set(re.findall(r"^\| `([\w.\-]+\.jsonl)` \|", README, re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "sample_logs").iterdir()}


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures and all((ROOT / picture).exists() for picture in pictures)


def test_every_boundary_is_listed_with_its_sentence() -> None:
    for name, sentence in words.NEXT.items():
        assert f"| `{name}` | {sentence} |" in README


def test_every_fault_of_the_table_names_tests_that_are_there() -> None:
    section = README.split("## What can go wrong", 1)[1].split("\n## ", 1)[0]
    named = set(re.findall(r"`(test_\w+)`", section))
    source = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "faults").glob("*.py"))
    assert len(named) > 15
    assert all(f"def {name}(" in source for name in named)


def test_every_format_is_listed() -> None:
    for format in in_order():
        assert f"| `{format.NAME}` |" in README


def codes_in_source() -> set[str]:
    """Codes that the source names where it makes a refusal, an anomaly or an error."""
    makers = {"Refusal", "_refuse", "_refusal", "Anomaly", "anomaly", "Unreadable"}
    found = set()
    for path in (ROOT / "triage").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                first = node.args[0] if node.args else None
                if name in makers and isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    return found


def test_every_code_of_the_source_and_of_every_fixture_is_listed() -> None:
    found = codes_in_source()
    for folder in ("sample_logs", "tests/fixtures"):
        for path in candidates(str(ROOT / folder)):
            try:
                plan = open_session(path).plan
            except Unreadable as error:
                found.add(error.code)
                continue
            found |= {anomaly.code for anomaly in plan.anomalies}
            found |= {plan.refusal.code} if plan.refusal else set()
    assert len(found) > 40
    missing = sorted(code for code in found if f"`{code}`" not in README)
    assert not missing


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md", "pyproject.toml"])
def test_no_document_names_a_place_of_its_makers(document: str) -> None:
    text = (ROOT / document).read_text("utf-8")
    assert not re.search(r"\.\./shared|/work/|/root/", text)

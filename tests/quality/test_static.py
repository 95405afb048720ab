"""Types, lint and the arrows between the packages hold, and the project names no place of its makers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from triage.log.formats import FORMATS

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "sample_logs",
    "screenshots",
    "tests",
    "triage",
}


def test_every_format_module_is_a_format(tmp_path: Path) -> None:
    script = tmp_path / "every_format.py"
    lines = ["from triage.log.formats import Format", f"from triage.log.formats import {', '.join(FORMATS)}"]
    lines += [f"as_{name}: Format = {name}" for name in FORMATS]
    script.write_text("\n".join(lines))
    command = [sys.executable, "-m", "mypy", str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["mypy"],
        ["ruff", "check", "triage", "tests"],
        ["ruff", "format", "--check", "triage", "tests"],
        ["importlinter.cli"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_static_check_finds_nothing(command: list[str]) -> None:
    if command[0] == "importlinter.cli":
        command = ["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    else:
        command = ["-m", *command]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).exists()]


# Who may open a file for writing, and what: everything but append.py writes files of triage's own.
WRITERS = {
    "triage/cli.py": "the null device, in place of an output that nobody reads",
    "triage/draft.py": "drafts in the state folder",
    "triage/export.py": "exports, new files only",
    "triage/failure_store.py": "the database of `triage errors`, made before SQLite opens it",
    "triage/log/append.py": "the log",
    "triage/log/writers.py": "nothing: it reads with which flags others hold a log",
    "triage/trouble.py": "traces in the state folder",
}


def test_only_append_opens_a_log_for_writing() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "triage").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if _opens_for_writing(node)
    }
    assert found <= set(WRITERS), found - set(WRITERS)


def _opens_for_writing(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("O_APPEND", "O_RDWR", "O_WRONLY", "write_text", "write_bytes")
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "open":
        return False
    modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes)


def test_the_top_level_holds_what_it_should_and_nothing_else() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in found if not name.startswith(".")} <= TOP_LEVEL


def test_importing_a_command_never_imports_textual() -> None:
    modules = "triage.cli, triage.commands.plan, triage.commands.apply, triage.report, triage.contract, "
    modules += "triage.commands.scan, triage.fleet.listing"
    code = f"import sys, {modules}; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

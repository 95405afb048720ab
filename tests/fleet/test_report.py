"""The incident report: what died, what may have happened, who checked what, what was appended."""

from __future__ import annotations

import shutil
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from triage.cli import main
from triage.report import markdown_code

SAMPLES = Path(__file__).parents[2] / "sample_logs"


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_it_names_what_died_and_what_a_person_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLES / "crashed-dispatched.jsonl", tmp_path)
    shutil.copy(SAMPLES / "clean.jsonl", tmp_path)
    log = tmp_path / "crashed-dispatched.jsonl"
    main(["apply", str(log), "--ack", "call_0a92=ran:seen in the dashboard", "--operator", "ann"])
    shutil.copy(SAMPLES / "double-started.jsonl", tmp_path)
    capsys.readouterr()
    assert main(["report", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "3 sessions looked at; 2 of them" in text
    assert (
        "call_0a92 http_post, tool_outcome_unknown (rule 1); ann found: ran (seen in the dashboard)" in text
    )
    assert "double-started.jsonl | crashed" in text
    assert "| clean.jsonl" not in text
    assert "| crashed-dispatched.jsonl | repaired |" in text
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert [line.split(": ")[0] for line in headings] == [
        "## double-started.jsonl",
        "## crashed-dispatched.jsonl",
    ]


def test_the_worst_session_stands_first_and_files_of_one_name_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, sample in {
        "a/x/log.jsonl": "doubtful",
        "b/x/log.jsonl": "waiting",
        "c/y/log.jsonl": "hostile",
        "d/other.jsonl": "boundary-prepared",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(SAMPLES / f"{sample}.jsonl", tmp_path / name)
    main(["scan", str(tmp_path)])
    scanned = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    main(["report", str(tmp_path)])
    text = capsys.readouterr().out
    names = ["y/log.jsonl", "b/x/log.jsonl", "other.jsonl", "a/x/log.jsonl"]
    assert [line.split(" | ")[0] for line in text.splitlines() if ".jsonl | " in line] == [
        f"| {name}" for name in names
    ]
    assert [
        line.split(": ")[0] for line in text.splitlines() if line.startswith("## ") and ".jsonl" in line
    ] == [f"## {name}" for name in names]
    assert all(path.endswith(name) for path, name in zip(scanned, names, strict=True))


@pytest.mark.parametrize("text", ["a", "`", "``a`", " a ", "a`", "[x](y) <b> *c* https://d \\", "`````"])
def test_arguments_are_shown_as_they_are_and_mean_nothing(text: str) -> None:
    page = MarkdownIt("gfm-like", {"linkify": False}).render(f"- Arguments: {markdown_code(text)}")
    assert page == f"<ul>\n<li>Arguments: <code>{escape(text)}</code></li>\n</ul>\n"


def test_secrets_are_taken_out_unless_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "a1B2" * 9
    log = tmp_path / "log.jsonl"
    log.write_bytes((SAMPLES / "crashed-dispatched.jsonl").read_bytes().replace(b"re_91", token.encode()))
    main(["report", str(log)])
    assert token not in capsys.readouterr().out
    main(["report", str(log), "--no-redact"])
    assert token in capsys.readouterr().out


def test_the_page_holds_no_script_no_link_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    main(["report", str(SAMPLES), "-o", str(page)])
    tags = Tags()
    tags.feed(page.read_text("utf-8"))
    assert not tags.tags & {"script", "a", "img", "iframe", "object", "link", "form"}
    assert tags.attributes <= {"lang", "charset", "http-equiv", "content"}
    assert page.stat().st_mode & 0o777 == 0o600


def test_a_report_is_never_written_over_another_file(tmp_path: Path) -> None:
    page = tmp_path / "report.md"
    page.write_text("mine")
    main(["report", str(SAMPLES / "clean.jsonl"), "-o", str(page)])
    assert page.read_text() == "mine"
    assert (tmp_path / "report-2.md").exists()

"""What all screens have in common: toasts, help, palette, copying, the editor."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import SuspendNotSupported
from textual.screen import Screen

from triage.log.events import call_id
from triage.log.json_text import dumps
from triage.log.source import Unreadable
from triage.text import clean
from triage.tui.clipboard import MOST_BYTES, copy
from triage.tui.desk import Desk
from triage.tui.editor import editor_command
from triage.tui.evidence import Evidence, Subject
from triage.tui.keybar import KeyBar
from triage.tui.keys import QUIT, SESSIONS, Command
from triage.tui.timeline import call_of
from triage.words import size_in_words

Result = TypeVar("Result")


class View(Screen[Result], Generic[Result]):
    """A screen of triage. `COMMANDS_HERE` are its keys, for the help and the palette."""

    COMMANDS_HERE: ClassVar[Sequence[Command]] = ()
    TITLE_HERE: ClassVar[str] = ""
    ESCAPE_TO_MINIMIZE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 (Textual's own name)
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (6, "-short"), (16, "-tall"), (36, "-high")]  # noqa: RUF012

    def __init__(self, desk: Desk | None) -> None:
        super().__init__()
        self._desk = desk
        self._copied: tuple[Subject, int] | None = None

    @property
    def desk(self) -> Desk:
        """The desk of the session that is open."""
        assert self._desk is not None, "no session is open here"
        return self._desk

    @property
    def commands(self) -> Sequence[Command]:
        """The keys of this screen as they are now."""
        picked = self._desk is not None and self._desk.picked
        return [SESSIONS if picked and command is QUIT else command for command in self.COMMANDS_HERE]

    def say(self, text: str, *, bad: bool = False) -> None:
        """Tell what was done, or why not, in the place of the key bar."""
        for bar in self.query(KeyBar):
            bar.say(text, bad=bad)

    def hush(self) -> None:
        """A key was pressed: what was told has been read."""
        for bar in self.query(KeyBar):
            bar.hush()

    async def ask(self, asks: str, label: str, value: str = "") -> None:
        """Put a one-line question at the bottom, ready for the next key; `answered` gets the answer."""
        from triage.tui.prompt import Prompt

        prompt = Prompt(asks, label, value)
        await self.mount(prompt)
        self.set_focus(prompt.box)

    def on_resize(self, event: events.Resize) -> None:
        """Drop sizes of the past.

        A screen is laid out for each size it hears of, and so hears of it again: two of them under way
        would chase each other for ever.
        """
        if event.size != self.app.size:
            event.prevent_default()
        else:
            self.call_after_refresh(self.resized)

    # ---- for the screens to fill in

    def resized(self) -> None:
        """The screen has another size now."""

    def answered(self, asks: str, value: str | None) -> None:
        """A question was answered; None: the operator left it."""

    async def action_open(self) -> None:
        """Enter, or a second click on a row."""

    def subject(self) -> Subject | None:
        """What the operator looks at, where that is a row of the log."""
        return None

    def evidence(self) -> Evidence | None:
        """Who writes the evidence here."""
        return None

    # ---- copy, export and editor

    def action_copy_summary(self) -> None:
        from triage.tui.out import copy_summary

        copy_summary(self)

    async def action_export(self) -> None:
        from triage.tui.out import ask_what_to_export

        await ask_what_to_export(self)

    def action_copy(self) -> None:
        subject, evidence = self.subject(), self.evidence()
        choices = copies(subject, evidence) if subject and evidence else []
        if not choices or subject is None:
            self.say("nothing to copy here")
            return
        again = self._copied is not None and self._copied[0] == subject
        at = (self._copied[1] + 1) % len(choices) if again and self._copied else 0
        self._copied = (subject, at)
        what, text = choices[at]
        if len(text) > MOST_BYTES:
            self.say(
                f"the {what} is too long to copy ({size_in_words(len(text))}): e opens it in your editor"
            )
            return
        note = copy(self.app, text)
        short = clean(text, limit=60)
        then = f" · y again: {choices[(at + 1) % len(choices)][0]}" if len(choices) > 1 else ""
        self.say(f"copied {what}: {short}{f' ({note})' if note else ''}{then}")

    def action_editor(self) -> None:
        subject = self.subject()
        line = min(subject.line, self.desk.session.journal.lines) if subject else 1
        command = editor_command(self.desk.session.journal.path, max(1, line), os.environ)
        try:
            with self.app.suspend():
                failed = _run(command)  # what is raised in here would leave the terminal suspended
        except SuspendNotSupported:
            failed = "this terminal can't be handed to an editor"
        if failed:
            self.say(failed, bad=True)
        self.refresh()


def _run(command: list[str]) -> str:
    """Run an editor to its end. Returns what went wrong, or ""."""
    try:
        code = subprocess.call(command)
    except OSError as error:
        return f"{command[0]} can't be started ({error.strerror}): set EDITOR"
    return f"{command[0]} ended with code {code}" if code else ""


def copies(subject: Subject, evidence: Evidence) -> list[tuple[str, str]]:
    """What can be copied of a subject, in the order in which `y` goes through it: name and text."""
    calls, journal = evidence.calls, evidence.journal
    if subject.line < 1 or subject.line > journal.lines:
        return []
    found: list[tuple[str, str]] = []
    number = call_of(subject.row)
    if subject.owed is not None:
        found += [("id", subject.owed.tool_call_id), ("arguments", _written(subject.owed.arguments))]
        hints = [says for says in evidence.hints(subject.owed) if says.startswith("check: ")]
        found += [("the playbook's check", says.removeprefix("check: ")) for says in hints]
    elif number and number <= len(calls.named(subject.line)):
        call = calls.named(subject.line)[number - 1]
        found += [("id", call.id), ("arguments", _written(call.arguments))]
    else:
        ids = [id for event in calls.events(subject.line) if (id := call_id(event.data)) is not None]
        found += [("id", ids[0])] if ids else []
    try:
        raw = journal.raw(subject.line).decode("utf-8", "replace").rstrip("\r\n")
    except Unreadable:
        return found
    return [*found, (f"record of line {subject.line:,}", raw)]


def _written(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else dumps(arguments)

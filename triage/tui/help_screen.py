"""The keys of the screen that one comes from, by group, and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.tui.keys import MOVES, Command
from triage.tui.paper import Line, Paper
from triage.tui.row import Span
from triage.tui.text_screen import TextScreen
from triage.tui.theme import LABEL_STYLES
from triage.words import GLYPHS, RISKS

GROUPS = {
    "answer": "Answer (one entry at a time; these keys mean nothing anywhere else)",
    "append": "Append",
    "choose": "Choose",
    "problems": "Problems",
    "panes": "Panes",
    "find": "Find",
    "move": "Move",
    "out": "Out",
    "other": "Other",
}
SIGNS: tuple[tuple[Span, str], ...] = (
    (("✓", "ok"), "closed, answered"),
    (("+", "waiting"), "closed by no tool: what an operator found, or its risk"),
    (("✖", "bad"), "cut short, can't be read, or an error"),
    (("○", "started"), "owes a result, and no crash is to blame: left as it is"),
    (("!", "unknown"), "something is odd here: the evidence says what"),
    (("·", "dim"), "a plain record"),
)
KEY_WIDTH = 12


class HelpScreen(TextScreen):
    """Help for where one is."""

    TITLE_HERE = "help"

    def __init__(self, title: str, commands: Sequence[Command]) -> None:
        super().__init__(None, f"help: {title}", Paper(lambda: _lines(commands)))


def _lines(commands: Sequence[Command]) -> Iterator[Line]:
    known = [
        *commands,
        *(move for move in MOVES if move.shown not in {command.shown for command in commands}),
    ]
    for group, heading in GROUPS.items():
        here = [command for command in known if command.group == group and command.shown]
        if not here:
            continue
        yield Line(((heading, "title"),))
        for command in here:
            yield Line(((f"  {command.shown:<{KEY_WIDTH}} ", "key"), (command.says, "text")), KEY_WIDTH + 3)
        yield Line(())
    yield Line((("Signs", "title"),))
    for label, says in RISKS.items():
        style = LABEL_STYLES[label]
        yield Line(((f"  {GLYPHS[label]} ", style), (f"{label:<12} ", style), (says, "text")), 17)
    for sign, says in SIGNS:
        yield Line((("  ", "text"), sign, (f" {says}", "text")), 4)

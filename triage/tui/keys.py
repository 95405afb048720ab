"""Every key, once: bindings, key bar, help and palette are made from these tables.

A letter means one thing everywhere. The answers (R, D, U) and the append (A) are capitals that mean
nothing outside the accept screen, so that no key meant for moving can record a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.binding import Binding


class Command(NamedTuple):
    """What a key does. `keys` are Textual's names; `shown` is what a person reads.

    `bar` is its word in the key bar ("" keeps it out), `says` its sentence in the help and the palette.
    """

    action: str
    keys: str
    shown: str
    bar: str
    says: str
    group: str


MOVES = (
    Command("move(1)", "j,down", "j ↓", "", "One row down", "move"),
    Command("move(-1)", "k,up", "k ↑", "", "One row up", "move"),
    Command("first", "g,home", "g", "", "To the first row", "move"),
    Command("last", "G,end", "G", "", "To the last row", "move"),
    Command("page(0.5)", "ctrl+d", "^d", "", "Half a page down", "move"),
    Command("page(-0.5)", "ctrl+u", "^u", "", "Half a page up", "move"),
    Command("page(1)", "pagedown", "PgDn space", "", "A page down", "move"),
    Command("page(-1)", "pageup", "PgUp", "", "A page up", "move"),
)

FOLD = Command("fold", "h,left", "h ←", "", "Fold this turn, step or message (a page: to the left)", "move")
UNFOLD = Command("unfold", "l,right", "l →", "", "Unfold it (a page: to the right)", "move")
OPEN = Command("open", "enter", "enter", "Open", "Open it; once more: the raw record", "panes")
LINE = Command("goto", "colon", ":", "", "Go to a line of the log", "move")

PROBLEMS = (
    Command(
        "next(1)", "n", "n", "Next problem", "Next problem, or next match while a search is on", "problems"
    ),
    Command("next(-1)", "N", "N", "", "Previous problem or match", "problems"),
    Command("problem(1)", "right_square_bracket", "]", "", "Next problem, always", "problems"),
    Command("problem(-1)", "left_square_bracket", "[", "", "Previous problem, always", "problems"),
    Command("jump_back", "ctrl+o", "^o", "", "Back to where the last jump started", "problems"),
)

FIND = (
    Command(
        "search",
        "slash",
        "/",
        "Search",
        "Search the whole log, raw records too (empty: the last search)",
        "find",
    ),
    Command("filter", "f", "f", "", "Show all rows, then calls, then problems only", "find"),
)

PANES = (
    Command("to_pane(1)", "tab", "tab", "", "To the next pane", "panes"),
    Command("to_pane(-1)", "shift+tab", "shift-tab", "", "To the previous pane", "panes"),
    Command("pane(1)", "1", "1", "", "Timeline", "panes"),
    Command("pane(2)", "2", "2", "", "Owed calls", "panes"),
    Command("pane(3)", "3", "3", "", "Evidence", "panes"),
    Command("pane(4)", "4", "4", "", "Errors: what failed in this session, and how often", "panes"),
    Command("zoom", "z", "z", "", "Zoom this pane, and back", "panes"),
    Command("wrap", "w", "w", "", "Wrap long lines, or cut them", "panes"),
)

COPY = Command("copy", "y", "y", "Copy", "Copy the id; again: the arguments, then the record", "out")
EDITOR = Command("editor", "e", "e", "Editor", "Open $EDITOR at this line (read-only where it can)", "out")

OUT = (
    COPY,
    Command("copy_summary", "Y", "Y", "", "Copy an incident summary as Markdown", "out"),
    EDITOR,
    Command(
        "export", "x", "x", "", "Export the screen (SVG), the summary (Markdown) or the plan (JSON)", "out"
    ),
)

ACCEPT = Command("accept", "a", "a", "Accept…", "Answer the open questions and append the repair", "other")
OTHER = (
    Command("follow", "F", "F", "", "Follow the log: reload and go to its end when it grows", "other"),
    Command("reload", "r", "r", "", "Read the log again", "other"),
)
HELP = Command("app.help", "question_mark", "?", "Help", "The keys of this screen", "other")
PALETTE = Command("app.palette", "ctrl+p", "^p", "", "All commands, by name", "other")
THEME = Command("app.swap_theme", "", "", "", "Switch between the dark and the light colours", "other")
QUIT = Command("app.leave", "q", "q", "Quit", "Quit", "other")
SESSIONS = Command("app.leave", "q", "q", "Sessions", "Back to the sessions", "other")
ESCAPE = Command("escape", "escape", "esc", "", "Back: end the zoom, the search, the filter", "panes")
BACK = Command("back", "escape,q", "esc", "Back", "Back (q too)", "other")

TRIAGE: tuple[Command, ...] = (
    *PROBLEMS, *FIND, OPEN, *PANES, *OUT, ACCEPT, FOLD, UNFOLD, LINE, *OTHER,
    ESCAPE, HELP, QUIT, PALETTE, THEME,
)  # fmt: skip

EVIDENCE: tuple[Command, ...] = (
    Command("open", "enter", "enter", "Raw record", "The record's own bytes, and back", "panes"),
    Command("next(1)", "n", "n", "Next problem", "The next problem of the log", "problems"),
    Command("next(-1)", "N", "N", "", "The previous problem", "problems"),
    Command("wrap", "w", "w", "Wrap", "Wrap long lines, or cut them (then ←/→ move the text)", "panes"),
    *OUT, FOLD, UNFOLD, HELP, BACK, PALETTE, THEME,
)  # fmt: skip

PICKER: tuple[Command, ...] = (
    Command("open", "enter", "enter", "Open", "Open the session under the cursor", "panes"),
    Command("search", "slash", "/", "Search", "Only sessions with a text (empty: the last search)", "find"),
    Command(
        "filter", "f", "f", "Filter", "Show all sessions, then those to repair, then unknown outcomes", "find"
    ),
    Command("sort", "s", "s", "Sort", "The worst first, then the newest, then by path", "find"),
    Command("next(1)", "n", "n", "", "Next session that needs repair", "problems"),
    Command("next(-1)", "N", "N", "", "Previous session that needs repair", "problems"),
    Command("copy", "y", "y", "Copy", "Copy the path", "out"),
    Command("rescan", "r", "r", "Scan again", "Look for sessions and read them again", "other"),
    Command("stop", "S", "S", "Stop", "Stop the scan; what was read stays", "other"),
    Command("escape", "escape", "esc", "", "Back: end the search, the filter", "panes"),
    HELP, QUIT, PALETTE, THEME,
)  # fmt: skip

ERRORS: tuple[Command, ...] = (
    Command("open", "enter", "enter", "Go to line", "Its last occurrence, in the timeline", "panes"),
    HELP, BACK, PALETTE, THEME,
)  # fmt: skip

ANSWERS: tuple[Command, ...] = (
    Command("answer('ran')", "R", "R", "Ran", "It ran", "answer"),
    Command("answer('did-not-run')", "D", "D", "Did not run", "It did not run (waiting: deny)", "answer"),
    Command("answer('could-not-tell')", "U", "U", "Could not tell", "It could not be told", "answer"),
    Command("comment", "c", "c", "Comment", "Write a note to the answer", "answer"),
    Command("next(1)", "n", "n", "", "Next entry without an answer", "answer"),
    Command("next(-1)", "N", "N", "", "Previous entry without an answer", "answer"),
    Command("open", "enter", "enter", "Evidence", "The evidence of this entry", "answer"),
    Command("preview", "v", "v", "Preview", "The exact bytes that would be appended", "append"),
    Command("append", "A", "A", "Append", "Append the repair, once every answer is given", "append"),
    *OUT[:2], OUT[3], HELP, BACK, PALETTE, THEME,
)  # fmt: skip

TEXT: tuple[Command, ...] = (
    Command("wrap", "w", "w", "Wrap", "Wrap long lines, or cut them (then ←/→ move the text)", "panes"),
    FOLD, UNFOLD, HELP, BACK, PALETTE, THEME,
)  # fmt: skip

DONE: tuple[Command, ...] = (
    Command("back", "escape,enter", "enter", "See the log", "Back to the log as it is now", "other"),
    HELP, QUIT, PALETTE, THEME,
)  # fmt: skip


def of_another_screen(key: str) -> str:
    """What to say of a key (Textual's name) that does nothing here but something elsewhere, or ""."""
    for screen, commands in (("triage", TRIAGE), ("accept", ANSWERS), ("sessions", PICKER)):
        for command in commands:
            names = command.keys.split(",")
            if key in names:
                shown = dict(zip(names, command.shown.split(), strict=False)).get(key, command.shown)
                return f"{shown} is a key of the {screen} screen: it does nothing here"
    return ""


def bindings(commands: Sequence[Command]) -> list[Binding]:
    """The Textual bindings of a table of commands."""
    return [
        Binding(command.keys, command.action, command.says, show=False)
        for command in commands
        if command.keys
    ]

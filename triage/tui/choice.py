"""A small question with a few answers. The first answer is the harmless one, and esc means it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType

from triage.tui.desk import Desk
from triage.tui.keys import Command, bindings
from triage.tui.row import Row, row
from triage.tui.rows import Fixed, Rows
from triage.tui.view import View

CHOICE = (
    Command("open", "enter", "enter", "Choose", "Take the answer under the cursor", "choose"),
    Command("back", "escape,q", "esc", "Back", "Leave the question", "choose"),
)


class Choice(NamedTuple):
    """One answer: what it is called in the code, on the screen, and a word about it."""

    name: str
    label: str
    says: str


class ChoiceScreen(View[str]):
    """Asks; its result is the name of the choice, or None for esc."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = CHOICE
    TITLE_HERE = "question"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(CHOICE)]
    DEFAULT_CSS = """
    ChoiceScreen { align: center middle; }
    ChoiceScreen > Rows { width: 72; max-width: 100%; height: auto; max-height: 100%; }
    """

    def __init__(self, desk: Desk, title: str, question: str, choices: Sequence[Choice]) -> None:
        super().__init__(desk)
        self._choices = choices
        rows = [row((" " + question, "head")), row("")]
        rows += [Row(((f" {choice.label:<12} ", "key"), (choice.says, "text"))) for choice in choices]
        rows += [row(""), row((" enter takes it, esc goes back", "dim"))]
        source = Fixed(rows, frozenset(range(2, 2 + len(choices))))
        self._rows = Rows(source)
        self._rows.label(((title, "title"),))

    def compose(self) -> ComposeResult:
        yield self._rows

    def on_mount(self) -> None:
        self._rows.show(self._rows.source, 2, top=0)
        self.set_focus(self._rows)

    async def action_open(self) -> None:
        self.dismiss(self._choices[self._rows.cursor - 2].name)

    def action_back(self) -> None:
        self.dismiss(None)

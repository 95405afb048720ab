"""All commands by name: type a few letters, enter runs the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from triage.tui.keys import MOVES, Command
from triage.tui.prompt import typed
from triage.tui.row import Row, row
from triage.tui.rows import Fixed, Rows
from triage.tui.view import View


class PaletteScreen(View[str]):
    """Its result is the action of the chosen command, or None."""

    TITLE_HERE = "palette"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+p", "back", "Leave", show=False, priority=True),
        Binding("enter", "open", "Run", show=False, priority=True),
        Binding("down", "step(1)", "Down", show=False, priority=True),
        Binding("up", "step(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "step(8)", "Down", show=False, priority=True),
        Binding("pageup", "step(-8)", "Up", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PaletteScreen > Input {
        height: 1; border: none; padding: 0 1; background: $panel; color: $foreground;
    }
    """

    def __init__(self, title: str, commands: Sequence[Command]) -> None:
        super().__init__(None)
        names = {command.action for command in commands}
        self._commands = [*commands, *(move for move in MOVES if move.action not in names)]
        self._found = list(self._commands)
        self._typed: str | None = None
        self._box = Input(placeholder="type a few letters of a command", compact=True)
        self._box.cursor_blink = False
        self._rows = Rows()
        self._rows.label(((f"commands of {title}", "title"),), (("enter runs, esc leaves", "dim"),))

    def compose(self) -> ComposeResult:
        yield self._box
        yield self._rows

    def on_mount(self) -> None:
        self._list("")
        self.set_focus(self._box)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, typed: str) -> None:
        if typed == self._typed:
            return
        self._typed = typed
        words = typed.casefold().split()
        self._found = [command for command in self._commands if _fits(command, words)]
        rows: list[Row] = [
            Row(((f" {command.shown:<10} ", "key"), (command.says, "text")), ((command.group + " ", "dim"),))
            for command in self._found
        ]
        self._rows.show(Fixed(rows or [row((" no command is called so", "dim"))]), 0, top=0)

    def action_step(self, delta: int) -> None:
        self._rows.move_to(self._rows.cursor + delta)

    async def action_open(self) -> None:
        await typed(self._box)
        self._list(self._box.value)  # letters may be newer than the list
        at = self._rows.cursor
        self.dismiss(self._found[at].action if at < len(self._found) else None)

    def action_back(self) -> None:
        self.dismiss(None)


def _fits(command: Command, words: Sequence[str]) -> bool:
    text = f"{command.says} {command.bar} {command.group}".casefold()
    return all(word in text for word in words)

"""The app: it opens the screens, owns the desk, and turns any failure into one clear line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from triage.log.source import Unreadable
from triage.session import Session
from triage.tui.choice import Choice, ChoiceScreen
from triage.tui.desk import Clock, Desk, Look, leaving_in_words, utc_clock
from triage.tui.keybar import run_action
from triage.tui.rows import Rows
from triage.tui.theme import DARK, LIGHT, PLAIN, THEMES, theme_of_terminal, wants_no_colour
from triage.tui.triage_screen import TriageScreen
from triage.tui.view import View
from triage.words import counted

if TYPE_CHECKING:
    from triage.tui.opening_screen import Opened


class TriageApp(App[str]):
    """One operator at one log."""

    TITLE = "triage"
    ENABLE_COMMAND_PALETTE = False  # ours draws its list with the same rows as everything else
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", show=False),
        Binding("ctrl+p", "palette", "All commands", show=False),
        Binding("ctrl+q,ctrl+c", "leave", "Quit", show=False, priority=True),
    ]
    CSS = """
    Screen { background: $background; color: $foreground; layout: vertical; }
    #header { height: 2; dock: top; }
    #owed { height: auto; max-height: 35%; }
    Screen.-wide #timeline { dock: left; width: 60%; height: 100%; margin: 2 0 1 0; }
    Screen.-narrow #owed { max-height: 9; }
    Screen.-narrow #evidence { display: none; }
    Screen.-short #owed, Screen.-short #evidence { display: none; }
    Screen.-short #timeline { dock: none; width: 1fr; margin: 0; }
    Screen.-tiny #owed, Screen.-tiny #evidence { display: none; }
    Screen.-tiny #timeline { dock: none; width: 1fr; margin: 0; }
    Screen.-tiny #header { height: 1; }
    Screen.-tiny KeyBar { display: none; }
    Screen.-tiny KeyBar.-says { display: block; }
    Screen.-zoomed Rows { display: none; }
    Screen.-zoomed #timeline.-zoom, Screen.-zoomed #owed.-zoom, Screen.-zoomed #evidence.-zoom {
        display: block; dock: none; width: 1fr; height: 1fr; max-height: 100%; margin: 0;
    }
    """

    def __init__(
        self, source: Session | str, make_desk: Callable[[Session], Desk], theme: str | None
    ) -> None:
        """`source` is a session, or the path of a log that is read behind a first screen."""
        super().__init__(ansi_color=True if wants_no_colour() and theme in (None, PLAIN) else None)
        for known in THEMES:
            self.register_theme(known)
        self.theme = theme or theme_of_terminal()
        self.animation_level = "none"
        self._make_desk = make_desk
        self._source = source
        self._desk = make_desk(source) if isinstance(source, Session) else None
        self.unreadable: Unreadable | None = None

    @property
    def desk(self) -> Desk:
        """The operator's desk, once the log was read."""
        assert self._desk is not None, "the log was not read yet"
        return self._desk

    def get_default_screen(self) -> Screen[None]:
        """The first screen: none is pushed over an empty one, which would be painted first."""
        if isinstance(self._source, Session):
            return TriageScreen(self.desk)
        from triage.tui.opening_screen import OpeningScreen

        return OpeningScreen(self._source)

    def on_opened(self, event: Opened) -> None:
        """The log was read, or can't be: then `run` raises why."""
        if isinstance(event.session, Session):
            self._desk = self._make_desk(event.session)
            self.push_screen(TriageScreen(self.desk))
        else:
            self.unreadable = event.session
            self.exit("")

    async def on_event(self, event: events.Event) -> None:
        """Do what a key is bound to before the next key is looked at.

        Textual hands a key to the widget that has the focus now, so keys typed ahead of a screen that is
        about to open would be done by the one below it. Letters for a text box go their usual way.
        """
        if not isinstance(event, events.Key) or event.is_forwarded or not self._listens():
            await super().on_event(event)
            return
        if isinstance(self.screen, View):
            self.screen.hush()
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.enabled:
            await self.run_action(active.binding.action, active.node)

    def _listens(self) -> bool:
        """Whether keys are commands now, and no letters for a text box."""
        return self.focused is None or isinstance(self.focused, Rows)

    # ---- commands of every screen

    async def action_help(self) -> None:
        view = self.screen
        if isinstance(view, View) and view.TITLE_HERE != "help":
            from triage.tui.help_screen import HelpScreen

            await self.push_screen(HelpScreen(self.desk, view.TITLE_HERE, view.COMMANDS_HERE))

    async def action_palette(self) -> None:
        view = self.screen
        if isinstance(view, View):
            from triage.tui.palette_screen import PaletteScreen

            async def chosen(action: str | None) -> None:
                if action is not None:
                    await run_action(self, action)

            await self.push_screen(PaletteScreen(self.desk, view.TITLE_HERE, view.COMMANDS_HERE), chosen)

    def action_swap_theme(self) -> None:
        if self.theme != PLAIN:
            self.theme = LIGHT if self.theme == DARK else DARK

    async def action_leave(self) -> None:
        """Quit; where answers would be lost, ask once."""
        if self._desk is None:
            self.workers.cancel_all()
            self.exit("")
            return
        if not self.desk.answers or (self.desk.kept and self.desk.asked_to_leave):
            self.exit(self.desk.said)
            return
        if isinstance(self.screen, ChoiceScreen):
            return
        count = counted(len(self.desk.answers), "answer")
        choices = [
            Choice("stay", "Stay", "a opens the accept screen"),
            Choice("quit", "Quit", f"{count}: {leaving_in_words(self.desk)}"),
        ]

        def chosen(name: str | None) -> None:
            if name == "quit":
                self.exit(self.desk.said)

        await self.push_screen(
            ChoiceScreen(self.desk, "quit", f"{count} given, nothing appended yet.", choices), chosen
        )

    # ---- failures

    @property
    def error(self) -> Exception | None:
        """What failed, where the app had to leave for it."""
        return self._exception

    def _fatal_error(self) -> None:
        """Only leave: Textual would print the values of variables, and with them text of the log."""
        self._close_messages_no_wait()


def make_app(
    source: Session | str,
    *,
    read_only: bool = False,
    operator: str = "",
    clock: Clock = utc_clock,
    theme: str | None = None,
    redact: bool = False,
    look: Look = Session.activity,
) -> TriageApp:
    """The app for one session, or for the log at a path. `clock` gives the time now in UTC.

    `theme` is one of `triage.tui.theme`; `redact` takes secrets out of summaries and exports; `look` says
    whether the log is in use.
    """

    def desk(session: Session) -> Desk:
        return Desk(session, read_only, operator, clock, redact, look)

    return TriageApp(source, desk, theme)


def run(
    source: Session | str,
    *,
    read_only: bool = False,
    operator: str = "",
    redact: bool = False,
    theme: str | None = None,
) -> str:
    """Open the screen and stay until it is left. Returns the line for stdout: what was appended, or "".

    `source` is a session, or a path: then the log is read behind a first screen that says how far it is.
    Raises Unreadable for such a path, and whatever failed in the screen, after the terminal was put back in
    order; nothing was printed.
    """
    app = make_app(source, read_only=read_only, operator=operator, theme=theme, redact=redact)
    said = app.run()
    failed = app.error or app.unreadable
    if failed is not None:
        raise failed
    return said or ""

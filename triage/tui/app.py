"""The app: it opens the screens, owns the desk, and turns any failure into one clear line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from triage.log.source import READ_BEHIND_A_SCREEN, Unreadable
from triage.session import Session, open_session
from triage.tui.choice import Choice, ChoiceScreen
from triage.tui.desk import Clock, Desk, Look, leaving_in_words, utc_clock
from triage.tui.keybar import run_action
from triage.tui.keys import of_another_screen
from triage.tui.rows import Rows
from triage.tui.theme import DARK, LIGHT, PLAIN, THEMES, theme_of_terminal, wants_no_colour
from triage.tui.triage_screen import TriageScreen
from triage.tui.view import View
from triage.words import counted

if TYPE_CHECKING:
    from triage.fleet.scan import Scan
    from triage.tui.opening_screen import Opened
    from triage.tui.picker_screen import PickerScreen

SWITCH = 0.0005  # seconds for which a key waits for a thread that reads, each time it has to


class TriageApp(App[str]):
    """One operator, at one log or at a list of them."""

    TITLE = "triage"
    ENABLE_COMMAND_PALETTE = False  # ours draws its list with the same rows as everything else
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", show=False),
        Binding("ctrl+p", "palette", "All commands", show=False),
        Binding("ctrl+q,ctrl+c", "leave(True)", "Quit", show=False, priority=True),
    ]
    CSS = """
    Screen { background: $background; color: $foreground; layout: vertical; }
    #header { height: 2; dock: top; }
    #owed { height: auto; max-height: 35%; }
    #picked { height: 2; dock: bottom; margin: 0 0 1 0; }
    Screen.-short #picked, Screen.-tiny #picked { display: none; }
    Screen.-wide #timeline { dock: left; width: 60%; height: 100%; margin: 2 0 1 0; }
    Screen.-narrow #owed { max-height: 9; }
    Screen.-high #owed { max-height: 45%; }
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
        self,
        source: Session | str | Scan,
        make_desk: Callable[[Session], Desk],
        theme: str | None,
        clock: Clock = utc_clock,
    ) -> None:
        """`source`: a session, the path of a log that is read behind a first screen, or what lists many."""
        super().__init__(ansi_color=True if wants_no_colour() and theme in (None, PLAIN) else None)
        for known in THEMES:
            self.register_theme(known)
        self.theme = theme or theme_of_terminal()
        self.animation_level = "none"
        self._make_desk = make_desk
        self._source = source
        self._desk = make_desk(source) if isinstance(source, Session) else None
        self._clock = clock
        self._picker: PickerScreen | None = None
        self._said: list[str] = []  # of logs that were left
        self.ended_by = 0  # the signal that ended it
        self.unreadable: Unreadable | None = None

    def on_mount(self) -> None:
        """A `kill` or the end of the terminal leaves the terminal as it was found."""
        with suppress(ValueError, RuntimeError):  # no main thread: whoever runs us there minds the signals
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self._end, number)

    def _end(self, number: int) -> None:
        self.ended_by = number
        self.exit()

    @property
    def desk(self) -> Desk:
        """The operator's desk, once the log was read."""
        assert self._desk is not None, "the log was not read yet"
        return self._desk

    def get_default_screen(self) -> Screen[None]:
        """The first screen: none is pushed over an empty one, which would be painted first."""
        if isinstance(self._source, Session):
            return TriageScreen(self.desk)
        if isinstance(self._source, str):
            from triage.tui.opening_screen import OpeningScreen

            return OpeningScreen(self._source)
        from triage.tui.picker_screen import PickerScreen

        self._picker = PickerScreen(self._source, self._clock, self._pick)
        return self._picker

    async def _pick(self, path: str, size: int) -> str:
        """Open the log of a path, of some bytes, above the list. Returns why it can't be read, or ""."""
        if size > READ_BEHIND_A_SCREEN:
            from triage.tui.opening_screen import OpeningScreen

            await self.push_screen(OpeningScreen(path))
            return ""
        try:
            await self._show(open_session(path))
        except Unreadable as error:
            return str(error)
        return ""

    async def _show(self, session: Session) -> None:
        self._desk = self._make_desk(session)
        await self.push_screen(TriageScreen(self._desk))

    async def on_opened(self, event: Opened) -> None:
        """The log was read, or can't be: that is said in the list, or `run` raises it."""
        if self._picker is not None:
            if self.screen is not event.screen:
                return
            self.pop_screen()
        if isinstance(event.session, Session):
            await self._show(event.session)
        elif self._picker is not None:
            self._picker.say(str(event.session), bad=True)
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
        elif active is None and isinstance(self.screen, View):
            says = of_another_screen(event.key)
            if says:
                self.screen.say(says)

    def _listens(self) -> bool:
        """Whether keys are commands now, and no letters for a text box."""
        return self.focused is None or isinstance(self.focused, Rows)

    # ---- commands of every screen

    async def action_help(self) -> None:
        view = self.screen
        if isinstance(view, View) and view.TITLE_HERE != "help":
            from triage.tui.help_screen import HelpScreen

            await self.push_screen(HelpScreen(view.TITLE_HERE, view.commands))

    async def action_palette(self) -> None:
        view = self.screen
        if isinstance(view, View):
            from triage.tui.palette_screen import PaletteScreen

            async def chosen(action: str | None) -> None:
                if action is not None:
                    await run_action(self, action)

            await self.push_screen(PaletteScreen(view.TITLE_HERE, view.commands), chosen)

    def action_swap_theme(self) -> None:
        if self.theme != PLAIN:
            self.theme = LIGHT if self.theme == DARK else DARK

    async def action_leave(self, altogether: bool = False) -> None:
        """Back to the list of sessions where there is one, else (or `altogether`) quit.

        Where answers would be lost, ask once.
        """
        desk = self._desk
        if desk is None or not (desk.answers or desk.notes) or (desk.kept and desk.asked_to_leave):
            self._leave(altogether)
            return
        if isinstance(self.screen, ChoiceScreen):
            return
        count = counted(len(desk.answers), "answer") if desk.answers else counted(len(desk.notes), "note")
        quits = altogether or self._picker is None
        choices = [
            Choice("stay", "Stay", "a opens the accept screen"),
            Choice("quit", "Quit" if quits else "Leave", f"{count}: {leaving_in_words(desk)}"),
        ]

        def chosen(name: str | None) -> None:
            if name == "quit":
                self._leave(altogether)

        await self.push_screen(
            ChoiceScreen(
                desk, "quit" if quits else "leave", f"{count} given, nothing appended yet.", choices
            ),
            chosen,
        )

    def _leave(self, altogether: bool) -> None:
        """What was appended is said on stdout at the end."""
        desk, picker = self._desk, self._picker
        if desk is not None and desk.said:
            self._said.append(desk.said)
        if picker is None or altogether or self.screen is picker:
            self.workers.cancel_all()
            self.exit("\n".join(self._said))
            return
        while self.screen is not picker:
            self.pop_screen()
        self._desk = None
        if desk is not None:
            picker.came_back(desk.session)

    # ---- failures

    @property
    def error(self) -> Exception | None:
        """What failed, where the app had to leave for it."""
        return self._exception

    def _fatal_error(self) -> None:
        """Only leave: Textual would print the values of variables, and with them text of the log."""
        self._close_messages_no_wait()


def make_app(
    source: Session | str | Scan,
    *,
    read_only: bool = False,
    operator: str = "",
    clock: Clock = utc_clock,
    theme: str | None = None,
    redact: bool = False,
    look: Look = Session.activity,
) -> TriageApp:
    """The app for one session, for the log at a path, or for the sessions of a scan.

    `clock` gives the time now in UTC. `theme` is one of `triage.tui.theme`; `redact` takes secrets out of
    summaries and exports; `look` says whether a log is in use.
    """

    def desk(session: Session) -> Desk:
        picked = not isinstance(source, Session | str)
        return Desk(session, read_only, operator, clock, redact, look, picked)

    return TriageApp(source, desk, theme, clock)


def run(
    source: Session | str | Scan,
    *,
    read_only: bool = False,
    operator: str = "",
    redact: bool = False,
    theme: str | None = None,
) -> str:
    """Open the screen and stay until it is left. Returns what is for stdout: a line on each append, or "".

    `source` is a session; or a path: then the log is read behind a first screen that says how far it is;
    or a scan: then its sessions are listed as they are read, to be picked from.
    Raises Unreadable for such a path, and whatever failed in the screen, after the terminal was put back in
    order; nothing was printed.
    """
    sys.setswitchinterval(SWITCH)
    app = make_app(source, read_only=read_only, operator=operator, theme=theme, redact=redact)
    said = app.run()
    if app.ended_by:  # as it would have ended, but for the terminal
        signal.signal(app.ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), app.ended_by)
    failed = app.error or app.unreadable
    if failed is not None:
        raise failed
    return said or ""

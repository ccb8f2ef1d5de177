"""Drives a run in front of a person: the screen, single keys, Ctrl-C, and the ending.

Ctrl-C lets go of the run as it is; a second one aborts it. SIGTERM and SIGHUP let go as well.
**Invariant:** nothing here answers a gate.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steersman.app.runs import Driver
from steersman.app.start import drive_in_background
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_REFUSED, EXIT_WAITING, CommandContext
from steersman.faces.cli.run_ending import RunScreen, open_run_screen
from steersman.kernel.definition import Origin
from steersman.ports.journal import Head

if TYPE_CHECKING:
    from steersman.app.runs import StartRequest

SECOND_INTERRUPT_SECONDS = 1.0  # seconds after Ctrl-C in which a second one still aborts
DriveStep = Callable[[Driver], Awaitable[Any]]


class KeyHandler:
    """Handles the person's keys while a run is driven."""

    def __init__(self, context: CommandContext, screen: RunScreen, run: str, driver: Driver) -> None:
        self._context, self._screen, self._run, self._driver = context, screen, run, driver
        self._first: float | None = None
        self._twice = asyncio.Event()
        self.detach = False

    @property
    def abort(self) -> bool:
        """Whether the person wants the run to end."""
        return self._twice.is_set()

    def interrupt(self) -> None:
        """Handles Ctrl-C: the first stops the driver and leaves the run as it is, a second one aborts the run."""
        if self._first is None:
            self._first = asyncio.get_running_loop().time()
            self._driver.stop()
            abort_hint = "" if self._context.prompting else ". Ctrl-C again aborts the run"
            self._screen.note(f"stopping; nothing is lost{abort_hint}")
            self._context.signal = signal.SIGINT
        elif (
            not self._context.prompting
        ):  # at a prompt, repeated Ctrl-C returns to the prompt, which has /abort
            self._twice.set()

    def let_go(self, number: int) -> None:
        """SIGTERM, or the terminal is gone."""
        self._context.signal = number
        self._driver.stop()

    def handle_key(self) -> None:
        """A single key."""
        match os.read(sys.stdin.fileno(), 1):
            case b"d":
                self.detach = True
                self._driver.stop()
            case b"a":
                self._context.runs.abort(self._run, self._context.person, "key a")
                self._screen.note("aborting")

    async def linger(self) -> None:
        """Leaves a moment for the second Ctrl-C."""
        if self._first is not None and not self._context.prompting:
            seconds_left = self._first + SECOND_INTERRUPT_SECONDS - asyncio.get_running_loop().time()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._twice.wait(), max(seconds_left, 0.01))


@contextlib.contextmanager
def _handle_signals_and_keys(key_handler: KeyHandler, screen: RunScreen) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, key_handler.interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, key_handler.let_go, number)
    with contextlib.ExitStack() as stack:
        if screen.pane and sys.stdin is not None and sys.stdin.isatty():
            stack.enter_context(_disable_terminal_echo())
            if screen.keys:
                loop.add_reader(sys.stdin.fileno(), key_handler.handle_key)
                stack.callback(loop.remove_reader, sys.stdin.fileno())
        yield


@contextlib.contextmanager
def _disable_terminal_echo() -> Iterator[None]:
    """Nothing that is typed is echoed into the pane."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    terminal_settings = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, terminal_settings)


async def drive_with_keys(
    context: CommandContext, screen: RunScreen, run: str, driver: Driver, drive_step: DriveStep
) -> tuple[Any, bool]:
    """Drives with single keys; returns what `go` returned, and whether a background driver has taken over."""
    key_handler = KeyHandler(context, screen, run, driver)
    with screen, _handle_signals_and_keys(key_handler, screen):
        result = await drive_step(driver)
        await key_handler.linger()
        if key_handler.abort:
            message_id = context.runs.abort(run, context.person, "Ctrl-C twice")
            await context.runs.settle(run, message_id, screen.watch)
    if key_handler.detach:
        drive_in_background(context.runs.ports, run)
        context.print(f"run {run} goes on in the background: {context.command_prefix} watch {run}")
    return result, key_handler.detach


def drive_new_run(context: CommandContext, order: "StartRequest") -> int:
    """A new run, driven until it parks or ends."""
    return start_and_drive(context, order)[1]


def start_and_drive(context: CommandContext, order: "StartRequest") -> tuple[str, int]:
    """The same, with the name of the run."""
    screen = open_run_screen(context)

    async def start_and_steer() -> tuple[str, bool]:
        driver, lock, active_run = await context.runs.start(order, screen.watch)
        screen.follow(active_run.run)
        screen.watch(active_run, active_run.made.entries if active_run.made else ())

        async def drive_started_run(driver: Driver) -> Head:
            return await driver.drive(active_run.run, held=lock, live=active_run)

        _, detached = await drive_with_keys(context, screen, active_run.run, driver, drive_started_run)
        return active_run.run, detached

    run, detached = asyncio.run(start_and_steer())
    return run, EXIT_DONE if detached else finish_drive(context, run)


def resume_and_drive(
    context: CommandContext, run: str, *, take_over: bool = False, despite_reason: str | None = None
) -> int:
    """A run that is there, driven on until it parks or ends; `despite` is why one that does not fit may be."""
    screen = open_run_screen(context)
    screen.follow(run)

    async def drive_existing_run(driver: Driver) -> Head:
        despite_record = (context.person, despite_reason) if despite_reason is not None else None
        return await driver.drive(run, take_over=take_over, despite=despite_record)

    _, detached = asyncio.run(
        drive_with_keys(context, screen, run, Driver(context.runs.ports, screen.watch), drive_existing_run)
    )
    return EXIT_DONE if detached else finish_drive(context, run)


def wait_for_verdict(
    context: CommandContext,
    run: str,
    message_id: int,
    *,
    wanted_end: bool = False,
    legal: Callable[[], list[str]] | None = None,
) -> int:
    """What was posted, taken or refused; this command drives the run on unless a live driver does, and says which.
    `legal` says what could be typed instead, where a face has words of its own for it."""
    screen = open_run_screen(context)
    screen.follow(run)

    async def settle_message(driver: Driver) -> tuple[dict[str, Any], str]:
        return await context.runs.settle(run, message_id, driver=driver)

    driver = Driver(context.runs.ports, screen.watch)
    (verdict, driven_by), detached = asyncio.run(
        drive_with_keys(context, screen, run, driver, settle_message)
    )
    if verdict["result"] == "refused":
        return print_verdict_refusal(context, run, verdict, legal)
    if detached:
        return EXIT_DONE
    if driven_by == "this command":
        return finish_drive(context, run, wanted_end=wanted_end)
    result_text = "taken" if verdict["result"] == "taken" else verdict["why"]
    context.print(f"{result_text}; {driven_by} drives run {run}: {context.command_prefix} watch {run}")
    context.set_result(
        {"run": run, "result": verdict["result"], "driven_by": driven_by, "exit_code": EXIT_DONE}
    )
    return EXIT_DONE


def print_verdict_refusal(
    context: CommandContext,
    run: str,
    verdict: dict[str, Any],
    list_typed_actions: Callable[[], list[str]] | None = None,
) -> int:
    """Prints why a word was refused and what is legal now, unless a prompt follows that does."""
    legal = _legal_person_events(context, run, verdict.get("legal", ()))
    legal_text = "; ".join(list_typed_actions()) if list_typed_actions is not None else ", ".join(legal)
    legal_hint = f". Legal now: {legal_text or 'nothing'}. See `{context.command_prefix} why {run}`"
    context.warn(f"refused: {verdict['why']}{'' if context.prompting else legal_hint}", fg="red")
    context.set_result({"run": run, **verdict, "legal": legal, "exit_code": EXIT_REFUSED})
    return EXIT_REFUSED


def _legal_person_events(context: CommandContext, run: str, legal: Sequence[str]) -> list[str]:
    """Of what has a row now, what a person may cause; nothing where the run has ended for good."""
    if context.runs.live(run).snapshot.ended:
        return []
    events = context.runs.ports.machines[context.runs.head(run).machine].events
    return [name for name in legal if name not in events or events[name].origin is Origin.PERSON]


def finish_drive(context: CommandContext, run: str, *, wanted_end: bool = False) -> int:
    """Writes the projections, prints the outcome and the next commands, and returns the exit code."""
    from steersman.app.runs import write_projections
    from steersman.faces.cli.run_ending import print_run_outcome

    for problem in write_projections(context.runs.ports, run):
        context.warn(f"warning: {problem}", fg="yellow")
    head = context.runs.head(run)
    is_wanted_end = (
        wanted_end or head.outcome == "reverted"
    )  # which a person has asked for, by whatever word it was reached
    code = EXIT_DONE if is_wanted_end and head.status == "stopped" else run_exit_code(head)
    return print_run_outcome(context, run, code)


def run_exit_code(head: Head) -> int:
    """Decides the exit code of a command that drove a run, from the status of the run."""
    match head.status:
        case "done":
            return EXIT_DONE
        case "stopped" | "broken":
            return EXIT_ENDED
        case _:
            return EXIT_WAITING

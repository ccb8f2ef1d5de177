"""Drives a run in front of a person: a screen, single keys, Ctrl-C, and what is said when it ends or parks.

Ctrl-C lets go of the run as it is; a second one aborts it. SIGTERM and SIGHUP let go as well.
**Invariant:** nothing here answers a gate.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steersman.faces.deck import DONE, ENDED, REFUSED, WAITING, Deck
from steersman.faces.screens import Screen, screen_for
from steersman.kernel.definition import Origin
from steersman.ports.journal import Head
from steersman.runtime.drive import Driver

if TYPE_CHECKING:
    from steersman.runtime.start import Order

LINGER = 1.0  # seconds after Ctrl-C in which a second one still aborts
STARTING = 30.0  # seconds for a driver in the background to claim its run, on a busy machine
Go = Callable[[Driver], Awaitable[Any]]


class Hands:
    """The person's hands while a run is driven."""

    def __init__(self, deck: Deck, screen: Screen, run: str, driver: Driver) -> None:
        self._deck, self._screen, self._run, self._driver = deck, screen, run, driver
        self._first: float | None = None
        self._twice = asyncio.Event()
        self.detach = False

    @property
    def abort(self) -> bool:
        """Whether the person wants the run to end."""
        return self._twice.is_set()

    def interrupt(self) -> None:
        """Ctrl-C."""
        if self._first is None:
            self._first = asyncio.get_running_loop().time()
            self._driver.stop()
            again = "" if self._deck.prompting else ". Ctrl-C again aborts the run"
            self._screen.note(f"stopping; nothing is lost{again}")
            self._deck.signal = signal.SIGINT
        elif (
            not self._deck.prompting
        ):  # there somebody who hits it often wants the prompt back, and has /abort
            self._twice.set()

    def let_go(self, number: int) -> None:
        """SIGTERM, or the terminal is gone."""
        self._deck.signal = number
        self._driver.stop()

    def key(self) -> None:
        """A single key."""
        match os.read(sys.stdin.fileno(), 1):
            case b"d":
                self.detach = True
                self._driver.stop()
            case b"a":
                self._deck.bridge.abort(self._run, self._deck.person, "key a")
                self._screen.note("aborting")

    async def linger(self) -> None:
        """Leaves a moment for the second Ctrl-C."""
        if self._first is not None and not self._deck.prompting:
            left = self._first + LINGER - asyncio.get_running_loop().time()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._twice.wait(), max(left, 0.01))


@contextlib.contextmanager
def _held(hands: Hands, screen: Screen) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, hands.interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, hands.let_go, number)
    with contextlib.ExitStack() as stack:
        if screen.pane and sys.stdin is not None and sys.stdin.isatty():
            stack.enter_context(_cbreak())
            if screen.keys:
                loop.add_reader(sys.stdin.fileno(), hands.key)
                stack.callback(loop.remove_reader, sys.stdin.fileno())
        yield


@contextlib.contextmanager
def _cbreak() -> Iterator[None]:
    """Nothing that is typed is echoed into the pane."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


async def steered(deck: Deck, screen: Screen, run: str, driver: Driver, go: Go) -> tuple[Any, bool]:
    """Drives with hands on; gives what `go` gave, and whether a driver in the background has taken over."""
    hands = Hands(deck, screen, run, driver)
    with screen, _held(hands, screen):
        result = await go(driver)
        await hands.linger()
        if hands.abort:
            posted = deck.bridge.abort(run, deck.person, "Ctrl-C twice")
            await deck.bridge.settle(run, posted, screen.watch)
    if hands.detach:
        background(deck, run)
        deck.say(f"run {run} goes on in the background: {deck.me} watch {run}")
    return result, hands.detach


def launch(deck: Deck, order: "Order") -> int:
    """A new run, driven until it parks or ends."""
    return launched(deck, order)[1]


def launched(deck: Deck, order: "Order") -> tuple[str, int]:
    """The same, with the name of the run."""
    screen = screen_for(deck)

    async def voyage() -> tuple[str, bool]:
        driver, lock, live = await deck.bridge.start(order, screen.watch)
        screen.follow(live.run)
        screen.watch(live, live.made.entries if live.made else ())

        async def go(driver: Driver) -> Head:
            return await driver.drive(live.run, held=lock, live=live)

        _, detached = await steered(deck, screen, live.run, driver, go)
        return live.run, detached

    run, detached = asyncio.run(voyage())
    return run, DONE if detached else ended(deck, run)


def drive_on(deck: Deck, run: str, *, take_over: bool = False, despite: str | None = None) -> int:
    """A run that is there, driven on until it parks or ends; `despite` is why one that does not fit may be."""
    screen = screen_for(deck)
    screen.follow(run)

    async def go(driver: Driver) -> Head:
        who = (deck.person, despite) if despite is not None else None
        return await driver.drive(run, take_over=take_over, despite=who)

    _, detached = asyncio.run(steered(deck, screen, run, Driver(deck.bridge.world, screen.watch), go))
    return DONE if detached else ended(deck, run)


def spoken(
    deck: Deck,
    run: str,
    posted: int,
    *,
    wanted_end: bool = False,
    legal: Callable[[], list[str]] | None = None,
) -> int:
    """What was posted, taken or refused; this command drives the run on unless a live driver does, and says which.
    `legal` says what could be typed instead, where a face has words of its own for it."""
    screen = screen_for(deck)
    screen.follow(run)

    async def go(driver: Driver) -> tuple[dict[str, Any], str]:
        return await deck.bridge.settle(run, posted, driver=driver)

    driver = Driver(deck.bridge.world, screen.watch)
    (verdict, by), detached = asyncio.run(steered(deck, screen, run, driver, go))
    if verdict["result"] == "refused":
        return refused(deck, run, verdict, legal)
    if detached:
        return DONE
    if by == "this command":
        return ended(deck, run, wanted_end=wanted_end)
    told = "taken" if verdict["result"] == "taken" else verdict["why"]
    deck.say(f"{told}; {by} drives run {run}: {deck.me} watch {run}")
    deck.tell({"run": run, "result": verdict["result"], "driven_by": by, "exit_code": DONE})
    return DONE


def refused(
    deck: Deck, run: str, verdict: dict[str, Any], typed: Callable[[], list[str]] | None = None
) -> int:
    """A refusal is on tape; says why and what is legal now, unless a prompt follows that does."""
    legal = _for_people(deck, run, verdict.get("legal", ()))
    told = "; ".join(typed()) if typed is not None else ", ".join(legal)
    see = f"; legal now: {told or 'nothing'} (see `{deck.me} why {run}`)"
    deck.warn(f"refused: {verdict['why']}{'' if deck.prompting else see}", fg="red")
    deck.tell({"run": run, **verdict, "legal": legal, "exit_code": REFUSED})
    return REFUSED


def _for_people(deck: Deck, run: str, legal: Sequence[str]) -> list[str]:
    """Of what has a row now, what a person may cause; nothing where the run has ended for good."""
    if deck.bridge.live(run).snapshot.ended:
        return []
    events = deck.bridge.world.machines[deck.bridge.head(run).machine].events
    return [name for name in legal if name not in events or events[name].origin is Origin.PERSON]


def ended(deck: Deck, run: str, *, wanted_end: bool = False) -> int:
    """Writes the projections and says what became of the run and what comes next; gives the exit code."""
    from steersman.faces.ending import tell_ending
    from steersman.runtime.projections import write

    for trouble in write(deck.bridge.world, run):
        deck.warn(f"warning: {trouble}", fg="yellow")
    head = deck.bridge.head(run)
    wanted = (
        wanted_end or head.outcome == "reverted"
    )  # which a person has asked for, by whatever word it was reached
    code = DONE if wanted and head.status == "stopped" else exit_code(head)
    return tell_ending(deck, run, code)


def exit_code(head: Head) -> int:
    """What became of a run, as an exit code."""
    match head.status:
        case "done":
            return DONE
        case "stopped" | "broken":
            return ENDED
        case _:
            return WAITING


def background(deck: Deck, run: str) -> str:
    """Starts a driver for the run in a session of its own; gives the file it writes to.

    Returns when the driver has claimed the run or has ended: until then `watch` and `why` would say that nobody drives it.
    """
    folder = deck.helm.state_dir(deck.project) / "logs"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / f"{run}.log"
    with log.open("ab") as out:
        driver = subprocess.Popen(
            deck.helm.driver_argv(deck.project, run),
            cwd=deck.project,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    patience = time.monotonic() + STARTING
    while (
        deck.bridge.world.locks.owner(run) is None and driver.poll() is None and time.monotonic() < patience
    ):
        time.sleep(0.02)
    return str(log)

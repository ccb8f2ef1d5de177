"""`steersman doctor`: looks at the surroundings and says how to mend them. It changes nothing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import msgspec

from steersman.errors import JournalError, MemoryUnavailable, NoMemory, SteersmanError, StoreBroken
from steersman.faces.deck import DONE, ENDED, STORE, Deck, verb
from steersman.faces.lost import lost
from steersman.faces.trust import count_lines, is_trusted
from steersman.ports.journal import Journal
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.moments import span

ROOM = 200 * 1024 * 1024
OLDEST_GIT = (2, 38)


class Finding(msgspec.Struct, frozen=True):
    """One thing looked at."""

    what: str
    ok: bool
    told: str
    fix: str = ""
    store: bool = False


@verb(
    "doctor", "steersman doctor", exits="0 all well · 1 something to mend · 2 wrong usage · 5 store trouble"
)
def doctor(deck: Deck) -> int:
    """Check Python, git, SQLite, store, memories, disk, steersman.toml, sandbox, agents, delivery, runs put aside and overdue timers."""
    deck.quiet = True
    looks: tuple[Callable[[Deck], Iterator[Finding]], ...] = (
        _python,
        _git,
        _disk,
        _config,
        _sandbox,
        _agents,
        _delivery,
        _talkers,
        _store,
        _memories,
        _lost,
        _runs,
    )
    found = [f for look in looks for f in look(deck)]
    deck.tell(found)
    for f in found:
        deck.say(f"{'ok  ' if f.ok else 'MEND'}  {f.what}: {f.told}", fg=None if f.ok else "red")
        if f.fix and not f.ok:
            deck.say(f"      {f.fix}")
    if any(f.store and not f.ok for f in found):
        return STORE
    return ENDED if any(not f.ok for f in found) else DONE


def _python(_deck: Deck) -> Iterator[Finding]:
    told = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", sys.version_info >= (3, 11), told, "install Python 3.11 or newer")


def _git(_deck: Deck) -> Iterator[Finding]:
    try:
        quiet = {
            "PATH": os.environ.get("PATH", ""),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        said = subprocess.run(
            ["git", "version"], env=quiet, capture_output=True, check=False, timeout=10
        ).stdout.decode()
    except (OSError, subprocess.TimeoutExpired):
        yield Finding("git", ok=False, told="not found on PATH", fix="install git 2.38 or newer")
        return
    numbers = [int(n) for n in said.split()[2].split(".")[:2] if n.isdigit()] if len(said.split()) > 2 else []
    yield Finding("git", tuple(numbers) >= OLDEST_GIT, said.strip(), "install git 2.38 or newer")


def _disk(deck: Deck) -> Iterator[Finding]:
    place = str(deck.helm.state_dir(deck.project))
    while not os.path.exists(place):
        place = os.path.dirname(place)
    free = shutil.disk_usage(place).free
    fix = "make room: what is acknowledged has to fit"
    yield Finding("disk", free >= ROOM, f"{free // 2**20} MB free at {place}", fix)
    writable = os.access(place, os.W_OK)
    told = "can be written" if writable else "is read-only: nothing can be written here, only looked at"
    fix = "make its disk writable, check who owns it, or set XDG_STATE_HOME"
    yield Finding("state directory", writable, f"{place} {told}", fix, store=True)


def _config(deck: Deck) -> Iterator[Finding]:
    try:
        loaded = deck.read_config()
    except SteersmanError as error:
        yield Finding("settings", ok=False, told=str(error), fix="correct the file that is named above")
        return
    yield from (Finding("limits", ok=True, told=change) for change in loaded.tightened)
    if loaded.powerful:
        known = is_trusted(deck, loaded)
        count = count_lines(len(loaded.powerful))
        told = f"trusted: {count}" if known else "not trusted yet: nothing is started"
        yield Finding("trust", known, told, f"{deck.me} trust")
    if loaded.path is None:
        yield Finding("steersman.toml", ok=False, told="not there", fix=f"{deck.me} init")
        return
    yield Finding("steersman.toml", ok=True, told=str(loaded.path))
    checks = loaded.config.checks
    yield Finding(
        "checks",
        bool(checks),
        f"{len(checks)} under [checks]",
        "add one under [checks]: without evidence nothing is approved",
    )


def _sandbox(deck: Deck) -> Iterator[Finding]:
    try:
        box = deck.helm.sandbox(deck.read_config().config)
    except SteersmanError as error:
        yield Finding("sandbox", ok=False, told=str(error), fix="see above; no run starts without it")
        return
    told = f"agents and checks run in a box{_unbound()}" if box.isolated else f"{NOT_ISOLATED}: {box.why}"
    yield Finding("sandbox", box.isolated, told, box.fix)


def _unbound() -> str:
    """Which of a box's limits does not hold for whoever asks."""
    root = "; its limit on the number of processes does not bind: the kernel does not count those of root"
    return root if os.geteuid() == 0 else ""


def _agents(deck: Deck) -> Iterator[Finding]:
    from steersman.faces.outlook import crew_problems

    try:
        config = deck.load_config(ask=False).config
    except SteersmanError:
        return
    for m in deck.helm.machines().values():
        found = crew_problems(deck, m, config)
        yield Finding(
            f"crew of {m.name}", not found, "; ".join(found) or "everybody can be called", "see above"
        )


def _delivery(deck: Deck) -> Iterator[Finding]:
    from steersman.faces.outlook import delivery_problems

    try:
        config = deck.read_config().config
    except SteersmanError:
        return
    found = delivery_problems(deck, config)
    yield Finding("delivery", not found, "; ".join(found) or f"as {config.deliver}", "see above")
    try:
        cut = deck.helm.open_world(deck.project, journal=None).workspace(config).interrupted()
    except SteersmanError:
        return  # no repository: said above
    if cut:
        told = (
            f"the delivery of run {', '.join(cut)} was cut short; files of that run may be in your checkout"
        )
        yield Finding("interrupted delivery", ok=False, told=told, fix=f"{deck.me} resume")


def _talkers(deck: Deck) -> Iterator[Finding]:
    from steersman.runtime.chat import Talks

    try:
        config = deck.load_config(ask=False).config
    except SteersmanError:
        return
    for name in config.chat.agents:
        try:
            Talks(deck.helm.open_world(deck.project, journal=None), config).ready([name])
        except SteersmanError as error:
            yield Finding(f"@{name}", ok=False, told=str(error), fix="mend [chat] in steersman.toml")
        else:
            yield Finding(f"@{name}", ok=True, told="can be talked to")


def _store(deck: Deck) -> Iterator[Finding]:
    yield Finding("sqlite", ok=True, told=deck.helm.sqlite_version())
    if not deck.has_store():
        gone = bool(lost(deck))
        told = "gone, but anchors say what was in it" if gone else "nothing has been run here yet"
        yield Finding("store", not gone, told, "restore it from a backup", store=True)
        return
    try:
        damage = deck.journal.integrity()  # type: ignore[attr-defined]  of the SQLite store
    except JournalError as error:
        yield Finding("store", ok=False, told=str(error), store=True)  # it names its own fix
        return
    fix = "restore it from a backup; `steersman audit verify` says which runs still fit"
    yield Finding("store", not damage, "; ".join(damage[:5]) or "whole", fix, store=True)


def _memories(deck: Deck) -> Iterator[Finding]:
    try:
        kept = len(deck.helm.memories(deck.project).entries(limit=10_000))
    except NoMemory as nothing:
        yield Finding("memories", ok=True, told=str(nothing))
    except MemoryUnavailable as error:
        yield Finding("memories", ok=False, told=str(error).removesuffix(f": {error.fix}"), fix=error.fix)
    else:
        yield Finding("memories", ok=True, told=f"{kept} kept")


def _lost(deck: Deck) -> Iterator[Finding]:
    try:
        runs = lost(deck)
    except SteersmanError:  # the store has been told, or git
        return
    for run in runs:
        told = "an anchor vouches for it, but the store does not have it"
        yield Finding(
            f"run {run}",
            ok=False,
            told=told,
            fix=f"restore the store from a backup, or see `{deck.me} audit verify {run}`",
            store=True,
        )


def _runs(deck: Deck) -> Iterator[Finding]:
    if not deck.has_store():
        return
    try:
        journal = deck.journal
        aside, now = _damaged(journal) | journal.quarantined(), _now()
        due = [h for h in journal.due(now) if not deck.helm.owner(deck.top, h.run)]
    except JournalError:
        return
    for run, why in aside.items():
        yield Finding(
            f"run {run}", ok=False, told=f"broken: {why}", fix=f"{deck.me} audit verify {run}", store=True
        )
    for head in due:
        late = span(now - (head.due or now))
        yield Finding(
            f"run {head.run}",
            ok=False,
            told=f"{late} overdue and nobody drives it",
            fix=f"{deck.me} resume {head.run}",
        )


def _damaged(journal: Journal) -> dict[str, str]:
    """Runs of which a row beside the tape cannot be read; a tape itself is read by `audit verify`."""
    from steersman.runtime.inbox import unfit

    found = {}
    for head in journal.heads(limit=100_000):
        try:
            journal.head(head.run)
            journal.gates(head.run)
            journal.budget(head.run)
            journal.definition(head.definition)
            why = next(filter(None, map(unfit, journal.pending(head.run))), "")
        except StoreBroken as error:
            why = str(error).removeprefix(f"run {head.run}: ")
        if why:
            found[head.run] = why
    return found


def _now() -> int:
    import time

    return time.time_ns() // 1_000_000

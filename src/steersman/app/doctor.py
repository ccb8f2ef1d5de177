"""The surroundings of a project, looked at one by one: what is wrong, and how to correct it.

**Invariant:** changes nothing, and starts nothing of settings that no person trusts.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from steersman.app.audit import find_missing_runs
from steersman.app.dry_run import find_crew_problems, find_delivery_problems, measure_free_space
from steersman.app.trust import SettingsTrust, count_lines_text
from steersman.contracts.config import Config
from steersman.engine.chat.service import ChatService
from steersman.engine.inbox import find_inbox_problem
from steersman.engine.ports import Ports, require_planning
from steersman.errors import JournalError, MemoryUnavailable, NoMemory, SteersmanError, StoreBroken
from steersman.ports.journal import Journal
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.time_format import format_duration

__all__ = ["DoctorFinding", "DoctorSubject", "examine_project"]

MIN_FREE_BYTES = 200 * 1024 * 1024
OLDEST_GIT_VERSION = (2, 38)


class DoctorFinding(msgspec.Struct, frozen=True):
    """The result of one check of this machine."""

    what: str
    ok: bool
    told: str
    fix: str = ""
    store: bool = False


class DoctorSubject(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is looked at: one project on this machine."""

    ports: Ports
    open_journal: Callable[[], Journal] | None  # None: nothing has been run here
    read_settings: Callable[[], SettingsTrust]
    state_directory: str
    sqlite_version: str
    command_prefix: str


def examine_project(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    """Everything that a run needs, in the order in which it is corrected best."""
    for examine in (
        _check_python_version,
        _check_git_version,
        _check_state_disk,
        _check_settings_file,
        _check_sandbox_isolation,
        _check_role_agents,
        _check_delivery_setup,
        _check_chat_agents,
        _check_store_health,
        _check_memory_store,
        _check_missing_runs,
        _check_broken_and_overdue_runs,
    ):
        yield from examine(subject)


def _check_python_version(_subject: DoctorSubject) -> Iterator[DoctorFinding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorFinding("python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")


def _check_git_version(_subject: DoctorSubject) -> Iterator[DoctorFinding]:
    try:
        git_env = {
            "PATH": os.environ.get("PATH", ""),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        version_text = subprocess.run(
            ["git", "version"], env=git_env, capture_output=True, check=False, timeout=10
        ).stdout.decode()
    except (OSError, subprocess.TimeoutExpired):
        yield DoctorFinding("git", ok=False, told="not found on PATH", fix="install git 2.38 or newer")
        return
    numbers = (
        [int(number_text) for number_text in version_text.split()[2].split(".")[:2] if number_text.isdigit()]
        if len(version_text.split()) > 2
        else []
    )
    yield DoctorFinding(
        "git", tuple(numbers) >= OLDEST_GIT_VERSION, version_text.strip(), "install git 2.38 or newer"
    )


def _check_state_disk(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    space = measure_free_space(subject.state_directory)
    directory, megabytes = space.directory, space.bytes // 2**20
    yield DoctorFinding(
        "disk",
        space.bytes >= MIN_FREE_BYTES,
        f"{megabytes} MB free at {directory}",
        "free some space: steersman has to be able to write the store",
    )
    writable = os.access(directory, os.W_OK)
    writable_text = (
        "can be written" if writable else "is read-only: runs can be listed and shown, but not started"
    )
    fix = "make its disk writable, check who owns it, or set XDG_STATE_HOME"
    yield DoctorFinding("state directory", writable, f"{directory} {writable_text}", fix, store=True)


def _check_settings_file(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    try:
        trust = subject.read_settings()
    except SteersmanError as error:
        yield DoctorFinding("settings", ok=False, told=str(error), fix="correct the file that is named above")
        return
    loaded = trust.loaded
    yield from (DoctorFinding("limits", ok=True, told=change) for change in loaded.tightened)
    if loaded.powerful:
        count = count_lines_text(len(loaded.powerful))
        trust_text = f"trusted: {count}" if trust.is_trusted else "not trusted yet: no run starts"
        yield DoctorFinding("trust", trust.is_trusted, trust_text, f"{subject.command_prefix} trust")
    if loaded.path is None:
        yield DoctorFinding(
            "steersman.toml", ok=False, told="there is none", fix=f"{subject.command_prefix} init"
        )
        return
    yield DoctorFinding("steersman.toml", ok=True, told=str(loaded.path))
    checks = loaded.config.checks
    yield DoctorFinding(
        "checks",
        bool(checks),
        f"{len(checks)} under [checks]",
        "add one under [checks]: a run is approved only with evidence",
    )


def _check_sandbox_isolation(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    try:
        config = subject.read_settings().loaded.config
        sandbox = subject.ports.sandbox(config) if subject.ports.sandbox is not None else None
    except SteersmanError as error:
        yield DoctorFinding(
            "sandbox",
            ok=False,
            told=str(error),
            fix="install or start what the line above names; no run starts without it",
        )
        return
    if sandbox is None:
        return
    isolation_text = (
        f"agents and checks run in a sandbox{_root_limit_note()}"
        if sandbox.isolated
        else f"{NOT_ISOLATED}: {sandbox.why}"
    )
    yield DoctorFinding("sandbox", sandbox.isolated, isolation_text, sandbox.fix)


def _root_limit_note() -> str:
    """Returns a note for root, to whom the sandbox's limit on processes does not apply."""
    root_note = "; its limit on the number of processes has no effect, because the kernel does not count the processes of root"
    return root_note if os.geteuid() == 0 else ""


def _check_role_agents(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    config = _read_trusted_config(subject)
    if config is None:
        return
    for definition in subject.ports.machines.values():
        problems = find_crew_problems(subject.ports, definition, config, subject.state_directory)
        yield DoctorFinding(
            f"agents for {definition.name}",
            not problems,
            "; ".join(problems) or "every role has an agent that can be called",
            "see above",
        )


def _read_trusted_config(subject: DoctorSubject) -> Config | None:
    """The settings to act upon; None where no person trusts them, or they cannot be read."""
    try:
        trust = subject.read_settings()
    except SteersmanError:
        return None
    return trust.loaded.config if trust.is_trusted else None


def _check_delivery_setup(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    try:
        config = subject.read_settings().loaded.config
    except SteersmanError:
        return
    problems = find_delivery_problems(subject.ports, config)
    yield DoctorFinding(
        "delivery",
        not problems,
        "; ".join(problems) or f"as {config.deliver}",
        "see above",
    )
    try:
        interrupted_runs = subject.ports.workspace(config).list_interrupted_runs()
    except SteersmanError:
        return  # no repository: another finding says so
    if interrupted_runs:
        interrupted_text = f"the delivery of run {', '.join(interrupted_runs)} was cut short; files of that run may be in your checkout"
        yield DoctorFinding(
            "interrupted delivery", ok=False, told=interrupted_text, fix=f"{subject.command_prefix} resume"
        )


def _check_chat_agents(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    config = _read_trusted_config(subject)
    for name in config.chat.agents if config is not None else ():
        try:
            ChatService(subject.ports, config or Config()).require_ready_agents([name])
        except SteersmanError as error:
            yield DoctorFinding(f"@{name}", ok=False, told=str(error), fix="correct [chat] in steersman.toml")
        else:
            yield DoctorFinding(f"@{name}", ok=True, told="can be called")


def _check_store_health(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    yield DoctorFinding("sqlite", ok=True, told=subject.sqlite_version)
    if subject.open_journal is None:
        is_gone = bool(_list_missing_runs(subject))
        store_text = (
            "missing, but anchors name runs that were in it" if is_gone else "nothing has been run here yet"
        )
        yield DoctorFinding("store", not is_gone, store_text, "restore it from a backup", store=True)
        return
    try:
        damage = subject.open_journal().integrity()
    except JournalError as error:
        yield DoctorFinding("store", ok=False, told=str(error), store=True)  # the message names the fix
        return
    fix = "restore it from a backup; `steersman audit verify` says which runs are intact"
    yield DoctorFinding("store", not damage, "; ".join(damage[:5]) or "no damage found", fix, store=True)


def _check_memory_store(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    try:
        memory_count = len(require_planning(subject.ports).memories.entries(limit=10_000))
    except NoMemory as no_memory_error:
        yield DoctorFinding("memories", ok=True, told=str(no_memory_error))
    except MemoryUnavailable as error:
        yield DoctorFinding(
            "memories", ok=False, told=str(error).removesuffix(f": {error.fix}"), fix=error.fix
        )
    else:
        yield DoctorFinding("memories", ok=True, told=f"{memory_count} stored")


def _check_missing_runs(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    try:
        runs = _list_missing_runs(subject)
    except SteersmanError:  # another finding names the store or git
        return
    for run in runs:
        missing_text = "an anchor names it, but the store does not have it"
        yield DoctorFinding(
            f"run {run}",
            ok=False,
            told=missing_text,
            fix=f"restore the store from a backup, or see `{subject.command_prefix} audit verify {run}`",
            store=True,
        )


def _list_missing_runs(subject: DoctorSubject) -> list[str]:
    """Every run that an anchor remembers and the store does not have; looking makes no state directory."""
    if subject.open_journal is not None:
        return find_missing_runs(replace(subject.ports, journal=subject.open_journal()))
    has_state = os.path.isdir(subject.state_directory)
    return find_missing_runs(subject.ports, has_store=False) if has_state else []


def _check_broken_and_overdue_runs(subject: DoctorSubject) -> Iterator[DoctorFinding]:
    if subject.open_journal is None:
        return
    try:
        journal = subject.open_journal()
        broken_runs, now = _find_damaged_runs(journal) | journal.quarantined(), subject.ports.clock.now()
        overdue_heads = [head for head in journal.due(now) if not subject.ports.locks.owner(head.run)]
    except JournalError:
        return
    for run, reason in broken_runs.items():
        yield DoctorFinding(
            f"run {run}",
            ok=False,
            told=f"broken: {reason}",
            fix=f"{subject.command_prefix} audit verify {run}",
            store=True,
        )
    for head in overdue_heads:
        lateness = format_duration(now - (head.due or now))
        yield DoctorFinding(
            f"run {head.run}",
            ok=False,
            told=f"{lateness} overdue, and no process drives it",
            fix=f"{subject.command_prefix} resume {head.run}",
        )


def _find_damaged_runs(journal: Journal) -> dict[str, str]:
    """Finds runs with an unreadable row beside the tape; `audit verify` reads the tapes themselves."""
    damaged_runs = {}
    for head in journal.heads(limit=100_000):
        try:
            journal.head(head.run)
            journal.gates(head.run)
            journal.budget(head.run)
            journal.definition(head.definition)
            reason = next(filter(None, map(find_inbox_problem, journal.pending(head.run))), "")
        except StoreBroken as error:
            reason = str(error).removeprefix(f"run {head.run}: ")
        if reason:
            damaged_runs[head.run] = reason
    return damaged_runs

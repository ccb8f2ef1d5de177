"""`steersman doctor`: checks this machine and says how to fix each problem. It changes nothing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import msgspec

from steersman.errors import JournalError, MemoryUnavailable, NoMemory, SteersmanError, StoreBroken
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_STORE, CommandContext, define_command
from steersman.faces.cli.missing_runs import find_project_missing_runs
from steersman.faces.cli.trust_prompt import count_lines_text, is_config_trusted
from steersman.ports.journal import Journal
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.time_format import format_duration

MIN_FREE_BYTES = 200 * 1024 * 1024
OLDEST_GIT_VERSION = (2, 38)


class DoctorFinding(msgspec.Struct, frozen=True):
    """The result of one check of this machine."""

    what: str
    ok: bool
    told: str
    fix: str = ""
    store: bool = False


@define_command(
    "doctor",
    "steersman doctor",
    exits="0 no problem · 1 there are problems · 2 wrong usage · 5 store trouble",
)
def doctor_command(context: CommandContext) -> int:
    """Check this machine and say how to fix each problem: Python, git, SQLite, store, memories, disk, steersman.toml, sandbox, agents, delivery, broken runs and overdue timers."""
    context.quiet = True
    examinations: tuple[Callable[[CommandContext], Iterator[DoctorFinding]], ...] = (
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
    )
    findings = [finding for examine in examinations for finding in examine(context)]
    context.set_result(findings)
    for finding in findings:
        context.print(
            f"{'ok ' if finding.ok else 'FIX'}  {finding.what}: {finding.told}",
            fg=None if finding.ok else "red",
        )
        if finding.fix and not finding.ok:
            context.print(f"     {finding.fix}")
    if any(finding.store and not finding.ok for finding in findings):
        return EXIT_STORE
    return EXIT_ENDED if any(not finding.ok for finding in findings) else EXIT_DONE


def _check_python_version(_context: CommandContext) -> Iterator[DoctorFinding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorFinding("python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")


def _check_git_version(_context: CommandContext) -> Iterator[DoctorFinding]:
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


def _check_state_disk(context: CommandContext) -> Iterator[DoctorFinding]:
    directory = str(context.services.project_state_directory(context.project))
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    free_bytes = shutil.disk_usage(directory).free
    fix = "free some space: steersman has to be able to write the store"
    yield DoctorFinding(
        "disk", free_bytes >= MIN_FREE_BYTES, f"{free_bytes // 2**20} MB free at {directory}", fix
    )
    writable = os.access(directory, os.W_OK)
    writable_text = (
        "can be written" if writable else "is read-only: runs can be listed and shown, but not started"
    )
    fix = "make its disk writable, check who owns it, or set XDG_STATE_HOME"
    yield DoctorFinding("state directory", writable, f"{directory} {writable_text}", fix, store=True)


def _check_settings_file(context: CommandContext) -> Iterator[DoctorFinding]:
    try:
        loaded = context.read_config()
    except SteersmanError as error:
        yield DoctorFinding("settings", ok=False, told=str(error), fix="correct the file that is named above")
        return
    yield from (DoctorFinding("limits", ok=True, told=change) for change in loaded.tightened)
    if loaded.powerful:
        is_known = is_config_trusted(context, loaded)
        count = count_lines_text(len(loaded.powerful))
        trust_text = f"trusted: {count}" if is_known else "not trusted yet: no run starts"
        yield DoctorFinding("trust", is_known, trust_text, f"{context.command_prefix} trust")
    if loaded.path is None:
        yield DoctorFinding(
            "steersman.toml", ok=False, told="there is none", fix=f"{context.command_prefix} init"
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


def _check_sandbox_isolation(context: CommandContext) -> Iterator[DoctorFinding]:
    try:
        sandbox = context.services.open_project_sandbox(context.read_config().config)
    except SteersmanError as error:
        yield DoctorFinding(
            "sandbox",
            ok=False,
            told=str(error),
            fix="install or start what the line above names; no run starts without it",
        )
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


def _check_role_agents(context: CommandContext) -> Iterator[DoctorFinding]:
    from steersman.faces.cli.dry_run import find_crew_problems

    try:
        config = context.load_config(ask=False).config
    except SteersmanError:
        return
    for definition in context.services.installed_machines().values():
        crew_problems_found = find_crew_problems(context, definition, config)
        yield DoctorFinding(
            f"agents for {definition.name}",
            not crew_problems_found,
            "; ".join(crew_problems_found) or "every role has an agent that can be called",
            "see above",
        )


def _check_delivery_setup(context: CommandContext) -> Iterator[DoctorFinding]:
    from steersman.faces.cli.dry_run import find_delivery_problems

    try:
        config = context.read_config().config
    except SteersmanError:
        return
    delivery_problem_texts = find_delivery_problems(context, config)
    yield DoctorFinding(
        "delivery",
        not delivery_problem_texts,
        "; ".join(delivery_problem_texts) or f"as {config.deliver}",
        "see above",
    )
    try:
        interrupted_runs = (
            context.services.open_ports(context.project, journal=None)
            .workspace(config)
            .list_interrupted_runs()
        )
    except SteersmanError:
        return  # no repository: another finding says so
    if interrupted_runs:
        interrupted_text = f"the delivery of run {', '.join(interrupted_runs)} was cut short; files of that run may be in your checkout"
        yield DoctorFinding(
            "interrupted delivery", ok=False, told=interrupted_text, fix=f"{context.command_prefix} resume"
        )


def _check_chat_agents(context: CommandContext) -> Iterator[DoctorFinding]:
    from steersman.engine.chat.service import ChatService

    try:
        config = context.load_config(ask=False).config
    except SteersmanError:
        return
    for name in config.chat.agents:
        try:
            ChatService(
                context.services.open_ports(context.project, journal=None), config
            ).require_ready_agents([name])
        except SteersmanError as error:
            yield DoctorFinding(f"@{name}", ok=False, told=str(error), fix="correct [chat] in steersman.toml")
        else:
            yield DoctorFinding(f"@{name}", ok=True, told="can be called")


def _check_store_health(context: CommandContext) -> Iterator[DoctorFinding]:
    yield DoctorFinding("sqlite", ok=True, told=context.services.sqlite_version())
    if not context.has_store():
        is_gone = bool(find_project_missing_runs(context))
        store_text = (
            "missing, but anchors name runs that were in it" if is_gone else "nothing has been run here yet"
        )
        yield DoctorFinding("store", not is_gone, store_text, "restore it from a backup", store=True)
        return
    try:
        damage = context.journal.integrity()
    except JournalError as error:
        yield DoctorFinding("store", ok=False, told=str(error), store=True)  # the message names the fix
        return
    fix = "restore it from a backup; `steersman audit verify` says which runs are intact"
    yield DoctorFinding("store", not damage, "; ".join(damage[:5]) or "no damage found", fix, store=True)


def _check_memory_store(context: CommandContext) -> Iterator[DoctorFinding]:
    try:
        memory_count = len(context.services.open_memories(context.project).entries(limit=10_000))
    except NoMemory as no_memory_error:
        yield DoctorFinding("memories", ok=True, told=str(no_memory_error))
    except MemoryUnavailable as error:
        yield DoctorFinding(
            "memories", ok=False, told=str(error).removesuffix(f": {error.fix}"), fix=error.fix
        )
    else:
        yield DoctorFinding("memories", ok=True, told=f"{memory_count} stored")


def _check_missing_runs(context: CommandContext) -> Iterator[DoctorFinding]:
    try:
        runs = find_project_missing_runs(context)
    except SteersmanError:  # another finding names the store or git
        return
    for run in runs:
        missing_text = "an anchor names it, but the store does not have it"
        yield DoctorFinding(
            f"run {run}",
            ok=False,
            told=missing_text,
            fix=f"restore the store from a backup, or see `{context.command_prefix} audit verify {run}`",
            store=True,
        )


def _check_broken_and_overdue_runs(context: CommandContext) -> Iterator[DoctorFinding]:
    if not context.has_store():
        return
    try:
        journal = context.journal
        broken_runs, now = _find_damaged_runs(journal) | journal.quarantined(), _current_milliseconds()
        overdue_heads = [
            due_head
            for due_head in journal.due(now)
            if not context.services.find_run_owner(context.project_root, due_head.run)
        ]
    except JournalError:
        return
    for run, reason in broken_runs.items():
        yield DoctorFinding(
            f"run {run}",
            ok=False,
            told=f"broken: {reason}",
            fix=f"{context.command_prefix} audit verify {run}",
            store=True,
        )
    for head in overdue_heads:
        lateness = format_duration(now - (head.due or now))
        yield DoctorFinding(
            f"run {head.run}",
            ok=False,
            told=f"{lateness} overdue, and no process drives it",
            fix=f"{context.command_prefix} resume {head.run}",
        )


def _find_damaged_runs(journal: Journal) -> dict[str, str]:
    """Finds runs with an unreadable row beside the tape; `audit verify` reads the tapes themselves."""
    from steersman.engine.inbox import find_inbox_problem

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


def _current_milliseconds() -> int:
    import time

    return time.time_ns() // 1_000_000

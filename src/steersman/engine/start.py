"""Creates runs: from a person's request, from a parent's job, or from an entry of another run (a fork)."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from steersman.contracts.artifacts import STATE_FILE
from steersman.contracts.config import Config, FrozenConfig, freeze_config, require_roles
from steersman.contracts.workspace import RunBase
from steersman.engine.active_run import ActiveRun, PayloadStore, require_head
from steersman.engine.ports import Ports, isolation_warning
from steersman.engine.project_files import freeze_project_files
from steersman.engine.run_writer import budget_limits, budget_reservations, child_ended_posts
from steersman.errors import OverBudget, StaleError, UserError
from steersman.judges.redaction.redact import redact_text
from steersman.judges.replies.strict_json import render_field_path as field_name
from steersman.judges.text import clip_text, printable_text
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.definition import Origin
from steersman.kernel.machine import Machine, definition_data
from steersman.kernel.record import (
    RunAdvance,
    StepMeta,
    advance_computed_steps,
    create_run_entries,
    planned_items,
)
from steersman.kernel.replay import BadEntry, apply_entry, convert_context, rebuild_snapshot
from steersman.kernel.snapshot import JobItem, Snapshot, runtime_field
from steersman.kernel.step import EventOccurrence, compute_event, plan_work
from steersman.kernel.tape import GENESIS_HASH, Entry, seal_entry
from steersman.ports.journal import Spend

MAX_TITLE_CHARS = 100


class StartRequest(msgspec.Struct, frozen=True):
    """What a person asks for when a run begins."""

    machine: str
    task: str
    person: str
    config: Config
    options: dict[str, Any] = {}  # mode, max_iterations, …: options of the machine
    texts: dict[str, str] = {}  # documents that the run uses word for word
    roles: tuple[str, ...] = ()  # beside those that the machine always has
    issue: str = ""  # text that others wrote: data, never the task


async def start_run(ports: Ports, request: StartRequest, *, run: str | None = None) -> tuple[ActiveRun, Any]:
    """Creates a run and returns it with its lock; the run is durable, and no effect has started."""
    machine = find_machine(ports, request.machine)
    base = _read_run_base(ports, request.config) if machine.tree else RunBase("", "")
    config = _freeze_run_config(ports, request.config, base)
    roles = dict.fromkeys((*machine.roles, *request.roles))
    for role in (role for role in roles if role in config.roles):
        ports.agent(role, config)
    require_roles(config, roles)
    _refuse_ignored_settings(config)
    _refuse_config_secrets(ports, config)
    _check_usable_budget(ports, config)
    if machine.tree:
        problem = ports.workspace(config).find_delivery_problem(config.deliver, base.branch)
        if problem:
            raise UserError(problem)
    run = run or ports.chance.run_id()
    _check_artifact_directory(ports, run)
    lock = ports.locks.acquire(run)
    if lock is None:
        raise UserError(f"another process is creating run {run}")
    try:
        return await _create_started_run(ports, machine, request, config, run, base), lock
    except BaseException:
        lock.release()
        raise


def _check_artifact_directory(ports: Ports, run: str) -> None:
    """Raises UserError where the run's folder is a symlink or no folder."""
    state_file = ports.artifacts.read(run, STATE_FILE)
    if state_file.kind in ("link", "other", "unreadable"):
        raise UserError(
            f"cannot use {ports.artifacts.folder(run)} for run files: {state_file.detail}. "
            "Replace it with a directory or remove it"
        )


def _read_run_base(ports: Ports, config: Config) -> RunBase:
    """Returns the commit that a run starts from; raises UserError without a repository or a required sandbox."""
    workspace = ports.workspace(config)
    problem = workspace.find_start_problem()
    if problem:
        raise UserError(problem)
    isolation_warning(ports, config)
    return workspace.base(config.base or None)


def _freeze_run_config(ports: Ports, config: Config, base: RunBase) -> FrozenConfig:
    return freeze_project_files(ports, config, base.commit) if base.commit else freeze_config(config)


async def _create_started_run(
    ports: Ports, machine: Machine, start_request: StartRequest, config: FrozenConfig, run: str, base: RunBase
) -> ActiveRun:
    key = ports.chance.key()
    payloads = PayloadStore(ports.journal, run, key, lambda: ports.secrets(config.redact.env))
    title = _title_from_task(redact_text(start_request.task, ports.secrets(config.redact.env), key))
    begin_request = {
        "deliver": config.deliver,
        "target": base.branch or "",
        "max_iterations": config.rules.max_iterations,
        "repeated": config.rules.repeated_failure,
        "same_finding": config.rules.same_finding,
        "red_base": config.rules.red_base,
        **start_request.options,
        **{
            f"{name}_ref": _store_start_document(payloads, name, text)
            for name, text in start_request.texts.items()
        },
        "task_ref": payloads.add_text(start_request.task),
        "config_ref": payloads.add_text(
            msgspec.json.encode(_redact_run_config(config, start_request, payloads)).decode()
        ),
        "base_commit": base.commit,
        "base_tree": base.tree,
        "person": start_request.person,
    }
    limit_spends = tuple(Spend(run, name, limit=value) for name, value in budget_limits(config).items())

    isolation_note = isolation_warning(ports, config) if machine.tree else ""

    def make(hold: str) -> ActiveRun:
        return _build_active_run(
            ports,
            machine,
            run,
            begin_request,
            payloads,
            title,
            start_request.person,
            hold=hold,
            reason=isolation_note,
        )

    return await _create_within_budget(make, machine, key, limit_spends)


def _redact_run_config(config: FrozenConfig, request: StartRequest, payloads: PayloadStore) -> FrozenConfig:
    """Returns the configuration to store; texts of others are redacted before JSON escapes them."""
    prompts = {role: payloads.redact_secrets(text) for role, text in config.prompts.items()}
    return msgspec.structs.replace(config, prompts=prompts, issue_ref=payloads.add_text(request.issue))


def _store_start_document(payloads: PayloadStore, name: str, text: str) -> str:
    """Stores a document that counts word for word; raises UserError where it holds a secret."""
    redacted = payloads.redact_secrets(text)
    if redacted != text:
        line = next((n for n, (a, b) in enumerate(_line_pairs(text, redacted), 1) if a != b), 1)
        raise UserError(
            f"line {line} of the {name} looks like a secret, and steersman stores no secrets. Remove it and try again"
        )
    return payloads.put_redacted(redacted)


def _line_pairs(text: str, redacted: str) -> Iterator[tuple[str, str]]:
    return zip(text.splitlines(), redacted.splitlines(), strict=False)


def _build_active_run(
    ports: Ports,
    machine: Machine,
    run: str,
    begin_request: dict[str, Any],
    payloads: PayloadStore,
    title: str,
    person: str,
    parent: str = "",
    root: str = "",
    epoch: int = 1,  # 0: no driver has it yet
    hold: str = "",
    reason: str = "",
) -> ActiveRun:
    if machine.begin is None:
        raise UserError(f"machine {machine.name} cannot be started by a person")
    event, data, context = machine.begin(begin_request)
    now = ports.clock.now()
    creation = create_run_entries(
        machine,
        run,
        EventOccurrence(event, data, Origin.PERSON),
        context,
        StepMeta(now, f"person:{person}", hold=hold, why=reason),
        root=root,
        parent=parent,
        title=title,
        epoch=epoch,
    )
    active_run = ActiveRun(ports, machine, creation.snapshot, title, now, None)
    active_run.payloads = payloads
    active_run.ancestors = (run,)
    active_run.made = creation
    return active_run


async def _create_within_budget(
    make: Callable[[str], ActiveRun], machine: Machine, key: bytes | None, spends: tuple[Spend, ...]
) -> ActiveRun:
    """Stores the run that `make` returns; where its first agents do not fit the budget, the run begins at a gate."""
    active_run = make("")
    try:
        await _store_creation(active_run, machine, key, spends)
    except OverBudget as error:
        active_run = make(error.name)
        await _store_creation(active_run, machine, key, spends)
    return active_run


async def _store_creation(
    active_run: ActiveRun, machine: Machine, key: bytes | None, spends: tuple[Spend, ...]
) -> None:
    creation = active_run.made
    assert creation is not None  # noqa: S101  it has just been made
    planned = [i for s in creation.entries for i in s.entry.planned if i.kind == "effect" and not i.held]
    reservations = tuple(s for i in planned for s in budget_reservations(active_run, i, active_run.config))
    active_run.stored = (0, 0)
    await active_run.append(
        creation,
        spends=spends + reservations,
        posts=child_ended_posts(machine, creation.snapshot),
        key=key,
        definition=(machine.digest, canonical_bytes(definition_data(machine))),
    )


def _title_from_task(task: str) -> str:
    lines = task.strip().splitlines()
    return clip_text(printable_text(lines[0] if lines else ""), MAX_TITLE_CHARS)


def find_machine(ports: Ports, name: str) -> Machine:
    """Returns the machine of this name; raises UserError with the names of all machines."""
    machine = ports.machines.get(name)
    if machine is None:
        raise UserError(f"there is no machine {name!r}. Choose one of {', '.join(sorted(ports.machines))}")
    return machine


def _refuse_ignored_settings(config: Config) -> None:
    """Raises UserError for settings that this release does not act on."""
    ignored = {"[notify]": config.notify.webhook is not None}
    names = [name for name, is_set in ignored.items() if is_set]
    if names:
        raise UserError(f"steersman.toml: this release does not support {', '.join(names)} yet. Remove it")


def _refuse_config_secrets(ports: Ports, config: Config) -> None:
    """Raises UserError where the configuration holds a secret: the stored one would hold a marker in its place."""
    json = msgspec.json.encode(config).decode()
    redacted_json = redact_text(json, ports.secrets(config.redact.env))
    fields = list(_changed_config_fields(msgspec.json.decode(json), msgspec.json.decode(redacted_json), ()))
    if fields:
        raise UserError(
            f"steersman.toml: {', '.join(fields)} looks like a secret, and steersman stores no secrets. Put it into an environment variable or a file, and name that"
        )


def _changed_config_fields(original: Any, redacted: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    match original:
        case dict():
            for name, item in original.items():
                yield from _changed_config_fields(item, redacted.get(name), (*path, name))
        case list():
            for index, item in enumerate(original):
                yield from _changed_config_fields(item, redacted[index], (*path, index))
        case _ if original != redacted:
            yield field_name(path)


def _check_usable_budget(ports: Ports, config: FrozenConfig) -> None:
    """Raises UserError for a budget in money alone where an agent does not report its cost: unknown is never zero."""
    figure_limits = budget_limits(config)
    if set(figure_limits) - {"ms"} != {"micro_usd"}:
        return
    silent_roles = sorted(r for r in config.roles if not ports.agent(r, config).tells_cost)
    if silent_roles:
        raise UserError(
            f"[budget] has only usd, but the agents of {', '.join(silent_roles)} do not report their cost. Add tokens or turns to [budget]"
        )


async def start_child_run(ports: Ports, parent: ActiveRun, item: JobItem) -> str:
    """Creates the child run that a job asks for, or finds it where it exists; returns its id."""
    run = item.id.replace(":", ".")
    if ports.journal.head(run) is not None:
        return run
    machine = find_machine(ports, item.input["machine"])
    begin_request = {"config_ref": runtime_field(parent.snapshot.context, "config_ref"), **item.input}

    def make(hold: str) -> ActiveRun:
        title = f"{parent.title} · {item.key}"
        origin = ("steersman", parent.run, parent.snapshot.root)
        active_run = _build_active_run(
            ports, machine, run, begin_request, parent.payloads, title, *origin, epoch=0, hold=hold
        )
        active_run.ancestors = (run, *parent.ancestors)
        return active_run

    with contextlib.suppress(StaleError):  # another process has created it
        await _create_within_budget(make, machine, None, ())
    return run


async def fork_run(ports: Ports, run: str, at: int, person: str) -> str:
    """Creates a run that begins as `run` was after entry `at`, with its tree; `run` itself does not change."""
    head = require_head(ports.journal, run)
    if ports.journal.key(head.root) is None:
        raise UserError(f"the texts of run {run} were pruned, so it cannot continue. Start a new run instead")
    machine = find_machine(ports, head.machine)
    fork_point = rebuild_snapshot((r for r in ports.journal.rows(run) if r[0] <= at), run)
    if isinstance(fork_point, BadEntry):
        raise UserError(f"run {run} cannot be read up to entry {at}: {fork_point.why}")
    if fork_point.seq != at:
        raise UserError(f"run {run} has {fork_point.seq} entries, not {at}. Run `steersman audit tape {run}`")
    new_run, key = ports.chance.run_id(), ports.journal.key(head.root)
    start_snapshot, title = convert_context(machine, fork_point), head.title

    def make(hold: str) -> ActiveRun:
        creation = _fork_advance(ports, machine, new_run, start_snapshot, title, person, hold)
        active_run = ActiveRun(ports, machine, creation.snapshot, title, creation.snapshot.at, key)
        active_run.ancestors = (new_run,)
        active_run.made = creation
        return active_run

    limit_items = budget_limits(make("").config).items()
    await _create_within_budget(
        make, machine, None, tuple(Spend(new_run, name, limit=value) for name, value in limit_items)
    )
    return new_run


def _fork_advance(
    ports: Ports, machine: Machine, run: str, point: Snapshot, title: str, person: str, hold: str
) -> RunAdvance:
    now = ports.clock.now()
    # A state that the machine leaves at once by a computed event starts no work.
    leaves_at_once = compute_event(machine, point.context, point.counts, point.state) is not None
    planned_work = () if leaves_at_once else plan_work(machine, point.state, point.context, point.counts, ())
    planned = planned_items(machine, run, 1, 1, planned_work, StepMeta(now, hold=hold))
    entry = Entry(
        run=run,
        seq=1,
        at=now,
        kind="created",
        prev=GENESIS_HASH,
        actor=f"person:{person}",
        cause=f"{point.run}@{point.seq}",
        to=point.state,
        counts=tuple(("count", name, n) for name, n in point.counts.items()),
        planned=planned,
        epoch=0,
        definition=machine.digest,
        machine=machine.name,
        context=msgspec.to_builtins(point.context),
        context_version=machine.context_version,
        root=point.root,
        title=title,
    )
    sealed_entry = seal_entry(entry)
    snapshot = apply_entry(None, entry, sealed_entry.hash, point.context, point.counts)
    return (
        advance_computed_steps(machine, [sealed_entry], snapshot, StepMeta(now, hold=hold))
        if leaves_at_once
        else RunAdvance((sealed_entry,), snapshot)
    )

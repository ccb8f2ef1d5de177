"""How a run comes to be: from a person's words, from a parent's job, from an entry of another run."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from steersman.contracts.config import Config, FrozenConfig, freeze_config
from steersman.contracts.task.words import STATE
from steersman.contracts.workspace import Base
from steersman.errors import OverBudget, StaleError, UserError
from steersman.judges.problems import field as field_name
from steersman.judges.redaction import redact
from steersman.judges.text import clip, printable
from steersman.kernel.build import Machine, definition
from steersman.kernel.canonical import canonical
from steersman.kernel.definition import Origin
from steersman.kernel.record import Advance, Meta, create, items, onward
from steersman.kernel.replay import Bad, applied, rebuilt, typed
from steersman.kernel.snapshot import Item, Snapshot
from steersman.kernel.step import Happened, compute, work
from steersman.kernel.tape import GENESIS, Entry, sealed
from steersman.ports.journal import Spend
from steersman.runtime.budget import ceilings, limits
from steersman.runtime.isolation import not_isolated
from steersman.runtime.live import Live, Payloads
from steersman.runtime.moves import ended
from steersman.runtime.project_files import freeze_project_files
from steersman.runtime.world import World

TITLE = 100


class Order(msgspec.Struct, frozen=True):
    """What a person asks for."""

    machine: str
    task: str
    person: str
    config: Config
    options: dict[str, Any] = {}  # mode, max_iterations, …: the machine's own words
    texts: dict[str, str] = {}  # documents that it goes by, word for word
    roles: tuple[str, ...] = ()  # beside those that the machine always has
    issue: str = ""  # text that is not the person's own: data, never the task


async def start(world: World, order: Order, *, run: str | None = None) -> tuple[Live, Any]:
    """A new run and its lock, durable when this returns; nothing of it has been performed yet."""
    m = find_machine(world, order.machine)
    base = _base(world, order.config) if m.tree else Base("", "")
    config = _frozen(world, order.config, base)
    for role in dict.fromkeys((*m.roles, *order.roles)):
        world.agent(role, config)
    _acted_upon(config)
    _no_secrets(world, config)
    _usable_budget(world, config)
    if m.tree:
        missing = world.workspace(config).undeliverable(config.deliver, base.branch)
        if missing:
            raise UserError(missing)
    run = run or world.chance.run_id()
    _has_room(world, run)
    lock = world.locks.acquire(run)
    if lock is None:
        raise UserError(f"run {run} is being made elsewhere")
    try:
        return await _started(world, m, order, config, run, base), lock
    except BaseException:
        lock.release()
        raise


def _has_room(world: World, run: str) -> None:
    """Where the files of a run would lie somewhere else than it seems, none begins."""
    found = world.artifacts.read(run, STATE)
    if found.kind in ("link", "other", "unreadable"):
        place, stays = (
            world.artifacts.folder(run),
            "; what it leads to is left alone" if found.kind == "link" else "",
        )
        raise UserError(
            f"no run begins here: its files would be in {place}, but {found.detail}, and not followed: "
            f"put a folder in its place, or nothing{stays}"
        )


def _base(world: World, config: Config) -> Base:
    """The commit that a run starts from; where nothing can be worked on, or a box is required and not there, none does."""
    workspace = world.workspace(config)
    problem = workspace.problem()
    if problem:
        raise UserError(problem)
    not_isolated(world, config)
    return workspace.base(config.base or None)


def _frozen(world: World, config: Config, base: Base) -> FrozenConfig:
    return freeze_project_files(world, config, base.commit) if base.commit else freeze_config(config)


async def _started(
    world: World, m: Machine, order: Order, config: FrozenConfig, run: str, base: Base
) -> Live:
    key = world.chance.key()
    payloads = Payloads(world.journal, run, key, lambda: world.secrets(config.redact.env))
    title = _title(redact(order.task, world.secrets(config.redact.env), key))
    request = {
        "deliver": config.deliver,
        "target": base.branch or "",
        "max_iterations": config.rules.max_iterations,
        "repeated": config.rules.repeated_failure,
        "same_finding": config.rules.same_finding,
        "red_base": config.rules.red_base,
        **order.options,
        **{f"{name}_ref": _kept(payloads, name, text) for name, text in order.texts.items()},
        "task_ref": payloads.put(order.task),
        "config_ref": payloads.put(msgspec.json.encode(_without_secrets(config, order, payloads)).decode()),
        "base_commit": base.commit,
        "base_tree": base.tree,
        "person": order.person,
    }
    bounds = tuple(Spend(run, name, limit=value) for name, value in limits(config).items())

    told = not_isolated(world, config) if m.tree else ""

    def make(hold: str) -> Live:
        return _live(world, m, run, request, payloads, title, order.person, hold=hold, why=told)

    return await _create(make, m, key, bounds)


def _without_secrets(config: FrozenConfig, order: Order, payloads: Payloads) -> FrozenConfig:
    """The configuration as it is kept: what others wrote is redacted before JSON escapes it."""
    prompts = {role: payloads.hide(text) for role, text in config.prompts.items()}
    return msgspec.structs.replace(config, prompts=prompts, issue_ref=payloads.put(order.issue))


def _kept(payloads: Payloads, name: str, text: str) -> str:
    """A document that counts word for word: where a secret would be hidden in it, it is refused instead."""
    hidden = payloads.hide(text)
    if hidden != text:
        line = next((n for n, (a, b) in enumerate(_lines(text, hidden), 1) if a != b), 1)
        raise UserError(
            f"the {name} holds what looks like a secret in line {line}, and secrets are never kept: take it out"
        )
    return payloads.put_hidden(hidden)


def _lines(text: str, hidden: str) -> Iterator[tuple[str, str]]:
    return zip(text.splitlines(), hidden.splitlines(), strict=False)


def _live(
    world: World,
    m: Machine,
    run: str,
    request: dict[str, Any],
    payloads: Payloads,
    title: str,
    person: str,
    parent: str = "",
    root: str = "",
    epoch: int = 1,  # 0: nobody drives it yet
    hold: str = "",
    why: str = "",
) -> Live:
    if m.begin is None:
        raise UserError(f"machine {m.name} cannot be started by hand")
    event, data, context = m.begin(request)
    now = world.clock.now()
    made = create(
        m,
        run,
        Happened(event, data, Origin.PERSON),
        context,
        Meta(now, f"person:{person}", hold=hold, why=why),
        root=root,
        parent=parent,
        title=title,
        epoch=epoch,
    )
    live = Live(world, m, made.snapshot, title, now, None)
    live.payloads = payloads
    live.ancestors = (run,)
    live.made = made
    return live


async def _create(
    make: Callable[[str], Live], m: Machine, key: bytes | None, spends: tuple[Spend, ...]
) -> Live:
    """The run that `make` makes, stored; one whose first agents do not fit its budget begins at a gate."""
    live = make("")
    try:
        await _store(live, m, key, spends)
    except OverBudget as error:
        live = make(error.name)
        await _store(live, m, key, spends)
    return live


async def _store(live: Live, m: Machine, key: bytes | None, spends: tuple[Spend, ...]) -> None:
    made = live.made
    assert made is not None  # noqa: S101  it has just been made
    planned = [i for s in made.entries for i in s.entry.planned if i.kind == "effect" and not i.held]
    reserved = tuple(s for i in planned for s in ceilings(live, i, live.config))
    live.stored = (0, 0)
    await live.append(
        made,
        spends=spends + reserved,
        posts=ended(m, made.snapshot),
        key=key,
        definition=(m.digest, canonical(definition(m))),
    )


def _title(task: str) -> str:
    lines = task.strip().splitlines()
    return clip(printable(lines[0] if lines else ""), TITLE)


def find_machine(world: World, name: str) -> Machine:
    """The machine of this name; a UserError that lists those there are."""
    m = world.machines.get(name)
    if m is None:
        raise UserError(f"there is no machine {name!r}: there are {', '.join(sorted(world.machines))}")
    return m


def _acted_upon(config: Config) -> None:
    """What this release would pass over in silence it refuses instead."""
    ignored = {
        "[notify]": config.notify.webhook is not None,
    }
    told = [name for name, given in ignored.items() if given]
    if told:
        raise UserError(f"steersman.toml: {', '.join(told)} is not acted upon yet: take it out for now")


def _no_secrets(world: World, config: Config) -> None:
    """The tape keeps a marker where a secret stood: a run that is resumed would work with the marker."""
    written = msgspec.json.encode(config).decode()
    kept = redact(written, world.secrets(config.redact.env))
    places = list(_changed(msgspec.json.decode(written), msgspec.json.decode(kept), ()))
    if places:
        raise UserError(
            f"steersman.toml: {', '.join(places)} looks like a secret, which is never kept: put it into a variable of the environment or a file of its own, and name that"
        )


def _changed(given: Any, kept: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    match given:
        case dict():
            for name, item in given.items():
                yield from _changed(item, kept.get(name), (*path, name))
        case list():
            for n, item in enumerate(given):
                yield from _changed(item, kept[n], (*path, n))
        case _ if given != kept:
            yield field_name(path)


def _usable_budget(world: World, config: FrozenConfig) -> None:
    """A budget in money alone needs agents that tell their cost: unknown is never zero."""
    bound = limits(config)
    if set(bound) - {"ms"} != {"micro_usd"}:
        return
    silent = sorted(r for r in config.roles if not world.agent(r, config).tells_cost)
    if silent:
        raise UserError(
            f"[budget] has only usd, but the agents of {', '.join(silent)} do not tell what they cost: add tokens or turns to [budget]"
        )


async def start_child(world: World, parent: Live, item: Item) -> str:
    """The child run that a job asks for; asking again finds the one that is there."""
    run = item.id.replace(":", ".")
    if world.journal.head(run) is not None:
        return run
    m = find_machine(world, item.input["machine"])
    request = {"config_ref": getattr(parent.snapshot.context, "config_ref", ""), **item.input}

    def make(hold: str) -> Live:
        title = f"{parent.title} · {item.key}"
        origin = ("steersman", parent.run, parent.snapshot.root)
        live = _live(world, m, run, request, parent.payloads, title, *origin, epoch=0, hold=hold)
        live.ancestors = (run, *parent.ancestors)
        return live

    with contextlib.suppress(StaleError):  # somebody else has made it meanwhile
        await _create(make, m, None, ())
    return run


async def fork(world: World, run: str, at: int, person: str) -> str:
    """A new run that begins as `run` was after entry `at`, with its tree; the old one is left alone."""
    head = world.journal.head(run)
    if head is None:
        raise UserError(f"there is no run {run}")
    if world.journal.key(head.root) is None:
        raise UserError(
            f"the texts of run {run} were pruned, nobody can go on with it: start a new run instead"
        )
    m = find_machine(world, head.machine)
    before = rebuilt((r for r in world.journal.rows(run) if r[0] <= at), run)
    if isinstance(before, Bad):
        raise UserError(f"run {run} cannot be read up to entry {at}: {before.why}")
    if before.seq != at:
        raise UserError(f"run {run} has {before.seq} entries, not {at}: see `steersman audit tape {run}`")
    new, key = world.chance.run_id(), world.journal.key(head.root)
    start_at, title = typed(m, before), head.title

    def make(hold: str) -> Live:
        made = _forked(world, m, new, start_at, title, person, hold)
        live = Live(world, m, made.snapshot, title, made.snapshot.at, key)
        live.ancestors = (new,)
        live.made = made
        return live

    bounds = limits(make("").config).items()
    await _create(make, m, None, tuple(Spend(new, name, limit=value) for name, value in bounds))
    return new


def _forked(
    world: World, m: Machine, run: str, before: Snapshot, title: str, person: str, hold: str
) -> Advance:
    now = world.clock.now()
    # A state that the machine itself leaves at once has no time to begin its work.
    leaves = compute(m, before.context, before.counts, before.state) is not None
    wanted = () if leaves else work(m, before.state, before.context, before.counts, ())
    planned = items(m, run, 1, 1, wanted, Meta(now, hold=hold))
    entry = Entry(
        run=run,
        seq=1,
        at=now,
        kind="created",
        prev=GENESIS,
        actor=f"person:{person}",
        cause=f"{before.run}@{before.seq}",
        to=before.state,
        counts=tuple(("count", name, n) for name, n in before.counts.items()),
        planned=planned,
        epoch=0,
        definition=m.digest,
        machine=m.name,
        context=msgspec.to_builtins(before.context),
        context_version=m.context_version,
        root=before.root,
        title=title,
    )
    stored = sealed(entry)
    snapshot = applied(None, entry, stored.hash, before.context, before.counts)
    return onward(m, [stored], snapshot, Meta(now, hold=hold)) if leaves else Advance((stored,), snapshot)

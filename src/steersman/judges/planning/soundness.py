"""Everything that is wrong with a registry as a whole: names that lead nowhere, ways in circles, rules that cannot decide.

**Invariant:** all problems at once, each with file, line, field and what would mend it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import cast

from steersman.contracts.planning.content import AgentProfile, CommandSpec, Content, Rule, Workflow
from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.words import Kind, Phase
from steersman.judges.planning.environment import FACT_KINDS
from steersman.judges.planning.places import problem
from steersman.judges.planning.registry import USABLE, Item, Path, Registry, kind_of
from steersman.judges.planning.rulebook import compile_rule
from steersman.judges.planning.sequence import waits
from steersman.judges.text import clip

Finding = tuple[Path, str, str]  # field, what is wrong, what would mend it


def problems(registry: Registry) -> tuple[Problem, ...]:
    """All of them: first those of identity, then in the order in which the content was read."""
    circles = {kind: cycle(_chains(registry, kind)) for kind in registry.held}
    own = (
        placed(item, finding)
        for item in registry.items
        for finding in (*_superseded(registry, item.content, circles), *_own(registry, item.content))
    )
    return (*identity(registry), *own)


def identity(registry: Registry) -> tuple[Problem, ...]:
    """Where it is not plain which content holds: with one of these nothing may be planned."""
    found: list[Problem] = []
    seen: dict[tuple[Kind, str], Item] = {}
    for item in registry.items:
        first = seen.setdefault((kind_of(item.content), item.content.id), item)
        if first is not item:
            found += (placed(item, finding) for finding in _second(first, item))
    return tuple(found)


def placed(item: Item, finding: Finding) -> Problem:
    """A finding with the place in the file that the content was read from."""
    path, message, fix = finding
    told = problem((item.content.id, *path), message, fix)
    line = problem(path, message, fix, item.lines).line
    return Problem(
        field=clip(f"{item.file}: {told.field}", 400), message=told.message, fix=told.fix, line=line
    )


def cycle(steps: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """One way in a circle through a graph of successors, first and last the same; empty where there is none."""
    left = {name: iter(sorted(after)) for name, after in sorted(steps.items())}
    done: set[str] = set()
    for start in left:
        path, on_path = [start], {start}
        while path:
            step = next((n for n in left[path[-1]] if n in left and n not in done), None)
            if step is None:
                done.add(path[-1])
                on_path.discard(path.pop())
            elif step in on_path:
                return (*path[path.index(step) :], step)
            else:
                path.append(step)
                on_path.add(step)
    return ()


def _second(first: Item, item: Item) -> Iterator[Finding]:
    """One id, one piece of content: a project replaces what is built in openly, or not at all."""
    if first.origin == item.origin:
        yield ("id",), f"stands in {first.file} too", "give one of the two another id"
    else:
        yield from _replacing(item.content, first.content)


def _replacing(mine: Content, built_in: Content) -> Iterator[Finding]:
    named = f"{built_in.id}@{built_in.version}"
    if _number(mine.version) <= _number(built_in.version):
        yield ("version",), f"is not above the built-in {built_in.version}", "raise it"
    if named not in mine.lineage.supersedes:
        yield (
            ("lineage", "supersedes"),
            f"does not say that it replaces the built-in {named}",
            f"add {named}, or take another id",
        )


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _own(registry: Registry, content: Content) -> Iterator[Finding]:
    match content:
        case Workflow():
            yield from _workflow(registry, content)
        case CommandSpec():
            yield from _command(content)
        case Rule():
            yield from _rule(registry, content)
        case _:
            pass  # an agent names nothing that could be missing


def _superseded(
    registry: Registry, content: Content, circles: Mapping[Kind, tuple[str, ...]]
) -> Iterator[Finding]:
    """Who replaces others leads forward: not to itself, not in a circle, and not beside what it replaces."""
    kind = kind_of(content)
    for n, named in enumerate(content.lineage.supersedes):
        id_, _, version = named.partition("@")
        path: Path = ("lineage", "supersedes", n)
        other = registry.get(kind, id_)
        if (id_, version) == (content.id, content.version):
            yield path, "names itself", "name the version before it"
        elif other is not None and id_ != content.id and {other.status, content.status} <= {*USABLE}:
            yield path, f"{id_} is replaced and still {other.status}", "set its status to deprecated"
    circle = circles[kind]
    if circle and circle[0] == content.id:
        yield ("lineage", "supersedes"), f"leads in a circle: {' → '.join(circle)}", "take one of them out"


def _chains(registry: Registry, kind: Kind) -> dict[str, list[str]]:
    return {
        id_: [name for name in (s.partition("@")[0] for s in item.content.lineage.supersedes) if name != id_]
        for id_, item in registry.held[kind].items()
    }


def _workflow(registry: Registry, workflow: Workflow) -> Iterator[Finding]:
    there = [p.phase for p in workflow.phases]
    roles = {cast("AgentProfile", agent).role for agent in registry.all_usable("agent")}
    for n, phase in enumerate(workflow.phases):
        path: Path = ("phases", n)
        if phase.phase in there[:n]:
            yield (*path, "phase"), f"{phase.phase} is there twice", "put the two together"
        if phase.role not in roles:
            yield (*path, "role"), f"no agent has the role {phase.role}", f"one of {', '.join(sorted(roles))}"
        for k, name in enumerate(phase.after):
            if name not in there:
                yield (*path, "after", k), f"the workflow has no phase {name}", f"one of {', '.join(there)}"
        if phase.fallback and phase.fallback not in there:
            yield (
                (*path, "fallback"),
                f"the workflow has no phase {phase.fallback}",
                f"one of {', '.join(there)}",
            )
        for k, id_ in enumerate(phase.commands):
            yield from _named(registry, id_, phase.phase, (*path, "commands", k))
    circle = cycle(_ways(workflow))
    if circle:
        yield ("phases",), f"lead in a circle: {' → '.join(circle)}", f"take {_edge(circle)} out"


def _edge(circle: tuple[str, ...]) -> str:
    before, after = next(pairwise(circle))
    return f"the step from {before} to {after}"


def _ways(workflow: Workflow) -> dict[str, list[str]]:
    """Every step that a graph of this workflow can have; a fallback that leads back is none, it stands in words there."""
    after = waits(workflow)
    steps: dict[str, list[str]] = {name: [] for name in after}
    for name, before in after.items():
        for one in before:
            steps.setdefault(one, []).append(name)
    for phase in workflow.phases:
        if phase.fallback and phase.fallback not in _up_to(phase.phase, after):
            steps[phase.phase].append(phase.fallback)
    return steps


def _up_to(phase: Phase, after: Mapping[Phase, Iterable[Phase]]) -> set[Phase]:
    """A phase and all that come before it."""
    seen: set[Phase] = set()
    waiting = [phase]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(after.get(name, ()))
    return seen


def _named(registry: Registry, id_: str, phase: str, path: Path) -> Iterator[Finding]:
    found = cast("CommandSpec | None", registry.get("command", id_))
    if found is None:
        yield path, f"there is no command {id_}", "`steersman registry list command` has them all"
    elif found.status not in USABLE:
        yield path, f"{id_} is {found.status}", "name a command that is active or frozen"
    elif phase not in found.phases:
        yield path, f"{id_} does not belong to {phase}", f"add {phase} to its phases, or leave it out here"


def _command(command: CommandSpec) -> Iterator[Finding]:
    if command.fact and command.fact not in FACT_KINDS:
        yield ("fact",), f"{command.fact} is no kind of fact", f"one of {', '.join(FACT_KINDS)}"
    for n, name in enumerate(command.evidence):
        if name not in FACT_KINDS:
            yield ("evidence", n), f"{name} is no kind of fact", f"one of {', '.join(FACT_KINDS)}"
    if command.destructive and not {"write", "deploy", "security", "data"} & {*command.effects}:
        yield ("effects",), "destroys and only reads", "add write, deploy, security or data"


def _rule(registry: Registry, rule: Rule) -> Iterator[Finding]:
    for n, id_ in enumerate(rule.scope.commands):
        if registry.get("command", id_) is None:
            yield (
                ("scope", "commands", n),
                f"there is no command {id_}",
                "`steersman registry list command` has them all",
            )
    for path, fault in compile_rule(rule).faults:
        yield path, fault.message, fault.fix

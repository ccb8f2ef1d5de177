"""What no schema says about an intent: whether its parts fit each other and the registry.

A problem stops a plan; a remark is only told, because what follows from it is worked out later.
**Invariant:** total; what is not in the right form is the schema's to tell, and is passed over here.
"""

import calendar
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from steersman.contracts.planning.content import AgentProfile, CommandSpec, Workflow
from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.words import RISKS, SCHEMES
from steersman.judges.planning.paths import common, region, why_no_module, why_outside, why_pattern
from steersman.judges.planning.places import NO_LINES, Lines, Path, problem
from steersman.judges.planning.raw import at, each, every_text, text, texts
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.sight import why_unnamed, why_unseen
from steersman.judges.text import clip, printable

MOST = 300

_NAMING: tuple[Path, ...] = (("scope", "repo_root"), ("scope", "targets"), ("constraints", "lock_scope"))
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_NAMES: tuple[tuple[str, str], ...] = (
    ("selected_workflows", "workflow_id"),
    ("selected_agents", "agent_id"),
    ("planned_commands", "command_id"),
)

Told = tuple[Path, str, str]


class Known(NamedTuple):
    """A planned command that the registry has."""

    path: Path
    stated: Any
    spec: CommandSpec


def sense_problems(raw: Any, registry: Registry, lines: Lines = NO_LINES) -> tuple[Problem, ...]:
    """All that is wrong with what an intent says, beyond its form."""
    told: Iterable[Told] = (
        *_unreal_day(raw),
        *_retired(raw),
        *_unseen_text(raw),
        *_twice(raw),
        *_foreign_phases(raw, registry),
        *_unknown_schemes(raw),
        *_unreviewed(raw, registry),
        *_no_room(raw, registry),
        *_open_lock(raw),
        *_outside(raw),
        *_no_modules(raw),
    )
    return tuple(problem(*one, lines) for one in told)[:MOST]


def elsewhere(raw: Any, project: str, lines: Lines = NO_LINES) -> tuple[Problem, ...]:
    """An intent for another project; nothing where this one has not said what it is called."""
    said = text(raw, "scope", "project_id")
    if not project or said == project:
        return ()
    message = f"is {printable(said) or 'nothing'}, and this project is called {project}"
    fix = f"plan it where it belongs, or write {project}; `project` in steersman.toml says the name"
    return (problem(("scope", "project_id"), message, fix, lines),)


def remarks(raw: Any, registry: Registry, lines: Lines = NO_LINES) -> tuple[Problem, ...]:
    """What somebody should look at, and what does not stop a plan by itself."""
    told = (*_talked_down(raw, registry), *_other_roles(raw, registry), *_homeless(raw, registry))
    return tuple(problem(*one, lines) for one in told)[:MOST]


def known_commands(raw: Any, registry: Registry) -> Iterator[Known]:
    """The planned commands that the registry has, whatever their status."""
    for path, item in each(raw, "planned_commands"):
        spec = registry.get("command", text(item, "command_id"))
        if isinstance(spec, CommandSpec):
            yield Known(path, item, spec)


def evidence(raw: Any) -> Iterator[tuple[Path, str]]:
    """Every reference that an intent cites, for the whole and for each command."""
    yield from texts(raw, "evidence_refs")
    for path, _ in each(raw, "planned_commands"):
        yield from texts(raw, *path, "evidence_refs")


def effects(raw: Any, registry: Registry) -> set[str]:
    """Every effect of the planned commands: what the intent says and what the registry says."""
    said = {e for path, _ in each(raw, "planned_commands") for _, e in texts(raw, *path, "effects")}
    return said.union(*(known.spec.effects for known in known_commands(raw, registry)))


# ── one thing each ──────────────────────────────────────────────────────────────────────────────────────────────────


def _unreal_day(raw: Any) -> Iterator[Told]:
    found = _DAY.match(text(raw, "created_at"))
    if found is None:
        return
    year, month, day = map(int, found.groups())
    if 1 <= month <= 12 and (year == 0 or day > calendar.monthrange(year, month)[1]):
        yield ("created_at",), f"{found[0][:-1]} is no day of the calendar", "correct the date"


def _retired(raw: Any) -> Iterator[Told]:
    status = text(raw, "status")
    if status in ("rejected", "superseded"):
        yield (
            ("status",),
            f"an intent that is {status} is not planned any more",
            "plan the one that took its place, or say draft, proposed or approved",
        )


def _unseen_text(raw: Any) -> Iterator[Told]:
    for path, said in every_text(raw):
        if why := why_unnamed(said) if path[:2] in _NAMING else why_unseen(said):
            yield path, why, "write it again by hand"


def _twice(raw: Any) -> Iterator[Told]:
    for group, name in _NAMES:
        yield from _repeated((((*path, name), text(item, name)) for path, item in each(raw, group)))
    for path, _ in each(raw, "selected_workflows"):
        yield from _repeated(texts(raw, *path, "phases"))


def _repeated(named: Iterable[tuple[Path, str]]) -> Iterator[Told]:
    seen: set[str] = set()
    for path, name in named:
        if name and name in seen:
            yield path, f"{name} is named twice", "name it once, with all that belongs to it"
        seen.add(name)


def _foreign_phases(raw: Any, registry: Registry) -> Iterator[Told]:
    for path, item in each(raw, "selected_workflows"):
        workflow = registry.get("workflow", text(item, "workflow_id"))
        if not isinstance(workflow, Workflow):
            continue
        has: list[str] = [p.phase for p in workflow.phases]
        for where, phase in texts(raw, *path, "phases"):
            if phase not in has:
                yield (
                    where,
                    f"{workflow.id} has no phase {phase}",
                    f"its phases are {', '.join(has)}",
                )


def _unknown_schemes(raw: Any) -> Iterator[Told]:
    for path, ref in evidence(raw):
        scheme = _SCHEME.match(ref)
        if scheme is not None and scheme[1] not in SCHEMES:
            yield (
                path,
                f"{scheme[1]}:// is no kind of evidence",
                f"evidence begins with one of {', '.join(f'{s}://' for s in SCHEMES)}",
            )


def _unreviewed(raw: Any, registry: Registry) -> Iterator[Told]:
    lasting = sorted(effects(raw, registry) & {"write", "deploy"})
    if lasting and at(raw, ("risk", "requires_review")) == []:
        yield (
            ("risk", "requires_review"),
            f"is empty, and planned commands {' and '.join(lasting)}",
            "name who has to look: security, data, release, architecture, cost or compliance",
        )


def _no_room(raw: Any, registry: Registry) -> Iterator[Told]:
    limit = at(raw, ("budgets", "max_files"))
    if limit == 0 and limit is not False and "write" in effects(raw, registry):
        yield (
            ("budgets", "max_files"),
            "is 0, and planned commands write",
            "allow at least one file, or leave the commands out that write",
        )


def _open_lock(raw: Any) -> Iterator[Told]:
    lock = at(raw, ("constraints", "lock_scope"))
    mode, paths = text(lock, "mode"), at(lock, ("paths",))
    if mode == "files" and not paths:
        yield (
            ("constraints", "lock_scope", "paths"),
            "names no path, and the lock is on files",
            "name the paths, or set the mode to task or none",
        )
    elif mode in ("none", "task") and paths:
        yield (
            ("constraints", "lock_scope", "paths"),
            f"names paths, and a lock of mode {mode} is not about paths",
            "set the mode to files, or leave the paths out",
        )


def _outside(raw: Any) -> Iterator[Told]:
    """Names that no plan may have, then those that lie outside the root or the lock of this one."""
    root = text(raw, "scope", "repo_root")
    targets = tuple(texts(raw, "scope", "targets", "files"))
    locked = tuple(texts(raw, "constraints", "lock_scope", "paths"))
    roots: tuple[tuple[Path, str], ...] = ((("scope", "repo_root"), root),) if root else ()
    unfit = {
        path: why
        for path, place in (*roots, *targets, *locked)
        if (why := why_outside(place) or why_pattern(place))
    }
    for path, why in unfit.items():
        yield path, why, "name a file below the top of the repository, such as src/app.py"
    files = text(raw, "constraints", "lock_scope", "mode") == "files"
    if root and roots[0][0] not in unfit:
        fit = (
            [one for one in places if one[0] not in unfit] for places in (targets, locked if files else ())
        )
        yield from _beyond(root, *fit)


def _no_modules(raw: Any) -> Iterator[Told]:
    for path, module in texts(raw, "scope", "targets", "modules"):
        if why := why_no_module(module):
            yield path, why, "name a module of the repository, such as app.prices"


def _beyond(root: str, targets: list[tuple[Path, str]], locked: list[tuple[Path, str]]) -> Iterator[Told]:
    lock = [place for _, place in locked]
    for path, place in targets:
        if why_outside(place, (root,)):
            yield (
                path,
                f"lies outside scope.repo_root, which is {root}",
                "write it from the top of the repository, or widen repo_root",
            )
        elif lock and why_outside(place, lock):
            yield (
                path,
                f"lies outside constraints.lock_scope.paths, which are {clip(region(lock), 400)}",
                "lock it too, or leave it out",
            )
    for path, place in locked:
        if not common(root, (place,)):
            yield path, f"has nothing in common with scope.repo_root, which is {root}", "lock what lies in it"


# ── remarks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _talked_down(raw: Any, registry: Registry) -> Iterator[Told]:
    for path, stated, spec in known_commands(raw, registry):
        missing = [e for e in spec.effects if e not in {said for _, said in texts(stated, "effects")}]
        if missing:
            yield (
                (*path, "effects"),
                f"leaves out {', '.join(missing)}, which {spec.id} has in the registry; it counts all the same",
                f"write {', '.join(spec.effects)}",
            )
        risk = text(stated, "risk_level")
        if risk in RISKS and RISKS.index(risk) < RISKS.index(spec.risk_level):
            yield (
                (*path, "risk_level"),
                f"is {risk}, and {spec.id} is {spec.risk_level} in the registry; the graver one holds",
                f"write {spec.risk_level}",
            )


def _other_roles(raw: Any, registry: Registry) -> Iterator[Told]:
    for path, item in each(raw, "selected_agents"):
        agent, role = registry.get("agent", text(item, "agent_id")), text(item, "role")
        if isinstance(agent, AgentProfile) and role and role != agent.role:
            yield (
                (*path, "role"),
                f"is {role}, and the registry knows {agent.id} as {agent.role}",
                f"write {agent.role}",
            )


def _homeless(raw: Any, registry: Registry) -> Iterator[Told]:
    """Commands that no selected phase takes."""
    wanted = {p for path, _ in each(raw, "selected_workflows") for _, p in texts(raw, *path, "phases")}
    for path, _, spec in known_commands(raw, registry):
        if wanted and wanted.isdisjoint(spec.phases):
            yield (
                (*path, "command_id"),
                f"{spec.id} belongs to {', '.join(spec.phases)}, and no selected workflow has such a phase",
                "select a phase that takes it, or leave the command out",
            )

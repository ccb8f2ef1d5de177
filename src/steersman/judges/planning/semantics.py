"""Checks what no schema can check in an intent: whether its parts fit each other and the registry.

A problem stops a plan. A remark does not, because the planner takes its consequences into account.
**Invariant:** total. Values of the wrong form are skipped here, because the schema reports them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from steersman.contracts.planning.content import AgentProfile, CommandSpec, Workflow
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.words import EVIDENCE_SCHEMES, RISK_LEVELS
from steersman.judges.planning.paths import (
    describe_region,
    intersect_paths,
    module_name_problem,
    outside_plan_reason,
    path_spelling_problem,
)
from steersman.judges.planning.places import (
    NO_FIELD_LINES,
    FieldLines,
    FieldPath,
    document_problem,
    get_text_at,
    get_value_at,
    iter_list_at,
    iter_texts_at,
    walk_texts,
)
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.visible_text import invisible_name_reason, invisible_sentence_reason
from steersman.judges.text import clip_text, printable_text

MAX_SEMANTIC_PROBLEMS = 300

_PATH_FIELDS: tuple[FieldPath, ...] = (
    ("scope", "repo_root"),
    ("scope", "targets"),
    ("constraints", "lock_scope"),
)
_REF_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_SELECTED_ID_FIELDS: tuple[tuple[str, str], ...] = (
    ("selected_workflows", "workflow_id"),
    ("selected_agents", "agent_id"),
    ("planned_commands", "command_id"),
)

SemanticProblemParts = tuple[FieldPath, str, str]


class KnownCommand(NamedTuple):
    """A planned command that the registry has."""

    path: FieldPath
    stated: Any
    spec: CommandSpec


def find_semantic_problems(
    raw: Any, registry: Registry, lines: FieldLines = NO_FIELD_LINES
) -> tuple[DocumentProblem, ...]:
    """All that is wrong with what an intent says, beyond its form."""
    problem_parts: Iterable[SemanticProblemParts] = (
        *_find_retired_status(raw),
        *_find_invisible_text(raw),
        *_find_duplicate_selections(raw),
        *_find_foreign_phases(raw, registry),
        *_find_unknown_schemes(raw),
        *_find_missing_reviews(raw, registry),
        *_find_lock_mismatch(raw),
        *_find_outside_paths(raw),
        *_find_bad_modules(raw),
    )
    return tuple(document_problem(*parts, lines) for parts in problem_parts)[:MAX_SEMANTIC_PROBLEMS]


def find_project_mismatch(
    raw: Any, project: str, lines: FieldLines = NO_FIELD_LINES
) -> tuple[DocumentProblem, ...]:
    """An intent for another project; nothing where this one has not said what it is called."""
    project_id = get_text_at(raw, "scope", "project_id")
    if not project or project_id == project:
        return ()
    message = f"is {printable_text(project_id) or 'nothing'}, and this project is called {project}"
    fix = f"plan it in that project, or write {project} (`project` in steersman.toml sets the name)"
    return (document_problem(("scope", "project_id"), message, fix, lines),)


def find_intent_remarks(
    raw: Any, registry: Registry, lines: FieldLines = NO_FIELD_LINES
) -> tuple[DocumentProblem, ...]:
    """Points that a person should look at. They do not stop a plan."""
    problem_parts = (
        *_find_understated_commands(raw, registry),
        *_find_role_mismatches(raw, registry),
        *_find_unplaced_commands(raw, registry),
    )
    return tuple(document_problem(*parts, lines) for parts in problem_parts)[:MAX_SEMANTIC_PROBLEMS]


def find_known_commands(raw: Any, registry: Registry) -> Iterator[KnownCommand]:
    """The planned commands that the registry has, whatever their status."""
    for path, item in iter_list_at(raw, "planned_commands"):
        spec = registry.get("command", get_text_at(item, "command_id"))
        if isinstance(spec, CommandSpec):
            yield KnownCommand(path, item, spec)


def find_cited_evidence(raw: Any) -> Iterator[tuple[FieldPath, str]]:
    """Every reference that an intent cites, for the whole and for each command."""
    yield from iter_texts_at(raw, "evidence_refs")
    for path, _ in iter_list_at(raw, "planned_commands"):
        yield from iter_texts_at(raw, *path, "evidence_refs")


def collect_planned_effects(raw: Any, registry: Registry) -> set[str]:
    """Every effect of the planned commands: what the intent says and what the registry says."""
    stated_effects = {
        e
        for path, _ in iter_list_at(raw, "planned_commands")
        for _, e in iter_texts_at(raw, *path, "effects")
    }
    return stated_effects.union(*(command.spec.effects for command in find_known_commands(raw, registry)))


# ── one thing each ──────────────────────────────────────────────────────────────────────────────────────────────────


def _find_retired_status(raw: Any) -> Iterator[SemanticProblemParts]:
    status = get_text_at(raw, "status")
    if status in ("rejected", "superseded"):
        yield (
            ("status",),
            f"an intent that is {status} cannot be planned",
            "plan the intent that replaces it, or write draft, proposed or approved",
        )


def _find_invisible_text(raw: Any) -> Iterator[SemanticProblemParts]:
    for path, value in walk_texts(raw):
        if (
            why := invisible_name_reason(value)
            if path[:2] in _PATH_FIELDS
            else invisible_sentence_reason(value)
        ):
            yield path, why, "type it again"


def _find_duplicate_selections(raw: Any) -> Iterator[SemanticProblemParts]:
    for group, name in _SELECTED_ID_FIELDS:
        yield from _find_repeated_names(
            (((*path, name), get_text_at(item, name)) for path, item in iter_list_at(raw, group))
        )
    for path, _ in iter_list_at(raw, "selected_workflows"):
        yield from _find_repeated_names(iter_texts_at(raw, *path, "phases"))


def _find_repeated_names(named_paths: Iterable[tuple[FieldPath, str]]) -> Iterator[SemanticProblemParts]:
    earlier_names: set[str] = set()
    for path, name in named_paths:
        if name and name in earlier_names:
            yield path, f"{name} is named twice", "name it once, with all that belongs to it"
        earlier_names.add(name)


def _find_foreign_phases(raw: Any, registry: Registry) -> Iterator[SemanticProblemParts]:
    for path, item in iter_list_at(raw, "selected_workflows"):
        workflow = registry.get("workflow", get_text_at(item, "workflow_id"))
        if not isinstance(workflow, Workflow):
            continue
        phase_names: list[str] = [p.phase for p in workflow.phases]
        for phase_path, phase in iter_texts_at(raw, *path, "phases"):
            if phase not in phase_names:
                yield (
                    phase_path,
                    f"{workflow.id} has no phase {phase}",
                    f"its phases are {', '.join(phase_names)}",
                )


def _find_unknown_schemes(raw: Any) -> Iterator[SemanticProblemParts]:
    for path, ref in find_cited_evidence(raw):
        scheme = _REF_SCHEME.match(ref)
        if scheme is not None and scheme[1] not in EVIDENCE_SCHEMES:
            yield (
                path,
                f"{scheme[1]}:// is not a kind of evidence",
                f"evidence begins with one of {', '.join(f'{s}://' for s in EVIDENCE_SCHEMES)}",
            )


def _find_missing_reviews(raw: Any, registry: Registry) -> Iterator[SemanticProblemParts]:
    lasting_effects = sorted(collect_planned_effects(raw, registry) & {"write", "deploy"})
    if lasting_effects and get_value_at(raw, ("risk", "requires_review")) == []:
        yield (
            ("risk", "requires_review"),
            f"is empty, and planned commands {' and '.join(lasting_effects)}",
            "name a review: security, data, release, architecture, cost or compliance",
        )


def _find_lock_mismatch(raw: Any) -> Iterator[SemanticProblemParts]:
    lock = get_value_at(raw, ("constraints", "lock_scope"))
    mode, paths = get_text_at(lock, "mode"), get_value_at(lock, ("paths",))
    if mode == "files" and not paths:
        yield (
            ("constraints", "lock_scope", "paths"),
            "is empty, and the lock mode is files",
            "name the paths, or set the mode to task or none",
        )
    elif mode in ("none", "task") and paths:
        yield (
            ("constraints", "lock_scope", "paths"),
            f"has paths, and the lock mode {mode} takes none",
            "set the mode to files, or remove the paths",
        )


def _find_outside_paths(raw: Any) -> Iterator[SemanticProblemParts]:
    """Names that no plan may have, then those that lie outside the root or the lock of this one."""
    root = get_text_at(raw, "scope", "repo_root")
    targets = tuple(iter_texts_at(raw, "scope", "targets", "files"))
    locked = tuple(iter_texts_at(raw, "constraints", "lock_scope", "paths"))
    roots: tuple[tuple[FieldPath, str], ...] = ((("scope", "repo_root"), root),) if root else ()
    reasons = {
        path: why
        for path, place in (*roots, *targets, *locked)
        if (why := outside_plan_reason(place) or path_spelling_problem(place))
    }
    for path, why in reasons.items():
        yield path, why, "name a file below the top of the repository, such as src/app.py"
    is_file_lock = get_text_at(raw, "constraints", "lock_scope", "mode") == "files"
    if root and roots[0][0] not in reasons:
        fitting = (
            [located for located in places if located[0] not in reasons]
            for places in (targets, locked if is_file_lock else ())
        )
        yield from _find_paths_beyond_root(root, *fitting)


def _find_bad_modules(raw: Any) -> Iterator[SemanticProblemParts]:
    for path, module in iter_texts_at(raw, "scope", "targets", "modules"):
        if why := module_name_problem(module):
            yield path, why, "name a module of the repository, such as app.prices"


def _find_paths_beyond_root(
    root: str, targets: list[tuple[FieldPath, str]], locked: list[tuple[FieldPath, str]]
) -> Iterator[SemanticProblemParts]:
    lock = [place for _, place in locked]
    for path, place in targets:
        if outside_plan_reason(place, (root,)):
            yield (
                path,
                f"lies outside scope.repo_root, which is {root}",
                "write it from the top of the repository, or widen repo_root",
            )
        elif lock and outside_plan_reason(place, lock):
            yield (
                path,
                f"lies outside constraints.lock_scope.paths, which are {clip_text(describe_region(lock), 400)}",
                "lock it too, or leave it out",
            )
    for path, place in locked:
        if not intersect_paths(root, (place,)):
            yield path, f"has nothing in common with scope.repo_root, which is {root}", "lock what lies in it"


# ── remarks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _find_understated_commands(raw: Any, registry: Registry) -> Iterator[SemanticProblemParts]:
    for path, stated, spec in find_known_commands(raw, registry):
        missing = [
            e
            for e in spec.effects
            if e not in {stated_effect for _, stated_effect in iter_texts_at(stated, "effects")}
        ]
        if missing:
            yield (
                (*path, "effects"),
                f"leaves out {', '.join(missing)}, which {spec.id} has in the registry and which counts anyway",
                f"write {', '.join(spec.effects)}",
            )
        risk = get_text_at(stated, "risk_level")
        if risk in RISK_LEVELS and RISK_LEVELS.index(risk) < RISK_LEVELS.index(spec.risk_level):
            yield (
                (*path, "risk_level"),
                f"is {risk}, and {spec.id} is {spec.risk_level} in the registry, and the graver one counts",
                f"write {spec.risk_level}",
            )


def _find_role_mismatches(raw: Any, registry: Registry) -> Iterator[SemanticProblemParts]:
    for path, item in iter_list_at(raw, "selected_agents"):
        agent, role = registry.get("agent", get_text_at(item, "agent_id")), get_text_at(item, "role")
        if isinstance(agent, AgentProfile) and role and role != agent.role:
            yield (
                (*path, "role"),
                f"is {role}, and the registry knows {agent.id} as {agent.role}",
                f"write {agent.role}",
            )


def _find_unplaced_commands(raw: Any, registry: Registry) -> Iterator[SemanticProblemParts]:
    """Commands that no selected phase takes."""
    wanted_phases = {
        p
        for path, _ in iter_list_at(raw, "selected_workflows")
        for _, p in iter_texts_at(raw, *path, "phases")
    }
    for path, _, spec in find_known_commands(raw, registry):
        if wanted_phases and wanted_phases.isdisjoint(spec.phases):
            yield (
                (*path, "command_id"),
                f"{spec.id} belongs to {', '.join(spec.phases)}, and no selected workflow has such a phase",
                "select a phase that takes it, or leave the command out",
            )

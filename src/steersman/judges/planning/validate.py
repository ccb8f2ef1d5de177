"""Finds everything that is wrong with a registry as a whole: names that lead nowhere, double ids, rules that cannot decide.

**Invariant:** all problems are reported at once, each with file, line, field and fix.
"""

from collections.abc import Iterator
from typing import cast

from steersman.contracts.planning.content import (
    AgentProfile,
    CommandSpec,
    RegistryContent,
    RegistryRule,
    Workflow,
)
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.environment import FACT_KINDS
from steersman.judges.planning.places import document_problem
from steersman.judges.planning.registry import (
    USABLE_STATUSES,
    ContentPath,
    Registry,
    RegistryItem,
    get_content_kind,
)
from steersman.judges.planning.rule_evidence import compile_rule
from steersman.judges.text import clip_text

RegistryFinding = tuple[ContentPath, str, str]  # field, what is wrong, how to fix it


def find_registry_problems(registry: Registry) -> tuple[DocumentProblem, ...]:
    """All of them: first those of identity, then in the order in which the content was read."""
    content_problems = (
        locate_registry_finding(item, finding)
        for item in registry.items
        for finding in (*_check_supersedes(registry, item.content), *_check_content(registry, item.content))
    )
    return (*find_identity_problems(registry), *content_problems)


def find_identity_problems(registry: Registry) -> tuple[DocumentProblem, ...]:
    """Where it is not plain which content holds: with one of these nothing may be planned."""
    problem_list: list[DocumentProblem] = []
    items_by_id: dict[tuple[ContentKind, str], RegistryItem] = {}
    for item in registry.items:
        earlier = items_by_id.setdefault((get_content_kind(item.content), item.content.id), item)
        if earlier is not item:
            problem_list += (locate_registry_finding(item, f) for f in _check_duplicate_id(earlier, item))
    return tuple(problem_list)


def locate_registry_finding(item: RegistryItem, finding: RegistryFinding) -> DocumentProblem:
    """A finding with the place in the file that the content was read from."""
    path, message, fix = finding
    located = document_problem((item.content.id, *path), message, fix)
    line = document_problem(path, message, fix, item.lines).line
    return DocumentProblem(
        field=clip_text(f"{item.file}: {located.field}", 400),
        message=located.message,
        fix=located.fix,
        line=line,
    )


def _check_duplicate_id(earlier: RegistryItem, item: RegistryItem) -> Iterator[RegistryFinding]:
    """One id, one piece of content: a project replaces what is built in openly, or not at all."""
    if earlier.origin == item.origin:
        yield ("id",), f"stands in {earlier.file} too", "give one of the two another id"
    else:
        yield from _check_replacement(item.content, earlier.content)


def _check_replacement(mine: RegistryContent, built_in: RegistryContent) -> Iterator[RegistryFinding]:
    reference = f"{built_in.id}@{built_in.version}"
    if _parse_version_number(mine.version) <= _parse_version_number(built_in.version):
        yield ("version",), f"is not above the built-in {built_in.version}", "raise it"
    if reference not in mine.lineage.supersedes:
        yield (
            ("lineage", "supersedes"),
            f"does not say that it replaces the built-in {reference}",
            f"add {reference}, or take another id",
        )


def _parse_version_number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _check_content(registry: Registry, content: RegistryContent) -> Iterator[RegistryFinding]:
    match content:
        case Workflow():
            yield from _check_workflow(registry, content)
        case CommandSpec():
            yield from _check_command_spec(content)
        case RegistryRule():
            yield from _check_registry_rule(registry, content)
        case _:
            pass  # an agent names nothing that could be missing


def _check_supersedes(registry: Registry, content: RegistryContent) -> Iterator[RegistryFinding]:
    """Content that can be planned with must not stand beside the content that it replaces."""
    for n, reference in enumerate(content.lineage.supersedes):
        id_ = reference.partition("@")[0]
        superseded = registry.get(get_content_kind(content), id_)
        if id_ != content.id and superseded and {superseded.status, content.status} <= {*USABLE_STATUSES}:
            path: ContentPath = ("lineage", "supersedes", n)
            yield path, f"{id_} is replaced and still {superseded.status}", "set its status to deprecated"


def _check_workflow(registry: Registry, workflow: Workflow) -> Iterator[RegistryFinding]:
    phase_names = [p.phase for p in workflow.phases]
    roles = {cast("AgentProfile", agent).role for agent in registry.all_usable("agent")}
    for n, phase in enumerate(workflow.phases):
        path: ContentPath = ("phases", n)
        if phase.phase in phase_names[:n]:
            yield (*path, "phase"), f"{phase.phase} is there twice", "put the two together"
        if phase.role not in roles:
            yield (*path, "role"), f"no agent has the role {phase.role}", f"one of {', '.join(sorted(roles))}"
        for position, name in enumerate(phase.after):
            if name not in phase_names:
                yield (
                    (*path, "after", position),
                    f"the workflow has no phase {name}",
                    f"one of {', '.join(phase_names)}",
                )
        if phase.fallback and phase.fallback not in phase_names:
            yield (
                (*path, "fallback"),
                f"the workflow has no phase {phase.fallback}",
                f"one of {', '.join(phase_names)}",
            )
        for position, id_ in enumerate(phase.commands):
            yield from _check_phase_command(registry, id_, phase.phase, (*path, "commands", position))


def _check_phase_command(
    registry: Registry, id_: str, phase: str, path: ContentPath
) -> Iterator[RegistryFinding]:
    spec = cast("CommandSpec | None", registry.get("command", id_))
    if spec is None:
        yield path, f"there is no command {id_}", "`steersman registry list command` has them all"
    elif spec.status not in USABLE_STATUSES:
        yield path, f"{id_} is {spec.status}", "name a command that is active or frozen"
    elif phase not in spec.phases:
        yield path, f"{id_} does not belong to {phase}", f"add {phase} to its phases, or leave it out here"


def _check_command_spec(command: CommandSpec) -> Iterator[RegistryFinding]:
    if command.fact and command.fact not in FACT_KINDS:
        yield ("fact",), f"{command.fact} is no kind of fact", f"one of {', '.join(FACT_KINDS)}"
    for n, name in enumerate(command.evidence):
        if name not in FACT_KINDS:
            yield ("evidence", n), f"{name} is no kind of fact", f"one of {', '.join(FACT_KINDS)}"
    if command.destructive and not {"write", "deploy", "security", "data"} & {*command.effects}:
        yield ("effects",), "destroys and only reads", "add write, deploy, security or data"


def _check_registry_rule(registry: Registry, rule: RegistryRule) -> Iterator[RegistryFinding]:
    for n, id_ in enumerate(rule.scope.commands):
        if registry.get("command", id_) is None:
            yield (
                ("scope", "commands", n),
                f"there is no command {id_}",
                "`steersman registry list command` has them all",
            )
    for path, fault in compile_rule(rule).faults:
        yield path, fault.message, fault.fix

"""Checks the red lines I1 to I5 of an intent, each by itself and on any document.

**Invariant:** total. A red line that demands something is broken where that is missing. A red line that forbids a
combination is judged by the strictest of intent, policy and registry.
"""

from collections.abc import Iterator
from typing import Any

from steersman.contracts.planning.decisions import DocumentProblem, RedLine, RedLineCheck
from steersman.contracts.planning.words import (
    EXECUTION_MODES,
    RISK_LEVELS,
    AssessedRisk,
    ContentKind,
    ExecutionMode,
    RiskLevel,
    gravest_risk,
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
)
from steersman.judges.planning.registry import Registry, parse_cited_content
from steersman.judges.planning.semantics import find_cited_evidence, find_known_commands
from steersman.judges.text import clip_text

RedLineProblemParts = tuple[FieldPath, str, str]


def check_red_lines(
    raw: Any,
    mode: ExecutionMode | None,
    payload: tuple[DocumentProblem, ...],
    registry: Registry,
    lines: FieldLines = NO_FIELD_LINES,
) -> tuple[RedLineCheck, ...]:
    """All five; `mode` is the stricter one of intent and policy, as far as they say one."""
    problem_parts: dict[RedLine, tuple[RedLineProblemParts, ...]] = {
        "I1": tuple(_find_allowed_execution(raw)),
        "I2": tuple(_find_full_auto_questions(raw)),
        "I3": tuple(_find_grave_full_auto(raw, mode, registry)),
        "I4": tuple(_find_unsupported_commands(raw)),
        "I5": tuple(_find_fabricated_content(raw, registry)),
    }
    problems = {
        line: tuple(document_problem(*parts, lines) for parts in group)
        for line, group in problem_parts.items()
    }
    problems["I1"] = (*payload, *problems["I1"])
    # The schema asks for it; nothing is passed in silence.
    unstated = {"I1"} if _is_execution_forbidden(raw) is None else set()
    return tuple(
        RedLineCheck(red_line=n, passed=not details and n not in unstated, details=details)
        for n, details in problems.items()
    )


def find_stricter_mode(raw: Any, policy_raw: Any) -> ExecutionMode | None:
    """The stricter of the two modes, as far as there are any."""
    stated_modes = (get_text_at(raw, "interaction", "mode"), get_text_at(policy_raw, "mode"))
    return max((m for m in EXECUTION_MODES if m in stated_modes), key=EXECUTION_MODES.index, default=None)


def gravest_stated_risk(raw: Any, registry: Registry) -> RiskLevel:
    """The gravest risk that the intent states or that the registry has for one of its commands."""
    stated_levels = [get_text_at(raw, "risk", "overall")]
    stated_levels += [get_text_at(item, "risk_level") for _, item in iter_list_at(raw, "planned_commands")]
    return gravest_risk(
        *(r for r in RISK_LEVELS if r in stated_levels),
        *(c.spec.risk_level for c in find_known_commands(raw, registry)),
    )


def reported_stated_risk(raw: Any, registry: Registry) -> AssessedRisk:
    """The same for display: an unstated risk is unknown, never low."""
    risk = gravest_stated_risk(raw, registry)
    return risk if risk != "low" or get_text_at(raw, "risk", "overall") == "low" else "unknown"


def _find_allowed_execution(raw: Any) -> Iterator[RedLineProblemParts]:
    if _is_execution_forbidden(raw) is False:
        yield ("constraints", "execution"), "does not say that execution is forbidden (I1)", "write forbidden"


def _is_execution_forbidden(raw: Any) -> bool | None:
    """Whether execution is forbidden; None where the intent does not say."""
    execution = get_value_at(raw, ("constraints", "execution"))
    return None if execution is None else execution == "forbidden"


def _find_full_auto_questions(raw: Any) -> Iterator[RedLineProblemParts]:
    if get_text_at(raw, "interaction", "mode") != "full_auto":
        return
    budget = get_value_at(raw, ("interaction", "question_budget"))
    if budget != 0 or isinstance(budget, bool):
        yield ("interaction", "question_budget"), "is not 0, and the mode is full_auto (I2)", "write 0, or choose another mode"  # fmt: skip
    if get_text_at(raw, "interaction", "question_policy") != "never":
        yield ("interaction", "question_policy"), "is not never, and the mode is full_auto (I2)", "write never, or choose another mode"  # fmt: skip


def _find_grave_full_auto(
    raw: Any, mode: ExecutionMode | None, registry: Registry
) -> Iterator[RedLineProblemParts]:
    risk = gravest_stated_risk(raw, registry)
    if mode == "full_auto" and risk in ("high", "critical"):
        yield (
            ("interaction", "mode"),
            f"the plan's risk is {risk}, and a plan of such a risk is never full_auto, by the intent or by the policy (I3)",
            "choose interactive or semi_auto in both, or leave the dangerous commands out",
        )


def _find_unsupported_commands(raw: Any) -> Iterator[RedLineProblemParts]:
    for path, item in iter_list_at(raw, "planned_commands"):
        refs = [ref for _, ref in iter_texts_at(item, "evidence_refs") if ref.strip()]
        if not refs:
            name = get_text_at(item, "command_id") or "the command"
            yield (*path, "evidence_refs"), f"nothing speaks for {name} (I4)", "name at least one piece of evidence, such as fact://test_command/pytest"  # fmt: skip


def _find_fabricated_content(raw: Any, registry: Registry) -> Iterator[RedLineProblemParts]:
    for name in ("no_fabrication", "registry_only"):
        if get_value_at(raw, ("constraints", name)) is not True:
            yield ("constraints", name), "is not true (I5)", "write true"
    for path, kind, id_ in find_named_content(raw):
        if registry.get(kind, id_) is None:
            yield path, f"{clip_text(id_, 80) or 'what is named here'} is no {kind} of the registry (I5)", f"`steersman registry list {kind}` has them all"  # fmt: skip
    for path, ref in find_cited_evidence(raw):
        content = parse_cited_content(ref)
        if ref.startswith(("rule://", "registry://")) and (
            content is None or registry.get(*content[:2]) is None
        ):
            yield path, f"{clip_text(ref, 200)} is nothing of the registry (I5)", "cite what `steersman registry list` has"  # fmt: skip


_CONTENT_ID_FIELDS: tuple[tuple[ContentKind, str, str], ...] = (
    ("workflow", "selected_workflows", "workflow_id"),
    ("agent", "selected_agents", "agent_id"),
    ("command", "planned_commands", "command_id"),
)


def find_named_content(raw: Any) -> Iterator[tuple[FieldPath, ContentKind, str]]:
    """Every place in an intent that names content of the registry: path, kind, and the id where it is one."""
    for kind, group, name in _CONTENT_ID_FIELDS:
        yield from (((*path, name), kind, get_text_at(item, name)) for path, item in iter_list_at(raw, group))

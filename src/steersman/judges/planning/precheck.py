"""Checks an intent before anything is planned (001 §2), and seals an intent: pins and checksum.

**Invariant:** total and pure. Every part is checked even if another part fails, and nothing passes unchecked. Sealing
changes nothing but the pins and the checksum.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from steersman.contracts.planning.decisions import DocumentProblem, PrecheckReport, RegistryReference
from steersman.contracts.planning.facts import PrecheckFacts
from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.intent import NO_CHECKSUM, compute_intent_checksum, has_matching_checksum
from steersman.judges.planning.payload import find_execution_payload, is_inspectable
from steersman.judges.planning.places import (
    NO_FIELD_LINES,
    FieldLines,
    FieldPath,
    find_field_line,
    format_field_path,
    get_text_at,
    get_value_at,
    iter_texts_at,
)
from steersman.judges.planning.policy import find_policy_problems
from steersman.judges.planning.red_lines import check_red_lines, find_named_content, find_stricter_mode
from steersman.judges.planning.registry import (
    CONFLICTING_PINS_TEXT,
    Registry,
    format_pin,
    parse_cited_content,
    parse_pins,
)
from steersman.judges.planning.schema_errors import find_schema_problems
from steersman.judges.planning.semantics import (
    find_cited_evidence,
    find_project_mismatch,
    find_semantic_problems,
)
from steersman.judges.text import clip_text, printable_text

_CONTENT_ID_PATTERN = re.compile(r"[a-z][a-z0-9_]{2,79}")
_PINNED_VERSION_PATTERN = re.compile(r"[0-9.]+#[0-9a-f]{12}")
_SEAL_ADVICE = "read `steersman registry diff`, then run `steersman intent seal FILE`"


def precheck_intent(
    raw: Any,
    policy_raw: Any,
    registry: Registry,
    lines: FieldLines = NO_FIELD_LINES,
    policy_lines: FieldLines = NO_FIELD_LINES,
    project: str = "",
) -> PrecheckReport:
    """The report on an intent and a policy, both as they were read, in a project that may have a name."""
    problems = find_execution_payload(raw, lines)
    shallow = raw if is_inspectable(raw) else None  # beyond that depth only places with a name are looked at
    schema_faults = (
        *find_schema_problems(raw, lines),
        *find_semantic_problems(shallow, registry, lines),
        *find_project_mismatch(raw, project, lines),
    )
    return PrecheckReport(
        intent_id=clip_text(printable_text(get_text_at(raw, "id")), 80),
        schema_valid=not schema_faults,
        schema_problems=schema_faults,
        checksum_matches=has_matching_checksum(raw),
        checksum_expected=compute_intent_checksum(raw),
        red_lines=check_red_lines(raw, find_stricter_mode(raw, policy_raw), problems, registry, lines),
        execution_payload=problems,
        references=(
            *find_intent_references(raw, registry, lines),
            *_find_cited_references(raw, registry, lines),
        ),
        registry_digest=registry.digest,
        policy_problems=find_policy_problems(policy_raw, registry, policy_lines),
    )


def find_intent_references(
    raw: Any, registry: Registry, lines: FieldLines = NO_FIELD_LINES
) -> tuple[RegistryReference, ...]:
    """Every id of the registry that an intent names or pins, sorted, where it does, and what the registry has for it."""
    cited_refs = tuple(iter_texts_at(raw, "evidence_refs"))
    pinned = parse_pins(ref for _, ref in cited_refs)
    paths_by_content: dict[tuple[ContentKind, str], FieldPath] = {}
    for path, kind, id_ in find_named_content(raw):
        if _CONTENT_ID_PATTERN.fullmatch(id_):
            paths_by_content.setdefault((kind, id_), path)
    for path, ref in cited_refs:
        for key in parse_pins((ref,)):
            paths_by_content.setdefault(key, path)
    return tuple(
        replace(
            registry.reference(*key, pinned), field=format_field_path(path), line=find_field_line(path, lines)
        )
        for key, path in sorted(paths_by_content.items())
    )


def _find_cited_references(raw: Any, registry: Registry, lines: FieldLines) -> Iterator[RegistryReference]:
    """Everything of the registry that evidence cites; the pins of the whole are among the references already."""
    for path, ref in find_cited_evidence(raw):
        content = parse_cited_content(ref)
        if content is not None and not (len(path) == 2 and parse_pins((ref,))):
            yield replace(
                registry.citation(*content), field=format_field_path(path), line=find_field_line(path, lines)
            )


def find_unusable_references(report: PrecheckReport, *states: str) -> tuple[DocumentProblem, ...]:
    """What the intent names and cannot be planned with, as far as it was found to be one of these."""
    return tuple(_reference_problem(r) for r in report.references if r.found in states)


def _reference_problem(reference: RegistryReference) -> DocumentProblem:
    message, fix = _explain_unusable_reference(reference)
    return DocumentProblem(
        field=reference.field, message=f"{reference.id}: {message}", fix=fix, line=reference.line
    )


def _explain_unusable_reference(reference: RegistryReference) -> tuple[str, str]:
    current = f"{reference.version}#{reference.digest[:12]}"
    return {
        "missing": (f"the registry has no such {reference.kind}", f"use an id that `steersman registry list {reference.kind}` shows"),
        "inactive": (f"this {reference.kind} is neither active nor frozen", "name another one, or set its status to active"),
        "drifted": (f"this {reference.kind} is {current} now, and the intent names {reference.pinned}", _advise_version_fix(reference)),
        "unpinned": (f"nothing fixes the version of this {reference.kind}", _SEAL_ADVICE),
    }[reference.found]  # fmt: skip


def _advise_version_fix(reference: RegistryReference) -> str:
    """How a version is put right: sealing renews the pins of the whole, and leaves alone what is only cited."""
    is_pinned = reference.kind != "rule" and _PINNED_VERSION_PATTERN.fullmatch(reference.pinned) is not None
    if ".evidence_refs[" in reference.field or (
        reference.field.startswith("evidence_refs[")
        and not (is_pinned or reference.pinned == CONFLICTING_PINS_TEXT)
    ):
        return f"cite {'rule://' if reference.kind == 'rule' else f'registry://{reference.kind}/'}{reference.id}@{reference.version}"
    return _SEAL_ADVICE


def describe_checksum_problem(report: PrecheckReport) -> str:
    """How the checksum is wrong; a document that cannot be written in one way has none."""
    if report.checksum_expected == NO_CHECKSUM:
        return (
            "cannot be held against this document: it holds what has no canonical form, so it has no checksum"
        )
    return f"is not the one of this document, {report.checksum_expected}"


def count_precheck_facts(report: PrecheckReport, raw: Any, policy_raw: Any) -> PrecheckFacts:
    """The report, counted. The caller adds the names of payloads."""
    states = [r.found for r in report.references]
    return PrecheckFacts(
        looked=True,
        schema_problems=len(report.schema_problems),
        checksum_matches=report.checksum_matches,
        payload=sum(len(c.details) for c in report.red_lines if c.red_line == "I1"),
        broken=tuple(c.red_line for c in report.red_lines if not c.passed and c.red_line != "I1"),
        missing=states.count("missing"),
        inactive=states.count("inactive"),
        drifted=states.count("drifted") + states.count("unpinned"),
        policy_problems=len(report.policy_problems),
        mode=find_stricter_mode(raw, policy_raw) or "",
        intent_id=report.intent_id,
    )


def has_passed_precheck(report: PrecheckReport) -> bool:
    """Whether everything that was looked at is fine."""
    return (
        report.schema_valid
        and report.checksum_matches
        and all(check.passed for check in report.red_lines)
        and all(r.found == "usable" for r in report.references)
        and not report.policy_problems
    )


def collect_precheck_problems(report: PrecheckReport) -> tuple[DocumentProblem, ...]:
    """All problems of a report, those of a red line after those of form, each once."""
    problems = (
        *report.schema_problems,
        *(d for check in report.red_lines for d in check.details),
        *report.policy_problems,
    )
    return tuple(dict.fromkeys(problems))


def seal_intent(raw: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """The same document, pinned to the registry as it is now; what the registry lacks stays without a pin."""
    refs, audit = get_value_at(raw, ("evidence_refs",)), get_value_at(raw, ("audit",))
    old_refs = refs if isinstance(refs, list) else []
    entries = [
        registry.entries[r.kind, r.id] for r in find_intent_references(raw, registry) if r.found != "missing"
    ]
    pins = {format_pin(entry) for entry in entries}
    kept_refs = [ref for ref in old_refs if not isinstance(ref, str) or ref in pins or not parse_pins([ref])]
    pinned = {
        **raw,
        "evidence_refs": [*kept_refs, *(ref for ref in map(format_pin, entries) if ref not in kept_refs)],
    }
    old_audit = audit if isinstance(audit, dict) else {}
    return {
        **pinned,
        "audit": {**old_audit, "checksum": compute_intent_checksum({**pinned, "audit": old_audit})},
    }


def find_dangling_pins(raw: dict[str, Any], registry: Registry) -> tuple[str, ...]:
    """The pins of an intent that name nothing of the registry: sealing takes them out."""
    return tuple(
        ref
        for _, ref in iter_texts_at(raw, "evidence_refs")
        if parse_pins([ref]).keys() - registry.entries.keys()
    )

"""Everything that is looked at before anything is planned (001 §2): all of it, whatever a part of it says.

**Invariant:** total and pure; nothing is called fine that was not looked at.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from steersman.contracts.planning.decisions import PrecheckReport, Problem, Reference
from steersman.contracts.planning.facts import PrecheckFacts
from steersman.contracts.planning.words import Kind
from steersman.judges.planning.intent import NO_BYTES, checksum, checksum_matches
from steersman.judges.planning.payload import is_fathomable, payload
from steersman.judges.planning.places import NO_LINES, Lines, Path, field_of, line_of
from steersman.judges.planning.policy import policy_problems
from steersman.judges.planning.raw import text, texts
from steersman.judges.planning.red_lines import named, red_lines, stricter_mode
from steersman.judges.planning.registry import TORN, Registry, cited_content, pins
from steersman.judges.planning.sense import elsewhere, evidence, sense_problems
from steersman.judges.planning.shape import schema_problems
from steersman.judges.text import clip, printable

_ID = re.compile(r"[a-z][a-z0-9_]{2,79}")
_PINNED = re.compile(r"[0-9.]+#[0-9a-f]{12}")
_SEAL = "read `steersman registry diff`, then run `steersman intent seal FILE`"


def precheck(
    raw: Any,
    policy_raw: Any,
    registry: Registry,
    lines: Lines = NO_LINES,
    policy_lines: Lines = NO_LINES,
    project: str = "",
) -> PrecheckReport:
    """The report on an intent and a policy, both as they were read, in a project that may have a name."""
    carried = payload(raw, lines)
    shallow = raw if is_fathomable(raw) else None  # beyond that depth only places with a name are looked at
    wrong = (
        *schema_problems(raw, lines),
        *sense_problems(shallow, registry, lines),
        *elsewhere(raw, project, lines),
    )
    return PrecheckReport(
        intent_id=clip(printable(text(raw, "id")), 80),
        schema_valid=not wrong,
        schema_problems=wrong,
        checksum_matches=checksum_matches(raw),
        checksum_expected=checksum(raw),
        red_lines=red_lines(raw, stricter_mode(raw, policy_raw), carried, registry, lines),
        execution_payload=carried,
        references=(*references(raw, registry, lines), *_citations(raw, registry, lines)),
        registry_digest=registry.digest,
        policy_problems=policy_problems(policy_raw, registry, policy_lines),
    )


def references(raw: Any, registry: Registry, lines: Lines = NO_LINES) -> tuple[Reference, ...]:
    """Every id of the registry that an intent names or pins, sorted, where it does, and what the registry has for it."""
    cited = tuple(texts(raw, "evidence_refs"))
    fixed = pins(ref for _, ref in cited)
    found: dict[tuple[Kind, str], Path] = {}
    for path, kind, id_ in named(raw):
        if _ID.fullmatch(id_):
            found.setdefault((kind, id_), path)
    for path, ref in cited:
        for key in pins((ref,)):
            found.setdefault(key, path)
    return tuple(
        replace(registry.reference(*key, fixed), field=field_of(path), line=line_of(path, lines))
        for key, path in sorted(found.items())
    )


def _citations(raw: Any, registry: Registry, lines: Lines) -> Iterator[Reference]:
    """Everything of the registry that evidence cites; the pins of the whole are among the references already."""
    for path, ref in evidence(raw):
        content = cited_content(ref)
        if content is not None and not (len(path) == 2 and pins((ref,))):
            yield replace(registry.citation(*content), field=field_of(path), line=line_of(path, lines))


def unfit(report: PrecheckReport, *found: str) -> tuple[Problem, ...]:
    """What the intent names and cannot be planned with, as far as it was found to be one of these."""
    return tuple(_told(r) for r in report.references if r.found in found)


def _told(r: Reference) -> Problem:
    message, fix = _why_unfit(r)
    return Problem(field=r.field, message=f"{r.id}: {message}", fix=fix, line=r.line)


def _why_unfit(r: Reference) -> tuple[str, str]:
    now = f"{r.version}#{r.digest[:12]}"
    return {
        "missing": (
            f"the registry has no such {r.kind}",
            f"use an id that `steersman registry list {r.kind}` shows",
        ),
        "inactive": (
            f"this {r.kind} is neither active nor frozen",
            "name another one, or set its status to active",
        ),
        "drifted": (f"this {r.kind} is {now} now, and the intent names {r.pinned}", _mend(r)),
        "unpinned": (f"nothing fixes the version of this {r.kind}", _SEAL),
    }[r.found]


def _mend(r: Reference) -> str:
    """How a version is put right: sealing renews the pins of the whole, and leaves alone what is only cited."""
    pinned = r.kind != "rule" and _PINNED.fullmatch(r.pinned) is not None
    if ".evidence_refs[" in r.field or (
        r.field.startswith("evidence_refs[") and not (pinned or r.pinned == TORN)
    ):
        return f"cite {'rule://' if r.kind == 'rule' else f'registry://{r.kind}/'}{r.id}@{r.version}"
    return _SEAL


def unsealed(report: PrecheckReport) -> str:
    """How the checksum is wrong; a document that cannot be written in one way has none."""
    if report.checksum_expected == NO_BYTES:
        return (
            "cannot be held against this document: it holds what has no canonical form, so it has no checksum"
        )
    return f"is not the one of this document, {report.checksum_expected}"


def facts(report: PrecheckReport, raw: Any, policy_raw: Any) -> PrecheckFacts:
    """The report, counted; names of payloads are for whoever keeps it."""
    found = [r.found for r in report.references]
    return PrecheckFacts(
        looked=True,
        schema_problems=len(report.schema_problems),
        checksum_matches=report.checksum_matches,
        payload=sum(len(c.details) for c in report.red_lines if c.red_line == "I1"),
        broken=tuple(c.red_line for c in report.red_lines if not c.passed and c.red_line != "I1"),
        missing=found.count("missing"),
        inactive=found.count("inactive"),
        drifted=found.count("drifted") + found.count("unpinned"),
        policy_problems=len(report.policy_problems),
        mode=stricter_mode(raw, policy_raw) or "",
        intent_id=report.intent_id,
    )


def passes(report: PrecheckReport) -> bool:
    """Whether everything that was looked at is fine."""
    return (
        report.schema_valid
        and report.checksum_matches
        and all(check.passed for check in report.red_lines)
        and all(r.found == "usable" for r in report.references)
        and not report.policy_problems
    )


def troubles(report: PrecheckReport) -> tuple[Problem, ...]:
    """All problems of a report, those of a red line after those of form, each once."""
    told = (
        *report.schema_problems,
        *(d for check in report.red_lines for d in check.details),
        *report.policy_problems,
    )
    return tuple(dict.fromkeys(told))

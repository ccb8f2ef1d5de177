"""Everything that is looked at before anything is planned (001 §2): all of it, whatever a part of it says.

**Invariant:** total and pure; nothing is called fine that was not looked at.
"""

import re
from collections.abc import Iterator
from typing import Any

from steersman.contracts.planning.decisions import PrecheckReport, Problem, Reference
from steersman.contracts.planning.facts import PrecheckFacts
from steersman.contracts.planning.words import Kind
from steersman.judges.planning.intent import checksum, checksum_matches
from steersman.judges.planning.payload import is_fathomable, payload
from steersman.judges.planning.places import NO_LINES, Lines
from steersman.judges.planning.policy import policy_problems
from steersman.judges.planning.raw import text, texts
from steersman.judges.planning.red_lines import named, red_lines, stricter_mode
from steersman.judges.planning.registry import Registry, pins
from steersman.judges.planning.sense import sense_problems
from steersman.judges.planning.shape import schema_problems
from steersman.judges.text import clip, printable

_ID = re.compile(r"[a-z][a-z0-9_]{2,79}")


def precheck(
    raw: Any, policy_raw: Any, registry: Registry, lines: Lines = NO_LINES, policy_lines: Lines = NO_LINES
) -> PrecheckReport:
    """The report on an intent and a policy, both as they were read."""
    carried = payload(raw, lines)
    shallow = raw if is_fathomable(raw) else None  # beyond that depth only places with a name are looked at
    wrong = (*schema_problems(raw, lines), *sense_problems(shallow, registry, lines))
    return PrecheckReport(
        intent_id=clip(printable(text(raw, "id")), 80),
        schema_valid=not wrong,
        schema_problems=wrong,
        checksum_matches=checksum_matches(raw),
        checksum_expected=checksum(raw),
        red_lines=red_lines(raw, stricter_mode(raw, policy_raw), carried, registry, lines),
        execution_payload=carried,
        references=references(raw, registry),
        registry_digest=registry.digest,
        policy_problems=policy_problems(policy_raw, registry, policy_lines),
    )


def references(raw: Any, registry: Registry) -> tuple[Reference, ...]:
    """Every id of the registry that an intent names or pins, sorted, and what the registry has for it."""
    fixed = pins(ref for _, ref in texts(raw, "evidence_refs"))
    wanted = {*_named(raw), *fixed}
    return tuple(registry.reference(kind, id_, fixed) for kind, id_ in sorted(wanted))


def _named(raw: Any) -> Iterator[tuple[Kind, str]]:
    yield from ((kind, id_) for _, kind, id_ in named(raw) if _ID.fullmatch(id_))


def facts(report: PrecheckReport, raw: Any, policy_raw: Any) -> PrecheckFacts:
    """The report, counted; names of payloads are for whoever keeps it."""
    found = [r.found for r in report.references]
    return PrecheckFacts(
        looked=True,
        schema_problems=len(report.schema_problems),
        checksum_matches=report.checksum_matches,
        payload=len(report.execution_payload),
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

"""Renders a registry for a terminal: lists, single items, changes, and what rules can refer to.

**Invariant:** one line is one line, whatever stands in the content.
"""

from collections.abc import Iterable, Iterator, Sequence

from steersman.contracts.planning.content import (
    AgentProfile,
    CommandSpec,
    RegistryContent,
    RegistryEntry,
    RegistryRule,
    Workflow,
)
from steersman.judges.planning.environment import RULE_VARIABLES
from steersman.judges.planning.registry import PinDrift, RegistryDifference, RegistryItem, format_pin
from steersman.judges.text import clip_text, printable_line

_TITLE_WIDTH = 60
_MAX_VALUE_LENGTH = 160


def render_registry_list(items: Iterable[RegistryItem]) -> list[str]:
    """Renders one line for each item: id, version, status, origin, title."""
    rows = [(i.content.id, i.content.version, i.content.status, i.origin, i.content.title) for i in items]
    return _render_text_table([("ID", "VERSION", "STATUS", "FROM", "TITLE"), *rows])


def render_registry_item(item: RegistryItem, entry: RegistryEntry) -> list[str]:
    """Renders one item, field by field."""
    content = item.content
    header = [
        f"{entry.kind} {entry.id} {entry.version} ({entry.status}, {entry.origin})",
        content.title,
        content.description,
        f"pin: {format_pin(entry)}",
        f"digest: {entry.digest}",
    ]
    body = [f"{name}: {value}" for name, value in _content_fields(content)]
    return [printable_line(line) for line in (*header, *body)]


def render_registry_changes(differences: Sequence[RegistryDifference]) -> list[str]:
    """Renders added, removed and changed items, down to the fields."""
    lines: list[str] = []
    for difference in differences:
        lines.append(_render_registry_change(difference))
        lines += [
            f"    {path}: {_shorten_value(old_value)} → {_shorten_value(new_value)}"
            for path, old_value, new_value in difference.fields
        ]
    return lines


def render_pin_drift(drifts: Sequence[PinDrift]) -> list[str]:
    """Renders what an intent has pinned beside what the registry has now."""
    lines: list[str] = []
    for drift in drifts:
        lines.append(
            f"{drift.kind} {drift.id} is {drift.found}: pinned {drift.pinned}, now {drift.now or 'nothing'}"
        )
        lines += [
            f"    {path}: {_shorten_value(old_value)} → {_shorten_value(new_value)}"
            for path, old_value, new_value in drift.fields
        ]
        if not drift.kept:
            lines.append("    what was pinned is not kept here, so that the fields cannot be compared")
    return lines


def render_rule_variables() -> list[str]:
    """Renders what a rule can refer to."""
    return _render_text_table([("NAME", "TYPE", "MEANING"), *RULE_VARIABLES])


def _content_fields(content: RegistryContent) -> Iterator[tuple[str, str]]:
    match content:
        case Workflow():
            for phase in content.phases:
                parts = [phase.purpose, f"by {phase.role}", f"commands {join_words(phase.commands)}"]
                parts += [f"after {join_words(phase.after)}"] if phase.after else []
                parts += [f"if {phase.condition}"] if phase.condition else []
                parts += [f"else {phase.fallback}"] if phase.fallback else []
                parts += [f"review by {join_words(phase.review)}"] if phase.review else []
                yield phase.phase, "; ".join(parts)
        case AgentProfile():
            yield "role", content.role
            yield "phases", join_words(content.phases)
            yield "areas", join_words(content.areas)
            yield "capabilities", "; ".join(content.capabilities)
            yield "models", join_words(f"{m.model} ({m.placement})" for m in content.models)
        case CommandSpec():
            yield "effects", join_words(content.effects)
            yield "risk", content.risk_level + (", destructive" if content.destructive else "")
            yield "phases", join_words(content.phases)
            yield "example", " ".join(content.argv) or "from the project's own files"
            yield "needs facts", join_words(content.evidence)
            yield "usually", f"{content.files} files, {content.minutes} minutes"
            yield "way back", content.rollback or "none is known"
        case RegistryRule():
            yield "scope", describe_rule_scope(content)
            yield "when", content.when
            yield "then", f"{content.then.decision} at severity {content.severity}: {content.then.reason}"
            yield "required changes", "; ".join(content.then.required_changes) or "–"
            yield "review", join_words(content.then.review)
            yield "evidence", join_words(content.evidence_required)


def _render_registry_change(difference: RegistryDifference) -> str:
    if difference.old is None:
        return f"+ {difference.kind} {difference.id} {difference.new.version if difference.new else ''}"
    if difference.new is None:
        return f"- {difference.kind} {difference.id} {difference.old.version}"
    version = (
        difference.old.version
        if difference.old.version == difference.new.version
        else f"{difference.old.version} → {difference.new.version}"
    )
    return f"~ {difference.kind} {difference.id} {version}"


def describe_rule_scope(rule: RegistryRule) -> str:
    """Describes which commands a rule looks at."""
    scope = rule.scope
    parts = (
        ("commands", scope.commands),
        ("effects", scope.effects),
        ("risks", scope.risks),
        ("phases", scope.phases),
    )
    return "; ".join(f"{name} {join_words(values)}" for name, values in parts if values)


def join_words(values: Iterable[str]) -> str:
    """Joins words with commas; a dash for none."""
    return ", ".join(values) or "–"


def _shorten_value(text: str) -> str:
    return clip_text(printable_line(text), _MAX_VALUE_LENGTH) or "nothing"


def _render_text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    clean = [[*row[:-1], clip_text(printable_line(row[-1]), _TITLE_WIDTH * 2)] for row in rows]
    widths = [max(len(row[n]) for row in clean) for n in range(len(clean[0]) - 1)]
    return [
        "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in clean
    ]

"""A registry on a terminal: lists, single pieces of content, what changed, what rules can speak about.

**Invariant:** one line is one line, whatever stands in the content.
"""

from collections.abc import Iterable, Iterator, Sequence

from steersman.contracts.planning.content import AgentProfile, CommandSpec, Content, Entry, Rule, Workflow
from steersman.judges.planning.drift import Drift
from steersman.judges.planning.environment import VARIABLES
from steersman.judges.planning.registry import Difference, Item, pin
from steersman.judges.text import clip, one_line

_TITLE = 60
_VALUE = 160


def listed(items: Iterable[Item]) -> list[str]:
    """One line each: id, version, status, where it is from, title."""
    rows = [(i.content.id, i.content.version, i.content.status, i.origin, i.content.title) for i in items]
    return _table([("ID", "VERSION", "STATUS", "FROM", "TITLE"), *rows])


def shown(item: Item, entry: Entry) -> list[str]:
    """One piece of content, field by field."""
    content = item.content
    head = [
        f"{entry.kind} {entry.id} {entry.version} ({entry.status}, {entry.origin})",
        content.title,
        content.description,
        f"pin: {pin(entry)}",
        f"digest: {entry.digest}",
    ]
    body = [f"{name}: {value}" for name, value in _fields(content)]
    return [one_line(line) for line in (*head, *body)]


def changed(differences: Sequence[Difference]) -> list[str]:
    """What came, went and changed, down to the fields."""
    lines: list[str] = []
    for d in differences:
        lines.append(_change(d))
        lines += [f"    {path}: {_value(was)} → {_value(now)}" for path, was, now in d.fields]
    return lines


def drifted(found: Sequence[Drift]) -> list[str]:
    """What an intent has pinned and what holds now."""
    lines: list[str] = []
    for d in found:
        lines.append(f"{d.kind} {d.id} is {d.found}: pinned {d.pinned}, now {d.now or 'nothing'}")
        lines += [f"    {path}: {_value(was)} → {_value(now)}" for path, was, now in d.fields]
        if not d.kept:
            lines.append("    what was pinned is not kept here, so that the fields cannot be compared")
    return lines


def variables() -> list[str]:
    """What a rule can speak about."""
    return _table([("NAME", "TYPE", "MEANING"), *VARIABLES])


def _fields(content: Content) -> Iterator[tuple[str, str]]:
    match content:
        case Workflow():
            for p in content.phases:
                said = [p.purpose, f"by {p.role}", f"commands {words(p.commands)}"]
                said += [f"after {words(p.after)}"] if p.after else []
                said += [f"if {p.condition}"] if p.condition else []
                said += [f"else {p.fallback}"] if p.fallback else []
                said += [f"review by {words(p.review)}"] if p.review else []
                yield p.phase, "; ".join(said)
        case AgentProfile():
            yield "role", content.role
            yield "phases", words(content.phases)
            yield "areas", words(content.areas)
            yield "capabilities", "; ".join(content.capabilities)
            yield "models", words(f"{m.model} ({m.placement})" for m in content.models)
        case CommandSpec():
            yield "effects", words(content.effects)
            yield "risk", content.risk_level + (", destructive" if content.destructive else "")
            yield "phases", words(content.phases)
            yield "example", " ".join(content.argv) or "from the project's own files"
            yield "needs facts", words(content.evidence)
            yield "usually", f"{content.files} files, {content.minutes} minutes"
            yield "way back", content.rollback or "none is known"
        case Rule():
            yield "scope", scope_of(content)
            yield "when", content.when
            yield "then", f"{content.then.decision} at severity {content.severity}: {content.then.reason}"
            yield "required changes", "; ".join(content.then.required_changes) or "–"
            yield "review", words(content.then.review)
            yield "evidence", words(content.evidence_required)


def _change(d: Difference) -> str:
    if d.old is None:
        return f"+ {d.kind} {d.id} {d.new.version if d.new else ''}"
    if d.new is None:
        return f"- {d.kind} {d.id} {d.old.version}"
    version = d.old.version if d.old.version == d.new.version else f"{d.old.version} → {d.new.version}"
    return f"~ {d.kind} {d.id} {version}"


def scope_of(rule: Rule) -> str:
    """Which commands a rule looks at, in words."""
    scope = rule.scope
    parts = (
        ("commands", scope.commands),
        ("effects", scope.effects),
        ("risks", scope.risks),
        ("phases", scope.phases),
    )
    return "; ".join(f"{name} {words(values)}" for name, values in parts if values)


def words(values: Iterable[str]) -> str:
    """Some words in a row, or a dash."""
    return ", ".join(values) or "–"


def _value(text: str) -> str:
    return clip(one_line(text), _VALUE) or "nothing"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    clean = [[*row[:-1], clip(one_line(row[-1]), _TITLE * 2)] for row in rows]
    widths = [max(len(row[n]) for row in clean) for n in range(len(clean[0]) - 1)]
    return [
        "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in clean
    ]

"""Findings become a FactPack: each fact once, with its evidence, in an order that depends on nothing but the files.

**Invariant:** nothing of a file gets into a pack before secrets are taken out of it and its characters are harmless; a
secret leaves no trace that could be tried out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.contracts.planning.context import Bounds, Evidence, Fact, FactPack
from steersman.judges.planning.facts.choice import Choice, readers_of
from steersman.judges.planning.facts.finding import TOP, Finding, Source
from steersman.judges.planning.facts.secret_files import secret_file
from steersman.judges.planning.facts.unread import TOLD, unread
from steersman.judges.planning.hidden import hidden
from steersman.judges.text import clip, one_line, well_formed
from steersman.kernel.canonical import digest, digest_of

MOST_OF_A_FILE = 300  # findings
MOST_OF_A_KIND = 500  # facts
MOST_EVIDENCE = 20  # for one fact
MOST_UNREAD = 50
LONGEST = 200  # characters of a name and of a snippet
_LOOKED_AT = 2_000  # characters of a text that is shortened to a line
_SHOWN = 5  # lines of a snippet
_KNOWN_BY = 20_000  # characters of a place that is longer than its snippet
_UNOPENED = digest(b"")
# A command that stands for another in the same place.
_STANDS_FOR = {("test_command", "unittest"): "pytest"}


class Shown(NamedTuple):
    """A finding and the words that show it."""

    finding: Finding
    snippet: str
    own: str  # a digest of its lines, without secrets; the whole file's where it has none


class Page(msgspec.Struct, frozen=True):
    """What one file has given."""

    path: str
    digest: str
    shown: tuple[Shown, ...]
    unread: str = ""  # why it says nothing, where it should


def examine(source: Source, file_digest: str) -> Page:
    """Everything that a file says, by all who read files of its name."""
    silent, file_digest = unread(source), _untried(source, file_digest)
    if silent:
        return Page(source.path, file_digest, (), _harmless(silent, 400))
    found = (finding for find in readers_of(source.path) for finding in find(source))
    fit = (
        Shown(clean, snippet, _own(source, clean, snippet, file_digest))
        for raw in islice(found, MOST_OF_A_FILE)
        for clean in _cleaned(raw)
        for snippet in (_snippet(source, clean),)
    )
    return Page(source.path, file_digest, tuple(fit))


def _untried(source: Source, file_digest: str) -> str:
    """A file's digest; of its text without secrets where it has any, for a short file would show whether a guess is right."""
    shown = hidden(source.text)
    return file_digest if shown == source.text else digest_of(well_formed(shown))


def pack_of(project_id: str, pages: Sequence[Page], choice: Choice, bounds: Bounds) -> FactPack:
    """The pack of what was read; bounds say what was not."""
    files = {page.path: page.digest for page in pages}
    found = sorted(_all(pages, choice, files), key=_order)
    facts, evidence = _gathered(found)
    kept, cut = _kept(facts)
    cited = {name for fact in kept for name in fact.evidence}
    return FactPack(
        project_id=project_id,
        fingerprint=digest_of(sorted([path, known] for path, known in files.items())),
        facts=tuple(kept),
        evidence=tuple(evidence[name] for name in sorted(cited)),
        bounds=_bounded(bounds, cut, [page.unread for page in pages if page.unread]),
    )


def _bounded(bounds: Bounds, cut: list[str], silent: list[str]) -> Bounds:
    """How far it went, with what was cut and what says nothing; only the latter leaves other kinds complete."""
    if not cut and not silent:
        return bounds
    why = (
        bounds.stopped_by,
        f"more than {MOST_OF_A_KIND} facts of kind {', '.join(cut)}" if cut else "",
        f"{len(silent)} manifests cannot be read" if silent else "",
    )
    return replace(
        bounds,
        complete=False,
        stopped_by=clip("; ".join(filter(None, why)), LONGEST),
        unread=tuple(silent[:MOST_UNREAD]),
        unknown=TOLD if bounds.complete and not cut else (),
    )


class _Found(NamedTuple):
    finding: Finding
    evidence: Evidence


def _all(pages: Sequence[Page], choice: Choice, files: dict[str, str]) -> Iterator[_Found]:
    for page in pages:
        alike: dict[str, list[tuple[int, int]]] = {}  # where the same lines stand, the first place first
        for finding, _, own in sorted(page.shown, key=_position):
            spots = alike.setdefault(own, [])
            if _position_of(finding) not in spots:
                spots.append(_position_of(finding))
        for finding, snippet, own in page.shown:
            which = alike[own].index(_position_of(finding))
            name = _name(page.path, own, which)
            yield _Found(finding, _evidence(name, page.path, page.digest, finding, snippet))
    for language, (count, samples) in choice.languages.items():
        finding = Finding("language", language, f"{count} file{'s' * (count > 1)}")
        for path in samples:
            if path in files:
                name = _name(path, files[path])
                yield _Found(finding, _evidence(name, path, files[path], finding, ""))
    for path in choice.secret:
        for finding in _cleaned(secret_file(path)):
            yield _Found(finding, _evidence(_name(path, _UNOPENED), path, _UNOPENED, finding, ""))


def _position_of(finding: Finding) -> tuple[int, int]:
    return finding.first, finding.last


def _position(shown: Shown) -> tuple[int, int]:
    return _position_of(shown.finding)


def _name(path: str, own: str, which: int = 0) -> str:
    """The name of a place: the file, its own lines, and which it is where the same lines stand there again."""
    return f"ev{digest_of([path, own, which])[:12]}"


def _evidence(name: str, path: str, known: str, finding: Finding, snippet: str) -> Evidence:
    return Evidence(
        id=name,
        source_file=path,
        first_line=finding.first,
        last_line=finding.last,
        digest=known,
        snippet=snippet,
    )


def _order(found: _Found) -> tuple[object, ...]:
    """Kinds together, the top before what is below; of two commands for one thing the more particular stands."""
    f, e = found
    depth = 0 if f.root == TOP else f.root.count("/") + 1
    return f.kind, depth, f.root, f.name, -len(f.argv), e.source_file, f.first, f.last, f.value


def _gathered(found: Iterable[_Found]) -> tuple[list[Fact], dict[str, Evidence]]:
    first: dict[tuple[str, str, str], Finding] = {}
    cited: dict[tuple[str, str, str], dict[str, None]] = {}
    evidence: dict[str, Evidence] = {}
    for finding, shown in found:
        key = finding.kind, finding.name, finding.root
        first.setdefault(key, finding)
        names = cited.setdefault(key, {})
        if len(names) < MOST_EVIDENCE:
            names[shown.id] = None
            evidence.setdefault(shown.id, shown)
    facts = [
        Fact(kind=f.kind, name=f.name, value=f.value, argv=f.argv, root=f.root, evidence=tuple(cited[key]))
        for key, f in first.items()
        if (f.kind, _STANDS_FOR.get((f.kind, f.name)), f.root) not in first
    ]
    return facts, evidence


def _kept(facts: Sequence[Fact]) -> tuple[list[Fact], list[str]]:
    """As many of each kind as there may be, and the kinds of which there are more."""
    counts: dict[str, int] = {}
    kept = []
    for fact in facts:
        counts[fact.kind] = counts.get(fact.kind, 0) + 1
        if counts[fact.kind] <= MOST_OF_A_KIND:
            kept.append(fact)
    return kept, sorted(kind for kind, count in counts.items() if count > MOST_OF_A_KIND)


def _cleaned(finding: Finding) -> Iterator[Finding]:
    """The finding in harmless words; none where a command or a place would not be what it was."""
    name = _harmless(re.sub(r"\s+", "-", finding.name[:_LOOKED_AT].strip()), LONGEST)
    same = all(_harmless(word, 400) == word for word in (*finding.argv, finding.root[:400]))
    if name and same and len(finding.root) <= 4096 and len(finding.argv) <= 64:
        yield finding._replace(name=name, value=_harmless(finding.value, 400))


def _own(source: Source, finding: Finding, snippet: str, file_digest: str) -> str:
    """What a place is known by, whatever stands around it; nothing of it lets a secret be tried out."""
    if not finding.first:
        return file_digest
    if finding.last < finding.first + _SHOWN and len(snippet) < LONGEST:
        return digest_of(snippet)  # which is all of it
    lines = "\n".join(source.lines[finding.first - 1 : finding.last])
    return digest_of(well_formed(hidden(lines[:_KNOWN_BY])))


def _snippet(source: Source, finding: Finding) -> str:
    if not finding.first:
        return ""
    lines = source.lines[finding.first - 1 : min(finding.last, finding.first + _SHOWN - 1)]
    return _harmless(" ⏎ ".join(line.strip()[:_LOOKED_AT] for line in lines), LONGEST)


def _harmless(text: str, limit: int) -> str:
    return clip(one_line(well_formed(hidden(text[:_LOOKED_AT]))), limit)

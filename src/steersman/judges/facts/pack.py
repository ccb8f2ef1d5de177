"""Builds a FactPack from findings: each fact once, with its evidence, in an order that depends on the files alone.

**Invariant:** secrets are removed and characters are made harmless before anything of a file enters a pack. A secret
leaves no trace against which guesses could be tested.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.contracts.planning.context import FactKind, FactPack, ProjectFact, ScanBounds, ScanEvidence
from steersman.judges.facts.choice import (
    FileSelection,
    find_file_readers,
    find_unread_reason,
    secret_file_finding,
)
from steersman.judges.facts.finding import PROJECT_TOP, FactFinding, ProjectSource
from steersman.judges.redaction.redact import mask_secrets
from steersman.judges.text import clip_text, escape_surrogates, printable_line
from steersman.kernel.canonical import digest_of, sha256_hex

MAX_FINDINGS_PER_FILE = 300  # findings
MAX_FACTS_PER_KIND = 500  # facts
MAX_EVIDENCE_PER_FACT = 20  # for one fact
MAX_UNREAD_MANIFESTS = 50
MAX_SNIPPET_LENGTH = 200  # characters of a name and of a snippet
_MAX_SHORTENED_TEXT = 2_000  # characters of a text that is shortened to a line
_MAX_SNIPPET_LINES = 5  # lines of a snippet
_MAX_IDENTIFYING_TEXT = 20_000  # characters of a place that is longer than its snippet
_UNOPENED_DIGEST = sha256_hex(b"")
# What manifests tell of; of these kinds nothing is known to be missing where one of them cannot be read.
MANIFEST_FACT_KINDS: tuple[FactKind, ...] = (
    "build_command", "database", "entry_point", "format_command", "framework", "lint_command", "package", "test_command",
    "type_command",
)  # fmt: skip
# A command that stands for another in the same place.
_SUPERSEDING_COMMANDS = {("test_command", "unittest"): "pytest"}


class EvidencedFinding(NamedTuple):
    """A finding and the place that shows it."""

    finding: FactFinding
    evidence: ScanEvidence


class FileFindings(msgspec.Struct, frozen=True):
    """What one file has given."""

    path: str
    digest: str
    findings: tuple[EvidencedFinding, ...] = ()
    unread: str = ""  # why it says nothing, where it should


def examine_project_file(source: ProjectSource, file_digest: str) -> FileFindings:
    """Everything that a file says, by all who read files of its name."""
    readers, file_digest = find_file_readers(source.path), _safe_file_digest(source, file_digest)
    if unread_reason := find_unread_reason(source, readers):
        return FileFindings(source.path, file_digest, unread=_make_harmless(unread_reason, 400))
    found = (finding for reader in readers if reader.find for finding in reader.find(source))
    findings = [clean for raw in islice(found, MAX_FINDINGS_PER_FILE) for clean in _clean_finding(raw)]
    return FileFindings(source.path, file_digest, tuple(_attach_evidence(source, file_digest, findings)))


def _attach_evidence(
    source: ProjectSource, file_digest: str, findings: list[FactFinding]
) -> Iterator[EvidencedFinding]:
    """Each finding with its place; where the same lines stand again, their order tells the places apart."""
    snippets = [_finding_snippet(source, finding) for finding in findings]
    places = [_place_digest(source, *pair, file_digest) for pair in zip(findings, snippets, strict=True)]
    lines_by_place: dict[str, list[tuple[int, int]]] = {}
    for first, last, place in sorted(
        {(f.first, f.last, place) for f, place in zip(findings, places, strict=True)}
    ):
        lines_by_place.setdefault(place, []).append((first, last))
    for finding, snippet, place in zip(findings, snippets, places, strict=True):
        occurrence = lines_by_place[place].index((finding.first, finding.last))
        yield _show_finding(finding, source.path, file_digest, place, occurrence, snippet)


def _show_finding(
    finding: FactFinding, path: str, file_digest: str, place: str, occurrence: int = 0, snippet: str = ""
) -> EvidencedFinding:
    """The name of a place: the file, its own lines, and which it is where the same lines stand there again."""
    evidence = ScanEvidence(
        id=f"ev{digest_of([path, place, occurrence])[:12]}",
        source_file=path,
        first_line=finding.first,
        last_line=finding.last,
        digest=file_digest,
        snippet=snippet,
    )
    return EvidencedFinding(finding, evidence)


def _safe_file_digest(source: ProjectSource, file_digest: str) -> str:
    """A file's digest; of its text without secrets where it has any, for a short file would show whether a guess is right."""
    masked = mask_secrets(source.text)
    return file_digest if masked == source.text else digest_of(escape_surrogates(masked))


def build_fact_pack(
    project_id: str, pages: Sequence[FileFindings], choice: FileSelection, bounds: ScanBounds
) -> FactPack:
    """The pack of what was read; bounds say what was not."""
    files = {page.path: page.digest for page in pages}
    evidenced = sorted(_collect_evidenced_findings(pages, choice, files), key=_finding_sort_key)
    facts, evidence = _merge_findings(evidenced)
    limited_facts, cut = _limit_facts_per_kind(facts)
    cited = {name for fact in limited_facts for name in fact.evidence}
    return FactPack(
        project_id=project_id,
        fingerprint=digest_of(sorted([path, file_digest] for path, file_digest in files.items())),
        facts=tuple(limited_facts),
        evidence=tuple(evidence[name] for name in sorted(cited)),
        bounds=_extend_scan_bounds(bounds, cut, [page.unread for page in pages if page.unread]),
    )


def _extend_scan_bounds(bounds: ScanBounds, cut: list[str], unread_files: list[str]) -> ScanBounds:
    """How far it went, with what was cut and what says nothing; only the latter leaves other kinds complete."""
    if not cut and not unread_files:
        return bounds
    why = (
        bounds.stopped_by,
        f"more than {MAX_FACTS_PER_KIND} facts of kind {', '.join(cut)}" if cut else "",
        f"{len(unread_files)} manifests cannot be read" if unread_files else "",
    )
    return replace(
        bounds,
        complete=False,
        stopped_by=clip_text("; ".join(filter(None, why)), MAX_SNIPPET_LENGTH),
        unread=tuple(unread_files[:MAX_UNREAD_MANIFESTS]),
        unknown=MANIFEST_FACT_KINDS if bounds.complete and not cut else (),
    )


def _collect_evidenced_findings(
    pages: Sequence[FileFindings], choice: FileSelection, files: dict[str, str]
) -> Iterator[EvidencedFinding]:
    yield from (evidenced for page in pages for evidenced in page.findings)
    for language, (count, samples) in choice.languages.items():
        finding = FactFinding("language", language, f"{count} file{'s' * (count > 1)}")
        yield from (
            _show_finding(finding, path, files[path], files[path]) for path in samples if path in files
        )
    for path in choice.secret:
        for finding in _clean_finding(secret_file_finding(path)):
            yield _show_finding(finding, path, _UNOPENED_DIGEST, _UNOPENED_DIGEST)


def _finding_sort_key(evidenced: EvidencedFinding) -> tuple[object, ...]:
    """Kinds together, the top before what is below; of two commands for one thing the more particular stands."""
    finding, evidence = evidenced
    depth = 0 if finding.root == PROJECT_TOP else finding.root.count("/") + 1
    return (
        finding.kind,
        depth,
        finding.root,
        finding.name,
        -len(finding.argv),
        evidence.source_file,
        finding.first,
        finding.last,
        finding.value,
    )


def _merge_findings(
    evidenced: Iterable[EvidencedFinding],
) -> tuple[list[ProjectFact], dict[str, ScanEvidence]]:
    first_findings: dict[tuple[str, str, str], FactFinding] = {}
    cited: dict[tuple[str, str, str], dict[str, None]] = {}
    evidence: dict[str, ScanEvidence] = {}
    for finding, scan_evidence in evidenced:
        key = finding.kind, finding.name, finding.root
        first_findings.setdefault(key, finding)
        names = cited.setdefault(key, {})
        if len(names) < MAX_EVIDENCE_PER_FACT:
            names[scan_evidence.id] = None
            evidence.setdefault(scan_evidence.id, scan_evidence)
    facts = [
        ProjectFact(
            kind=f.kind, name=f.name, value=f.value, argv=f.argv, root=f.root, evidence=tuple(cited[key])
        )
        for key, f in first_findings.items()
        if (f.kind, _SUPERSEDING_COMMANDS.get((f.kind, f.name)), f.root) not in first_findings
    ]
    return facts, evidence


def _limit_facts_per_kind(facts: Sequence[ProjectFact]) -> tuple[list[ProjectFact], list[str]]:
    """As many of each kind as there may be, and the kinds of which there are more."""
    counts: dict[str, int] = {}
    limited_facts = []
    for fact in facts:
        counts[fact.kind] = counts.get(fact.kind, 0) + 1
        if counts[fact.kind] <= MAX_FACTS_PER_KIND:
            limited_facts.append(fact)
    return limited_facts, sorted(kind for kind, count in counts.items() if count > MAX_FACTS_PER_KIND)


def _clean_finding(finding: FactFinding) -> Iterator[FactFinding]:
    """The finding in harmless words; none where a command or a place would not be what it was."""
    name = _make_harmless(re.sub(r"\s+", "-", finding.name[:_MAX_SHORTENED_TEXT].strip()), MAX_SNIPPET_LENGTH)
    is_unchanged = all(_make_harmless(word, 400) == word for word in (*finding.argv, finding.root[:400]))
    if name and is_unchanged and len(finding.root) <= 4096 and len(finding.argv) <= 64:
        yield finding._replace(name=name, value=_make_harmless(finding.value, 400))


def _place_digest(source: ProjectSource, finding: FactFinding, snippet: str, file_digest: str) -> str:
    """What a place is known by, whatever stands around it; nothing of it lets a secret be tried out."""
    if not finding.first:
        return file_digest
    if finding.last < finding.first + _MAX_SNIPPET_LINES and len(snippet) < MAX_SNIPPET_LENGTH:
        return digest_of(snippet)  # which is all of it
    lines = "\n".join(source.lines[finding.first - 1 : finding.last])
    return digest_of(escape_surrogates(mask_secrets(lines[:_MAX_IDENTIFYING_TEXT])))


def _finding_snippet(source: ProjectSource, finding: FactFinding) -> str:
    if not finding.first:
        return ""
    lines = source.lines[finding.first - 1 : min(finding.last, finding.first + _MAX_SNIPPET_LINES - 1)]
    return _make_harmless(
        " ⏎ ".join(line.strip()[:_MAX_SHORTENED_TEXT] for line in lines), MAX_SNIPPET_LENGTH
    )


def _make_harmless(text: str, limit: int) -> str:
    return clip_text(printable_line(escape_surrogates(mask_secrets(text[:_MAX_SHORTENED_TEXT]))), limit)

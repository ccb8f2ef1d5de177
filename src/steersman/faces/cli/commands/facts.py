"""`steersman facts`: what the project's own files say about it, with the line that says so. Nothing is written."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from steersman.contracts.planning.context import FactKind
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command

if TYPE_CHECKING:
    from steersman.contracts.planning.context import FactPack, ProjectFact, ScanEvidence

FACT_KIND_CHOICES = get_args(FactKind)
FACT_NAME_COLUMNS = 44  # columns for a name


@define_command(
    "facts",
    "steersman facts",
    "steersman facts --kind test_command --kind ci",
    "steersman facts --json",
    exits="0 scanned · 2 wrong usage",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(FACT_KIND_CHOICES),
    help="Show only this kind. You can repeat the option.",
)
def facts_command(context: CommandContext, *, kinds: tuple[str, ...]) -> int:
    """Scan the project and show what its own files say: languages, frameworks, packages, commands, CI, owners.

    Each fact names its file and line. Vendored directories, ignored files and links are skipped. Files that look as if they hold secrets are named and never opened. `plan` and `init` use these facts."""
    context.quiet = True
    pack = context.services.open_fact_scanner(context.project).scan(context.project.name[:120] or "project")
    shown_facts = tuple(fact for fact in pack.facts if not kinds or fact.kind in kinds)
    cited_ids = {name for fact in shown_facts for name in fact.evidence}
    context.set_result(
        msgspec.structs.replace(
            pack,
            facts=shown_facts,
            evidence=tuple(evidence_item for evidence_item in pack.evidence if evidence_item.id in cited_ids),
        )
    )
    for line in _render_fact_lines(
        shown_facts, {evidence_item.id: evidence_item for evidence_item in pack.evidence}
    ):
        context.print(line)
    for reason in pack.bounds.unread:
        context.print(f"cannot be read: {reason}", fg="yellow")
    context.print(_describe_scan_bounds(pack), fg=None if pack.bounds.complete else "yellow")
    return EXIT_DONE


def _render_fact_lines(
    shown_facts: "tuple[ProjectFact, ...]", evidence: "dict[str, ScanEvidence]"
) -> Iterator[str]:
    kind = ""
    for fact in shown_facts:
        if fact.kind != kind:
            kind = fact.kind
            yield kind
        evidence_item = evidence[fact.evidence[0]]
        location = (
            f"{evidence_item.source_file}:{evidence_item.first_line}"
            if evidence_item.first_line
            else evidence_item.source_file
        )
        fact_text = f"{fact.name}  {fact.value}".strip()
        root_text = f"  (in {fact.root})" if fact.root != "." else ""
        yield f"  {fact_text:{FACT_NAME_COLUMNS}}  {location}{root_text}"


def _describe_scan_bounds(pack: "FactPack") -> str:
    bounds = pack.bounds
    counts_text = f"{bounds.files_seen} files seen, {bounds.files_read} read, {bounds.skipped} left out"
    return (
        f"{counts_text}; complete" if bounds.complete else f"{counts_text}; not complete: {bounds.stopped_by}"
    )

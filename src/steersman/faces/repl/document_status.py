"""Shows the documents of a run: the list, one in full, and the change."""

from collections.abc import Iterator

from steersman.app.documents import (
    AS_RECORDED,
    describe_touched_files,
    list_documents,
    read_document,
    read_run_change,
    restore_run_files,
)
from steersman.faces.cli.context import CommandContext
from steersman.views.run_summary import override_line


def list_touched_file_lines(context: CommandContext, run: str) -> list[str]:
    """Each document that was changed and each projection that cannot be read, with what to type here."""
    return describe_touched_files(context.read_only_runs.ports, run, _typed_prefix(context))


def _typed_prefix(context: CommandContext) -> str:
    return "" if context.prompting else context.command_prefix


def print_document_list(context: CommandContext, run: str) -> None:
    """The list."""
    listing = list_documents(context.read_only_runs.ports, run)
    context.set_result(
        {"run": run, "folder": listing.folder, "documents": listing.documents, "overrides": listing.overrides}
    )
    context.print(f"documents in {listing.folder}:")
    for document in listing.documents:
        context.print(
            f"  {document.digest[:12]:12}  {document.name}  {document.disk}",
            fg=None if document.disk == AS_RECORDED else "red",
        )
    if not listing.documents:
        context.print("  none yet")
    for override in listing.overrides:
        context.print(f"overridden: {override_line(override)}", fg="yellow")
    for touched_line in list_touched_file_lines(context, run):
        context.print(touched_line, fg="red")


def print_document(context: CommandContext, run: str, name: str) -> None:
    """One document as it was recorded, or made from the tape; else a file beside them as it is on disk."""
    document = read_document(context.read_only_runs.ports, run, name, _typed_prefix(context))
    for warning in document.warnings:
        context.warn(warning, fg="yellow")
    context.set_result({"run": run, "name": name, "text": document.text})
    context.print(document.text.rstrip("\n"))


def print_run_diff(context: CommandContext, run: str) -> None:
    """The change of a run as git shows it."""
    change = read_run_change(context.read_only_runs.ports, run)
    context.set_result({"run": run, "tree": change.tree, "patch": change.patch})
    if not change.patch:
        context.print("nothing is changed yet")
    for line, color in _color_patch_lines(change.patch):
        context.print(line, fg=color)


def _color_patch_lines(patch: str) -> Iterator[tuple[str, str | None]]:
    for line in patch.splitlines():
        color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield line, None if line.startswith(("+++", "---")) else color


def restore_and_print(context: CommandContext, run: str) -> bool:
    """Restores the files of a run and says what became of each; whether all are as they should be."""
    restored = restore_run_files(context.runs, context.principal, run)
    for line in restored.messages:
        context.print(line)
    context.set_result(
        {"run": run, "put_back": restored.put_back, "left": restored.left, "told": restored.messages}
    )
    return not restored.left

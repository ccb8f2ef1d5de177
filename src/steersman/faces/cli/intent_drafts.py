"""What the commands about intents have in common: opening the project's intents, naming files, showing a draft."""

import os
from typing import TYPE_CHECKING

from steersman.app.intents import INTENT_SCHEMA, IntentDraft, IntentService
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext

if TYPE_CHECKING:
    from steersman.ports.documents import ParsedDocument


def open_intents(context: CommandContext) -> IntentService:
    """The intents of the project, where a person trusts its settings."""
    config = context.load_config().config
    return IntentService(context.ports, context.principal, context.project_root, config)


def draft_intent_document(context: CommandContext, goal: str) -> "ParsedDocument":
    """A draft as it would stand in a file, with what was chosen said beside the answer."""
    draft = open_intents(context).draft(goal, mode="interactive")
    for line in draft_review_lines(draft):
        context.warn(line)
    documents = context.services.open_documents()
    return documents.parse(documents.render(draft.value, "json").encode(), "the draft", INTENT_SCHEMA)


def path_from_repository_root(context: CommandContext, file: str) -> str:
    """A name as a person types it, from where that person stands, as documents have it: from the top."""
    if not file.strip():
        raise UserError("--file is given without a name: name a file of the repository, such as src/app.py")
    root, is_absolute = os.path.realpath(context.project_root), os.path.isabs(file)
    working_directory = _find_working_directory(context, root)
    if working_directory == root and not is_absolute:
        return file
    target_path = os.path.normpath(os.path.join(working_directory, file))
    name = os.path.relpath(_resolve_parent_directory(target_path, root) if is_absolute else target_path, root)
    is_directory_name = os.path.basename(file) in ("", os.curdir, os.pardir) and name != os.curdir
    return name.replace(os.sep, "/") + ("/" if is_directory_name else "")


def _resolve_parent_directory(target_path: str, root: str) -> str:
    """A whole name by the folder that it is in: a link is named, not what it leads to, unless it is the top itself."""
    if os.path.realpath(target_path) == root:
        return root
    return os.path.join(os.path.realpath(os.path.dirname(target_path)), os.path.basename(target_path))


def _find_working_directory(context: CommandContext, root: str) -> str:
    """Where a person stands in the repository: here, else in the directory that was given, else at the top."""
    for candidate in (os.curdir, context.start_directory):
        try:
            directory = os.path.realpath(candidate)
        except FileNotFoundError:  # this directory is gone, and another was given
            continue
        if directory == root or directory.startswith(os.path.join(root, "")):
            return directory
    return root


def draft_review_lines(draft: "IntentDraft") -> list[str]:
    """What a person should read before a draft is planned."""
    value = draft.value
    targets = value["scope"]["targets"]
    review_lines = [f"workflow {value['selected_workflows'][0]['workflow_id']}: {draft.why}"]
    review_lines += [
        f"plans {planned_command['command_id']} ({planned_command['risk_level']}): {planned_command['intent']}"
        for planned_command in value["planned_commands"]
    ]
    review_lines += [f"leaves out {omission.command_id}: {omission.why}" for omission in draft.left_out]
    if not (targets["files"] or targets["areas"]):
        review_lines.append("scope.targets is empty: name the files or areas, or you will be asked")
    reviews = value["risk"]["requires_review"]
    review_lines.append(f"risk {value['risk']['overall']}; to be reviewed: {', '.join(reviews) or 'nothing'}")
    return review_lines

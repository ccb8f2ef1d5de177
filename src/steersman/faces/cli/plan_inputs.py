"""Reads what is to be planned: an intent from a file, from standard input or for a goal, and a policy."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext

if TYPE_CHECKING:
    from steersman.ports.documents import ParsedDocument

STDIN_INTENT_HINT = "send an intent, such as: steersman plan - < intent.yaml"
INTENT_SUFFIXES = (".json", ".yaml", ".yml")


def read_intent_argument(context: CommandContext, intent_or_goal: str) -> "ParsedDocument | None":
    """The intent in a file, or on standard input where the file is -; None where the words are a goal."""
    if intent_or_goal == "-":
        return context.services.open_documents().parse(
            read_stdin_document(STDIN_INTENT_HINT), "standard input", "execution_intent"
        )
    if os.path.isfile(intent_or_goal):
        return context.services.open_documents().read(intent_or_goal, "execution_intent")
    looks_like_path = intent_or_goal.endswith(INTENT_SUFFIXES) or (
        os.sep in intent_or_goal and " " not in intent_or_goal
    )
    if looks_like_path:
        raise UserError(
            f'there is no file {intent_or_goal}: `{context.command_prefix} intent new "goal" --out {intent_or_goal}` makes one'
        )
    if not intent_or_goal.strip():
        raise UserError('what shall be planned? give a file with an intent, or a goal: steersman plan "…"')
    return None


def read_stdin_document(fix: str) -> bytes:
    """A document from standard input; raises where nothing comes, with what would help."""
    import sys

    from steersman.ports.documents import MAX_DOCUMENT_BYTES

    data = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    if not data.strip():
        raise UserError(f"standard input is empty: {fix}")
    return data


def read_policy(context: CommandContext, policy_option: str, intent: Any) -> "ParsedDocument":
    """A policy by the name of a preset, from a file, or the preset of the mode that the intent asks for."""
    from steersman.contracts.planning.policy import POLICY_PRESETS

    interaction = intent.get("interaction") if isinstance(intent, Mapping) else None
    intent_mode = interaction.get("mode") if isinstance(interaction, Mapping) else None
    name = policy_option or (intent_mode if intent_mode in POLICY_PRESETS else "interactive")
    documents = context.services.open_documents()
    if name in POLICY_PRESETS:
        return documents.parse(
            msgspec.json.encode(POLICY_PRESETS[name]), f"policy {name}", "execution_policy"
        )
    if not os.path.isfile(name):
        raise UserError(f"there is no policy {name!r}: give {', '.join(POLICY_PRESETS)}, or a file")
    return documents.read(name, "execution_policy")

"""What the commands of `plan` have in common: reading what is to be planned, and showing what came of it."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.machine_names import PLANNING_MACHINE
from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_WAITING, CommandContext

if TYPE_CHECKING:
    from steersman.contracts.planning.decisions import DocumentProblem
    from steersman.engine.start import StartRequest
    from steersman.ports.documents import ParsedDocument
    from steersman.views.planning.differences import ComparedPlan

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


def draft_goal_intent(context: CommandContext, goal: str) -> "ParsedDocument":
    """An intent for a goal in words, from the scanned project; it is shown what was chosen and why."""
    from steersman.faces.cli.intent_drafts import draft_intent_document

    return draft_intent_document(context, goal)


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


def build_plan_order(
    context: CommandContext, intent_document: "ParsedDocument", policy: "ParsedDocument", out: str
) -> "StartRequest":
    """What begins a planning run: the documents word for word, the mode, and where the plan goes."""
    from steersman.engine.start import StartRequest
    from steersman.judges.planning.red_lines import find_stricter_mode

    out_directory = os.path.abspath(os.path.join(context.start_directory, out)) if out else ""
    problem = (
        context.services.open_frozen_plans(context.project).find_directory_problem(out_directory)
        if out_directory
        else None
    )
    if problem:
        raise UserError(problem)
    rules = policy.value if isinstance(policy.value, Mapping) else {}
    seconds = rules.get("timeout_seconds", 604_800)
    options = {
        "mode": find_stricter_mode(intent_document.value, policy.value) or "interactive",
        "fallback": "stop" if rules.get("auto_fallback") is False else "defaults",
        "wait_ms": seconds * 1000 if type(seconds) is int and 0 < seconds < 10**8 else 604_800_000,
    }
    texts = {
        "intent": _encode_plan_text(intent_document.value),
        "policy": _encode_plan_text(policy.value),
        **({"out": out_directory} if out_directory else {}),
    }
    return StartRequest(
        PLANNING_MACHINE,
        _read_intent_title(intent_document.value),
        context.person,
        context.load_config().config,
        options,
        texts,
    )


def _encode_plan_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _read_intent_title(value: Any) -> str:
    title = value.get("title") if isinstance(value, Mapping) else None
    return title if isinstance(title, str) and title.strip() else "an intent without a title"


# ── frozen plans ────────────────────────────────────────────────────────────────────────────────────────────────────


def read_plan_files(context: CommandContext, directory: str) -> dict[str, bytes]:
    """The files of a frozen plan; raises where there is none."""
    return context.services.open_frozen_plans(context.project).read(directory)


def verify_plan_directory(
    context: CommandContext, directory: str, key: str = ""
) -> "tuple[tuple[DocumentProblem, ...], str]":
    """Everything by which a folder is not the plan that was frozen, and what its signature says."""
    from steersman.judges.planning.attest import TrustedKey, check_plan_trust

    maker_key = TrustedKey(
        context.services.read_maker_public_key(context.project, key), context.services.has_valid_signature
    )
    problems, signature_text = check_plan_trust(read_plan_files(context, directory), maker_key)
    key_text = "" if problems else ", by the given key" if key else ", by this project's key"
    return problems, f"{signature_text}{key_text}"


def compare_frozen_plans(
    context: CommandContext, first_directory: str, second_directory: str
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Two frozen plans: the inputs that differ, the files that differ, and what of the plan does, in words."""
    from steersman.judges.planning.attest import ENVELOPE_FILE
    from steersman.judges.planning.verify import find_differing_inputs

    first_files, second_files = (
        read_plan_files(context, first_directory),
        read_plan_files(context, second_directory),
    )
    for directory, files in ((first_directory, first_files), (second_directory, second_files)):
        files.pop(ENVELOPE_FILE, None)
        if "manifest.json" not in files:
            raise UserError(f"{directory} holds no frozen plan: there is no manifest.json")
    changed_files = tuple(_plan_file_changes(first_files, second_files))
    return (
        find_differing_inputs(first_files, second_files),
        changed_files,
        tuple(_plan_content_changes(first_files, second_files)),
    )


def _plan_file_changes(first_files: Mapping[str, bytes], second_files: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*first_files, *second_files}):
        if name not in second_files:
            yield f"{name}: only in the first"
        elif name not in first_files:
            yield f"{name}: only in the second"
        elif first_files[name] != second_files[name]:
            yield f"{name}: differs"


def _plan_content_changes(
    first_files: Mapping[str, bytes], second_files: Mapping[str, bytes]
) -> Iterator[str]:
    from steersman.views.planning.differences import compare_plans

    try:
        sides = [_decode_plan_side(files) for files in (first_files, second_files)]
    except (KeyError, msgspec.MsgspecError):
        yield "the plans cannot be compared: see `plan verify`"
        return
    yield from compare_plans(*sides)


def _decode_plan_side(files: Mapping[str, bytes]) -> "ComparedPlan":
    from steersman.contracts.planning.graph import ExecutionGraph
    from steersman.contracts.planning.questions import QuestionPack, SettledQuestions
    from steersman.contracts.planning.review import ReviewPack
    from steersman.views.planning.differences import ComparedPlan

    return ComparedPlan(
        msgspec.json.decode(files["review_pack.json"], type=ReviewPack),
        msgspec.json.decode(files["question_pack.json"], type=tuple[QuestionPack, ...]),
        msgspec.json.decode(files["settled_questions.json"], type=SettledQuestions),
        msgspec.json.decode(files["execution_graph.json"], type=ExecutionGraph),
    )


def explain_plan(context: CommandContext, run_or_directory: str) -> tuple[list[str], Any, int]:
    """A plan in a folder or of a run as lines, as a value, and as an exit code."""
    if os.path.isdir(run_or_directory):
        files = read_plan_files(context, run_or_directory)
        if "plan.md" not in files:
            raise UserError(f"{run_or_directory} holds no frozen plan: there is no plan.md")
        return files["plan.md"].decode("utf-8", "replace").splitlines(), _decode_plan_review(files), EXIT_DONE
    from steersman.engine.projections import read_run_view
    from steersman.machines.coordinator.views.outcome import (
        read_failure_pack,
        read_review_pack,
        render_outcome_lines,
        render_plan_lines,
    )

    run = context.read_only_runs.find(run_or_directory)
    run_view = read_run_view(context.read_only_runs.ports, run)
    if run_view.live.machine.name != PLANNING_MACHINE:
        raise UserError(f"run {run} is no plan: see `{context.command_prefix} show {run}`")
    exit_codes = {"DONE": EXIT_DONE, "BLOCKED": EXIT_ENDED, "ABORTED": EXIT_ENDED}
    code = EXIT_ENDED if run_view.snapshot.ended else exit_codes.get(run_view.snapshot.state, EXIT_WAITING)
    plan_value = read_failure_pack(run_view.snapshot, run_view.text) or read_review_pack(
        run_view.snapshot, run_view.text
    )
    explanation_lines = render_plan_lines(run_view.snapshot, run_view.text) or render_outcome_lines(
        run_view.snapshot, run_view.text, run_view.entries
    )
    return (
        explanation_lines
        or [f"run {run} is in {run_view.snapshot.state}: see `{context.command_prefix} why {run}`"],
        msgspec.to_builtins(plan_value),
        code,
    )


def _decode_plan_review(files: Mapping[str, bytes]) -> Any:
    try:
        return msgspec.json.decode(files["review_pack.json"])
    except (KeyError, msgspec.MsgspecError):
        return None

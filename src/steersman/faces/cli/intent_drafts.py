"""What the commands about intents have in common: making one, looking at one, and saying what was found."""

import os
from typing import TYPE_CHECKING, Any

from steersman.errors import MemoryUnavailable, SteersmanError, UserError
from steersman.faces.cli.context import CommandContext
from steersman.judges.text import count_with_noun

if TYPE_CHECKING:
    from steersman.contracts.planning.context import ContextBundle
    from steersman.contracts.planning.decisions import DocumentProblem
    from steersman.contracts.planning.intent import ExecutionIntent
    from steersman.contracts.planning.policy import ExecutionPolicy
    from steersman.contracts.planning.words import ExecutionMode
    from steersman.judges.planning.drafting import IntentDraft
    from steersman.judges.planning.goals import WorkflowChoice
    from steersman.judges.planning.places import FieldLines
    from steersman.judges.planning.registry import Registry
    from steersman.ports.documents import DocumentFormat, ParsedDocument


def load_sound_registry(context: CommandContext) -> "Registry":
    """The registry of the project, where a person trusts it and nothing is wrong with it."""
    context.load_config()
    loaded = context.services.open_registries(context.project).load()
    if loaded.problems:
        first_problem = loaded.problems[0]
        raise UserError(
            f"the registry has {count_with_noun(len(loaded.problems), 'problem')}, the first in {first_problem.field}: {first_problem.message}; "
            f"see `{context.command_prefix} registry check`"
        )
    return loaded.registry


def draft_intent_document(context: CommandContext, goal: str) -> "ParsedDocument":
    """A draft as it would stand in a file, with what was chosen said beside the answer."""
    draft = draft_intent_for_goal(context, goal, mode="interactive")
    for line in draft_review_lines(draft):
        context.warn(line)
    return parse_intent_draft(context, draft, "json", "the draft")


def parse_intent_draft(
    context: CommandContext, draft: "IntentDraft", form: "DocumentFormat", file: str
) -> "ParsedDocument":
    """A draft as a file of this form would hold it."""
    documents = context.services.open_documents()
    return documents.parse(documents.render(draft.value, form).encode(), file, "execution_intent")


def draft_intent_for_goal(
    context: CommandContext,
    goal: str,
    *,
    mode: "ExecutionMode",
    workflow: str = "",
    files: tuple[str, ...] = (),
    areas: tuple[Any, ...] = (),
) -> "IntentDraft":
    """A whole intent for a goal, from the project's own files."""
    from steersman.judges.planning import goals
    from steersman.judges.planning.drafting import IntentRequest, draft_intent
    from steersman.judges.planning.paths import outside_plan_reason, path_spelling_problem
    from steersman.judges.planning.visible_text import invisible_name_reason, invisible_sentence_reason
    from steersman.judges.text import clip_text, has_visible_text, printable_line

    if not has_visible_text(goal):
        raise UserError('a goal is missing, such as: steersman intent new "Fix the rounding of invoices"')
    if problem_reason := invisible_sentence_reason(goal):
        raise UserError(
            f"the goal {problem_reason} ({clip_text(printable_line(goal), 200)}): type it again. Nothing was drafted"
        )
    files = tuple(path_from_repository_root(context, file) for file in files)
    for file in files:
        if (
            problem_reason := outside_plan_reason(file)
            or path_spelling_problem(file)
            or invisible_name_reason(file)
        ):
            raise UserError(
                f"--file {printable_line(file)} {problem_reason}: name a file of the repository, such as src/app.py"
            )
    registry, name = load_sound_registry(context), read_project_id(context)
    target_files = files or tuple(
        goal_file
        for goal_file in goals.find_goal_files(goal)
        if os.path.lexists(os.path.join(context.project_root, goal_file))
    )
    wish = IntentRequest(goal.strip(), name, context.person, _current_utc_text(), mode, target_files, areas)
    choice = _choose_workflow(workflow, registry) if workflow else goals.choose_workflow(goal, registry)
    if choice is None:
        raise UserError(
            f"the registry has no workflow to plan with: see `{context.command_prefix} registry list workflow`"
        )
    return draft_intent(
        wish, choice, context.services.open_fact_scanner(context.project).scan(name), registry
    )


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


def find_missing_targets(
    context: CommandContext, value: Any, lines: "FieldLines | None" = None
) -> "list[DocumentProblem]":
    """Remarks on the files in scope: what is not there would be made, and a folder should look like one."""
    from steersman.judges.planning.paths import is_directory_target, outside_plan_reason, strip_directory_mark
    from steersman.judges.planning.places import NO_FIELD_LINES, document_problem, iter_texts_at

    remarks = []
    for path, name in iter_texts_at(value, "scope", "targets", "files"):
        target_path = os.path.join(context.project_root, strip_directory_mark(name))
        if outside_plan_reason(name):
            continue
        if not os.path.lexists(target_path):
            remark_text = (
                f"{name} is not there: a plan about it makes it",
                "correct the name if you mean one that is",
            )
            remarks.append(document_problem(path, *remark_text, lines or NO_FIELD_LINES))
        elif os.path.isdir(target_path) and not is_directory_target(name):
            remark_text = (
                f"{name} is a folder: everything in it is in scope",
                f"write {name}/, or name files in it",
            )
            remarks.append(document_problem(path, *remark_text, lines or NO_FIELD_LINES))
    return remarks


def apply_agent_proposal(context: CommandContext, draft: "IntentDraft", role: str) -> "IntentDraft":
    """The draft with what the agent of a role proposes for it; whoever has no agent, or no fitting answer, is told."""
    import asyncio

    from steersman.contracts.config import find_role_settings
    from steersman.engine.intent_proposal import propose_intent
    from steersman.judges.planning.drafting import amend_intent_draft

    config = context.load_config().config
    obstacle = context.services.find_role_obstacle(find_role_settings(config, role))
    if obstacle:
        raise UserError(obstacle)
    ports = context.services.open_ports(context.project, journal=None)
    context.warn(f"asking the agent of {role} …")
    proposal = asyncio.run(propose_intent(ports, config, role, draft.value["objective"]["goal"], draft.value))
    if proposal.reply is None:
        raise UserError(
            f"the agent of {role} gave no proposal, nothing was written: {'; '.join(proposal.problems)}"
        )
    if proposal.hid:
        context.warn("a secret was taken out of what the agent said", fg="yellow")
    return amend_intent_draft(draft, proposal.reply)


def find_unmet_citations(
    context: CommandContext, intent_document: "ParsedDocument", policy: "ParsedDocument", registry: "Registry"
) -> "tuple[list[DocumentProblem], list[DocumentProblem]]":
    """What an intent cites and planning would not find here: problems where nobody would be asked, else remarks."""
    from steersman.contracts.planning.intent import ExecutionIntent
    from steersman.contracts.planning.policy import ExecutionPolicy
    from steersman.judges.planning.dangling_refs import find_dangling_refs
    from steersman.judges.planning.evidence import CitableEvidence
    from steersman.judges.planning.intent import resolve_effective_asking
    from steersman.judges.planning.schema_errors import convert_valid_document

    intent = convert_valid_document(intent_document.value, ExecutionIntent, "execution_intent")
    rules = convert_valid_document(policy.value, ExecutionPolicy, "execution_policy")
    if intent is None or rules is None:  # what is wrong with their form is told already
        return [], []
    bundle, context_problems = _load_planning_context(context, intent, rules)
    citations = find_dangling_refs(intent, CitableEvidence(intent, registry, bundle), intent_document.lines)
    if resolve_effective_asking(intent, rules).budget:
        return [], [*context_problems, *citations.of_commands, *citations.of_whole]
    return list(citations.of_commands), [*context_problems, *citations.of_whole]


def _load_planning_context(
    context: CommandContext, intent: "ExecutionIntent", policy: "ExecutionPolicy"
) -> "tuple[ContextBundle, list[DocumentProblem]]":
    """What planning would go by, and which part of it cannot be had."""
    from steersman.contracts.planning.context import FactPack, MemoryPack, ScanBounds
    from steersman.judges.planning.evidence import build_context_bundle
    from steersman.judges.planning.places import document_problem

    project, context_problems = intent.scope.project_id, []
    empty_bounds = ScanBounds(files_seen=0, files_read=0, bytes_read=0, skipped=0, complete=False)
    facts = FactPack(project_id=project, fingerprint="0" * 64, facts=(), evidence=(), bounds=empty_bounds)
    memory = MemoryPack(project_id=project, query="", scopes=(), threshold=1, memories=())
    try:
        facts = context.services.open_fact_scanner(context.project).scan(project, intent.scope.repo_root)
    except (SteersmanError, OSError) as error:
        context_problems.append(document_problem(("scope", "repo_root"), str(error)))
    try:
        memory = context.services.open_memories(context.project).pack(intent.objective.goal, project)
    except MemoryUnavailable as error:
        context_problems.append(document_problem(("memory",), str(error)))
    return build_context_bundle(memory, facts, policy), context_problems


def read_project_id(context: CommandContext) -> str:
    """What the project is called in documents: as it says itself, else by the name of its folder."""
    from steersman.judges.text import clip_text, printable_text

    return (
        context.read_config().config.project
        or clip_text(printable_text(os.path.basename(context.project_root)), 120)
        or "project"
    )


def _choose_workflow(id_: str, registry: "Registry") -> "WorkflowChoice":
    from steersman.contracts.planning.content import Workflow
    from steersman.judges.planning.goals import WorkflowChoice

    workflow = registry.usable("workflow", id_)
    if not isinstance(workflow, Workflow):
        known_ids = ", ".join(usable_workflow.id for usable_workflow in registry.all_usable("workflow"))
        raise UserError(f"there is no workflow {id_!r} to plan with: there are {known_ids}")
    return WorkflowChoice(workflow, "it was asked for by name")


def _current_utc_text() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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

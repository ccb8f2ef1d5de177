"""Intents: drafts one for a goal, lets an agent propose changes, finds everything that is wrong with one, and seals it.

**Invariant:** nothing is planned here; what an agent proposes is a draft that a person seals.
"""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from steersman.app.principal import Principal
from steersman.contracts.config import Config, find_role_settings
from steersman.contracts.planning.content import Workflow
from steersman.contracts.planning.context import ContextBundle, FactPack, MemoryPack, ScanBounds
from steersman.contracts.planning.decisions import DocumentProblem, PrecheckReport
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import POLICY_PRESETS, ExecutionPolicy
from steersman.contracts.planning.words import ExecutionMode, ProjectArea
from steersman.engine.ports import Ports, require_planning
from steersman.errors import MemoryUnavailable, SteersmanError, UserError
from steersman.judges.planning import goals
from steersman.judges.planning.dangling_refs import find_dangling_refs
from steersman.judges.planning.drafting import IntentDraft, IntentRequest, amend_intent_draft, draft_intent
from steersman.judges.planning.evidence import CitableEvidence, build_context_bundle
from steersman.judges.planning.intent import intent_checksum_bytes, resolve_effective_asking
from steersman.judges.planning.paths import (
    is_directory_target,
    outside_plan_reason,
    path_spelling_problem,
    strip_directory_mark,
)
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines, document_problem, iter_texts_at
from steersman.judges.planning.policy import find_policy_problems
from steersman.judges.planning.precheck import (
    collect_precheck_problems,
    describe_checksum_problem,
    find_dangling_pins,
    find_unusable_references,
    precheck_intent,
    seal_intent,
)
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.schema_errors import convert_valid_document, find_schema_problems
from steersman.judges.planning.semantics import find_intent_remarks, find_semantic_problems
from steersman.judges.planning.visible_text import invisible_name_reason, invisible_sentence_reason
from steersman.judges.text import clip_text, count_with_noun, has_visible_text, printable_line, printable_text
from steersman.ports.documents import DocumentFiles, ParsedDocument

__all__ = [
    "INTENT_SCHEMA",
    "AgentProposal",
    "IntentCheck",
    "IntentDraft",
    "IntentService",
    "SealedIntent",
    "find_project_id",
    "read_policy",
]

INTENT_SCHEMA, POLICY_SCHEMA = "execution_intent", "execution_policy"
DEFAULT_POLICY = "interactive"
MAX_PROJECT_ID = 120


class AgentProposal(msgspec.Struct, frozen=True, eq=False):
    """A draft with what an agent proposes for it."""

    draft: IntentDraft
    hid_secret: bool  # a secret was taken out of what the agent said


class IntentCheck(msgspec.Struct, frozen=True):
    """Everything that is wrong with an intent and the policy it is planned under; a remark stops nothing."""

    policy_problems: tuple[DocumentProblem, ...]
    problems: tuple[DocumentProblem, ...]
    remarks: tuple[DocumentProblem, ...]
    report: PrecheckReport


class SealedIntent(msgspec.Struct, frozen=True):
    """An intent that is pinned to the registry; with problems it is not whole and cannot be sealed."""

    value: dict[str, Any]
    problems: tuple[DocumentProblem, ...]
    registry: str = ""  # its digest
    removed: tuple[str, ...] = ()  # pins to what the registry does not have
    covered_bytes: int = 0  # how many bytes the checksum covers

    @property
    def pins(self) -> list[str]:
        """What it names of the registry, as it is now."""
        return [ref for ref in self.value["evidence_refs"] if ref.startswith("registry://")]


def find_project_id(config: Config, root: str) -> str:
    """What the project is called in documents: as it says itself, else by the name of its folder."""
    return config.project or clip_text(printable_text(os.path.basename(root)), MAX_PROJECT_ID) or "project"


def read_policy(documents: DocumentFiles, name: str, intent: Any) -> ParsedDocument:
    """A policy by the name of a preset, from a file, or without a name the preset of the mode that the intent asks for."""
    interaction = intent.get("interaction") if isinstance(intent, Mapping) else None
    mode = interaction.get("mode") if isinstance(interaction, Mapping) else None
    name = name or (mode if mode in POLICY_PRESETS else DEFAULT_POLICY)
    if name in POLICY_PRESETS:
        return documents.parse(msgspec.json.encode(POLICY_PRESETS[name]), f"policy {name}", POLICY_SCHEMA)
    if not os.path.isfile(name):
        raise UserError(f"there is no policy {name!r}: give {', '.join(POLICY_PRESETS)}, or a file")
    return documents.read(name, POLICY_SCHEMA)


class IntentService:
    """The intents of one project; `config` is one that a person trusts."""

    def __init__(self, ports: Ports, principal: Principal, root: str, config: Config) -> None:
        self._ports, self._principal, self._root, self._config = ports, principal, root, config
        self._planning = require_planning(ports)

    def load_registry(self) -> Registry:
        """What can be planned with; UserError where something is wrong with it."""
        loaded = self._planning.registries.load()
        if loaded.problems:
            first = loaded.problems[0]
            raise UserError(
                f"the registry has {count_with_noun(len(loaded.problems), 'problem')}, the first in {first.field}: "
                f"{first.message}; see `{self._principal.command_prefix} registry check`"
            )
        return loaded.registry

    # ── drafting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def draft(
        self,
        goal: str,
        *,
        mode: ExecutionMode,
        workflow: str = "",
        files: tuple[str, ...] = (),
        areas: tuple[ProjectArea, ...] = (),
    ) -> IntentDraft:
        """A whole, sealed intent for a goal, from the project's own files; `files` are named from its top."""
        _require_plain_goal(goal)
        _require_plannable_files(files)
        registry, project_id = self.load_registry(), find_project_id(self._config, self._root)
        targets = files or tuple(
            file for file in goals.find_goal_files(goal) if os.path.lexists(self._path(file))
        )
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        request = IntentRequest(goal.strip(), project_id, self._principal.person, now, mode, targets, areas)
        choice = _find_workflow(workflow, registry) if workflow else goals.choose_workflow(goal, registry)
        if choice is None:
            raise UserError(
                f"the registry has no workflow to plan with: see `{self._principal.command_prefix} registry list workflow`"
            )
        return draft_intent(request, choice, self._planning.scanner.scan(project_id), registry)

    async def propose(self, draft: IntentDraft, role: str) -> AgentProposal:
        """The draft with what the agent of a role proposes for it; UserError where there is no agent or no proposal."""
        from steersman.engine.intent_proposal import propose_intent

        obstacle = self._ports.role_obstacle(find_role_settings(self._config, role))
        if obstacle:
            raise UserError(obstacle)
        goal = draft.value["objective"]["goal"]
        proposal = await propose_intent(self._ports, self._config, role, goal, draft.value)
        if proposal.reply is None:
            raise UserError(
                f"the agent of {role} gave no proposal, nothing was written: {'; '.join(proposal.problems)}"
            )
        return AgentProposal(amend_intent_draft(draft, proposal.reply), proposal.hid)

    def find_draft_problems(self, value: Any) -> tuple[DocumentProblem, ...]:
        """What has to be corrected by hand before a draft can be planned."""
        return (*find_schema_problems(value), *find_semantic_problems(value, self.load_registry()))

    # ── checking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, intent: ParsedDocument, policy: ParsedDocument) -> IntentCheck:
        """Everything that is wrong with an intent: its form, its checksum, what it names, what it cites, the policy."""
        registry, lines = self.load_registry(), intent.lines
        report = precheck_intent(
            intent.value, policy.value, registry, lines, policy.lines, self._config.project or ""
        )
        problems = [p for p in collect_precheck_problems(report) if p not in report.policy_problems]
        groundless, doubtful = self._find_unmet_citations(intent, policy, registry)
        return IntentCheck(
            policy_problems=report.policy_problems,
            problems=(*problems, *self._find_seal_problems(report, intent), *groundless),
            remarks=(
                *find_intent_remarks(intent.value, registry, lines),
                *self.find_target_remarks(intent.value, lines),
                *doubtful,
            ),
            report=report,
        )

    def check_policy(self, policy: ParsedDocument) -> tuple[DocumentProblem, ...]:
        """Everything that is wrong with a policy."""
        return tuple(find_policy_problems(policy.value, self.load_registry(), policy.lines))

    def find_target_remarks(self, value: Any, lines: FieldLines | None = None) -> list[DocumentProblem]:
        """Remarks on the files in scope: those that are missing, folders that do not look like one, and links."""
        lines = lines or NO_FIELD_LINES
        targets = [
            (field, name)
            for field, name in iter_texts_at(value, "scope", "targets", "files")
            if not outside_plan_reason(name)
        ]
        remarks = [(field, self._describe_target(name)) for field, name in targets]
        links = [(field, self._describe_linked_target(name)) for field, name in targets]
        return [document_problem(field, *remark, lines) for field, remark in (*remarks, *links) if remark]

    def _describe_target(self, name: str) -> tuple[str, str] | None:
        path = self._path(strip_directory_mark(name))
        if not os.path.lexists(path):
            return (
                f"{name} is not there: a plan about it makes it",
                "correct the name if you mean one that is",
            )
        if os.path.isdir(path) and not is_directory_target(name):
            return f"{name} is a folder: everything in it is in scope", f"write {name}/, or name files in it"
        return None

    def _describe_linked_target(self, name: str) -> tuple[str, str] | None:
        """What a plan names is not what would be changed, where a part of the name is a link."""
        parts = strip_directory_mark(name).split("/")
        prefixes = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        link = next((prefix for prefix in prefixes if os.path.islink(self._path(prefix))), "")
        remark = f"{name} leads through {link}, which is a link: no scan follows it, and what is changed may lie elsewhere"
        return (remark, "name the files themselves") if link else None

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name)

    def _find_seal_problems(
        self, report: PrecheckReport, intent: ParsedDocument
    ) -> Iterable[DocumentProblem]:
        """What the report says without being a sentence of its own: the checksum, and what is not as it was pinned."""
        # What is missing crosses a red line, and is listed with those.
        yield from find_unusable_references(report, "inactive", "drifted", "unpinned")
        if not report.checksum_matches:
            hint = f"read what changed, then run `{self._principal.command_prefix} intent seal {intent.file}`"
            message = describe_checksum_problem(report)
            yield document_problem(("audit", "checksum"), message, hint, intent.lines)

    def _find_unmet_citations(
        self, intent_document: ParsedDocument, policy: ParsedDocument, registry: Registry
    ) -> tuple[list[DocumentProblem], list[DocumentProblem]]:
        """Lists what an intent cites and planning would not find: problems if no person would be asked, else remarks."""
        intent = convert_valid_document(intent_document.value, ExecutionIntent, INTENT_SCHEMA)
        rules = convert_valid_document(policy.value, ExecutionPolicy, POLICY_SCHEMA)
        if intent is None or rules is None:  # the problems of their form are listed already
            return [], []
        bundle, context_problems = self._load_planning_context(intent, rules)
        citations = find_dangling_refs(
            intent, CitableEvidence(intent, registry, bundle), intent_document.lines
        )
        if resolve_effective_asking(intent, rules).budget:
            return [], [*context_problems, *citations.of_commands, *citations.of_whole]
        return list(citations.of_commands), [*context_problems, *citations.of_whole]

    def _load_planning_context(
        self, intent: ExecutionIntent, policy: ExecutionPolicy
    ) -> tuple[ContextBundle, list[DocumentProblem]]:
        """What planning would go by, and which part of it cannot be read."""
        project, problems = intent.scope.project_id, []
        bounds = ScanBounds(files_seen=0, files_read=0, bytes_read=0, skipped=0, complete=False)
        facts = FactPack(project_id=project, fingerprint="0" * 64, facts=(), evidence=(), bounds=bounds)
        memory = MemoryPack(project_id=project, query="", scopes=(), threshold=1, memories=())
        try:
            facts = self._planning.scanner.scan(project, intent.scope.repo_root)
        except (SteersmanError, OSError) as error:
            problems.append(document_problem(("scope", "repo_root"), str(error)))
        try:
            memory = self._planning.memories.pack(intent.objective.goal, project)
        except MemoryUnavailable as error:
            problems.append(document_problem(("memory",), str(error)))
        return build_context_bundle(memory, facts, policy), problems

    # ── sealing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def seal(self, document: ParsedDocument) -> SealedIntent:
        """An intent with every workflow, agent and command pinned to the registry as it is now, and with its checksum."""
        if not isinstance(document.value, dict):
            command = f"{self._principal.command_prefix} intent new"
            raise UserError(f"{document.file} holds no intent: `{command}` makes one")
        registry = self.load_registry()
        value = seal_intent(document.value, registry)
        if problems := find_schema_problems(value, document.lines):
            return SealedIntent(value, problems)
        self._planning.registries.store_registry(registry)
        removed = tuple(find_dangling_pins(document.value, registry))
        return SealedIntent(value, (), registry.digest, removed, len(intent_checksum_bytes(value)))


def _require_plain_goal(goal: str) -> None:
    if not has_visible_text(goal):
        raise UserError('a goal is missing, such as: steersman intent new "Fix the rounding of invoices"')
    if reason := invisible_sentence_reason(goal):
        raise UserError(
            f"the goal {reason} ({clip_text(printable_line(goal), 200)}): type it again. Nothing was drafted"
        )


def _require_plannable_files(files: tuple[str, ...]) -> None:
    for file in files:
        reason = outside_plan_reason(file) or path_spelling_problem(file) or invisible_name_reason(file)
        if reason:
            raise UserError(
                f"--file {printable_line(file)} {reason}: name a file of the repository, such as src/app.py"
            )


def _find_workflow(name: str, registry: Registry) -> goals.WorkflowChoice:
    workflow = registry.usable("workflow", name)
    if not isinstance(workflow, Workflow):
        known_ids = ", ".join(usable.id for usable in registry.all_usable("workflow"))
        raise UserError(f"there is no workflow {name!r} to plan with: there are {known_ids}")
    return goals.WorkflowChoice(workflow, "it was asked for by name")

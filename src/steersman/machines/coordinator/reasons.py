"""Every way in which planning can fail, as a table: of what type it is, what is said, what to change and how.

**Invariant:** the page of failures is this table; no failure has a cause that is not here.
"""

from typing import NamedTuple

from steersman.contracts.planning.review import FailureType


class FailureCause(NamedTuple):
    """One row: the type of the failure, the sentence, the field or thing to change, and how."""

    type: FailureType
    message: str
    change: str
    how: str


_RED_LINE: FailureType = "red_line_violation"
_CONSTRAINT: FailureType = "constraint_violation"
_MISSING_REGISTRY: FailureType = "missing_registry"
_POLICY_VIOLATION: FailureType = "policy_violation"

# fmt: off
FAILURE_CAUSES: dict[str, FailureCause] = {
    # PRECHECKED
    "execution_payload":   FailureCause(_RED_LINE,    "The intent carries something that could be executed", "intent", "Take the named keys out; a plan only describes."),
    "schema_invalid":      FailureCause(_CONSTRAINT,  "The intent breaks its schema", "intent", "Mend every field that `steersman intent check FILE` lists."),
    "checksum_mismatch":   FailureCause(_CONSTRAINT,  "The checksum is not that of the intent", "audit.checksum", "Read what has changed and seal it again: `steersman intent seal FILE`."),
    "asks_in_full_auto":   FailureCause(_POLICY_VIOLATION, "full_auto does not ask", "interaction.question_budget", "Set question_budget to 0 and question_policy to never, or choose another mode."),
    "risk_in_full_auto":   FailureCause(_POLICY_VIOLATION, "A high or critical risk is not planned in full_auto", "interaction.mode", "Choose semi_auto or interactive."),
    "unevidenced_command": FailureCause(_CONSTRAINT,  "A planned command has no evidence", "planned_commands", "Cite what speaks for it in evidence_refs."),
    "not_registered":      FailureCause(_MISSING_REGISTRY,   "Something is not in the registry", "selected_workflows, selected_agents, planned_commands, evidence_refs", "Use ids that `steersman registry list` shows, or add the content to .steersman/registry."),
    "inactive_content":    FailureCause(_MISSING_REGISTRY,   "Content of the registry is neither active nor frozen", "registry", "Use another id, or set its status to active."),
    "version_drift":       FailureCause(_MISSING_REGISTRY,   "The registry is not the one that the intent was sealed with", "evidence_refs", "Run `steersman intent seal FILE` again after reading `steersman registry diff`."),
    "policy_invalid":      FailureCause(_POLICY_VIOLATION, "The policy cannot be used", "policy", "Mend the named fields of the policy."),
    "mode_changed":        FailureCause(_POLICY_VIOLATION, "The run was begun in another mode than intent and policy ask for", "interaction.mode", "Start `steersman plan` again."),
    "registry_broken":     FailureCause(_MISSING_REGISTRY,   "The registry cannot be used", ".steersman/registry", "Mend every problem that `steersman registry check` lists."),
    "intent_unreadable":   FailureCause(_CONSTRAINT,  "The intent could not be looked at", "intent", "Look at the file: `steersman intent check FILE`."),
    # CONTEXT_BUILT
    "memory_unavailable":  FailureCause(_CONSTRAINT,  "There is no memory to go by", "memory", "Add what is known: `steersman memory add TEXT`."),
    "memory_damaged":      FailureCause(_CONSTRAINT,  "The memories cannot be used", "memory", "Restore the named file from a backup, or move it aside; `steersman doctor` has the command. Then `steersman memory add TEXT`."),
    "facts_unavailable":   FailureCause(_CONSTRAINT,  "There are no facts about the project", "scope.repo_root", "Plan inside the project; `steersman facts` shows what is found."),
    "policy_unavailable":  FailureCause(_POLICY_VIOLATION, "The policy's constraints are not loaded", "policy", "Name a policy file or a preset with --policy."),
    "context_missing":     FailureCause(_CONSTRAINT,  "The context could not be put together", "memory", "Look at `steersman memory list` and `steersman facts`."),
    # RULES_EVALUATED
    "routing_violation":   FailureCause(_RED_LINE,    "The policy leaves no model for an agent", "policy.models", "Allow a model or a placement that the agent has, or select another agent."),
    "rule_conflict":       FailureCause(_RED_LINE,    "Two rules contradict each other and no order says which holds", "registry", "Mend one of the rules."),
    "rule_denied":         FailureCause(_RED_LINE,    "A rule forbids a planned command", "planned_commands", "Take the command out, or meet what the rule asks for; a person has to look first."),
    "manifest_unread":     FailureCause(_CONSTRAINT,  "A manifest cannot be read, so that what it would tell is unknown", "facts", "Mend the file that is named; where manifests of its kind are not read, name the checks of the project in steersman.toml. Then plan again; `steersman facts` shows what is read."),
    "rule_undecidable":    FailureCause(_CONSTRAINT,  "A rule cannot be decided", "rule.when", "Mend the condition of the rule that is named, or provide what it has to know."),
    "deny_unexplained":    FailureCause(_CONSTRAINT,  "A rule denies without a reason", "registry", "Write then.reason of the rule."),
    "operation_forbidden": FailureCause(_POLICY_VIOLATION, "The policy forbids a planned command", "planned_commands", "Take it out, or change policy.constraints."),
    "command_undecided":   FailureCause(_CONSTRAINT,  "A planned command has no verdict", "planned_commands", "Run `steersman registry check`, then plan again."),
    "rules_unasked":       FailureCause(_CONSTRAINT,  "The rules could not be asked", "registry", "Run `steersman registry check`."),
    # GRAPH_DRAFTED and GRAPH_FINALIZED
    "cyclic_graph":        FailureCause(_CONSTRAINT,  "The order of the phases is a circle", "selected_workflows", "Mend `after` in the workflow that is named, or select fewer of its phases."),
    "phase_unmapped":      FailureCause(_CONSTRAINT,  "A selected phase is nowhere in the graph", "selected_workflows", "Select phases that the workflow has."),
    "lane_missing":        FailureCause(_CONSTRAINT,  "An agent or a node has no lane", "selected_agents", "Select agents that cover the selected phases."),
    "evidence_missing":    FailureCause(_CONSTRAINT,  "A proposal has no evidence", "planned_commands", "Cite what speaks for it in evidence_refs."),
    "node_incomplete":     FailureCause(_CONSTRAINT,  "A node lacks what it cannot be without", "registry", "Run `steersman registry check`."),
    "placeholder_left":    FailureCause(_CONSTRAINT,  "A question is still open", "interaction", "Answer it, or settle it in the intent."),
    "default_blocks":      FailureCause(_CONSTRAINT,  "A question has no answer, and its default is to stop", "interaction.mode", "Plan in interactive mode and answer, or change what the question is about."),
    "no_graph":            FailureCause(_CONSTRAINT,  "There is no graph", "selected_workflows", "Select a workflow and its phases."),
    # QUESTIONS_EMITTED
    "question_budget_exceeded": FailureCause(_POLICY_VIOLATION, "More has to be asked than the budget allows", "interaction.question_budget", "Raise question_budget of intent and policy, or settle what is asked in the intent."),
    "question_unevidenced":     FailureCause(_CONSTRAINT,  "A question lacks the evidence that the policy asks for", "policy.question_rules.min_evidence_count", "Cite more evidence in the intent, or ask for less in the policy."),
    "question_undefaulted":     FailureCause(_CONSTRAINT,  "A question has no default that may hold", "intent", "Settle in the intent what the question is about."),
    "question_unfit":           FailureCause(_POLICY_VIOLATION, "A question may not be asked under this policy", "policy.question_rules.allowed_types", "Allow its type, or choose another mode."),
    "nothing_to_ask":           FailureCause(_CONSTRAINT,  "There was nothing to ask", "interaction", "Plan again."),
    # AWAITING_ANSWERS
    "answers_conflict":    FailureCause("rule_denied", "Answers contradict rules, more often than may be", "planned_commands", "Take the command out of the intent, or change the rule: an answer does not outweigh it."),
    "answer_blocks":       FailureCause(_CONSTRAINT,  "An answer or a default stops the run", "intent", "Settle in the intent what the question is about."),
    "answers_stopped":     FailureCause(_CONSTRAINT,  "The run was stopped while its questions were open", "policy.auto_fallback", "Plan again and answer, settle the questions in the intent, or set auto_fallback to true."),
    # REVIEW_PACK_BUILT
    "budget_exceeded":     FailureCause(_CONSTRAINT,  "The plan needs more than its budgets allow", "budgets", "Raise the named budget, or plan less."),
    "review_uncovered":    FailureCause(_CONSTRAINT,  "A review is asked for that the plan has no gate for", "risk.requires_review", "Select a phase in which it can take place."),
    "risk_unjustified":    FailureCause(_CONSTRAINT,  "A risk is stated that nothing shows", "risk.drivers", "Cite what shows it."),
    "review_missing":      FailureCause(_CONSTRAINT,  "The review pack could not be built", "intent", "Plan again."),
    # FROZEN_OUTPUTS
    "output_malformed":    FailureCause(_RED_LINE,    "A document of the plan breaks its schema", "registry", "Look at the named document: content that no schema foresees may be behind it."),
    "checksum_failed":     FailureCause(_CONSTRAINT,  "What was written is not what was worked out", "--out", "Write to another directory; look at the disk."),
    "lineage_incomplete":  FailureCause(_CONSTRAINT,  "The plan cannot be traced back to its inputs", "registry", "Plan again with the registry as it is now."),
    "not_written":         FailureCause(_CONSTRAINT,  "The plan could not be written", "--out", "Give a directory that can be written."),
    # GRAPH_FINALIZED, beside those of a graph
    "rest_denied":         FailureCause("rule_denied", "A rule speaks against what is left of the plan", "planned_commands", "Keep in the plan what the rule asks for, or plan without the named command."),
    "phase_emptied":       FailureCause(_CONSTRAINT,  "A phase that has to show something has nothing left", "planned_commands", "Plan a command for it that evidence speaks for, or do not select the phase."),
    "rest_risky":          FailureCause(_POLICY_VIOLATION, "A high or critical risk is not planned in full_auto", "interaction.mode", "Choose semi_auto or interactive."),
    "evidence_unfound":    FailureCause(_CONSTRAINT,  "Commands are left out because what is cited for them cannot be found", "planned_commands", "Look at what `steersman intent check FILE` lists, and draft the intent anew or cite what is there now."),
    # anywhere
    "broken":              FailureCause(_CONSTRAINT,  "It could not be worked out", "surroundings", "Mend what is named, and plan again; `steersman doctor` looks at the rest."),
}
# fmt: on

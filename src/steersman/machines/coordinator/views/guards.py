"""The planner's guards as the specification words them: a guard is what has to be so for the plan to go on.

The table asks the other way round (is there a payload?), because what stops a run is asked by name. An auditor never
sees one name with two signs: what stops has another name here, and that name says what is true.
**Invariant:** every guard of the table that stops a run has its words here; a test holds the two against each other.
"""

from functools import cache

from steersman.contracts.planning.forms import GuardEvaluation
from steersman.kernel.definition import Guard, StateDef, otherwise
from steersman.kernel.machine import Machine
from steersman.kernel.machine import machine_guards as all_guards

FAILED_PLAN_STATES = ("BLOCKED", "ABORTED")
SATISFIED_WORDING = {  # by a guard that stops: what is so where it does not
    "payload": "I1: no execution payload",
    "registry_broken": "the registry can be read and fits itself",
    "schema_broken": "intent schema valid (v0.9.1)",
    "checksum_wrong": "checksum matches",
    "asks_alone": "I2: full_auto has no questions",
    "risks_alone": "I3: no high or critical risk in full_auto",
    "unevidenced_command": "I4: every planned command has evidence",
    "not_registered": "I5: all referenced content exists in the registry",
    "inactive": "all referenced content is active or frozen",
    "drifted": "no version drift detected",
    "policy_broken": "policy schema valid",
    "other_mode": "the run's mode is the one that intent and policy ask for",
    "no_memory": "MemoryPack constructed (minimum threshold met)",
    "no_facts": "FactPack available",
    "no_policy": "policy constraints loaded",
    "routed_away": "the policy leaves every agent a model",
    "conflicting": "no unresolvable rule conflicts",
    "denied": "no hard denies",
    "undecidable": "all rules produce machine-decidable verdicts",
    "unexplained": "all deny decisions have documented reasons",
    "forbidden": "the policy prohibits no planned operation",
    "cyclic": "graph is a DAG (no cycles)",
    "unmapped": "all phases mapped to nodes",
    "unassigned": "all agents have swimlane assignments",
    "unsupported": "all action_proposal nodes have evidence_refs",
    "over_budget": "question_budget not exceeded",
    "unevidenced": "all questions have evidence_refs",
    "undefaulted": "all questions have default_strategy",
    "unfit": "blocking_level appropriate for policy",
    "stops": "no person has stopped the run",
    "malformed": "AnswerPack conforms to schema",
    "partial": "all critical questions answered",
    "contradicts": "answers do not conflict with rule decisions",
    "blocks": "no answer or default says block",
    "stopped": "no default stops the run",
    "overruled": "no rule speaks against what is left of the plan",
    "emptied": "every phase that has to show something still can",
    "risky": "I3: no high or critical risk is left in full_auto",
    "holes": "graph is complete (no placeholders), swimlanes cover all nodes",
    "overspent": "change impact within budget constraints",
    "unreviewed": "ReviewPack satisfies all requires_review categories",
    "unjustified": "risk level justified by evidence",
    "ill_formed": "outputs satisfy schema validation",
    "unmatched": "all outputs have checksums that are theirs",
    "untraced": "lineage complete",
}


def describe_guard_evaluation(machine: Machine, name: str, *, is_true: bool) -> GuardEvaluation:
    """A guard of the tape in the specification's form: satisfied or not, under a name that says so."""
    sentence = _collect_guard_sentences(machine).get(name, name)
    why = sentence if is_true else f"not so: {sentence}"
    if name not in find_stopping_guards(machine):
        return GuardEvaluation(guard_name=name, passed=is_true, reason=why)
    return GuardEvaluation(
        guard_name=SATISFIED_WORDING.get(name, f"not {name}"), passed=not is_true, reason=why
    )


@cache
def _collect_guard_sentences(machine: Machine) -> dict[str, str]:
    return {g.name: g.sentence for g in all_guards(machine)}


@cache
def find_stopping_guards(machine: Machine) -> frozenset[str]:
    """The guards that lead only to where a plan ends or waits on."""
    return frozenset(
        g.name for n in machine.namings.values() for g, e in n.pairs if _is_stopping_pair(machine, g, e.name)
    )


def _is_stopping_pair(machine: Machine, guard: Guard, event: str) -> bool:
    if guard is otherwise:
        return False
    targets = {r.to.name for r in machine.rows if r.on.name == event and isinstance(r.to, StateDef)}
    return bool(targets & {*FAILED_PLAN_STATES}) or event == "answers_refused"

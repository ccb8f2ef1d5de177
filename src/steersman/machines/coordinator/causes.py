"""The six causes of a question: each with its evidence, a tagged default, what hangs on it and what could be answered.

**Invariant:** a question is never made up: each comes from one of six causes that can be shown in the inputs.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.decisions import RuleDecision
from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.questions import AskedQuestion, Cause, Default, Impact, Suggestion
from steersman.contracts.planning.words import RISKS, Profile, Question, Risk
from steersman.judges.planning.evidence import Shelf
from steersman.judges.planning.paths import ANYWHERE, region, whole
from steersman.judges.text import clip
from steersman.kernel.canonical import digest_of
from steersman.machines.coordinator import choices as word
from steersman.machines.coordinator.inputs import Inputs, risk_of, within_of
from steersman.machines.coordinator.places import Place, homeless
from steersman.machines.coordinator.purpose import bare, lacking, makes

HIGHEST: dict[Profile, Risk] = {"safe": "medium", "aggressive_safe": "high", "aggressive": "critical"}
_GRAVE = ("error", "block")

INSTEAD = Suggestion(
    answer=word.APPROVE,
    meaning="It stays, and your answer takes the place of that review.",
    risk_change="higher",
)
STOPPING = Suggestion(answer=word.STOP, meaning="Stop here; there will be no plan.", risk_change="lower")


class _Draft(NamedTuple):
    """A question without its id and its place in the graph."""

    cause: Cause
    about: str
    type: Question
    level: Risk
    text: str
    context: str
    evidence: tuple[str, ...]
    default: Default
    answers: tuple[Suggestion, ...]
    nodes: tuple[str, ...]
    scope: Literal["entire_plan", "single_phase", "single_action"] = "single_action"
    within: tuple[str, ...] = ANYWHERE


def causes(
    inputs: Inputs, found: tuple[Place, ...], nodes: dict[str, list[str]], phases: tuple[str, ...]
) -> Iterator[AskedQuestion]:
    """Every question that the inputs raise; `nodes` are those of each command, `phases` those of phases."""
    yield from map(_asked, _about_commands(inputs, found, nodes))
    yield from map(_asked, _missing_commands(inputs, found))
    yield from map(_asked, _ambiguous_scope(inputs, found, phases))


def _denied(inputs: Inputs) -> dict[str, RuleDecision]:
    """Commands that a rule denies, by id."""
    return {id_: d for id_, d in inputs.decided().items() if d.decision == "deny"}


def _allowed(inputs: Inputs) -> set[str]:
    """The planned commands that no rule denies."""
    return {c.command_id for c in inputs.intent.planned_commands} - _denied(inputs).keys()


def _about_commands(
    inputs: Inputs, found: tuple[Place, ...], nodes: dict[str, list[str]]
) -> Iterator[_Draft]:
    decided = inputs.decided()
    nowhere = {command.command_id for command in homeless(inputs, found)}
    emptied, shelf = _emptied(inputs, found), inputs.shelf()
    for id_, planned in {c.command_id: c for c in inputs.intent.planned_commands}.items():
        at, decision = tuple(nodes.get(id_, ())), decided.get(id_)
        if id_ in nowhere:
            yield _homeless(inputs, planned, at)
        elif decision is not None and decision.decision == "deny":
            yield _excluded(inputs, decision, at, emptied.get(id_, ()))
        else:
            yield from _unmet_evidence(inputs, planned, at, shelf)
            yield from _risk_above(inputs, planned, at)
            if decision is not None and decision.decision == "require_review":
                yield _review(inputs, decision, at)


def _emptied(inputs: Inputs, found: tuple[Place, ...]) -> dict[str, tuple[Place, ...]]:
    """By command: phases that can do without one, and in which nothing is left because rules deny all of it."""
    denied, may = _denied(inputs), _allowed(inputs)
    empty = [p for p in found if p.commands and not p.phase.needs_command and bare(inputs, p, may)]
    by_command: dict[str, list[Place]] = {}
    for place in empty:
        for command in place.commands:
            if command.command_id in denied:
                by_command.setdefault(command.command_id, []).append(place)
    return {id_: tuple(some) for id_, some in by_command.items()}


def _unmet_evidence(
    inputs: Inputs, planned: PlannedCommand, nodes: tuple[str, ...], shelf: Shelf
) -> Iterator[_Draft]:
    id_, refs = planned.command_id, planned.evidence_refs
    missing, speaking = shelf.missing(refs), tuple(filter(shelf.speaks, refs))
    told = f"Nothing known says that {id_} is right: "
    if missing and speaking:
        told = f"{_listed(missing)}, cited for {id_}, leads nowhere; {_listed(speaking)} can be found and speaks for it"
        why = f"Neither facts nor memory nor the registry has {_listed(missing)}: something has changed since, or never was."
    elif missing:
        told += f"{_listed(missing)} cannot be found"
        why = f"The intent cites {_listed(missing)} for {id_}, and neither facts nor memory nor the registry has it."
    elif not speaking:
        told += f"{_listed(refs)} says what it is, not why"
        why = f"What the intent cites for {id_} can be found, and no fact, memory, document or objective is among it."
    else:
        return
    yield _Draft(
        "unmet_evidence", id_, "blocker", "high",
        f"{told}. Leave the command out?",
        why,
        (_cited(inputs, "planned_commands", id_), *sorted(set(planned.evidence_refs) - set(missing))),
        Default(strategy="exclude", reason="What is cited and not there speaks for nothing; nobody has looked."),
        (
            _leave_out(id_),
            Suggestion(
                answer=word.ACCEPT_WITHOUT,
                meaning="Propose it all the same; your answer is the evidence, beside what is there.",
                risk_change="higher",
            ),
            STOPPING,
        ),
        nodes,
    )  # fmt: skip


def _risk_above(inputs: Inputs, planned: PlannedCommand, nodes: tuple[str, ...]) -> Iterator[_Draft]:
    id_, profile = planned.command_id, inputs.bundle.policy.risk_profile
    risk = risk_of(planned, inputs.command(id_))
    if RISKS.index(risk) <= RISKS.index(HIGHEST[profile]):
        return
    yield _Draft(
        "risk_above_profile", id_, "risk_mitigation", "critical",
        f"{id_} is of {risk} risk, and the profile {profile} goes up to {HIGHEST[profile]}. Accept the risk?",
        f"The policy's risk_profile is {profile}. The graver of intent and registry counts for {id_}: {risk}.",
        (_cited(inputs, "planned_commands", id_), _registered(inputs, "command", id_)),
        Default(strategy="exclude", reason="A risk above the profile is taken by a person or not at all."),
        (
            _leave_out(id_),
            Suggestion(
                answer=word.ACCEPT_RISK, meaning="Keep it in the plan; you accept the risk.", risk_change="higher"
            ),
            STOPPING,
        ),
        nodes,
    )  # fmt: skip


def _review(inputs: Inputs, decision: RuleDecision, nodes: tuple[str, ...]) -> _Draft:
    id_, grave = decision.command_id, decision.severity in _GRAVE
    return _Draft(
        "requires_review", id_, "blocker" if grave else "risk_mitigation", "critical" if grave else "medium",
        f"Rules want {id_} reviewed before it is carried out. Keep it behind its review?",
        f"Severity {decision.severity}: {decision.reason}",
        _ruled(inputs, decision),
        Default(strategy="use", value=word.KEEP, reason="The review that the rules want stands in the plan."),
        (
            Suggestion(
                answer=word.KEEP, meaning="It stays, and its review gate before it.", risk_change="same"
            ),
            _leave_out(id_),
            *(() if decision.severity == "block" else (INSTEAD,)),
            STOPPING,
        ),
        nodes,
    )  # fmt: skip


def _excluded(
    inputs: Inputs, decision: RuleDecision, nodes: tuple[str, ...], empty: tuple[Place, ...]
) -> _Draft:
    id_ = decision.command_id
    where = _listed(tuple(f"{p.workflow.id}/{p.phase.phase}" for p in empty))
    left = f" Nothing is left to do in {where}." if empty else ""
    return _Draft(
        "excluded_command", id_, "blocker" if empty else "clarification", "high" if empty else "low",
        f"Rules deny {id_}, so it is left out.{left} Is the plan right without it?",
        f"Severity {decision.severity}: {decision.reason}",
        _ruled(inputs, decision),
        Default(strategy="use", value=word.LEAVE_OUT, reason="What a rule denies is left out."),
        (_leave_out(id_), STOPPING),
        (*nodes, *(place.node for place in empty)),
        "single_phase" if empty else "single_action",
    )  # fmt: skip


def _homeless(inputs: Inputs, planned: PlannedCommand, nodes: tuple[str, ...]) -> _Draft:
    id_ = planned.command_id
    spec = inputs.command(id_)
    wanted = _listed(spec.phases) if spec else "none that the registry knows"
    return _Draft(
        "excluded_command", id_, "clarification", "low",
        f"{id_} belongs to no selected phase, so it is left out. Is the plan right without it?",
        f"The phases of {id_} are: {wanted}. None of them is among the selected phases.",
        (_cited(inputs, "planned_commands", id_), _registered(inputs, "command", id_)),
        Default(strategy="use", value=word.LEAVE_OUT, reason="There is no phase to do it in."),
        (_leave_out(id_), STOPPING),
        nodes,
    )  # fmt: skip


def _missing_commands(inputs: Inputs, found: tuple[Place, ...]) -> Iterator[_Draft]:
    denied = _denied(inputs)
    for place in lacking(inputs, found, _allowed(inputs)):
        where = f"{place.workflow.id}/{place.phase.phase}"
        gone = _listed(tuple(c.command_id for c in place.commands if c.command_id in denied))
        what = "changed" if makes(inputs, place) else "done"
        none = f"rules deny what was planned for it ({gone})" if gone else "no planned command does it"
        yield _Draft(
            "missing_command", where, "blocker", "high",
            f"Something has to be {what} in {where}, and {none}. Is it done by hand?",
            f"The phase is there to: {place.phase.purpose} It can use {_listed(place.phase.commands) or 'any command'}.",
            (
                _cited(inputs, "selected_workflows", place.workflow.id),
                _registered(inputs, "workflow", place.workflow.id),
            ),
            Default(strategy="block", reason="A phase that has to show something is not passed over in silence."),
            (
                Suggestion(
                    answer=word.BY_HAND, meaning="A person does it and shows what was done.", risk_change="same"
                ),
                STOPPING,
            ),
            (place.node,),
            "single_phase",
        )  # fmt: skip


def _open(inputs: Inputs) -> bool:
    """Whether nobody has said what the plan is about: nothing is named, or everything."""
    targets = inputs.intent.scope.targets
    return any(map(whole, targets.files)) or not (targets.files or targets.modules or targets.areas)


def _ambiguous_scope(inputs: Inputs, found: tuple[Place, ...], phases: tuple[str, ...]) -> Iterator[_Draft]:
    if not _open(inputs):
        return
    may, within = _allowed(inputs), within_of(inputs.intent)
    planned = {c.command_id for c in inputs.intent.planned_commands if "write" in inputs.effects(c)}
    writes, told_by = planned & may, _listed(tuple(sorted(planned)))
    lost = {p.node for p in lacking(inputs, found, may - planned)}
    spare = lost <= {p.node for p in lacking(inputs, found, may)}
    everything = bool(inputs.intent.scope.targets.files)
    where = clip(region(within), 300)
    text = Suggestion(
        answer=word.TEXT,
        meaning=f"Only what you name in {where}: files, or directories with a slash at the end, one a line.",
        risk_change="lower",
    )
    anything = Suggestion(
        answer=word.WHOLE_PROJECT,
        meaning=f"Anything in {where}.",
        risk_change="higher" if writes else "same",
    )
    without = Suggestion(
        answer=word.LEAVE_OUT, meaning="Every command that writes is left out.", risk_change="lower"
    )
    told = f"{told_by} would write." if writes else "No planned command writes."
    yield _Draft(
        "ambiguous_scope", "scope.targets",
        "blocker" if writes else "clarification", "high" if writes else "medium",
        f"The intent names {'the whole project' if everything else 'no file, module or area'}. What is the plan about?",
        f"scope.targets {'leaves nothing out' if everything else 'is empty'}. {told}",
        (_cited(inputs, "scope", "targets"),),
        Default(strategy="block", reason="Nobody has said what may be changed.")
        if writes
        else Default(
            strategy="use", value=word.WHOLE_PROJECT, reason="Nothing is written, so nothing is at stake."
        ),
        (text, anything, *((without,) if writes and spare else ()), STOPPING),
        phases,
        "entire_plan",
        within,
    )  # fmt: skip


def _leave_out(id_: str) -> Suggestion:
    return Suggestion(answer=word.LEAVE_OUT, meaning=f"{id_} is not in the plan.", risk_change="lower")


def _cited(inputs: Inputs, *path: str) -> str:
    return f"intent://{inputs.intent.id}/{'/'.join(path)}"


def _registered(inputs: Inputs, kind: str, id_: str) -> str:
    versions = inputs.lineage.registry_versions
    known = versions.workflows if kind == "workflow" else versions.commands
    return f"registry://{kind}/{id_}@{known.get(id_, '0.0.0')}"


def _ruled(inputs: Inputs, decision: RuleDecision) -> tuple[str, ...]:
    rules = (f"rule://{r.rule_id}@{r.rule_version}" for r in decision.rules if r.outcome == "fired")
    return (_cited(inputs, "planned_commands", decision.command_id), *rules, *decision.evidence_used)


def _listed(things: tuple[str, ...]) -> str:
    return clip(", ".join(things), 800)


def _asked(d: _Draft) -> AskedQuestion:
    told = f"{len(d.nodes)} nodes of the graph depend on it."
    question = AskedQuestion(
        question_id="",
        cause=d.cause,
        about=d.about,
        type=d.type,
        blocking_level=d.level,
        question_text=clip(d.text, 2000),
        context=clip(d.context, 4000),
        evidence_refs=tuple(sorted(set(d.evidence))),
        default_strategy=d.default,
        impact=Impact(scope=d.scope, description=told, affected_nodes=d.nodes),
        suggested_answers=d.answers,
        within=d.within,
    )
    return replace(question, question_id=f"q_{digest_of(_same(question))[:16]}")


def _same(question: AskedQuestion) -> list[object]:
    """What makes a question the same one. Its context and nodes may gain a warning that only the rest of a plan calls
    for, and an answer to it still holds."""
    q = question
    words = [q.cause, q.about, q.type, q.blocking_level, q.question_text]
    return [*words, q.default_strategy, q.suggested_answers, q.within]

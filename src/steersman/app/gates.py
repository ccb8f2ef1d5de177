"""Gates: which are open, what each asks about, and a person's answer, which counts once.

**Invariant:** an answer is checked against the gate that is open now, and evidence is accepted only with the beginning of
the digest that the person looked at.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from steersman.app.principal import PostedMessage, Principal, require_person_for_run
from steersman.app.runs import RunService, find_run
from steersman.engine.machine_package import MachinePackage, RunView, find_package
from steersman.engine.ports import Ports
from steersman.engine.projections import payload_reader, read_run_view
from steersman.errors import SteersmanError, UserError
from steersman.judges.text import has_visible_text
from steersman.kernel.definition import Choice
from steersman.kernel.tape import Entry, read_entry
from steersman.ports.journal import Gate
from steersman.views.base_stop import Remedy
from steersman.views.gates import (
    DIGEST_PREFIX_LENGTH,
    EVIDENCE_GATE,
    GateTextSplitter,
    GateView,
    describe_gate,
    find_choice,
    gate_commands,
    gate_reason,
    no_gate_items,
)
from steersman.views.run_summary import GuardOverride, PayloadReader, actor_name
from steersman.views.screen import base_remedies_for_run
from steersman.views.time_format import FIGURE_LABELS, format_figure

ACCEPT_EVIDENCE_WORD = "accept-evidence"
RAISE_CHOICE = "raise"
APPROVE_CHOICE = "approve"


class NoOpenGateError(UserError):
    """There is no gate to answer; the message says who answered it."""

    exit_code = 4


class AnswerNotTakenError(UserError):
    """The answer lacks what this gate needs: a reason, or the digest that was looked at."""

    exit_code = 4


class OpenGate(msgspec.Struct, frozen=True, eq=False):
    """An open gate with its texts; for a run that cannot be read, only the gate."""

    gate: GateView
    text: PayloadReader
    split_text: GateTextSplitter = no_gate_items
    cause: str = ""
    side_commands: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    failures: tuple[str, ...] = ()
    overrides: tuple[GuardOverride, ...] = ()
    not_isolated: str = ""


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person answers."""

    choice: str
    reason: str = ""
    text: str = ""  # a longer message, such as what to change
    digest: str | None = None  # answer only if the gate is about this
    digest_prefix: str | None = None  # the beginning of the digest of evidence that was looked at
    limits: Mapping[str, int] = {}  # new limits of the budget, for `raise`


class CheckedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that its gate takes; nothing has been answered yet."""

    gate: GateView
    request: AnswerRequest
    word: str  # what the answer is called on a screen
    evidence_reason: str = ""
    preview: tuple[str, ...] = ()  # exactly what would be accepted


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_open_gates(ports: Ports, command_prefix: str, run: str | None = None) -> list[OpenGate]:
    """The gates that wait for an answer, of one run or of all; a run that cannot be read hides no other."""
    run_id = find_run(ports.journal, run) if run else None
    open_gates, views = [], dict[str, RunView | SteersmanError]()
    for gate in (g for g in ports.journal.gates(run_id) if not g.answer):
        if gate.run not in views:
            try:
                views[gate.run] = read_run_view(ports, gate.run)
            except SteersmanError as error:
                if run is not None:
                    raise
                views[gate.run] = error
        open_gates.append(_describe_open_gate(ports, gate, views[gate.run], command_prefix))
    return open_gates


def _describe_open_gate(
    ports: Ports, gate: Gate, view: RunView | SteersmanError, command_prefix: str
) -> OpenGate:
    if isinstance(view, SteersmanError):
        problem = f"(this text cannot be read: {view})"
        return OpenGate(describe_gate(None, gate), lambda _: problem)
    summary = view.status
    failures = [line for check in summary.checks for line in check.failure]
    return OpenGate(
        gate=describe_gate(view.machine, gate),
        text=view.text,
        split_text=find_package(ports.packages, view.machine).split_gate_text,
        cause=summary.cause,
        side_commands=summary.side_commands,
        remedies=tuple(base_remedies_for_run(summary, command_prefix)) if summary.base_problem else (),
        failures=tuple(failures) if gate.job == EVIDENCE_GATE else (),
        overrides=summary.overrides,
        not_isolated=summary.not_isolated,
    )


def find_open_gate(runs: RunService, principal: Principal, name: str) -> GateView:
    """An open gate by its id, or the only one of a run; the error says who answered a gate that is closed."""
    ports = runs.ports
    prefix, colon, rest = name.partition(":")
    run = runs.find(prefix)
    wanted_id = f"{run}:{rest}" if colon else run
    gates = ports.journal.gates(run)  # read once: another process may answer between two reads
    open_gates = [gate for gate in gates if not gate.answer]
    matching_gates = [gate for gate in open_gates if wanted_id in (gate.id, run)]
    if len(matching_gates) == 1:
        return describe_gate(ports.machines.get(runs.head(run).machine), matching_gates[0])
    if matching_gates:
        raise UserError(f"run {run} has several open gates. Name one: {_gate_ids(matching_gates)}")
    last_answer = _describe_last_answer(ports, run, wanted_id)
    if last_answer is None and open_gates:
        raise UserError(f"run {run} has no open gate {wanted_id}. Its open gates: {_gate_ids(open_gates)}")
    raise NoOpenGateError(
        f"{last_answer or f'run {run} has no open question'}. See `{principal.command_prefix} why {run}`"
    )


def _gate_ids(gates: Iterable[Gate]) -> str:
    return ", ".join(gate.id for gate in gates)


def _describe_last_answer(ports: Ports, run: str, wanted_id: str) -> str | None:
    """Who answered the gate, or who canceled the run that asked; None where neither happened."""
    for gate in ports.journal.gates(run):
        if gate.answer and wanted_id in (run, gate.id):
            return f"gate {gate.id} is answered already: {gate.person} chose {gate.answer}"
    entries = [read_entry(body) for _, body, _ in ports.journal.rows(run)]
    end_entry = next((entry for entry in entries if entry.ended), None)
    if end_entry is not None and wanted_id == run:
        return f"run {run} was {end_entry.ended} by {actor_name(end_entry.actor)} (entry {end_entry.seq})"
    return _describe_recorded_answer(entries, run, wanted_id)


def _describe_recorded_answer(entries: list[Entry], run: str, wanted_id: str) -> str | None:
    """The last answer on the tape, for a gate whose row is gone."""
    asked_ids = {
        item.id
        for entry in entries
        for item in entry.planned
        if item.kind == "gate" and wanted_id in (run, item.id)
    }
    for entry in reversed(entries):
        if entry.cause in asked_ids:
            choice = entry.data.get("choice", "") if isinstance(entry.data, dict) else ""
            actor = actor_name(entry.actor)
            return f"gate {entry.cause} is answered already: {actor} chose {choice} (entry {entry.seq})"
    return None


# ── answering ───────────────────────────────────────────────────────────────────────────────────────────────────────


def check_answer(runs: RunService, principal: Principal, name: str, request: AnswerRequest) -> CheckedAnswer:
    """The answer to an open gate, checked, with what a person has to see before it counts; answers nothing yet."""
    gate = find_open_gate(runs, principal, name)
    require_person_for_run(runs.ports, principal, gate.run, request.choice)
    _check_raised_limits(runs, gate, request)
    evidence_reason, word, digest = "", request.choice, request.digest
    if request.digest_prefix is not None or (gate.job, request.choice) == (EVIDENCE_GATE, APPROVE_CHOICE):
        evidence_reason = _require_digest_prefix(runs, principal, gate, request.digest_prefix)
        word, digest = ACCEPT_EVIDENCE_WORD, gate.digest
    choice = find_choice(gate, request.choice)
    given = request.text if choice.takes == "text" else request.reason
    if choice.required and not has_visible_text(given):
        raise AnswerNotTakenError(choice.required)
    return CheckedAnswer(
        gate=gate,
        request=msgspec.structs.replace(request, digest=digest),
        word=word,
        evidence_reason=evidence_reason,
        preview=_read_accepted_change(runs.ports, gate, choice),
    )


def post_answer(runs: RunService, principal: Principal, answer: CheckedAnswer) -> PostedMessage:
    """Answers the gate; the first answer counts, and the error of a later one says who was first."""
    gate, request = answer.gate, answer.request
    require_person_for_run(runs.ports, principal, gate.run, request.choice)
    text = runs.text(gate.run, request.text) if has_visible_text(request.text) else ""
    fields: dict[str, Any] = {"reason": request.reason, "text": text, "limits": dict(request.limits)}
    message_id = runs.answer(
        gate,
        request.choice,
        principal.person,
        digest=request.digest,
        **{field: value for field, value in fields.items() if value},
    )
    return PostedMessage(gate.run, message_id, wants_end=find_choice(gate, request.choice).ends)


def _read_accepted_change(ports: Ports, gate: GateView, choice: Choice) -> tuple[str, ...]:
    if not choice.shows_change:
        return ()
    run_view = read_run_view(ports, gate.run)
    package: MachinePackage = find_package(ports.packages, run_view.machine)
    preview = package.preview_gate(run_view, gate, None) if package.preview_gate is not None else None
    return preview.lines if preview is not None else ()


def _require_digest_prefix(
    runs: RunService, principal: Principal, gate: GateView, digest_prefix: str | None
) -> str:
    """Why the evidence gate is open; refuses a yes without the beginning of the digest that was looked at."""
    commands = gate_commands(gate, principal.command_prefix)
    if gate.job != EVIDENCE_GATE:
        raise AnswerNotTakenError(
            f"gate {gate.id} does not ask about evidence. Answer it with {'; '.join(commands)}"
        )
    reason = gate_reason(gate, payload_reader(runs.live(gate.run)))
    if (
        digest_prefix is not None
        and len(digest_prefix) >= DIGEST_PREFIX_LENGTH
        and gate.digest.startswith(digest_prefix)
    ):
        return reason
    mismatch = f", not {digest_prefix!r}" if digest_prefix else ""
    problem = (
        "approve does not accept questioned results"
        if digest_prefix is None
        else f"the first {DIGEST_PREFIX_LENGTH} characters of its digest have to be given{mismatch}"
    )
    look, accept = f"{principal.command_prefix} gates {gate.run}", commands[0]
    if principal.face == "repl":
        look, accept = "/why` and `/diff", f"/accept-evidence {gate.digest[:DIGEST_PREFIX_LENGTH]}"
    raise AnswerNotTakenError(
        f"gate {gate.id} was not answered: {problem}.\n{reason}\nRead it with `{look}`, then type `{accept}`"
    )


def _check_raised_limits(runs: RunService, gate: Gate, request: AnswerRequest) -> None:
    """Limits go with `raise` and only upwards; a choice that the gate does not offer is refused later."""
    if request.choice not in gate.choices:
        return
    if request.choice == RAISE_CHOICE and not request.limits:
        raise UserError("raise what? give the new limit: --usd, --tokens, --turns or --hours")
    if request.choice != RAISE_CHOICE and request.limits:
        raise UserError(f"limits go with `raise`, not with `{request.choice}`")
    rows = runs.ports.journal.budget(runs.head(gate.run).root)
    limits = {row.name: row.limit for row in rows if row.limit is not None}
    for name, new_limit in request.limits.items():
        label = FIGURE_LABELS.get(name, name)
        if name not in limits:
            raise UserError(f"this run has no limit on {label}: raise one that it has")
        if new_limit <= limits[name]:
            current = f"{label}: {format_figure(name, limits[name])}"
            raise UserError(f"the limit is there already ({current}): give a higher one")

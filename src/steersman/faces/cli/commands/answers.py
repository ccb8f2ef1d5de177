"""`approve`, `accept-evidence`, `rework`, `reject`, `answer`: a person answers a gate, once; the loser of a race is told."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, define_command
from steersman.faces.cli.drive import wait_for_verdict
from steersman.faces.cli.person_events import refuse_agent_caller
from steersman.judges.text import has_visible_text
from steersman.ports.journal import Gate
from steersman.views.gates import (
    DIGEST_PREFIX_LENGTH,
    EVIDENCE_GATE,
    GateView,
    describe_gate,
    gate_commands,
    gate_reason,
)

_gate_argument = click.argument("gate", metavar="RUN_OR_GATE")
_gate_reason_option = click.option("--reason", default="", help="Why; it stays on tape.")
_gate_digest_option = click.option(
    "--digest", default=None, help="Answer only if this is what the gate is about: the digest you looked at."
)


@define_command(
    "approve", "steersman approve 261116-abc", 'steersman approve 261116-abc --reason "looks right"'
)
@_gate_argument
@_gate_reason_option
@_gate_digest_option
def approve_command(context: CommandContext, *, gate: str, reason: str, digest: str | None) -> int:
    """Answer a gate: yes. The run is then driven on until it parks or ends."""
    return answer_open_gate(context, gate, "approve", digest, reason=reason)


@define_command(
    "accept-evidence",
    "steersman gates 261116-abc   # look first: it says why, and the digest",
    "steersman accept-evidence 261116-abc 1a2b3c4d",
)
@_gate_argument
@click.argument("digest", metavar="DIGEST-PREFIX", default="")
@_gate_reason_option
def accept_evidence_command(context: CommandContext, *, gate: str, digest: str, reason: str) -> int:
    """Accept the results that an evidence gate questions. DIGEST-PREFIX is at least the first 8 characters of its digest."""
    return accept_evidence_gate(context, gate, digest, reason)


@define_command("rework", 'steersman rework 261116-abc "keep the old function as an alias"')
@_gate_argument
@click.argument("text")
@_gate_reason_option
@_gate_digest_option
def rework_command(context: CommandContext, *, gate: str, text: str, reason: str, digest: str | None) -> int:
    """Answer a gate: again, and TEXT is what to change."""
    open_gate_found = find_open_gate(context, gate)
    ref = context.runs.text(open_gate_found.run, _require_rework_text(text))
    return answer_open_gate(context, gate, "rework", digest, reason=reason, text=ref)


@define_command(
    "reject",
    "steersman reject 261116-abc",
    'steersman reject 261116-abc --reason "we do not want this"',
    exits="0 the run has stopped as asked · 2 wrong usage · 3 waiting for someone · 4 refused · 5 store trouble",
)
@_gate_argument
@_gate_reason_option
@_gate_digest_option
def reject_command(context: CommandContext, *, gate: str, reason: str, digest: str | None) -> int:
    """Answer a gate: no. The run ends without approval."""
    return answer_open_gate(context, gate, "reject", digest, reason=reason)


@define_command(
    "answer",
    "steersman answer 261116-abc raise --tokens 2000000",
    "steersman answer 261116-abc raise --usd 12.50 --hours 8",
    "steersman answer 261116-abc stop",
)
@_gate_argument
@click.argument("choice")
@click.option("--usd", default=None, metavar="N", help="The new limit in dollars.")
@click.option("--tokens", type=click.IntRange(1), default=None, help="The new limit of tokens.")
@click.option("--turns", type=click.IntRange(1), default=None, help="The new limit of agent calls.")
@click.option("--hours", default=None, metavar="N", help="The new limit of working time.")
@_gate_reason_option
@_gate_digest_option
def answer_command(
    context: CommandContext, *, gate: str, choice: str, reason: str, digest: str | None, **limits: Any
) -> int:
    """Answer a gate with one of its own CHOICEs. A budget gate takes `raise`, with at least one new limit, or `stop`."""
    return answer_with_choice(context, gate, choice, limits, digest, reason)


def answer_with_choice(
    context: CommandContext,
    gate: str,
    choice: str,
    limits: dict[str, Any],
    digest: str | None = None,
    reason: str = "",
) -> int:
    """One of a gate's own choices; `raise` with new limits as a person writes them."""
    new_limits = _parse_raised_limits(limits)
    gate_record = find_open_gate(context, gate)
    if choice in gate_record.choices:  # what a gate does not offer, it says itself
        if choice == "raise" and not new_limits:
            raise UserError("raise what? give the new limit: --usd, --tokens, --turns or --hours")
        if choice != "raise" and new_limits:
            raise UserError(f"limits go with `raise`, not with `{choice}`")
        _require_higher_limits(context, gate_record.run, new_limits)
    limit_fields: dict[str, Any] = {"limits": new_limits} if new_limits else {}
    return answer_open_gate(context, gate, choice, digest, reason=reason, **limit_fields)


def find_open_gate(context: CommandContext, name: str) -> GateView:
    """An open gate by its id, or the only one of a run; who comes too late is told who was first."""
    prefix, colon, rest = name.partition(":")
    run = context.runs.find(prefix)
    wanted_id = f"{run}:{rest}" if colon else run
    # One look: between two of them somebody else may answer.
    open_gates = [
        open_gate_item
        for open_gate_item in context.runs.ports.journal.gates(run)
        if not open_gate_item.answer
    ]
    matching_gates = [
        open_gate_item for open_gate_item in open_gates if wanted_id in (open_gate_item.id, run)
    ]
    if len(matching_gates) == 1:
        machine = context.runs.ports.machines.get(context.runs.head(run).machine)
        return describe_gate(machine, matching_gates[0])
    if matching_gates:
        raise UserError(
            f"run {run} has several gates, name one: {', '.join(open_gate_item.id for open_gate_item in matching_gates)}"
        )
    last_answer = _describe_last_answer(context, run, wanted_id)
    if last_answer is None and open_gates:
        raise UserError(
            f"run {run} has no gate {wanted_id}: it asks at {', '.join(open_gate_item.id for open_gate_item in open_gates)}"
        )
    raise _NoOpenGateError(
        f"{last_answer or f'run {run} asks nothing now'}: see `{context.command_prefix} why {run}`"
    )


class _NoOpenGateError(UserError):
    """There is nothing to answer."""

    exit_code = 4


def _describe_last_answer(context: CommandContext, run: str, wanted_id: str) -> str | None:
    """Why there is nothing to answer: somebody was first, or has canceled the run that asked."""
    answered_gates = [gate_item for gate_item in context.runs.ports.journal.gates(run) if gate_item.answer]
    answered_gate = next(
        (gate_item for gate_item in answered_gates if wanted_id in (run, gate_item.id)), None
    )
    if answered_gate is not None:
        return f"gate {answered_gate.id} was answered already: {answered_gate.person} has answered {answered_gate.answer}"
    from steersman.kernel.tape import read_entry
    from steersman.views.run_summary import actor_name

    entries = [read_entry(body) for _, body, _ in context.runs.ports.journal.rows(run)]
    end_entry = next((entry for entry in entries if entry.ended), None)
    if end_entry is not None and wanted_id == run:
        return f"run {run} was {end_entry.ended} by {actor_name(end_entry.actor)} (entry {end_entry.seq})"
    asked_gate_ids = {
        planned_item.id
        for entry in entries
        for planned_item in entry.planned
        if planned_item.kind == "gate" and wanted_id in (run, planned_item.id)
    }
    for entry in reversed(entries):
        if entry.cause in asked_gate_ids:
            choice = entry.data.get("choice", "") if isinstance(entry.data, dict) else ""
            return f"gate {entry.cause} was answered already: {actor_name(entry.actor)} has answered {choice} (entry {entry.seq})"
    return None


def accept_evidence_gate(context: CommandContext, name: str, prefix: str, reason: str = "") -> int:
    """The yes to an evidence gate; `prefix` shows which digest was looked at."""
    return answer_open_gate(context, name, "approve", None, prefix=prefix, reason=reason)


def answer_open_gate(
    context: CommandContext,
    name: str,
    choice: str,
    digest: str | None,
    *,
    prefix: str | None = None,
    **optional_fields: Any,
) -> int:
    """A gate's answer, and what became of it."""
    gate_record = find_open_gate(context, name)
    refusal_code = refuse_agent_caller(context, gate_record.run, choice)
    if refusal_code is not None:
        return refusal_code
    evidence_reason, word = "", choice
    if prefix is not None or (gate_record.job, choice) == (EVIDENCE_GATE, "approve"):
        evidence_reason, word = _require_digest_prefix(context, gate_record, prefix), "accept-evidence"
        digest = gate_record.digest
    if (gate_record.job, choice) == ("others", "begin"):
        from steersman.faces.repl.run_actions import require_begin_reason

        require_begin_reason(str(optional_fields.get("reason", "")))
    if (gate_record.job, choice) == ("decide", "approve"):
        _print_accepted_change(context, gate_record)
    answer_fields = {key: value for key, value in optional_fields.items() if value}
    message_id = context.runs.answer(gate_record, choice, context.person, digest=digest, **answer_fields)
    context.print(
        f"{context.person}: {word} · gate {gate_record.id}{f' · {evidence_reason}' if evidence_reason else ''}"
    )
    return wait_for_verdict(
        context, gate_record.run, message_id, wanted_end=_is_stop_answer(gate_record, choice)
    )


class _EvidenceNotAcceptedError(UserError):
    """The evidence was not accepted."""

    exit_code = 4


def _require_digest_prefix(context: CommandContext, gate: GateView, prefix: str | None) -> str:
    """Why the evidence gate is open; refuses a yes without the beginning of the digest that was looked at."""
    if gate.job != EVIDENCE_GATE:
        typed_commands = "; ".join(gate_commands(gate, context.command_prefix))
        raise _EvidenceNotAcceptedError(
            f"gate {gate.id} does not ask about evidence: it is answered by {typed_commands}"
        )
    from steersman.engine.projections import payload_reader

    reason = gate_reason(gate, payload_reader(context.runs.live(gate.run)))
    if prefix is not None and len(prefix) >= DIGEST_PREFIX_LENGTH and gate.digest.startswith(prefix):
        return reason
    prefix_problem = (
        "approve does not accept evidence"
        if prefix is None
        else f"the first {DIGEST_PREFIX_LENGTH} characters of its digest are needed{f', {prefix!r} are not those' if prefix else ''}"
    )
    look_command, word = (
        ("/why` and `/diff", "/accept-evidence")
        if context.prompting
        else (f"{context.command_prefix} gates {gate.run}", "")
    )
    accept_command = (
        f"{word} {gate.digest[:DIGEST_PREFIX_LENGTH]}"
        if word
        else gate_commands(gate, context.command_prefix)[0]
    )
    raise _EvidenceNotAcceptedError(
        f"gate {gate.id} was not answered: {prefix_problem}.\n{reason}\nRead it with `{look_command}`, then type `{accept_command}`"
    )


def _print_accepted_change(context: CommandContext, gate: Gate) -> None:
    """Whatever the word is by which a task's change is accepted, exactly that is shown first."""
    from steersman.faces.repl.run_actions import RunActions

    for line in RunActions(context, gate.run).accepted(gate):
        context.print(line)


def _is_stop_answer(gate: Gate, choice: str) -> bool:
    """Whether the answer asks the run to stop: then its stopping is what was wanted."""
    return choice == "stop" or (choice == "reject" and gate.job not in ("merge", "recheck"))


def _require_higher_limits(context: CommandContext, run: str, limits: dict[str, int]) -> None:
    """A raise is upwards: a limit that is there already is not lowered by a slip."""
    from steersman.views.time_format import FIGURE_LABELS, format_figure

    rows = context.runs.ports.journal.budget(context.runs.head(run).root)
    bounded_names = {row.name for row in rows if row.limit is not None}
    for name in limits.keys() - bounded_names:
        raise UserError(f"this run has no limit on {FIGURE_LABELS.get(name, name)}: raise one that it has")
    for row in rows:
        new_limit = limits.get(row.name)
        if new_limit is not None and row.limit is not None and new_limit <= row.limit:
            limit_text = f"{FIGURE_LABELS.get(row.name, row.name)}: {format_figure(row.name, row.limit)}"
            raise UserError(f"the limit is there already ({limit_text}): give a higher one")


def _parse_raised_limits(limit_options: dict[str, Any]) -> dict[str, int]:
    limits: dict[str, int] = {
        limit_name: limit_options[limit_name]
        for limit_name in ("tokens", "turns")
        if limit_options.get(limit_name) is not None
    }
    if limit_options.get("usd") is not None:
        limits["micro_usd"] = _parse_limit_amount(limit_options["usd"], "--usd", 1_000_000)
    if limit_options.get("hours") is not None:
        limits["ms"] = _parse_limit_amount(limit_options["hours"], "--hours", 3_600_000)
    return limits


def _parse_limit_amount(words: str, option: str, units: int) -> int:
    from decimal import ROUND_CEILING, Decimal, InvalidOperation

    try:
        exact_amount = Decimal(words) * units
        if not exact_amount.is_finite() or exact_amount <= 0 or exact_amount >= 2**53:
            raise InvalidOperation  # noqa: TRY301  told like any other number that is none
    except InvalidOperation:
        raise UserError(
            f"{option} {words!r} is not an amount above 0: write {option} 8 or {option} 0.5"
        ) from None
    return int(exact_amount.to_integral_value(ROUND_CEILING))


def _require_rework_text(text: str) -> str:
    if not has_visible_text(text):
        raise UserError('rework needs words: steersman rework RUN "what to change"')
    return text

"""`approve`, `accept-evidence`, `rework`, `reject`, `answer`: a person answers a gate, and the first answer counts."""

from typing import Any

import click

from steersman.app.gates import APPROVE_CHOICE, AnswerRequest, check_answer, post_answer
from steersman.app.principal import PostedMessage
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext, define_command
from steersman.faces.cli.person_events import post_and_drive
from steersman.judges.text import has_visible_text

_gate_argument = click.argument("gate", metavar="RUN_OR_GATE")
_gate_reason_option = click.option("--reason", default="", help="The reason. It is recorded on the tape.")
_gate_digest_option = click.option(
    "--digest",
    default=None,
    help="Answer only if the gate still has this digest: the one that you looked at.",
)


@define_command(
    "approve", "steersman approve 261116-abc", 'steersman approve 261116-abc --reason "looks right"'
)
@_gate_argument
@_gate_reason_option
@_gate_digest_option
def approve_command(context: CommandContext, *, gate: str, reason: str, digest: str | None) -> int:
    """Answer a gate with yes. The run then goes on until it waits again or ends."""
    return answer_open_gate(context, gate, AnswerRequest(choice="approve", digest=digest, reason=reason))


@define_command(
    "accept-evidence",
    "steersman gates 261116-abc   # look first: it says why, and the digest",
    "steersman accept-evidence 261116-abc 1a2b3c4d",
)
@_gate_argument
@click.argument("digest", metavar="DIGEST-PREFIX", default="")
@_gate_reason_option
def accept_evidence_command(context: CommandContext, *, gate: str, digest: str, reason: str) -> int:
    """Accept the results that an evidence gate questions. DIGEST-PREFIX is at least the first 8 characters of the gate's digest; `steersman gates` prints it."""
    request = AnswerRequest(choice=APPROVE_CHOICE, reason=reason, digest_prefix=digest)
    return answer_open_gate(context, gate, request)


@define_command("rework", 'steersman rework 261116-abc "keep the old function as an alias"')
@_gate_argument
@click.argument("text")
@_gate_reason_option
@_gate_digest_option
def rework_command(context: CommandContext, *, gate: str, text: str, reason: str, digest: str | None) -> int:
    """Answer a gate with: do it again, and change TEXT."""
    request = AnswerRequest(choice="rework", digest=digest, reason=reason, text=_require_rework_text(text))
    return answer_open_gate(context, gate, request)


@define_command(
    "reject",
    "steersman reject 261116-abc",
    'steersman reject 261116-abc --reason "we do not want this"',
    exits="0 the run has ended as asked · 2 wrong usage · 3 waiting for someone · 4 refused · 5 store trouble",
)
@_gate_argument
@_gate_reason_option
@_gate_digest_option
def reject_command(context: CommandContext, *, gate: str, reason: str, digest: str | None) -> int:
    """Answer a gate with no. The run ends without approval."""
    return answer_open_gate(context, gate, AnswerRequest(choice="reject", digest=digest, reason=reason))


@define_command(
    "answer",
    "steersman answer 261116-abc raise --tokens 2000000",
    "steersman answer 261116-abc raise --usd 12.50 --hours 8",
    "steersman answer 261116-abc stop",
)
@_gate_argument
@click.argument("choice")
@click.option("--usd", default=None, metavar="N", help="The new limit in US dollars.")
@click.option("--tokens", type=click.IntRange(1), default=None, help="The new limit of tokens.")
@click.option("--turns", type=click.IntRange(1), default=None, help="The new limit of agent calls.")
@click.option("--hours", default=None, metavar="N", help="The new limit in hours of work.")
@_gate_reason_option
@_gate_digest_option
def answer_command(
    context: CommandContext, *, gate: str, choice: str, reason: str, digest: str | None, **limits: Any
) -> int:
    """Answer a gate with one of its own choices; `steersman gates` lists them. A budget gate takes `raise` with at least one new limit, or `stop`."""
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
    request = AnswerRequest(choice=choice, digest=digest, reason=reason, limits=_parse_raised_limits(limits))
    return answer_open_gate(context, gate, request)


def answer_open_gate(context: CommandContext, name: str, request: AnswerRequest) -> int:
    """Answers a gate, prints what is accepted by it, and drives the run."""

    def post() -> PostedMessage:
        answer = check_answer(context.runs, context.principal, name, request)
        for line in answer.preview:
            context.print(line)
        posted = post_answer(context.runs, context.principal, answer)
        reason = f" · {answer.evidence_reason}" if answer.evidence_reason else ""
        context.print(f"{context.person}: {answer.word} · gate {answer.gate.id}{reason}")
        return posted

    return post_and_drive(context, post)


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

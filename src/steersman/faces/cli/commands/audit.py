"""`steersman audit …`: questions to a tape. Only `prune` changes anything, and only what is over."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from steersman.errors import UserError
from steersman.faces.cli.context import (
    EXIT_DONE,
    EXIT_STORE,
    CommandContext,
    OutputWriteError,
    define_command,
)
from steersman.faces.cli.main import LazyGroup
from steersman.judges.text import printable_json, printable_line

if TYPE_CHECKING:
    from steersman.app.audit import AuditVerdict, StoreAudit

AUDIT_MODULE = "audit"
AUDIT_COMMANDS = {
    "tape": (f"{AUDIT_MODULE}:audit_tape_command", "Print the entries of a run, one per line."),
    "verify": (
        f"{AUDIT_MODULE}:audit_verify_command",
        "Check tape, state, texts and anchors against each other.",
    ),
    "replay": (f"{AUDIT_MODULE}:audit_replay_command", "Decide every recorded step again."),
    "anchor": (
        f"{AUDIT_MODULE}:audit_anchor_command",
        "Sign the present state of a tape, outside the store.",
    ),
    "prune": (f"{AUDIT_MODULE}:audit_prune_command", "Delete the texts of a finished run; hashes stay."),
    "export": (
        f"{AUDIT_MODULE}:audit_export_command",
        "Export a run as lines that other tools can verify.",
    ),
}
AUDIT_EXIT_CODES = "0 done, and everything agrees · 2 wrong usage · 5 the tape or the store does not agree"
_audited_run_argument = click.argument("run")


@click.group(
    "audit",
    cls=LazyGroup,
    known=AUDIT_COMMANDS,
    no_args_is_help=False,
    epilog=f"Exit codes: {AUDIT_EXIT_CODES}",
)
def audit_group() -> None:
    """Read, verify, replay, anchor, prune and export tapes."""


@define_command(
    "tape",
    "steersman audit tape 261116-abc",
    "steersman audit tape 261116-abc --after 20 --json",
    "steersman audit tape 261116-abc --as runtape   # of a plan",
    exits=AUDIT_EXIT_CODES,
)
@_audited_run_argument
@click.option("--after", type=click.IntRange(0), default=0, help="Print only the entries after this number.")
@click.option("--as", "form", type=click.Choice(["entries", "runtape", "auditlog"]), default="entries", show_default=True,
              help="The form: the entries as they are stored, or for a plan one of the two forms of the planner's specification.")  # fmt: skip
def audit_tape_command(context: CommandContext, *, run: str, after: int, form: str) -> int:
    """Print the entries of RUN, one per line. With --json, each line is a JSON object."""
    if form != "entries":
        return _print_plan_tape(context, run, form)
    from steersman.app.audit import read_tape_entries
    from steersman.kernel.replay import BadEntry

    for link in read_tape_entries(context.read_only_runs, run, after):
        if isinstance(link, BadEntry):
            context.warn(f"the tape cannot be read from entry {link.seq} on: {link.why}", fg="red")
            return EXIT_STORE
        entry, hash_ = link
        context.print_json_line({**msgspec.to_builtins(entry), "hash": hash_})
        context.print(printable_line(_render_tape_line(entry, hash_)))
    return EXIT_DONE


def _print_plan_tape(context: CommandContext, run: str, form: str) -> int:
    from steersman.app.audit import read_tape_form

    document = read_tape_form(context.read_only_runs, run, form)
    context.print(printable_json(msgspec.json.format(msgspec.json.encode(document)).decode()))
    context.set_result(msgspec.to_builtins(document))
    return EXIT_DONE


def _render_tape_line(entry: Any, hash_: str) -> str:
    from steersman.views.time_format import format_timestamp

    transition = (
        f"{entry.source or '·'} → {entry.to}"
        if entry.to and not entry.stay
        else entry.to or entry.source or ""
    )
    passed_guards = [name for name, answer in entry.guards.items() if answer]
    failed_guards = [name for name, answer in entry.guards.items() if not answer]
    parts = [
        f"{entry.seq:4}  {format_timestamp(entry.at)}  {entry.kind:15} {transition:20} {entry.event}",
        f"by {entry.actor}" if entry.actor != "steersman" else "",
        f"yes: {', '.join(passed_guards)}" if passed_guards else "",
        f"no: {', '.join(failed_guards)}" if failed_guards else "",
        f"retry {entry.retry.retry_count} ({entry.retry.retry_reason})" if entry.retry else "",
        f"why: {entry.why}" if entry.why else "",
        "late" if entry.late else "",
        hash_[:12],
    ]
    return "  ".join(part for part in parts if part)


@define_command(
    "verify",
    "steersman audit verify 261116-abc",
    "steersman audit verify   # every run",
    exits=AUDIT_EXIT_CODES,
)
@click.argument("run", required=False)
def audit_verify_command(context: CommandContext, *, run: str | None) -> int:
    """Check that chain, state, seals, snapshot, head, texts, anchors and git refs of RUN agree. Without RUN, check every run and the rest of the store."""
    audit = _open_store_audit(context)
    verdicts = [audit.verify_run(audit.find_run(run))] if run else audit.verify_all()
    context.set_result(verdicts[0] if run else verdicts)
    for verdict in verdicts:
        _print_audit_verdict(context, verdict)
    blind_spots = dict.fromkeys(words for run_verdict in verdicts for words in run_verdict.beyond)
    if blind_spots:
        context.print("no check can detect, in any run:")
    for blind_spot in blind_spots:
        context.print(f"  {blind_spot}")
    return EXIT_DONE if all(run_verdict.ok for run_verdict in verdicts) else EXIT_STORE


def _open_store_audit(context: CommandContext) -> "StoreAudit":
    """The audit of the store, or of what anchors name where it is gone; UserError where nothing has been run."""
    from steersman.app.audit import StoreAudit
    from steersman.faces.cli.missing_runs import missing_runs_hint, open_ports_without_store

    ports = open_ports_without_store(context)
    audit = StoreAudit(ports, has_store=False) if ports is not None else None
    if audit is None or not audit.runs:
        return StoreAudit(context.read_only_runs.ports)
    context.warn(missing_runs_hint(context, audit.runs), fg="red")
    return audit


def _print_audit_verdict(context: CommandContext, verdict: "AuditVerdict") -> None:
    if verdict.ok and not verdict.run:
        context.print("the rest of the store: intact", fg="green")
    elif verdict.ok:
        anchor_text = (
            "confirmed by an anchor" if verdict.anchored else "but no anchor confirms how long it was"
        )
        context.print(f"run {verdict.run}: {verdict.entries} entries, all intact, {anchor_text}", fg="green")
    else:
        place_text = f", first at entry {verdict.first_bad}" if verdict.first_bad is not None else ""
        subject = f"run {verdict.run}" if verdict.run else "the rest of the store"
        context.print(f"{subject}: not intact{place_text}", fg="red", bold=True)
    for problem in verdict.problems:
        context.print(f"  {printable_line(problem)}")
    for missing_text in verdict.gone:
        context.print(
            f"  {'gone from git' if verdict.run else 'not here'}: {printable_line(missing_text)}", fg="yellow"
        )
    for waiting_text in verdict.waiting:
        context.print(f"  waiting to be taken: {printable_line(waiting_text)}")
    for unseen_text in verdict.unseen:
        context.print(f"  cannot be detected here: {unseen_text}")


@define_command("replay", "steersman audit replay 261116-abc", exits=AUDIT_EXIT_CODES)
@_audited_run_argument
def audit_replay_command(context: CommandContext, *, run: str) -> int:
    """Decide every recorded step of RUN again and compare. Steps that another version of the machine decided are reported as such."""
    from steersman.app.audit import replay_tape

    replay_result = replay_tape(context.read_only_runs, run)
    context.set_result(replay_result)
    context.print(
        f"run {replay_result.run}: {replay_result.same} steps decided the same way again, {replay_result.different} differently, {replay_result.other_version} recorded by another version of the machine"
    )
    for decision in replay_result.decisions:
        context.print(f"  entry {decision.seq}: {decision.verdict} {decision.detail}")
    if replay_result.bad is not None:
        context.print(
            f"  the tape cannot be read from entry {replay_result.bad.seq} on: {replay_result.bad.why}",
            fg="red",
        )
    return EXIT_DONE if not replay_result.different and replay_result.bad is None else EXIT_STORE


@define_command(
    "anchor",
    "steersman audit anchor 261116-abc",
    "steersman audit anchor 261116-abc --to git",
    exits=AUDIT_EXIT_CODES,
)
@_audited_run_argument
@click.option(
    "--to",
    "where",
    default="file",
    show_default=True,
    help="Where the signature goes: file (in the state directory), git (a ref), or command ([audit] anchor).",
)
def audit_anchor_command(context: CommandContext, *, run: str, where: str) -> None:
    """Sign the present state of the tape of RUN and keep the signature outside the store."""
    from steersman.app.audit import anchor_tape

    if where == "command":
        context.load_config()
    anchor_record = anchor_tape(context.runs, run, where)
    context.set_result(anchor_record)
    context.print(
        f"run {anchor_record.run}: entry {anchor_record.seq} with hash {anchor_record.hash[:12]}… is anchored ({where})"
    )


@define_command(
    "prune", 'steersman audit prune 261116-abc --reason "a year old" --yes', exits=AUDIT_EXIT_CODES
)
@_audited_run_argument
@click.option("--reason", default="", help="The reason. It is recorded on the tape.")
@click.option("--yes", is_flag=True, help="Delete without a question. The texts cannot be restored.")
def audit_prune_command(context: CommandContext, *, run: str, reason: str, yes: bool) -> int:
    """Delete prompts, replies, output and diffs of RUN and its child runs. Entries, hashes and state stay."""
    from steersman.app.audit import prune_texts
    from steersman.faces.cli.person_events import refuse_agent_caller

    run_id = context.read_only_runs.find(run)
    refusal_code = refuse_agent_caller(context, run_id, "prune")
    if refusal_code is not None:
        return refusal_code
    question = f"Delete all texts of run {run_id} and its child runs? They cannot be restored"
    if not yes and not context.confirm(
        question, f"To delete them: {context.command_prefix} audit prune {run_id} --yes"
    ):
        raise UserError("nothing was deleted")
    pruned = prune_texts(context.runs, context.principal, run_id, reason)
    context.set_result(pruned)
    context.print(f"run {pruned.run}: {pruned.payloads} texts deleted, recorded as entry {pruned.seq}")
    return EXIT_DONE


@define_command(
    "export",
    "steersman audit export 261116-abc --out run.jsonl",
    "steersman audit export 261116-abc --payloads",
    exits=AUDIT_EXIT_CODES,
)
@_audited_run_argument
@click.option(
    "--payloads", is_flag=True, help="Include all texts, and the key that their names are made with."
)
@click.option("--out", metavar="FILE", default=None, help="Write to this file instead of standard output.")
def audit_export_command(context: CommandContext, *, run: str, payloads: bool, out: str | None) -> None:
    """Export RUN as lines of canonical JSON (with or without --json), which other tools can verify."""
    from steersman.app.audit import export_tape

    lines = export_tape(context.read_only_runs, run, payloads=payloads)
    try:
        with click.open_file(out or "-", "wb") as file:
            for line in lines:
                file.write(printable_json(line.decode()).encode() + b"\n")
            file.flush()  # a reader who has enough is met here, not at exit
    except BrokenPipeError:
        raise  # the reader has closed its end: no trouble of the file
    except OSError as error:
        if out is None:
            raise OutputWriteError(error) from None
        raise UserError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    if out:
        context.warn(f"written to {out}")

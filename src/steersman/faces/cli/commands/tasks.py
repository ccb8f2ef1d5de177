"""`steersman tasks …`: a task's life from the command line. **Invariant:** every verb is a person's; none approves for one."""

from typing import TYPE_CHECKING

import click

from steersman.contracts.task.words import TASK_PHASES
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.issue_text import ISSUE_OPTION_HELP
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from steersman.faces.repl.run_actions import RunActions

TASKS_MODULE = "tasks"
TASKS_COMMANDS = {
    "list": (
        f"{TASKS_MODULE}:tasks_list_command",
        "The tasks here: phase, what each waits for, what is legal next.",
    ),
    "new": (f"{TASKS_MODULE}:tasks_new_command", "Begin a task."),
    "begin": (
        f"{TASKS_MODULE}:tasks_begin_command",
        "Have a task begin without those that come first, with a reason.",
    ),
    "next": (f"{TASKS_MODULE}:tasks_next_command", "Go on to the next phase, or past a guard with a reason."),
    "redo": (f"{TASKS_MODULE}:tasks_redo_command", "Do a phase again, or reopen a task that is done."),
    "say": (f"{TASKS_MODULE}:tasks_say_command", "Say something to whoever works next."),
    "answer": (f"{TASKS_MODULE}:tasks_answer_command", "Answer what the plan asks."),
    "restore": (f"{TASKS_MODULE}:tasks_restore_command", "Put recorded documents back."),
    "adopt": (f"{TASKS_MODULE}:tasks_adopt_command", "Take a plan over that was changed by hand."),
    "retry": (f"{TASKS_MODULE}:tasks_retry_command", "Have a task that stands still try again."),
    "accept": (f"{TASKS_MODULE}:tasks_accept_command", "See exactly what is accepted, and accept it."),
    "revert": (f"{TASKS_MODULE}:tasks_revert_command", "Take a task's change back."),
    "show": (f"{TASKS_MODULE}:tasks_show_command", "A task's documents, or one of them."),
    "diff": (f"{TASKS_MODULE}:tasks_diff_command", "A task's change."),
}
TASKS_READ_EXIT_CODES = "0 done · 2 wrong usage · 5 store trouble"
_task_run_argument = click.argument("run")
_task_reason_option = click.option("--reason", default="", help="Why; it stays on tape.")


@click.group("tasks", cls=LazyGroup, known=TASKS_COMMANDS, invoke_without_command=True, no_args_is_help=False)
@click.pass_context
def tasks_group(ctx: click.Context) -> int | None:
    """A task's life: planning, plan_review, codegen, review, test, accept, revert, done. Without a verb: the list."""
    if ctx.invoked_subcommand is not None:
        return None
    result: int | None = ctx.invoke(tasks_list_command, project=None, as_json=False, everything=False)
    return result


@define_command("list", "steersman tasks", "steersman tasks list --json", exits=TASKS_READ_EXIT_CODES)
@click.option("--all", "everything", is_flag=True, help="Not only the last 20.")
def tasks_list_command(context: CommandContext, *, everything: bool) -> None:
    """The tasks of this project, the last one that moved first."""
    from steersman.faces.repl.run_actions import command_line_wording, list_task_status
    from steersman.judges.text import printable_line

    wording = command_line_wording(context)
    task_list = list_task_status(context, everything=everything) if context.has_store() else []
    context.set_result(task_list)
    if not task_list:
        context.print(f'there is no task here yet: start with `{context.command_prefix} tasks new "…"`')
    for task in task_list:
        phase_text = f"{task.phase}:{task.step}" if task.step else task.phase
        override_text = f"  {task.overrides} overridden" if task.overrides else ""
        context.print(
            f"{task.run}  {phase_text}  {task.outcome or task.status}{override_text}  {printable_line(task.title)}",
            bold=True,
        )
        if task.after:
            context.print(f"    after: {', '.join(task.after)}")
        if task.waits:
            context.print(f"    waits: {task.waits}")
        for touched_line in task.files:
            context.print(f"    {touched_line}", fg="red")
        legal_texts = (wording(action).removeprefix(f"{context.command_prefix} ") for action in task.next)
        context.print(f"    legal: {' | '.join(legal_texts) or 'nothing'}")


@define_command(
    "new",
    'steersman tasks new "Fix the rounding bug"',
    'steersman tasks new "Add a flag" --step',
    'steersman tasks new "Use the new rounding" --after 261116-abc',
    'steersman tasks new "Fix the rounding bug" --plan ../plan --key ../their/anchor.pub',
    "steersman tasks new --issue report.md",
)
@click.argument("words", metavar="TASK", required=False, default="")
@click.option("--issue", default="", metavar="FILE", help=ISSUE_OPTION_HELP)
@click.option(
    "--step", is_flag=True, help="Wait for `tasks next` after each phase (default: only where it must)."
)
@click.option("--after", multiple=True, metavar="RUN", help="Begin when this task is accepted and its change is in the branch; may be given several times.")  # fmt: skip
@click.option("--plan", default="", metavar="DIR", help="A frozen plan that bounds it: files and commands outside are refused.")  # fmt: skip
@click.option("--key", default="", metavar="FILE", help="The public key of whoever froze the plan, where it is not this project's.")  # fmt: skip
def tasks_new_command(
    context: CommandContext,
    *,
    words: str,
    issue: str,
    step: bool,
    after: tuple[str, ...],
    plan: str,
    key: str,
) -> int:
    """Begin TASK: the same as `run --as task`, with --step one phase at a time."""
    from steersman.faces.repl.run_actions import start_task

    return start_task(context, words, step=step, plan=plan, key=key, after=after, issue=issue)[1]


@define_command(
    "begin", 'steersman tasks begin 261116-abc --reason "it does not need the other one after all"'
)
@_task_run_argument
@_task_reason_option
def tasks_begin_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Have RUN begin on the branch as it was, though a task that comes first is missing. `tasks next` looks again."""
    return _open_task_actions(context, run).begin(reason)


@define_command(
    "next",
    "steersman tasks next 261116-abc",
    'steersman tasks next 261116-abc --override "I accept the risk of skipping review"',
)
@_task_run_argument
@click.option(
    "--override", default=None, metavar="REASON", help="Go on all the same: waives the guard, never a gate."
)
@click.option(
    "--to",
    type=click.Choice(TASK_PHASES),
    default=None,
    help="Where to, with --override (default: the phase that follows).",
)
def tasks_next_command(context: CommandContext, *, run: str, override: str | None, to: str | None) -> int:
    """Go on: answers the open gate after a phase. Elsewhere it says what RUN waits for and which command fits."""
    from steersman.errors import UserError

    if to is not None and override is None:
        raise UserError("--to goes with --override")
    actions = _open_task_actions(context, run)
    return actions.next() if override is None else actions.override(override, to or "")


@define_command(
    "redo",
    "steersman tasks redo 261116-abc planning",
    'steersman tasks redo 261116-abc codegen "keep the old name"',
)
@_task_run_argument
@click.argument("phase", type=click.Choice(TASK_PHASES[:-2]))
@click.argument("words", required=False, default="")
def tasks_redo_command(context: CommandContext, *, run: str, phase: str, words: str) -> int:
    """Do PHASE of RUN again, with WORDS for whoever works on it. Reopens a task that is done."""
    return _open_task_actions(context, run).redo(phase, words)


@define_command("say", 'steersman tasks say 261116-abc "use the decimal module"')
@_task_run_argument
@click.argument("words")
def tasks_say_command(context: CommandContext, *, run: str, words: str) -> int:
    """Say WORDS to whoever works next; while RUN is planned, it is planned again with them."""
    return _open_task_actions(context, run).say(words)


@define_command(
    "answer",
    "steersman tasks answer 261116-abc",
    'steersman tasks answer 261116-abc "yes, both"',
    'steersman tasks answer 261116-abc \'{"q-1f0c": "yes"}\'',
)
@_task_run_argument
@click.argument("text", required=False, default="")
def tasks_answer_command(context: CommandContext, *, run: str, text: str) -> int:
    """Answer what the plan of RUN asks: one by one, or TEXT for all of it, or a JSON object by question id."""
    return _open_task_actions(context, run).answer(text)


@define_command("restore", "steersman tasks restore 261116-abc")
@_task_run_argument
@_task_reason_option
def tasks_restore_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Put the documents of RUN back as they were recorded, and make again what is made from its tape."""
    return _open_task_actions(context, run).restore(reason)


@define_command("adopt", "steersman tasks adopt 261116-abc")
@_task_run_argument
@_task_reason_option
def tasks_adopt_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Take over the plan of RUN that was changed by hand, if it is one."""
    return _open_task_actions(context, run).choose("adopt", reason=reason)


@define_command("retry", "steersman tasks retry 261116-abc")
@_task_run_argument
@_task_reason_option
def tasks_retry_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Have RUN try again what it could not do."""
    return _open_task_actions(context, run).choose("retry", reason=reason)


@define_command("accept", 'steersman tasks accept 261116-abc --reason "looks right"')
@_task_run_argument
@_task_reason_option
@click.option(
    "--digest", default=None, help="Accept only if this is what is asked about: the digest you looked at."
)
def tasks_accept_command(context: CommandContext, *, run: str, reason: str, digest: str | None) -> int:
    """Show exactly what is accepted (diff, verdicts, evidence, overrides, digests), accept it and deliver it."""
    return _open_task_actions(context, run).accept(reason, digest)


@define_command(
    "revert",
    'steersman tasks revert 261116-abc --reason "breaks the import"',
    exits="0 taken back · 2 wrong usage · 3 it could not be: nothing was changed · 4 refused · 5 store trouble",
)
@_task_run_argument
@_task_reason_option
def tasks_revert_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Take back what RUN has delivered, by a commit of its own; the decision is reopened for it."""
    return _open_task_actions(context, run).revert(reason)


@define_command(
    "show",
    "steersman tasks show 261116-abc",
    "steersman tasks show 261116-abc plan.files.json",
    exits=TASKS_READ_EXIT_CODES,
)
@_task_run_argument
@click.argument("file", required=False, default="")
def tasks_show_command(context: CommandContext, *, run: str, file: str) -> int:
    """The documents of RUN and whether the disk still has them; with FILE, one as it was recorded, or as the tape says."""
    from steersman.faces.repl.document_status import print_document, print_document_list

    run_id = context.read_only_runs.find(run)
    if file:
        print_document(context, run_id, file)
    else:
        print_document_list(context, run_id)
    return EXIT_DONE


@define_command("diff", "steersman tasks diff 261116-abc", exits=TASKS_READ_EXIT_CODES)
@_task_run_argument
def tasks_diff_command(context: CommandContext, *, run: str) -> None:
    """The change of RUN, as git shows it."""
    from steersman.faces.repl.document_status import print_run_diff

    print_run_diff(context, context.read_only_runs.find(run))


def _open_task_actions(context: CommandContext, run: str) -> "RunActions":
    from steersman.faces.repl.run_actions import RunActions

    return RunActions(context, context.runs.find(run))

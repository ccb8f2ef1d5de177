"""`steersman tasks …`: a task's life from the command line. **Invariant:** every verb is a person's; none approves for one."""

from typing import TYPE_CHECKING

import click

from steersman.contracts.machine_names import TASK_PHASES, TASKS_MACHINE
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.issue_text import ISSUE_OPTION_HELP
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from steersman.faces.repl.run_actions import WordPerformer

TASKS_MODULE = "tasks"
TASKS_COMMANDS = {
    "list": (
        f"{TASKS_MODULE}:tasks_list_command",
        "List the tasks: phase, what each waits for, and what is legal next.",
    ),
    "new": (f"{TASKS_MODULE}:tasks_new_command", "Begin a task."),
    "begin": (
        f"{TASKS_MODULE}:tasks_begin_command",
        "Start a task although a task before it is not finished.",
    ),
    "next": (f"{TASKS_MODULE}:tasks_next_command", "Go on to the next phase."),
    "redo": (f"{TASKS_MODULE}:tasks_redo_command", "Do a phase again, or reopen a task that is done."),
    "say": (f"{TASKS_MODULE}:tasks_say_command", "Give the next agent a message."),
    "answer": (f"{TASKS_MODULE}:tasks_answer_command", "Answer the questions of the plan."),
    "restore": (f"{TASKS_MODULE}:tasks_restore_command", "Restore documents as they were recorded."),
    "adopt": (f"{TASKS_MODULE}:tasks_adopt_command", "Use a plan that a person has edited."),
    "retry": (f"{TASKS_MODULE}:tasks_retry_command", "Try again what a task could not do."),
    "accept": (f"{TASKS_MODULE}:tasks_accept_command", "Show what would be accepted, and accept it."),
    "revert": (f"{TASKS_MODULE}:tasks_revert_command", "Undo a task's delivered change."),
    "show": (f"{TASKS_MODULE}:tasks_show_command", "Show a task's documents, or one of them."),
    "diff": (f"{TASKS_MODULE}:tasks_diff_command", "Show a task's change."),
}
TASKS_READ_EXIT_CODES = "0 done · 2 wrong usage · 5 store trouble"
_task_run_argument = click.argument("run")
_task_reason_option = click.option("--reason", default="", help="The reason. It is recorded on the tape.")


@click.group("tasks", cls=LazyGroup, known=TASKS_COMMANDS, invoke_without_command=True, no_args_is_help=False)
@click.pass_context
def tasks_group(ctx: click.Context) -> int | None:
    """Work on a task phase by phase: planning, plan_review, codegen, review, test, accept, revert, done.

    Without a subcommand, the tasks of this project are listed."""
    if ctx.invoked_subcommand is not None:
        return None
    result: int | None = ctx.invoke(tasks_list_command, project=None, as_json=False, everything=False)
    return result


@define_command("list", "steersman tasks", "steersman tasks list --json", exits=TASKS_READ_EXIT_CODES)
@click.option("--all", "everything", is_flag=True, help="List all tasks (default: the last 20).")
def tasks_list_command(context: CommandContext, *, everything: bool) -> None:
    """List the tasks of this project, the last changed first."""
    from steersman.faces.repl.run_actions import list_task_status
    from steersman.judges.text import printable_line

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
        context.print(f"    legal: {' | '.join(action.command for action in task.next) or 'nothing'}")


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
    "--step", is_flag=True, help="Wait for `tasks next` after each phase (default: wait only at gates)."
)
@click.option("--after", multiple=True, metavar="RUN", help="Start when this task is accepted and its change is in the branch. You can repeat the option.")  # fmt: skip
@click.option("--plan", default="", metavar="DIR", help="A frozen plan. Files and commands outside it are refused.")  # fmt: skip
@click.option("--key", default="", metavar="FILE", help="The public key (anchor.pub) of the project that froze the plan, if it is another project.")  # fmt: skip
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
    """Start TASK. It is the same as `steersman run --as task`; with --step the task waits after each phase."""
    from steersman.faces.repl.run_actions import start_task

    return start_task(context, words, step=step, plan=plan, key=key, after=after, issue=issue)[1]


@define_command(
    "begin", 'steersman tasks begin 261116-abc --reason "it does not need the other one after all"'
)
@_task_run_argument
@_task_reason_option
def tasks_begin_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Start RUN on the branch as it is now, although a task that comes first is not in it. To check for that task again instead, use `tasks next`."""
    return _open_task_actions(context, run).perform("begin", reason)


@define_command(
    "next",
    "steersman tasks next 261116-abc",
    'steersman tasks next 261116-abc --override "I accept the risk of skipping review"',
)
@_task_run_argument
@click.option(
    "--override",
    default=None,
    metavar="REASON",
    help="Go on although the guard does not hold, for this reason. An override never replaces the answer to a gate.",
)
@click.option(
    "--to",
    type=click.Choice(TASK_PHASES),
    default=None,
    help="With --override: the phase to go to (default: the next one).",
)
def tasks_next_command(context: CommandContext, *, run: str, override: str | None, to: str | None) -> int:
    """Go on to the next phase of RUN by answering the open gate. If no such gate is open, the command says what RUN waits for."""
    from steersman.errors import UserError

    if to is not None and override is None:
        raise UserError("--to goes with --override")
    actions = _open_task_actions(context, run)
    return actions.perform("next") if override is None else actions.perform("override", override, to=to)


@define_command(
    "redo",
    "steersman tasks redo 261116-abc planning",
    'steersman tasks redo 261116-abc codegen "keep the old name"',
)
@_task_run_argument
@click.argument("phase", type=click.Choice(TASK_PHASES[:-2]))
@click.argument("words", required=False, default="")
def tasks_redo_command(context: CommandContext, *, run: str, phase: str, words: str) -> int:
    """Do PHASE of RUN again. The agent gets WORDS. A task that is done is reopened."""
    return _open_task_actions(context, run).perform("redo", f"{phase} {words}".strip())


@define_command("say", 'steersman tasks say 261116-abc "use the decimal module"')
@_task_run_argument
@click.argument("words")
def tasks_say_command(context: CommandContext, *, run: str, words: str) -> int:
    """Give WORDS to the agent that works next on RUN. During planning, the plan is made again with them."""
    return _open_task_actions(context, run).perform("say", words)


@define_command(
    "answer",
    "steersman tasks answer 261116-abc",
    'steersman tasks answer 261116-abc "yes, both"',
    'steersman tasks answer 261116-abc \'{"q-1f0c": "yes"}\'',
)
@_task_run_argument
@click.argument("text", required=False, default="")
def tasks_answer_command(context: CommandContext, *, run: str, text: str) -> int:
    """Answer the questions of the plan of RUN. TEXT is one answer for all of them, or a JSON object with an answer for each question id. Without TEXT, the command asks one question at a time."""
    return _open_task_actions(context, run).perform("answer", text)


@define_command("restore", "steersman tasks restore 261116-abc")
@_task_run_argument
@_task_reason_option
def tasks_restore_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Restore the documents of RUN as they were recorded, and write the derived files again."""
    return _open_task_actions(context, run).perform("restore", reason)


@define_command("adopt", "steersman tasks adopt 261116-abc")
@_task_run_argument
@_task_reason_option
def tasks_adopt_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Use the plan of RUN as a person has edited it, if it is a valid plan."""
    return _open_task_actions(context, run).perform("adopt", reason)


@define_command("retry", "steersman tasks retry 261116-abc")
@_task_run_argument
@_task_reason_option
def tasks_retry_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Try again what RUN could not do."""
    return _open_task_actions(context, run).perform("retry", reason)


@define_command("accept", 'steersman tasks accept 261116-abc --reason "looks right"')
@_task_run_argument
@_task_reason_option
@click.option(
    "--digest",
    default=None,
    help="Accept only if the gate still has this digest: the one that you looked at.",
)
def tasks_accept_command(context: CommandContext, *, run: str, reason: str, digest: str | None) -> int:
    """Show what would be accepted (diff, verdicts, evidence, overrides, digests), ask, accept it, and deliver it."""
    return _open_task_actions(context, run).perform("accept", reason, digest=digest)


@define_command(
    "revert",
    'steersman tasks revert 261116-abc --reason "breaks the import"',
    exits="0 undone · 2 wrong usage · 3 not possible, nothing was changed · 4 refused · 5 store trouble",
)
@_task_run_argument
@_task_reason_option
def tasks_revert_command(context: CommandContext, *, run: str, reason: str) -> int:
    """Undo what RUN has delivered, with a new commit. The task goes back to its decision."""
    return _open_task_actions(context, run).perform("revert", reason)


@define_command(
    "show",
    "steersman tasks show 261116-abc",
    "steersman tasks show 261116-abc plan.files.json",
    exits=TASKS_READ_EXIT_CODES,
)
@_task_run_argument
@click.argument("file", required=False, default="")
def tasks_show_command(context: CommandContext, *, run: str, file: str) -> int:
    """Show the documents of RUN and whether the files on disk are unchanged. With FILE, print that document as it was recorded."""
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
    """Print the change of RUN as a diff."""
    from steersman.faces.repl.document_status import print_run_diff

    print_run_diff(context, context.read_only_runs.find(run))


def _open_task_actions(context: CommandContext, run: str) -> "WordPerformer":
    from steersman.errors import UserError
    from steersman.faces.repl.run_actions import WordPerformer

    run_id = context.runs.find(run)
    machine = context.runs.head(run_id).machine
    if machine != TASKS_MACHINE:
        raise UserError(
            f"run {run_id} is a {machine}, not a task. See `{context.command_prefix} why {run_id}`"
        )
    return WordPerformer(context, run_id)

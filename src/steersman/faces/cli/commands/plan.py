"""`steersman plan`: an intent becomes a frozen plan. **Invariant:** nothing of a plan is executed by any of these."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from steersman.app.plans import PlanQuestions
    from steersman.ports.documents import ParsedDocument

STDIN_INTENT_HINT = "send an intent, such as: steersman plan - < intent.yaml"
INTENT_SUFFIXES = (".json", ".yaml", ".yml")
PLAN_MODULE = "plan"
PLAN_COMMANDS = {
    "make": (f"{PLAN_MODULE}:plan_make_command", "Plan an intent, or a goal in words."),
    "answer": (f"{PLAN_MODULE}:plan_answer_command", "Answer the questions of a plan that waits."),
    "explain": (f"{PLAN_MODULE}:plan_explain_command", "Show what a plan says, or why there is none."),
    "verify": (
        f"{PLAN_MODULE}:plan_verify_command",
        "Check every byte of a frozen plan against its manifest.",
    ),
    "diff": (
        f"{PLAN_MODULE}:plan_diff_command",
        "Show how two frozen plans differ, and which input is the cause.",
    ),
}
PLAN_EXIT_CODES = "0 the plan is frozen · 1 blocked or aborted · 2 wrong usage · 3 questions wait · 4 refused: the file has no valid intent, policy or answers · 5 store trouble"


class PlanGroup(LazyGroup):
    """A first word that is no command of the group is what to plan."""

    default = "make"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.known:
            return super().resolve_command(ctx, [self.default, *args])
        return super().resolve_command(ctx, args)


@click.group(
    "plan",
    cls=PlanGroup,
    known=PLAN_COMMANDS,
    no_args_is_help=False,
    context_settings={"ignore_unknown_options": True},
    epilog=f"Exit codes: {PLAN_EXIT_CODES}",
)
def plan_group() -> None:
    """Plan an intent or a goal; nothing is executed.

    \b
      steersman plan intent.yaml --policy semi_auto --out plan/
      steersman plan "Fix the rounding of invoices"
      steersman plan verify plan/
    """


@define_command(
    "make",
    "steersman plan intent.yaml",
    "steersman plan intent.yaml --policy full_auto --out plan/",
    'steersman plan "Fix the rounding of invoices"',
    exits=PLAN_EXIT_CODES,
)
@click.argument("what", metavar="INTENT_OR_GOAL")
@click.option("--policy", default="", metavar="NAME_OR_FILE",
              help="The execution policy: interactive, semi_auto, full_auto, or a file (default: the mode of the intent).")  # fmt: skip
@click.option(
    "--out", default="", metavar="DIR", help="The directory for the frozen plan (default: the run's own)."
)
def plan_make_command(context: CommandContext, *, what: str, policy: str, out: str) -> int:
    """Plan INTENT_OR_GOAL, and execute nothing.

    INTENT_OR_GOAL is a file with an intent (- is standard input), or a goal in words. For a goal, the command drafts an intent first."""
    from steersman.app.intents import read_policy
    from steersman.app.plans import order_plan
    from steersman.faces.cli.drive import drive_new_run
    from steersman.faces.cli.intent_drafts import draft_intent_document

    intent = (_read_intent_argument(context, what) or draft_intent_document(context, what)).value
    policy_value = read_policy(context.services.open_documents(), policy, intent).value
    directory = os.path.abspath(os.path.join(context.start_directory, out)) if out else ""
    config = context.load_config().config
    order = order_plan(context.ports, context.principal, config, intent, policy_value, directory)
    context.create_runs()
    return drive_new_run(context, order)


def _read_intent_argument(context: CommandContext, intent_or_goal: str) -> "ParsedDocument | None":
    """The intent in a file, or on standard input where the file is -; None where the words are a goal."""
    if intent_or_goal == "-":
        return context.services.open_documents().parse(
            _read_stdin_document(STDIN_INTENT_HINT), "standard input", "execution_intent"
        )
    if os.path.isfile(intent_or_goal):
        return context.services.open_documents().read(intent_or_goal, "execution_intent")
    looks_like_path = intent_or_goal.endswith(INTENT_SUFFIXES) or (
        os.sep in intent_or_goal and " " not in intent_or_goal
    )
    if looks_like_path:
        raise UserError(
            f'there is no file {intent_or_goal}: `{context.command_prefix} intent new "goal" --out {intent_or_goal}` makes one'
        )
    if not intent_or_goal.strip():
        raise UserError('what shall be planned? give a file with an intent, or a goal: steersman plan "…"')
    return None


def _read_stdin_document(fix: str) -> bytes:
    """A document from standard input; raises where nothing comes, with what would help."""
    from steersman.ports.documents import MAX_DOCUMENT_BYTES

    data = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    if not data.strip():
        raise UserError(f"standard input is empty: {fix}")
    return data


@define_command(
    "answer",
    "steersman plan answer 261116-abc --template > answers.json",
    "steersman plan answer 261116-abc answers.json",
    "steersman plan answer 261116-abc   # asks you, one question at a time",
    "steersman plan answer 261116-abc --defaults",
    exits=PLAN_EXIT_CODES,
)
@click.argument("run")
@click.argument("file", required=False, metavar="[ANSWERS]")
@click.option("--template", is_flag=True, help="Print an answer file to fill in, and answer nothing.")
@click.option("--defaults", is_flag=True, help="Answer every question with its default.")
def plan_answer_command(
    context: CommandContext, *, run: str, file: str | None, template: bool, defaults: bool
) -> int:
    """Answer the questions of RUN from the file ANSWERS (- is standard input). Without ANSWERS, the command asks one question at a time."""
    from steersman.app.plans import build_answer_template, find_plan_questions
    from steersman.faces.cli.person_events import refuse_agent_caller
    from steersman.faces.cli.plan_questions import answer_waiting_questions, ask_plan_questions

    if sum((bool(file), template, defaults)) > 1:
        raise UserError("choose one: a file, --template or --defaults")
    questions = find_plan_questions(context.runs, context.principal, run)
    if template:
        value = build_answer_template(questions.pack)
        context.print(json.dumps(value, indent=2, ensure_ascii=False))
        context.set_result(value)
        return EXIT_DONE
    refusal_code = refuse_agent_caller(context, questions.gate.run, "answer")
    if refusal_code is not None:
        return refusal_code
    if file:
        return _answer_from_file(context, questions, file)
    answers = None if defaults else ask_plan_questions(context, questions.pack)
    return answer_waiting_questions(context, questions, answers)


def _answer_from_file(context: CommandContext, questions: "PlanQuestions", file: str) -> int:
    from steersman.app.plans import AnswersRefusedError
    from steersman.faces.cli.plan_questions import answer_waiting_questions

    documents = context.services.open_documents()
    if file == "-":
        hint = "send answers, such as: steersman plan answer RUN - < answers.json"
        document = documents.parse(_read_stdin_document(hint), "standard input", "answer_pack")
    else:
        document = documents.read(file, "answer_pack")
    try:
        return answer_waiting_questions(context, questions, document.value, document.lines)
    except AnswersRefusedError as refusal:
        _warn_plan_problems(context, refusal.problems, document.file)
        raise AnswersRefusedError(refusal.problems, document.file) from None


@define_command(
    "explain", "steersman plan explain 261116-abc", "steersman plan explain plan/", exits=PLAN_EXIT_CODES
)
@click.argument("what", metavar="RUN_OR_DIR")
def plan_explain_command(context: CommandContext, *, what: str) -> int:
    """Show what the plan of a run or in a directory says: objective, steps, risks, reviews, what was left out, and why."""
    from steersman.app.plans import read_frozen_plan, read_plan_result
    from steersman.faces.cli.drive import run_exit_code

    if os.path.isdir(what):
        result, code = read_frozen_plan(context.ports, what), EXIT_DONE
    else:
        runs = context.read_only_runs
        result = read_plan_result(runs, context.principal, what)
        code = run_exit_code(runs.head(runs.find(what)))
    for line in result.lines:
        context.print(line)
    context.set_result(result.document)
    return code


@define_command(
    "verify",
    "steersman plan verify plan/",
    "steersman plan verify plan/ --key their-anchor.pub   # of another project",
    exits="0 every byte fits · 1 something differs, or the signature is missing or by another key · 2 there is no plan",
)
@click.argument("place", metavar="DIR")
@click.option("--key", default="", metavar="FILE", help="The public key (anchor.pub) of the project that froze the plan, if it is another project.")  # fmt: skip
def plan_verify_command(context: CommandContext, *, place: str, key: str) -> int:
    """Check every byte of the frozen plan in DIR against its manifest, lineage and signature."""
    from steersman.app.plans import check_frozen_plan

    verdict = check_frozen_plan(context.ports, place, key)
    problems, signature = verdict.problems, verdict.signature
    _warn_plan_problems(context, problems, place)
    context.set_result(
        {
            "place": place,
            "whole": not problems,
            "signature": signature,
            "problems": msgspec.to_builtins(problems),
        }
    )
    if problems:
        trust_text = (
            "cannot be trusted"
            if signature.startswith(("by a key", "missing"))
            else "is not the plan that was frozen"
        )
        context.print(f"{place} {trust_text}: signature {signature}, {len(problems)} differences", fg="red")
        return EXIT_ENDED
    context.print(f"{place}: every file is as it was frozen; signature: {signature}", fg="green")
    return EXIT_DONE


@define_command(
    "diff",
    "steersman plan diff plan-a/ plan-b/",
    exits="0 the same plan · 1 they differ · 2 there is no plan",
)
@click.argument("one", metavar="DIR")
@click.argument("other", metavar="DIR")
def plan_diff_command(context: CommandContext, *, one: str, other: str) -> int:
    """Show how two frozen plans differ: first the inputs, then the files, then the plan itself."""
    from steersman.app.plans import compare_frozen_plans

    comparison = compare_frozen_plans(context.ports, one, other)
    for name, lines in (
        ("inputs", comparison.inputs),
        ("files", comparison.files),
        ("plan", comparison.plan),
    ):
        if lines:
            context.print(f"{name}:")
            for line in lines:
                context.print(f"  {line}")
    if comparison.is_same:
        context.print("the same plan, byte for byte")
    context.set_result({"same": comparison.is_same, **msgspec.to_builtins(comparison)})
    return EXIT_DONE if comparison.is_same else EXIT_ENDED


def _warn_plan_problems(context: CommandContext, problems: Any, source_name: str) -> None:
    from steersman.views.planning.problems import document_problem_lines

    for line in document_problem_lines(problems, source_name):
        context.warn(line)

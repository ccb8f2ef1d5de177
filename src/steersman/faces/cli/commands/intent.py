"""`steersman intent …`: draft, check and seal what is to be planned. **Invariant:** nothing is planned by any of these."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from steersman.faces.cli.context import EXIT_DONE, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup
from steersman.judges.text import count_with_noun

if TYPE_CHECKING:
    from steersman.app.intents import IntentDraft, IntentService
    from steersman.ports.documents import DocumentFormat, ParsedDocument

INTENT_MODULE = "intent"
INTENT_COMMANDS = {
    "new": (
        f"{INTENT_MODULE}:intent_new_command",
        "Draft an intent for a goal, from the project's own files.",
    ),
    "check": (
        f"{INTENT_MODULE}:intent_check_command",
        "List every problem of an intent or a policy, with line and field.",
    ),
    "seal": (f"{INTENT_MODULE}:intent_seal_command", "Pin what an intent names and write its checksum."),
}
INTENT_EXIT_CODES = "0 no problem · 2 wrong usage · 4 refused: the file has a problem"
INTENT_MODES = ("interactive", "semi_auto", "full_auto")
SCOPE_AREAS = ("frontend", "backend", "infra", "docs", "tests", "ops", "security", "data")


@click.group(
    "intent",
    cls=LazyGroup,
    known=INTENT_COMMANDS,
    no_args_is_help=False,
    epilog=f"Exit codes: {INTENT_EXIT_CODES}",
)
def intent_group() -> None:
    """Draft, check and seal an intent: the input of a plan."""


# ── new ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@define_command(
    "new",
    'steersman intent new "Fix the rounding of invoices" --out fix.yaml',
    'steersman intent new "Upgrade requests" --mode semi_auto --file pyproject.toml --out upgrade.json',
    'steersman intent new "Explain how prices are made" --workflow wf_documentation --area docs',
    'steersman intent new "Fix the rounding of invoices" --from-agent coder --out fix.yaml',
    exits=INTENT_EXIT_CODES,
)
@click.argument("goal")
@click.option("--out", default="", metavar="FILE", help="Write to this file; a name that ends in .json gets JSON (default: print YAML).")  # fmt: skip
@click.option("--workflow", default="", metavar="ID", help="The workflow (default: chosen by the words of the goal).")  # fmt: skip
@click.option("--mode", type=click.Choice(INTENT_MODES), default="interactive", show_default=True, help="How much the planner may ask a person.")  # fmt: skip
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="A file that may be changed, relative to this directory. You can repeat the option.",
)
@click.option("--area", "areas", multiple=True, type=click.Choice(SCOPE_AREAS), help="An area that may be changed. You can repeat the option.")  # fmt: skip
@click.option("--from-agent", "role", default="", metavar="ROLE", help="Let the agent of this role propose changes to the draft. Then `intent seal` is yours to run.")  # fmt: skip
def intent_new_command(
    context: CommandContext, *, goal: str, out: str, workflow: str, mode: Any, files: tuple[str, ...], areas: tuple[Any, ...], role: str
) -> int:  # fmt: skip
    """Draft an intent for GOAL, and seal it. No model is asked.

    The words of the goal choose the workflow, and the project's own files choose its commands. Read the draft before you plan it."""
    from steersman.faces.cli.intent_drafts import (
        draft_review_lines,
        open_intents,
        path_from_repository_root,
    )
    from steersman.views.planning.problems import document_problem_lines

    context.quiet = True
    typed_files = (file.removeprefix("./") or file for file in files)  # as a shell may complete them
    target_files = tuple(path_from_repository_root(context, file) for file in typed_files)
    intents = open_intents(context)
    draft = intents.draft(goal, mode=mode, workflow=workflow, files=target_files, areas=areas)
    if role:
        draft = _apply_agent_proposal(context, intents, draft, role)
    form: DocumentFormat = "json" if out.endswith(".json") else "yaml"
    documents = context.services.open_documents()
    text = documents.render(draft.value, form)
    if out:
        documents.write(out, text, new=True)
    print_line = context.print if out else context.warn
    for line in draft_review_lines(draft):
        print_line(line)
    problem_lines = document_problem_lines(intents.find_draft_problems(draft.value), "the draft")
    for line in problem_lines:
        print_line(line, fg="red")
    remark_lines = document_problem_lines(intents.find_target_remarks(draft.value), "the draft")
    for line in remark_lines:
        print_line(f"note: {line}")
    context.set_result(
        {
            "file": out or None,
            "intent": draft.value,
            "why": draft.why,
            "left_out": dict(draft.left_out),
            "sealed": not role,
            "problems": problem_lines,
            "remarks": remark_lines,
        }
    )
    if not out:
        context.print(text.rstrip("\n"))
        return EXIT_DONE
    return _print_intent_next_step(context, out, sealed=not role)


def _apply_agent_proposal(
    context: CommandContext, intents: "IntentService", draft: "IntentDraft", role: str
) -> "IntentDraft":
    context.warn(f"asking the agent of {role} …")
    proposal = asyncio.run(intents.propose(draft, role))
    if proposal.hid_secret:
        context.warn("a secret was taken out of what the agent said", fg="yellow")
    return proposal.draft


def _print_intent_next_step(context: CommandContext, out: str, *, sealed: bool) -> int:
    context.print(f"written: {out}" + ("" if sealed else "; it is not sealed: an agent had its hand in it"))
    next_command = (
        f"{context.command_prefix} intent check {out}"
        if sealed
        else f"read it, then {context.command_prefix} intent seal {out}"
    )
    context.print(f"next: {next_command}, then {context.command_prefix} plan {out}")
    return EXIT_DONE


# ── check ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@define_command(
    "check",
    "steersman intent check fix.yaml",
    "steersman intent check fix.yaml --policy team-policy.yaml --json",
    "steersman intent check --policy team-policy.yaml",
    exits=INTENT_EXIT_CODES,
)
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--policy", default="", metavar="NAME_OR_FILE", help="Check FILE under this policy, and the policy itself. Without FILE, check only the policy.")  # fmt: skip
def intent_check_command(context: CommandContext, *, file: str | None, policy: str) -> int:
    """Everything that is wrong with the intent in FILE, at once, with line and field: its form, what it says, its
    checksum, the red lines, what it names in the registry, the policy, and what it cites: the project is scanned, and a
    reference without a target is reported: as a problem if no person would be asked about it, else as a remark."""
    from steersman.app.intents import INTENT_SCHEMA, read_policy
    from steersman.faces.cli.intent_drafts import open_intents

    context.quiet = True
    if not file and not policy:
        raise click.UsageError("a file with an intent is missing, such as: steersman intent check fix.yaml")
    intents, documents = open_intents(context), context.services.open_documents()
    if not file:
        policy_document = read_policy(documents, policy, None)
        problems = intents.check_policy(policy_document)
        return _print_intent_verdict(
            context, policy_document.file, problems, (), {"policy": policy_document.file}
        )
    intent = documents.read(file, INTENT_SCHEMA)
    return _check_intent_document(context, intents, intent, read_policy(documents, policy, intent.value))


def _check_intent_document(
    context: CommandContext, intents: "IntentService", intent: "ParsedDocument", policy: "ParsedDocument"
) -> int:
    from steersman.views.planning.problems import document_problem_lines

    check = intents.check(intent, policy)
    for line in document_problem_lines(check.policy_problems, policy.file):
        context.print(line, fg="red")
    fields = {"policy": policy.file, "policy_problems": check.policy_problems, "report": check.report}
    other_count = len(check.policy_problems)
    return _print_intent_verdict(
        context, intent.file, check.problems, check.remarks, fields, other_count=other_count
    )


def _print_intent_verdict(
    context: CommandContext, file: str, problem_list: "Any", remark_list: "Any", result_fields: dict[str, Any], *, other_count: int = 0
) -> int:  # fmt: skip
    from steersman.views.planning.problems import document_problem_lines

    for line in document_problem_lines(problem_list, file):
        context.print(line, fg="red")
    for line in document_problem_lines(remark_list, file):
        context.print(f"note: {line}")
    count = len(problem_list) + other_count
    code = EXIT_REFUSED if count else EXIT_DONE
    result = "refuse" if count else "accept"
    context.set_result(
        {
            "file": file,
            "result": result,
            "problems": list(problem_list),
            "remarks": list(remark_list),
            **result_fields,
            "exit_code": code,
        }
    )
    context.print(
        f"refuse: {count_with_noun(count, 'problem')}" if count else "accept: nothing is wrong with it",
        fg="red" if count else "green",
    )
    return code


# ── seal ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@define_command(
    "seal",
    "steersman intent seal fix.yaml",
    "steersman intent seal fix.yaml --out sealed.yaml --json",
    exits=INTENT_EXIT_CODES,
)
@click.argument("file")
@click.option("--out", default="", metavar="FILE", help="Write to this file and leave FILE as it is.")
def intent_seal_command(context: CommandContext, *, file: str, out: str) -> int:
    """Pin every workflow, agent and command that the intent in FILE names to the registry as it is now, and write the
    checksum: SHA-256 over the RFC 8785 bytes of the whole document without `audit.checksum`."""
    from steersman.app.intents import INTENT_SCHEMA
    from steersman.faces.cli.intent_drafts import open_intents
    from steersman.views.planning.problems import document_problem_lines

    context.quiet = True
    intents, documents = open_intents(context), context.services.open_documents()
    old_document = documents.read(file, INTENT_SCHEMA)
    sealed = intents.seal(old_document)
    value, problem_list = sealed.value, sealed.problems
    if problem_list:
        context.set_result(
            {"file": file, "result": "refuse", "problems": list(problem_list), "exit_code": EXIT_REFUSED}
        )
        for line in document_problem_lines(problem_list, file):
            context.print(line, fg="red")
        context.print("refuse: only a whole intent can be sealed; nothing was written", fg="red")
        return EXIT_REFUSED
    new_document, layout_kept = documents.replace_seal(old_document, value, INTENT_SCHEMA)
    documents.write(out or file, new_document.text, new=bool(out))
    if not layout_kept:
        context.warn(
            f"{out or file} was rewritten, without the comments and the layout of {file}", fg="yellow"
        )
    for ref in sealed.removed:
        context.warn(f"{ref} was taken out: the registry has nothing of this name", fg="yellow")
    checksum = value["audit"]["checksum"]
    context.set_result({"file": out or file, "result": "sealed", "checksum": checksum, "bytes": sealed.covered_bytes,
               "pins": sealed.pins, "removed": sealed.removed, "registry": sealed.registry})  # fmt: skip
    context.print(f"sealed: {out or file}")
    context.print(f"  {len(sealed.pins)} pins to the registry {sealed.registry[:12]}")
    context.print(f"  checksum {checksum}: SHA-256 over {sealed.covered_bytes} bytes, the document without")
    context.print("  audit.checksum in the form of RFC 8785 (keys sorted, no blanks, UTF-8)")
    return EXIT_DONE

"""`steersman intent …`: draft, check and seal what is to be planned. **Invariant:** nothing is planned by any of these."""

from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup
from steersman.judges.text import count_with_noun

if TYPE_CHECKING:
    from steersman.contracts.planning.decisions import DocumentProblem, PrecheckReport
    from steersman.judges.planning.registry import Registry
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
_INTENT_SCHEMA_NAME, _POLICY_SCHEMA_NAME = "execution_intent", "execution_policy"


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
    context: CommandContext, *, goal: str, out: str, workflow: str, mode: Any, files: tuple[str, ...], areas: tuple[str, ...], role: str
) -> int:  # fmt: skip
    """Draft an intent for GOAL, and seal it. No model is asked.

    The words of the goal choose the workflow, and the project's own files choose its commands. Read the draft before you plan it."""
    from steersman.faces.cli.intent_drafts import (
        draft_intent_for_goal,
        draft_review_lines,
        find_missing_targets,
    )
    from steersman.faces.cli.symlink_warnings import find_symlinked_targets
    from steersman.views.planning.problems import document_problem_lines

    context.quiet = True
    target_files = tuple(file.removeprefix("./") or file for file in files)  # as a shell may complete them
    draft = draft_intent_for_goal(
        context, goal, mode=mode, workflow=workflow, files=target_files, areas=areas
    )
    if role:
        from steersman.faces.cli.intent_drafts import apply_agent_proposal

        draft = apply_agent_proposal(context, draft, role)
    form: DocumentFormat = "json" if out.endswith(".json") else "yaml"
    documents = context.services.open_documents()
    text = documents.render(draft.value, form)
    if out:
        documents.write(out, text, new=True)
    print_line = context.print if out else context.warn
    for line in draft_review_lines(draft):
        print_line(line)
    problem_lines = _find_draft_problems(context, draft.value)
    for line in problem_lines:
        print_line(line, fg="red")
    remark_lines = document_problem_lines(
        (*find_missing_targets(context, draft.value), *find_symlinked_targets(context, draft.value)),
        "the draft",
    )
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


def _find_draft_problems(context: CommandContext, value: Any) -> list[str]:
    """What has to be mended by hand before the draft can be planned."""
    from steersman.faces.cli.intent_drafts import load_sound_registry
    from steersman.judges.planning.schema_errors import find_schema_problems
    from steersman.judges.planning.semantics import find_semantic_problems
    from steersman.views.planning.problems import document_problem_lines

    return document_problem_lines(
        (*find_schema_problems(value), *find_semantic_problems(value, load_sound_registry(context))),
        "the draft",
    )


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
    reference that leads nowhere is told. That is a problem where nobody would be asked about it, and else a remark."""
    from steersman.faces.cli.intent_drafts import load_sound_registry

    context.quiet = True
    if not file and not policy:
        raise click.UsageError("a file with an intent is missing, such as: steersman intent check fix.yaml")
    registry = load_sound_registry(context)
    if not file:
        return _check_policy_alone(context, policy, registry)
    intent_document = context.services.open_documents().read(file, _INTENT_SCHEMA_NAME)
    return _check_intent_document(
        context, intent_document, _read_intent_policy(context, policy, intent_document.value), registry
    )


def _read_intent_policy(context: CommandContext, policy_option: str, value: Any) -> "ParsedDocument":
    from steersman.faces.cli.plan_inputs import read_policy

    return read_policy(context, policy_option, value)


def _check_policy_alone(context: CommandContext, policy_option: str, registry: "Registry") -> int:
    from steersman.judges.planning.policy import find_policy_problems

    policy_document = _read_intent_policy(context, policy_option, None)
    problem_list = find_policy_problems(policy_document.value, registry, policy_document.lines)
    return _print_intent_verdict(
        context, policy_document.file, problem_list, (), {"policy": policy_document.file}
    )


def _check_intent_document(
    context: CommandContext, intent_document: "ParsedDocument", policy: "ParsedDocument", registry: "Registry"
) -> int:
    from steersman.faces.cli.intent_drafts import (
        find_missing_targets,
        find_unmet_citations,
    )
    from steersman.faces.cli.symlink_warnings import find_symlinked_targets
    from steersman.judges.planning.precheck import collect_precheck_problems, precheck_intent
    from steersman.judges.planning.semantics import find_intent_remarks
    from steersman.views.planning.problems import document_problem_lines

    report = precheck_intent(
        intent_document.value,
        policy.value,
        registry,
        intent_document.lines,
        policy.lines,
        _read_config_project(context),
    )
    for line in document_problem_lines(report.policy_problems, policy.file):
        context.print(line, fg="red")
    problem_list = [
        report_problem
        for report_problem in collect_precheck_problems(report)
        if report_problem not in report.policy_problems
    ]
    problem_list += _find_seal_problems(report, context, intent_document)
    result_fields = {"policy": policy.file, "policy_problems": report.policy_problems, "report": report}
    groundless, doubtful = find_unmet_citations(context, intent_document, policy, registry)
    problem_list += groundless
    remark_list = (
        *find_intent_remarks(intent_document.value, registry, intent_document.lines),
        *find_missing_targets(context, intent_document.value, intent_document.lines),
        *find_symlinked_targets(context, intent_document.value, intent_document.lines),
        *doubtful,
    )
    return _print_intent_verdict(
        context,
        intent_document.file,
        problem_list,
        remark_list,
        result_fields,
        other_count=len(report.policy_problems),
    )


def _read_config_project(context: CommandContext) -> str:
    return context.read_config().config.project or ""


def _find_seal_problems(
    report: "PrecheckReport", context: CommandContext, intent_document: "ParsedDocument"
) -> "list[DocumentProblem]":
    """What the report says without being a sentence of its own: the checksum, and what is not as it was pinned."""
    from steersman.judges.planning.places import document_problem
    from steersman.judges.planning.precheck import describe_checksum_problem, find_unusable_references

    problem_list = list(
        find_unusable_references(report, "inactive", "drifted", "unpinned")
    )  # what is missing crosses a red line
    if not report.checksum_matches:
        seal_hint = (
            f"read what changed, then run `{context.command_prefix} intent seal {intent_document.file}`"
        )
        problem_list.append(
            document_problem(
                ("audit", "checksum"), describe_checksum_problem(report), seal_hint, intent_document.lines
            )
        )
    return problem_list


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
    from steersman.faces.cli.intent_drafts import load_sound_registry
    from steersman.judges.planning.intent import intent_checksum_bytes
    from steersman.judges.planning.precheck import find_dangling_pins, seal_intent
    from steersman.judges.planning.schema_errors import find_schema_problems
    from steersman.views.planning.problems import document_problem_lines

    context.quiet = True
    registry, documents = load_sound_registry(context), context.services.open_documents()
    old_document = documents.read(file, _INTENT_SCHEMA_NAME)
    if not isinstance(old_document.value, dict):
        raise UserError(f"{file} holds no intent: `{context.command_prefix} intent new` makes one")
    value = seal_intent(old_document.value, registry)
    problem_list = find_schema_problems(value, old_document.lines)
    if problem_list:
        context.set_result(
            {"file": file, "result": "refuse", "problems": list(problem_list), "exit_code": EXIT_REFUSED}
        )
        for line in document_problem_lines(problem_list, file):
            context.print(line, fg="red")
        context.print("refuse: only a whole intent can be sealed; nothing was written", fg="red")
        return EXIT_REFUSED
    new_document, layout_kept = documents.replace_seal(old_document, value, _INTENT_SCHEMA_NAME)
    documents.write(out or file, new_document.text, new=bool(out))
    context.services.open_registries(context.project).store_registry(registry)
    if not layout_kept:
        context.warn(
            f"{out or file} was written anew: comments and layout of {file} could not be kept", fg="yellow"
        )
    removed = find_dangling_pins(old_document.value, registry)
    for ref in removed:
        context.warn(f"{ref} was taken out: the registry has nothing of this name", fg="yellow")
    covered_bytes, pins = (
        intent_checksum_bytes(value),
        [evidence_ref for evidence_ref in value["evidence_refs"] if evidence_ref.startswith("registry://")],
    )
    context.set_result({"file": out or file, "result": "sealed", "checksum": value["audit"]["checksum"], "bytes": len(covered_bytes),
               "pins": pins, "removed": removed, "registry": registry.digest})  # fmt: skip
    context.print(f"sealed: {out or file}")
    context.print(f"  {len(pins)} pins to the registry {registry.digest[:12]}")
    context.print(
        f"  checksum {value['audit']['checksum']}: SHA-256 over {len(covered_bytes)} bytes, the document without"
    )
    context.print("  audit.checksum in the form of RFC 8785 (keys sorted, no blanks, UTF-8)")
    return EXIT_DONE

"""`steersman check …`: would this command, this verdict, this name be accepted? Nothing is run and nothing is written."""

import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

import click

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steersman.contracts.replies import ReplyContract
    from steersman.faces.cli.jsonl import InputVerdict
    from steersman.judges.commands.tester_commands import CommandRules

CHECK_MODULE = "check"
CHECK_COMMANDS = {
    "command": (f"{CHECK_MODULE}:check_proposal_command", "Say whether a tester may propose this command."),
    "verdict": (f"{CHECK_MODULE}:check_verdict_command", "Say whether a reply is a valid verdict."),
    "artifact": (f"{CHECK_MODULE}:check_artifact_command", "Say whether a file of a run may have this name."),
}
CHECK_EXIT_CODES = "0 accepted, or with --jsonl every line is answered · 2 wrong usage · 4 refused"
_jsonl_option = click.option(
    "--jsonl",
    is_flag=True,
    help='Answer many at once: read lines {"id", "input"} from a file or standard input, and print lines {"id", "result", "reason"}.',
)


@click.group(
    "check",
    cls=LazyGroup,
    known=CHECK_COMMANDS,
    no_args_is_help=False,
    epilog=f"Exit codes: {CHECK_EXIT_CODES}",
)
def check_group() -> None:
    """Ask whether steersman would accept a command, a reply or a file name. Nothing is run or written."""


# ── command ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@define_command(
    "command",
    'steersman check command "pytest -q tests/test_shop.py"',
    "steersman check command -- pytest -k 'cart and not slow'",
    'steersman check command --set tests --set uv "uv run pytest -q"',
    "steersman check command --jsonl < proposals.jsonl",
    exits=CHECK_EXIT_CODES,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--set", "sets", multiple=True, metavar="NAME", help="Use this set of grammars instead of steersman.toml. You can repeat the option."
)  # fmt: skip
@_jsonl_option
def check_proposal_command(
    context: CommandContext, *, words: tuple[str, ...], sets: tuple[str, ...], jsonl: bool
) -> int:
    """Say whether a tester may propose this command here. WORDS is one line in quotes, or the words themselves after `--`.

    The answer is that of a run: it uses the checks and [commands] of steersman.toml, and the sets that the checks use. Without a steersman.toml, the sets `tests` and `read` are on."""
    judge = _build_command_judge(context, sets)
    if jsonl:
        return _judge_jsonl_input(context, words, judge)
    if not words:
        raise click.UsageError('a command is missing, such as: steersman check command "pytest -q"')
    return _print_input_verdict(
        context, judge(words[0] if len(words) == 1 else list(words)), {"input": list(words)}
    )


def _build_command_judge(context: CommandContext, sets: tuple[str, ...]) -> "Callable[[Any], InputVerdict]":
    from steersman.faces.cli.jsonl import InputVerdict
    from steersman.judges.commands.tester_commands import BlockedCommand

    rules = _load_command_rules(context, sets)

    def judge(proposal: Any) -> InputVerdict:
        verdict = rules.approve(proposal)
        if isinstance(verdict, BlockedCommand):
            return InputVerdict(accepted=False, reason=verdict.reason)
        if (
            problem := context.services.command_reach_problem(context.start_directory, verdict.reach)
        ) is not None:
            return InputVerdict(accepted=False, reason=f"not on the allow-list: {problem}")
        return InputVerdict(
            accepted=True, reason=f"fits {verdict.fits} (set {verdict.set}), proves {verdict.proves}"
        )

    return judge


def _load_command_rules(context: CommandContext, sets: tuple[str, ...]) -> "CommandRules":
    """The rules of the project, or plain ones with the sets that were asked for."""
    from msgspec.structs import replace

    from steersman.contracts.grammars import Commands, GrammarSetName

    known_sets: dict[str, GrammarSetName] = {name: name for name in get_args(GrammarSetName)}
    unknown_sets = [name for name in sets if name not in known_sets]
    if unknown_sets:
        raise UserError(f"there is no set {unknown_sets[0]!r}: there are {', '.join(known_sets)}")
    chosen_sets = tuple(known_sets[name] for name in sets)
    loaded = context.read_config()
    if loaded.path is None:
        return context.services.command_rules((), Commands(sets=chosen_sets or ("tests", "read")))
    checks = tuple(check.run for check in loaded.config.checks.values())
    command_settings = loaded.config.commands
    return context.services.command_rules(
        () if sets else checks, replace(command_settings, sets=chosen_sets) if sets else command_settings
    )


# ── verdict ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@define_command(
    "verdict",
    "steersman check verdict reply.txt",
    "steersman check verdict --role reviewer --nonce 5f3a < reply.txt",
    "steersman check verdict --schema answer.schema.json reply.txt",
    "steersman check verdict --jsonl < replies.jsonl",
    exits=CHECK_EXIT_CODES,
)
@click.argument("file", default="-")
@click.option(
    "--role",
    metavar="ROLE",
    default=None,
    help="Use the contract of this role: reviewer, tester, planner, or one of a machine's own, such as task_planner.",
)
@click.option("--nonce", default=None, help="The nonce that the reply must have (default: any, or none).")
@click.option("--schema", default=None, metavar="FILE", help="Use a JSON Schema of your own.")
@_jsonl_option
def check_verdict_command(
    context: CommandContext,
    *,
    file: str,
    role: str | None,
    nonce: str | None,
    schema: str | None,
    jsonl: bool,
) -> int:
    """Say whether the reply in FILE (or on standard input) is a verdict: exactly one JSON object, optionally in one code fence.

    Without --role and --schema, a verdict has decision (approve | changes_requested), summary and must_fix."""
    if role and schema:
        raise click.UsageError("--role and --schema exclude each other")
    if nonce is not None and not role:
        raise click.UsageError("--nonce needs --role")
    contract = None if role is None else _find_reply_contract(context, role)
    judge = _build_verdict_judge(role, contract, nonce, None if schema is None else _read_schema_file(schema))
    if jsonl:
        return _judge_jsonl_input(context, (file,), judge)
    return _print_input_verdict(context, judge(_read_reply_text(file)), {"file": file})


def _find_reply_contract(context: CommandContext, role: str) -> "ReplyContract":
    from steersman.app.reply_contracts import list_reply_contracts
    from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS

    if role in SHARED_REPLY_CONTRACTS:
        return SHARED_REPLY_CONTRACTS[role]
    contracts = list_reply_contracts(context.services.installed_packages())
    if role not in contracts:
        raise click.UsageError(
            f"no reply of a role {role!r} has a contract: give one of {', '.join(contracts)}"
        )
    return contracts[role]


def _build_verdict_judge(
    role: str | None, contract: "ReplyContract | None", nonce: str | None, schema: Any
) -> "Callable[[Any], InputVerdict]":
    from steersman.faces.cli.jsonl import InputVerdict
    from steersman.judges.replies.agent_reply import (
        RefusedReply,
        find_text_schema_problems,
        parse_reply,
        parse_verdict,
    )

    def find_reply_problems(text: str) -> tuple[str, ...]:
        if schema is not None:
            return find_text_schema_problems(text, schema)
        parsed_reply = parse_verdict(text) if contract is None else parse_reply(text, contract, nonce)
        return parsed_reply.problems if isinstance(parsed_reply, RefusedReply) else ()

    def judge(text: Any) -> InputVerdict:
        if not isinstance(text, str):
            return InputVerdict(accepted=False, reason="reply: is not a text")
        problem_texts = find_reply_problems(text)
        return InputVerdict(
            accepted=not problem_texts, reason="; ".join(problem_texts) or f"fits {role or 'the schema'}"
        )

    return judge


def _read_schema_file(path: str) -> Any:
    """A schema from a file of the person's own: read as strictly as what it judges, and tried before it is used."""
    from steersman.judges.replies.strict_json import RefusedReply, find_json_schema_problems, read_json_object

    schema_object = read_json_object(_read_reply_text(path))
    if isinstance(schema_object, RefusedReply):
        raise UserError(f"{path} is no JSON Schema: {'; '.join(schema_object.problems)}")
    try:
        find_json_schema_problems({}, schema_object.value)
    except ValueError as error:
        raise UserError(f"{path} is no JSON Schema: {error}") from None
    return schema_object.value


def _read_reply_text(path: str) -> str:
    from steersman.judges.replies.strict_json import MAX_REPLY_BYTES

    with _open_input_file(path) as stream:
        data = stream.read(MAX_REPLY_BYTES + 1)
    return data.decode("utf-8", "surrogateescape")  # what is not UTF-8 is refused as such by the reader


# ── artifact ────────────────────────────────────────────────────────────────────────────────────────────────────────


@define_command(
    "artifact",
    "steersman check artifact research/notes.md",
    "steersman check artifact --beneath .steersman/runs/261116-abc claims.json",
    "steersman check artifact --jsonl < names.jsonl",
    exits=CHECK_EXIT_CODES,
)
@click.argument("names", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--beneath",
    default=None,
    metavar="DIR",
    help="The directory that the file would be in (default: this one).",
)
@_jsonl_option
def check_artifact_command(
    context: CommandContext, *, names: tuple[str, ...], beneath: str | None, jsonl: bool
) -> int:
    """May an agent's file have this NAME in the folder of its run? Looks at the form, at who owns it, and at the disk:
    links, devices and other spellings of it are in the way. A name that begins with a dash goes after `--`."""
    judge = _build_artifact_judge(context, beneath)
    if jsonl:
        return _judge_jsonl_input(context, names, judge)
    if len(names) != 1:
        raise click.UsageError("one name is needed, such as: steersman check artifact claims.json")
    return _print_input_verdict(context, judge(names[0]), {"input": names[0]})


def _build_artifact_judge(context: CommandContext, beneath: str | None) -> "Callable[[Any], InputVerdict]":
    from steersman.faces.cli.jsonl import InputVerdict
    from steersman.judges.artifact_names import find_artifact_name_problem, find_copy_gate_reason

    def judge(name: Any) -> InputVerdict:
        problem = find_artifact_name_problem(name) or context.services.file_placement_problem(
            beneath or context.start_directory, name
        )
        if problem is not None:
            return InputVerdict(accepted=False, reason=problem)
        gate = find_copy_gate_reason(name)
        return InputVerdict(accepted=True, reason=f"opens a gate: {gate}" if gate else "a plain name")

    return judge


# ── the same for all ────────────────────────────────────────────────────────────────────────────────────────────────


def _judge_jsonl_input(
    context: CommandContext, input_files: tuple[str, ...], judge: "Callable[[Any], InputVerdict]"
) -> int:
    from steersman.faces.cli.jsonl import answer_jsonl_stream

    if len(input_files) > 1:
        raise click.UsageError("--jsonl takes one FILE, or standard input")
    context.quiet = True
    with _open_input_file(input_files[0] if input_files else "-") as stream:
        answer_jsonl_stream(stream, sys.stdout, judge)
    return EXIT_DONE


@contextmanager
def _open_input_file(path: str) -> "Iterator[BinaryIO]":
    if path == "-" and sys.stdin is not None:  # None where the caller has closed it
        yield sys.stdin.buffer
        return
    try:
        with open(os.devnull if path == "-" else path, "rb") as stream:
            yield stream
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _print_input_verdict(
    context: CommandContext, answer: "InputVerdict", result_fields: dict[str, Any]
) -> int:
    context.quiet = True
    result, code = ("accept", EXIT_DONE) if answer.accepted else ("refuse", EXIT_REFUSED)
    context.set_result({**result_fields, "result": result, "reason": answer.reason, "exit_code": code})
    context.print(f"{result}: {answer.reason}", fg=None if answer.accepted else "red")
    return code

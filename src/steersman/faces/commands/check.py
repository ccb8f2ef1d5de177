"""`steersman check …`: would this command, this verdict, this name be accepted? Nothing is run and nothing is written."""

import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

import click

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, REFUSED, Deck, verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steersman.faces.jsonl import Answer
    from steersman.judges.commands import CommandRules

HERE = "check"
KNOWN = {
    "command": (f"{HERE}:command", "May a tester propose this command here?"),
    "verdict": (f"{HERE}:verdict", "Is this reply a verdict, exactly?"),
    "artifact": (f"{HERE}:artifact", "May a file of a run have this name?"),
}
EXITS = "0 accepted, or with --jsonl every line answered · 2 wrong usage · 4 refused"
ROLES = (
    "reviewer",
    "tester",
    "planner",
    "task_planner",
    "plan_comment",
    "plan_reviewer",
    "task_coder",
    "code_reviewer",
)  # whose replies have a contract
_jsonl = click.option(
    "--jsonl",
    is_flag=True,
    help='Judge many: lines {"id", "input"} from FILE or standard input, {"id", "result", "reason"} out.',
)


@click.group("check", cls=Lazy, known=KNOWN, no_args_is_help=False, epilog=f"Exit codes: {EXITS}")
def check() -> None:
    """Would it be accepted? A command, a verdict, a name; nothing is run and nothing is written."""


# ── command ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@verb(
    "command",
    'steersman check command "pytest -q tests/test_shop.py"',
    "steersman check command -- pytest -k 'cart and not slow'",
    'steersman check command --set tests --set uv "uv run pytest -q"',
    "steersman check command --jsonl < proposals.jsonl",
    exits=EXITS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--set", "sets", multiple=True, metavar="NAME", help="Judge by these sets, not by steersman.toml; may be repeated."
)  # fmt: skip
@_jsonl
def command(deck: Deck, *, words: tuple[str, ...], sets: tuple[str, ...], jsonl: bool) -> int:
    """May a tester propose this command here? WORDS is one line in quotes, or the words themselves after `--`.

    With a steersman.toml this is what a run here would say: its checks, its [commands], and the sets that its own checks
    use. Without one, the sets `tests` and `read` are on."""
    judge = _commands(deck, sets)
    if jsonl:
        return _by_line(deck, words, judge)
    if not words:
        raise click.UsageError('a command is missing, such as: steersman check command "pytest -q"')
    return _say(deck, judge(words[0] if len(words) == 1 else list(words)), {"input": list(words)})


def _commands(deck: Deck, sets: tuple[str, ...]) -> "Callable[[Any], Answer]":
    from steersman.faces.jsonl import Answer
    from steersman.judges.commands import Blocked

    rules = _rules(deck, sets)

    def judge(proposal: Any) -> Answer:
        verdict = rules.approve(proposal)
        if isinstance(verdict, Blocked):
            return Answer(accepted=False, reason=verdict.reason)
        if (trouble := deck.helm.out_of_bounds(deck.start, verdict.reach)) is not None:
            return Answer(accepted=False, reason=f"not on the allow-list: {trouble}")
        return Answer(
            accepted=True, reason=f"fits {verdict.fits} (set {verdict.set}), proves {verdict.proves}"
        )

    return judge


def _rules(deck: Deck, sets: tuple[str, ...]) -> "CommandRules":
    """The rules of the project, or plain ones with the sets that were asked for."""
    from msgspec.structs import replace

    from steersman.contracts.grammars import Commands, SetName

    known = get_args(SetName)
    unknown = [name for name in sets if name not in known]
    if unknown:
        raise UserError(f"there is no set {unknown[0]!r}: there are {', '.join(known)}")
    loaded = deck.read_config()
    if loaded.path is None:
        return deck.helm.command_rules((), Commands(sets=sets or ("tests", "read")))  # type: ignore[arg-type]  of SetName
    checks = tuple(check.run for check in loaded.config.checks.values())
    written = loaded.config.commands
    return deck.helm.command_rules(() if sets else checks, replace(written, sets=sets) if sets else written)


# ── verdict ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@verb(
    "verdict",
    "steersman check verdict reply.txt",
    "steersman check verdict --role reviewer --nonce 5f3a < reply.txt",
    "steersman check verdict --schema answer.schema.json reply.txt",
    "steersman check verdict --jsonl < replies.jsonl",
    exits=EXITS,
)
@click.argument("file", default="-")
@click.option("--role", type=click.Choice(ROLES), help="Judge by the contract of this role.")
@click.option("--nonce", default=None, help="What has to come back; without it any nonce will do, or none.")
@click.option("--schema", default=None, metavar="FILE", help="Judge by a JSON Schema of your own.")
@_jsonl
def verdict(
    deck: Deck, *, file: str, role: str | None, nonce: str | None, schema: str | None, jsonl: bool
) -> int:
    """Is the reply in FILE (or on standard input) a verdict: exactly one JSON object, optionally in one fence?

    Without --role and --schema its plainest form is asked for: decision (approve | changes_requested), summary, must_fix."""
    if role and schema:
        raise click.UsageError("--role and --schema exclude each other")
    if nonce is not None and not role:
        raise click.UsageError("--nonce needs --role")
    judge = _verdicts(role, nonce, None if schema is None else _schema(schema))
    if jsonl:
        return _by_line(deck, (file,), judge)
    return _say(deck, judge(_text(file)), {"file": file})


def _verdicts(role: str | None, nonce: str | None, schema: Any) -> "Callable[[Any], Answer]":
    from steersman.faces.jsonl import Answer
    from steersman.judges.reply import Refused, parse_reply, parse_verdict, schema_problems

    def problems(text: str) -> tuple[str, ...]:
        if schema is not None:
            return schema_problems(text, schema)
        found = parse_verdict(text) if role is None else parse_reply(text, role, nonce)
        return found.problems if isinstance(found, Refused) else ()

    def judge(text: Any) -> Answer:
        if not isinstance(text, str):
            return Answer(accepted=False, reason="reply: is not a text")
        found = problems(text)
        return Answer(accepted=not found, reason="; ".join(found) or f"fits {role or 'the schema'}")

    return judge


def _schema(path: str) -> Any:
    """A schema from a file of the person's own: read as strictly as what it judges, and tried before it is used."""
    from steersman.judges.problems import problems_of
    from steersman.judges.strict_json import Refused, read_object

    found = read_object(_text(path))
    if isinstance(found, Refused):
        raise UserError(f"{path} is no JSON Schema: {'; '.join(found.problems)}")
    try:
        problems_of({}, found.value)
    except ValueError as error:
        raise UserError(f"{path} is no JSON Schema: {error}") from None
    return found.value


def _text(path: str) -> str:
    from steersman.judges.strict_json import MAX_BYTES

    with _opened(path) as stream:
        data = stream.read(MAX_BYTES + 1)
    return data.decode("utf-8", "surrogateescape")  # what is not UTF-8 is refused as such by the reader


# ── artifact ────────────────────────────────────────────────────────────────────────────────────────────────────────


@verb(
    "artifact",
    "steersman check artifact research/notes.md",
    "steersman check artifact --beneath .steersman/runs/261116-abc claims.json",
    "steersman check artifact --jsonl < names.jsonl",
    exits=EXITS,
)
@click.argument("names", nargs=-1, type=click.UNPROCESSED)
@click.option("--beneath", default=None, metavar="DIR", help="The folder it would be in (default: this one).")
@_jsonl
def artifact(deck: Deck, *, names: tuple[str, ...], beneath: str | None, jsonl: bool) -> int:
    """May an agent's file have this NAME in the folder of its run? Looks at the form, at who owns it, and at the disk:
    links, devices and other spellings of it are in the way. A name that begins with a dash goes after `--`."""
    judge = _artifacts(deck, beneath)
    if jsonl:
        return _by_line(deck, names, judge)
    if len(names) != 1:
        raise click.UsageError("one name is needed, such as: steersman check artifact claims.json")
    return _say(deck, judge(names[0]), {"input": names[0]})


def _artifacts(deck: Deck, beneath: str | None) -> "Callable[[Any], Answer]":
    from steersman.faces.jsonl import Answer
    from steersman.judges.artifact_names import artifact_problem, opens_a_gate

    def judge(name: Any) -> Answer:
        trouble = artifact_problem(name) or deck.helm.cannot_hold(beneath or deck.start, name)
        if trouble is not None:
            return Answer(accepted=False, reason=trouble)
        gate = opens_a_gate(name)
        return Answer(accepted=True, reason=f"opens a gate: {gate}" if gate else "a plain name")

    return judge


# ── the same for all ────────────────────────────────────────────────────────────────────────────────────────────────


def _by_line(deck: Deck, given: tuple[str, ...], judge: "Callable[[Any], Answer]") -> int:
    from steersman.faces.jsonl import answer_all

    if len(given) > 1:
        raise click.UsageError("--jsonl takes one FILE, or standard input")
    deck.quiet = True
    with _opened(given[0] if given else "-") as stream:
        answer_all(stream, sys.stdout, judge)
    return DONE


@contextmanager
def _opened(path: str) -> "Iterator[BinaryIO]":
    if path == "-" and sys.stdin is not None:  # None where the caller has closed it
        yield sys.stdin.buffer
        return
    try:
        with open(os.devnull if path == "-" else path, "rb") as stream:
            yield stream
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _say(deck: Deck, answer: "Answer", about: dict[str, Any]) -> int:
    deck.quiet = True
    result, code = ("accept", DONE) if answer.accepted else ("refuse", REFUSED)
    deck.tell({**about, "result": result, "reason": answer.reason, "exit_code": code})
    deck.say(f"{result}: {answer.reason}", fg=None if answer.accepted else "red")
    return code

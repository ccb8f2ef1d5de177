"""What a tester may ask to run.

A proposed argv is compared with the project's own checks, then with the grammars that are on here: those of the sets
that the project names, those of a set that one of its own checks matches, and the project's own. Nothing else may run.
**Invariant:** nothing is started, found or read here.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import CommandGrammar, Commands, GrammarSet
from steersman.judges.commands.grammar import CommandReach, GrammarMatch, GrammarTable, match_command_grammars
from steersman.judges.commands.value_kinds import (
    UnsplittableCommand,
    parse_proposed_command,
    render_command_words,
)

DEFAULT_COMMANDS = Commands()  # what a project without the section says
OWN_GRAMMAR_SET = "own"  # the set of a project's own grammars

_ADD_CHECK_HINT = "add it under [checks] in steersman.toml"
_PROJECT_CHECK_REASON = "a check of the project"


class ApprovedCommand(msgspec.Struct, frozen=True):
    """Exactly this argv may run: why, what its exit code can prove, and what it touches in the tree."""

    argv: Argv
    fits: str
    set: str
    proves: str
    reach: CommandReach = CommandReach()


class BlockedCommand(msgspec.Struct, frozen=True):
    """It may not run, and what to do about it."""

    reason: str


class CommandRules(msgspec.Struct, frozen=True):
    """What a project allows: the argv of its checks, its `[commands]`, and the sets that ship."""

    checks: tuple[Argv, ...]
    commands: Commands
    shipped: Mapping[str, GrammarSet]

    def approve(self, proposal: object) -> ApprovedCommand | BlockedCommand:
        """The verdict on a proposed command: a line of text, or a list of words; total."""
        if (
            isinstance(proposal, list | tuple)
            and (check := _find_project_check(proposal, self.checks)) is not None
        ):
            return ApprovedCommand(check, _PROJECT_CHECK_REASON, "checks", "check")
        words = parse_proposed_command(proposal)
        if isinstance(words, UnsplittableCommand):
            return BlockedCommand(words.reason)
        if words in self.checks:
            return ApprovedCommand(words, _PROJECT_CHECK_REASON, "checks", "check")
        return self._judge_words(words)

    def sets_on(self) -> frozenset[str]:
        """The sets that are on: named by the project, its own, and those that a check of it matches but `read`."""
        table, sets = self._table(), self._sets()
        matches = [match_command_grammars(check, tuple(sets), table) for check in self.checks]
        used = {sets[match.name] for match in matches if isinstance(match, GrammarMatch)}
        return frozenset({OWN_GRAMMAR_SET, *self.commands.sets, *used - {"read"}})

    def _judge_words(self, words: Argv) -> ApprovedCommand | BlockedCommand:
        table, sets, sets_in_use = self._table(), self._sets(), self.sets_on()
        result = match_command_grammars(words, [name for name in sets if sets[name] in sets_in_use], table)
        if isinstance(result, GrammarMatch):
            return ApprovedCommand(words, result.name, sets[result.name], result.proves, result.reach)
        disabled_match = match_command_grammars(
            words, [name for name in sets if sets[name] not in sets_in_use], table
        )
        refusal = f"`{render_command_words(words)}` is not on the allow-list"
        if isinstance(disabled_match, GrammarMatch):
            name = sets[disabled_match.name]
            hint = f"it is in the set {name!r}, which is off; add {name!r} to sets under [commands]"
            return BlockedCommand(f"{refusal}: {hint}, or {_ADD_CHECK_HINT}")
        return BlockedCommand(
            f"{refusal}: {disabled_match.reason if disabled_match.at > result.at else result.reason}; {_ADD_CHECK_HINT}"
        )

    def _table(self) -> GrammarTable:
        shipped = {
            name: grammar
            for grammar_set in self.shipped.values()
            for name, grammar in grammar_set.grammars.items()
        }
        grammars: dict[str, CommandGrammar] = shipped | self.commands.grammars
        programs = frozenset(check[0] for check in self.checks if check and "/" in check[0])
        return GrammarTable(grammars=grammars, commands=self.commands, programs=programs)

    def _sets(self) -> dict[str, str]:
        """The set of each grammar, the project's own first; one of its own replaces a shipped one of the same name."""
        shipped = {name: key for key, grammar_set in self.shipped.items() for name in grammar_set.grammars}
        return dict.fromkeys(self.commands.grammars, OWN_GRAMMAR_SET) | {
            name: key for name, key in shipped.items() if name not in self.commands.grammars
        }


def _find_project_check(words: Sequence[object], checks: Sequence[Argv]) -> Argv | None:
    """A check of the project may hold any words: a person wrote them."""
    return next((check for check in checks if len(check) == len(words) and check == tuple(words)), None)


# ── agent shell ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Which lines of an agent's own shell leave the commands that a frozen plan allows.
#
# The sandbox bounds what such a line can do, and its effect on files is in the change. This finds the lines that the
# plan does not have, so that a coder held to a plan hears about them.
# **Invariant:** a line that is not understood is outside, and so is every program that is not named here.


_FILE_PROGRAMS = frozenset((
    "[", "apply_patch", "basename", "cat", "cd", "cmp", "cp", "cut", "diff", "dirname", "du", "echo", "false", "file",
    "find", "grep", "head", "ls", "mkdir", "mv", "nl", "printf", "pwd", "readlink", "realpath", "rg", "rm", "rmdir", "sed",
    "sha256sum", "sort", "stat", "tail", "tee", "test", "touch", "tr", "tree", "true", "uniq", "wc",
))  # fmt: skip
_GIT_READ_COMMANDS = ("blame", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status")
_PROGRAM_STARTING_OPTIONS = (
    "-exec",
    "-ok",
    "--pre",
    "--ext-diff",
    "--open-files-in-pager",
    "-O",
)  # other programs
_SHELL_PROGRAMS = frozenset(("sh", "bash", "zsh", "dash"))
_COMMAND_SEPARATORS = frozenset((";", "&", "|", "&&", "||", "|&", ";;"))
_REDIRECTIONS = frozenset((">", ">>", "<", ">|", "<>", ">&", "<&", "&>", "&>>", "<<<"))
# Whatever a shell would work out first (`…`, $(…), ${…}, brackets) matches nothing.
_SHELL_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*|[0-9]+(?=[<>]))
      | (?P<line>\n)
      | <<(?!<)-?[ \t]*(?P<quote>\\|(?P<mark>['"]))?(?P<end>\w+)(?(mark)(?P=mark))(?=[\s|&;<>]|\Z)
      | (?P<sign>[|&;<>]+)
      | (?P<word>(?:'[^']*'|"(?:\\.|[^"\\`$]|\$(?![({]))*"|\\.|[^\s'"\\`()|&;<>$]|\$(?![({'"]))+)""",
    re.VERBOSE | re.DOTALL,
)
_SHELL_QUOTED = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)


class _ShellOperator(str):
    """A word that the shell understands itself."""

    __slots__ = ()


def find_commands_outside(scripts: Iterable[str], allowed: Collection[Argv] | None) -> tuple[str, ...]:
    """The lines that do anything but these commands; none where an agent is held to no commands."""
    if allowed is None:
        return ()
    return tuple(script for script in scripts if is_outside_allowed_commands(script, allowed))


def is_outside_allowed_commands(script: str, allowed: Collection[Argv]) -> bool:
    """Whether a line for a shell does anything but these commands, word for word, or look at files and handle them."""
    try:
        words = list(_read_shell_words(script))
        match words:
            case [shell, "-c" | "-lc", inner] if shell.rpartition("/")[2] in _SHELL_PROGRAMS:
                words = list(_read_shell_words(inner))
        return not all(_is_allowed_shell_command(argv, allowed) for argv in _split_simple_commands(words))
    except ValueError:
        return True


def _is_allowed_shell_command(argv: Argv, allowed: Collection[Argv]) -> bool:
    if argv in allowed:
        return True
    if any(word.startswith(_PROGRAM_STARTING_OPTIONS) for word in argv[1:]):
        return False
    return argv[0] in _FILE_PROGRAMS or (argv[0] == "git" and len(argv) > 1 and argv[1] in _GIT_READ_COMMANDS)


def _split_simple_commands(words: list[str]) -> Iterator[Argv]:
    """The simple commands of a line."""
    argv: list[str] = []
    rest = iter((*words, _ShellOperator(";")))
    for word in rest:
        if not isinstance(word, _ShellOperator):
            argv.append(word)
        elif word not in _COMMAND_SEPARATORS and (
            word not in _REDIRECTIONS or isinstance(next(rest), _ShellOperator)
        ):
            raise ValueError("a sign where a word has to be")
        elif word in _REDIRECTIONS:
            continue
        elif argv:
            yield tuple(argv)
            argv = []


def _read_shell_words(script: str) -> Iterator[str]:
    """Words and signs, without the texts that are handed to commands (`<<END`)."""
    at, here_documents = 0, []
    while at < len(script):
        token = _SHELL_TOKEN.match(script, at)
        if token is None:
            raise ValueError("the shell would work something out")
        at = token.end()
        match token.lastgroup:
            case "word":
                yield _SHELL_QUOTED.sub(_unquote_shell_word, token["word"])
            case "sign":
                yield _ShellOperator(token["sign"])
            case "end":
                here_documents.append((token["end"], not token["quote"]))
            case "line":
                for end, expands in here_documents:
                    at = _skip_here_document(script, at, end, expands=expands)
                here_documents = []
                yield _ShellOperator(";")
    if here_documents:
        raise ValueError("a text that never begins")


def _unquote_shell_word(quoted: re.Match[str]) -> str:
    single, double, escaped = quoted.groups()
    return single if single is not None else re.sub(r"(?s)\\(.)", r"\1", double or escaped or "")


def _skip_here_document(script: str, at: int, end: str, *, expands: bool) -> int:
    """The place behind a text that ends with this word on a line of its own."""
    text = re.compile(rf"(?:.*\n)*?\t*{re.escape(end)}(?:\n|\Z)").match(script, at)
    if text is None or (expands and re.search(r"\$[({]|`", text[0])):
        raise ValueError("a text that never ends, or that the shell would expand")
    return text.end()

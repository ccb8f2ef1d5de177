"""What a tester may ask to run.

A proposed argv is compared with the project's own checks, then with the grammars that are on here: those of the sets
that the project names, those of a set that one of its own checks matches, and the project's own. Nothing else may run.
**Invariant:** nothing is started, found or read here.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import CommandGrammar, Commands, GrammarSet, OptionValues
from steersman.judges.commands.value_kinds import (
    WILDCARD_PATTERN,
    UnsplittableCommand,
    WordKind,
    find_word_kind,
    parse_proposed_command,
    render_command_words,
)
from steersman.judges.text import clip_text

# ── grammar ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Matches an argv with a command grammar: which options, with what values, and what else, in which place.
#
# A word without a place is refused: there is no prefix rule, no denylist and no guess at an abbreviation.
# **Invariant:** matching changes nothing: the argv that matches is the argv that runs, word for word.


_PYTHON_PROGRAM = re.compile(r"python3(?:\.[0-9]{1,2})?")


class GrammarTable(msgspec.Struct, frozen=True, kw_only=True):
    """Every grammar by its name, with what the project adds to their words."""

    grammars: Mapping[str, CommandGrammar]
    commands: Commands
    programs: frozenset[str] = frozenset()  # that a check of the project names, such as .venv/bin/python


class CommandReach(msgspec.Struct, frozen=True):
    """What an argv touches in the tree that it runs in, to be looked at on the disk."""

    paths: tuple[str, ...] = ()  # they have to stay in it
    there: tuple[str, ...] = ()  # those of them that have to be there
    globs: tuple[str, ...] = ()  # whose matches the program opens
    searched: tuple[str, ...] = ()  # below which it reads every file


class GrammarMatch(msgspec.Struct, frozen=True):
    """By which grammar an argv matches, what that proves, and what it touches."""

    name: str
    proves: str
    reach: CommandReach


class GrammarMismatch(msgspec.Struct, frozen=True):
    """How many words were in their place, and what is wrong after them."""

    at: int
    reason: str


def match_command_grammars(
    argv: Argv, names: Sequence[str], table: GrammarTable
) -> GrammarMatch | GrammarMismatch:
    """The first of these grammars that the whole argv matches, or the mismatch that came furthest."""
    furthest = GrammarMismatch(0, "")
    for name in names:
        result = _match_grammar(argv, name, table)
        if isinstance(result, GrammarMatch):
            return result
        if result.at > furthest.at:
            furthest = result
    return furthest if furthest.at else _explain_unknown_start(argv, names, table)


def _match_grammar(argv: Argv, name: str, table: GrammarTable) -> GrammarMatch | GrammarMismatch:
    grammar = table.grammars[name]
    starts = [s for s in (grammar.start, *grammar.also) if _count_shared_words(argv, s, table) == len(s)]
    if not starts:
        return GrammarMismatch(0, "")
    length = max(map(len, starts))
    reader = _WordReader(grammar, table, argv[:length], argv[length:])
    reason = reader.read()
    if reason:
        return GrammarMismatch(length + reader.at, reason)
    if not grammar.runs:
        return GrammarMatch(name, grammar.proves, reader.reach())
    inner_start = length + reader.at
    inner = match_command_grammars(argv[inner_start:], grammar.runs, table)
    if isinstance(inner, GrammarMismatch):
        return GrammarMismatch(inner_start + inner.at, inner.reason)
    return GrammarMatch(name, inner.proves, inner.reach)


def _count_shared_words(argv: Argv, start: Argv, table: GrammarTable) -> int:
    """How many first words are the same; `python3.12` and a project's own path to it are `python`."""
    count = 0
    for word, wanted in zip(argv, start, strict=False):
        if word != wanted and (count or _grammar_program_name(word, table) != wanted):
            break
        count += 1
    return count


def _grammar_program_name(word: str, table: GrammarTable) -> str:
    name = word.rpartition("/")[2] if word in table.programs else word
    return "python" if _PYTHON_PROGRAM.fullmatch(name) else name


def _explain_unknown_start(argv: Argv, names: Sequence[str], table: GrammarTable) -> GrammarMismatch:
    """A program of no grammar; or one with other first words than it may have, which are then named."""
    starts = [
        words_of_start
        for name in names
        for words_of_start in (table.grammars[name].start, *table.grammars[name].also)
    ]
    count = max((_count_shared_words(argv, start, table) for start in starts), default=0)
    if not count:
        return GrammarMismatch(0, f"`{render_command_words(argv[:1])}` has no grammar")
    words = dict.fromkeys(f"`{s[count]}`" for s in starts if _count_shared_words(argv, s, table) == count)
    actual = f", not `{render_command_words(argv[count : count + 1])}`" if argv[count:] else ""
    return GrammarMismatch(
        count, f"after `{render_command_words(argv[:count])}` has to come {' or '.join(words)}{actual}"
    )


class _GrammarOptions:
    """Options by each of their spellings."""

    def __init__(self, flags: Sequence[str], values: OptionValues, table: GrammarTable) -> None:
        self.names = (*flags, *values)
        self.flags = {spelling: names.split("/")[0] for names in flags for spelling in names.split("/")}
        self.values = {
            spelling: find_word_kind(kind, table.commands)
            for names, kind in values.items()
            for spelling in names.split("/")
        }

    def takes_optional(self, word: str) -> bool:
        """Whether the program would take the word behind this flag for its value."""
        return word in self.flags and f"{word}=" in self.values


class _WordReader:
    """One pass over the words behind a grammar's start."""

    def __init__(self, grammar: CommandGrammar, table: GrammarTable, start: Argv, words: Argv) -> None:
        self._grammar, self._table, self._start, self._words = grammar, table, start, words
        base = table.grammars[grammar.like] if grammar.like else grammar
        flags = (*base.flags, *grammar.flags) if grammar.like else grammar.flags
        self._options = _GrammarOptions(flags, {**base.values, **grammar.values}, table)
        self.at = 0  # the word that is looked at
        self._operands: list[str] = []
        self._flags: set[str] = set()
        self._values: list[tuple[WordKind, str]] = []

    def read(self) -> str:
        """What is wrong, or nothing."""
        words = iter(enumerate(self._words))
        tail = self._grammar.tail_flags
        for number, word in words:
            self.at = number
            if word == "--" and tail is not None:
                self._options, tail = _GrammarOptions(tail, self._grammar.tail_values, self._table), None
                continue
            if self._grammar.runs and not word.startswith("-"):
                return ""
            problem = self._read_option(word, words) if word.startswith("-") else self._read_operand(word)
            if problem:
                return problem
        self.at = len(self._words)
        return self._missing()

    def _read_option(self, word: str, words: Iterator[tuple[int, str]]) -> str:
        values, (name, equals, value) = self._options.values, word.partition("=")
        if word in self._options.flags:
            self._flags.add(self._options.flags[word])
            return ""
        if word in values:
            return self._read_value(word, values[word], next((next_word for _, next_word in words), ""))
        if equals and f"{name}=" in values:
            return self._read_value(name, values[f"{name}="], value)
        if equals and len(name) > 2 and name in values:
            return self._read_value(name, values[name], value)
        if word[:2] in values:
            return self._read_value(word[:2], values[word[:2]], word[2:])
        letters = [f"-{letter}" for letter in word[1:]]
        if self._grammar.joined and letters and all(letter in self._options.flags for letter in letters):
            self._flags.update(self._options.flags[letter] for letter in letters)
            return ""
        accepted = clip_text(" ".join(self._options.names), 120) or "none"
        return f"`{render_command_words((word,))}` is not an option of `{render_command_words(self._start)}` that may be used here; it has: {accepted}"

    def _read_value(self, name: str, kind: WordKind, value: str) -> str:
        self._values.append((kind, value))
        return (
            ""
            if kind.matches(value)
            else f"`{render_command_words((value,))}` is not a value for `{name}`: {kind.meaning}"
        )

    def _read_operand(self, word: str) -> str:
        grammar, place = self._grammar, len(self._operands)
        previous_word = self._words[self.at - 1] if self.at else ""
        if self._options.takes_optional(previous_word):
            return f"`{render_command_words((word,))}` would be taken for the value of `{previous_word}`: write `{previous_word}=VALUE`"
        value = grammar.first[place] if place < len(grammar.first) else grammar.operands
        self._operands.append(word)
        if value is None:
            return f"`{render_command_words((word,))}` has no place after `{render_command_words(self._start)}`: it takes no more operands"
        kind = find_word_kind(value, self._table.commands)
        self._values.append((kind, word))
        if not kind.matches(word):
            return f"`{render_command_words((word,))}` is not {kind.meaning}"
        return f"more than {grammar.most} operands" if place - len(grammar.first) >= grammar.most else ""

    def _missing(self) -> str:
        grammar, operand_count = self._grammar, len(self._operands)
        wanted = (*grammar.first, *[grammar.operands] * grammar.least)[operand_count : operand_count + 1]
        if grammar.runs:
            return f"after `{render_command_words(self._start)}` has to come a command of: {', '.join(grammar.runs)}"
        if wanted and wanted[0] is not None:
            meaning = find_word_kind(wanted[0], self._table.commands).meaning
            return f"after `{render_command_words(self._start)}` has to come {meaning}"
        if grammar.needs and self._flags.isdisjoint(grammar.needs):
            return f"`{render_command_words(self._start)}` needs {' or '.join(grammar.needs)}"
        return ""

    def reach(self) -> CommandReach:
        """What the words that were read touch."""
        paths = [(kind, path) for kind, word in self._values if (path := kind.path_in(word)) is not None]
        roots = tuple(self._operands[len(self._grammar.first) :]) or (".",)
        return CommandReach(
            tuple(path for _, path in paths),
            tuple(path for kind, path in paths if kind.importable),
            tuple(word for kind, word in self._values if kind.path and WILDCARD_PATTERN.search(word)),
            roots if self._grammar.searches else (),
        )


# ── tester commands ────────────────────────────────────────────────────────────────────────────────


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

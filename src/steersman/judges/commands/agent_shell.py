"""Which lines of an agent's own shell leave the commands that a frozen plan allows.

The sandbox bounds what such a line can do, and its effect on files is in the change. This finds the lines that the
plan does not have, so that a coder held to a plan hears about them.
**Invariant:** a line that is not understood is outside, and so is every program that is not named here.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from steersman.contracts.commands import Argv

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

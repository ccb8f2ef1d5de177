"""What an agent that is held to some commands may do in a shell of its own: those commands, looking, and handling files.

What it does to files is seen in its change. This is what is said about the rest; the box is what holds.
**Invariant:** a script that is not understood is outside, and so is every program that is not named here.
"""

from collections.abc import Collection, Iterator

from steersman.contracts.commands import Argv

_LOOKS = (
    *(
        "basename",
        "cat",
        "cmp",
        "cut",
        "diff",
        "dirname",
        "du",
        "file",
        "find",
        "grep",
        "head",
        "ls",
        "nl",
        "pwd",
    ),
    *("readlink", "realpath", "rg", "sha256sum", "sort", "stat", "tail", "tr", "tree", "uniq", "wc"),
)
_HANDLES = ("apply_patch", "cp", "mkdir", "mv", "rm", "rmdir", "sed", "tee", "touch")
_FILES = frozenset((*_LOOKS, *_HANDLES, "[", "cd", "echo", "false", "printf", "test", "true"))
_GIT = frozenset(("blame", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status"))
_STARTS = (
    "-exec",
    "-ok",
    "--pre",
    "--ext-diff",
    "--open-files-in-pager",
    "-O",
)  # others, from within these programs
_SHELLS = frozenset(("sh", "bash", "zsh", "dash"))
_ENDS = frozenset((";", "&", "|", "&&", "||", "|&", ";;"))
_INTO = frozenset((">", ">>", "<", ">|", "<>", ">&", "<&", "&>", "&>>", "<<<"))
_HERE = frozenset(("<<", "<<-"))
_SIGNS = "|&;<>"
_BLANK = " \t\r"


def outside(script: str, allows: Collection[Argv]) -> bool:
    """Whether a line for a shell does anything but these commands, word for word, or look at files and handle them."""
    words = _unwrapped(script)
    commands = None if words is None else _commands(words)
    return commands is None or not all(_inside(argv, allows) for argv in commands)


def _inside(argv: Argv, allows: Collection[Argv]) -> bool:
    if argv in allows:
        return True
    if any(word.startswith(_STARTS) for word in argv[1:]):
        return False
    return argv[0] in _FILES or (argv[0] == "git" and len(argv) > 1 and argv[1] in _GIT)


def _unwrapped(script: str) -> list[str] | None:
    """The words of a script; of the one inside, where all of it is a shell that is handed one."""
    words = _words(script)
    match words:
        case [shell, option, inner] if shell.rpartition("/")[2] in _SHELLS and option in ("-c", "-lc"):
            return _words(inner)
        case _:
            return words


def _commands(words: list[str]) -> list[Argv] | None:
    """The simple commands of a line; None where a sign stands where a word has to be."""
    found: list[Argv] = []
    argv: list[str] = []
    left = iter((*words, _Sign(";")))
    for word in left:
        if not isinstance(word, _Sign):
            argv.append(word)
        elif word in _INTO:
            if isinstance(next(left), _Sign):
                return None
        elif word in _ENDS:
            found += [tuple(argv)] if argv else []
            argv = []
        else:
            return None
    return found


class _Sign(str):
    """A word that the shell understands itself."""

    __slots__ = ()


def _words(script: str) -> list[str] | None:
    """Words and signs; None where the shell would work something out that cannot be seen here."""
    try:
        return list(_Reading(script).words())
    except ValueError:
        return None


class _Reading:
    """One script, from its first letter to its last."""

    def __init__(self, script: str) -> None:
        self._script, self._at = script, 0

    def words(self) -> Iterator[str]:
        texts: list[
            tuple[str, bool]
        ] = []  # that begin after the line: their ends, and whether they are left alone
        while (letter := self._now()) != "":
            if letter in _BLANK:
                self._at += 1
            elif letter == "\n":
                self._at += 1
                for end, plain in texts:
                    self._skip_text(end, plain=plain)
                texts = []
                yield _Sign(";")
            elif letter in _SIGNS:
                sign = self._sign()
                if sign in _HERE:
                    self._skip(_BLANK)
                    plain = self._now() in ("'", '"', "\\")
                    texts.append((self._word(), plain))
                else:
                    yield sign
            elif letter == "#":
                self._skip_to("\n")
            else:
                word = self._word()
                # The number of a stream belongs to the sign after it.
                if not (word.isdigit() and self._now() in "<>" and self._now()):
                    yield word
        if texts:
            raise ValueError("a text that never begins")

    def _now(self) -> str:
        return self._script[self._at : self._at + 1]

    def _take(self) -> str:
        letter = self._now()
        if letter == "":
            raise ValueError("it ends in the middle")
        self._at += 1
        return letter

    def _sign(self) -> _Sign:
        begun = self._at
        while self._now() and self._now() in _SIGNS:
            self._at += 1
        if self._now() == "-" and self._script[begun : self._at] == "<<":
            self._at += 1
        return _Sign(self._script[begun : self._at])

    def _word(self) -> str:
        found = ""
        while (letter := self._now()) not in (*_BLANK, "\n", *_SIGNS, ""):
            self._at += 1
            match letter:
                case "'":
                    found += self._quoted("'")
                case '"':
                    found += self._quoted('"')
                case "\\":
                    found += self._take()
                case "`" | "(" | ")":
                    raise ValueError("it would be worked out")
                case "$" if self._now() in ("(", "{", "'", '"') and self._now():
                    raise ValueError("it would be worked out")
                case _:
                    found += letter
        return found

    def _quoted(self, mark: str) -> str:
        found = ""
        while (letter := self._take()) != mark:
            if mark == '"' and (letter == "`" or (letter == "$" and self._now() in ("(", "{"))):
                raise ValueError("it would be worked out")
            found += self._take() if mark == '"' and letter == "\\" else letter
        return found

    def _skip(self, letters: str) -> None:
        while self._now() and self._now() in letters:
            self._at += 1

    def _skip_to(self, letter: str) -> None:
        while self._now() not in ("", letter):
            self._at += 1

    def _skip_text(self, end: str, *, plain: bool) -> None:
        """A text that is handed to a command is none itself, unless the shell works it out first."""
        while self._now():
            stop = self._script.find("\n", self._at)
            line = self._script[self._at : stop if stop >= 0 else None]
            self._at += len(line) + 1
            if line.lstrip("\t") == end:
                return
            if not plain and ("$(" in line or "`" in line):
                break
        raise ValueError("a text that never ends, or would be worked out")

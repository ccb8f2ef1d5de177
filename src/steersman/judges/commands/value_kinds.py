"""What one word of a command may be: the kinds that grammars name for values and operands.

**Invariant:** no value begins with "-" or "@"; a value that names a file stays in the tree by its words, is not below
`.git` or `.steersman`, and does not look like a file that keeps secrets.
"""

import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import Commands, OptionValueKind
from steersman.judges.redaction.named_secrets import is_secret_file_name
from steersman.judges.text import clip_text, printable_text

WILDCARD_PATTERN = re.compile(r"[*?]+")
_STANDARD_MODULES = sys.stdlib_module_names
_PATH_SEGMENT = r"(?!(?i:\.git|\.steersman|git~1)(?:/|:|\Z))\.?\w[\w.+@,-]*+(?: [\w.+@,-]++)*+"
_TREE_PATH = rf"(?:\./)?{_PATH_SEGMENT}(?:/{_PATH_SEGMENT})*+/?|\.|\./"
_TREE_GLOB = r"(?:\./)?(?!(?:.*/)?(?:\.\.|(?i:\.git|\.steersman))(?:/|\Z))[\w.*?][\w.*?/+@,-]{0,399}"
# A runner executes the file that it is given, so a file has to be called a test.
_TEST_NAME_LOOKAHEAD = r"(?!(?!(?i:.*(?:test|spec|check)))[^:\[]*\.py(?:::|\Z))"
_DOTTED_NAME_START = r"[^\W\d_]\w*+"
_SED_ADDRESS = r"(?:[0-9]+|\$|/[^/\\\n]+/)"
_AWK_FIELD = r"(?:\$(?:[0-9]{1,3}|NF)|NR|NF|\"[^\"\\]{0,20}\")"
_AWK_CONDITION = r"(?:/[^/\\]+/|NR ?[=!]= ?[0-9]+|NR ?[<>]=? ?[0-9]+(?: ?&& ?NR ?[<>]=? ?[0-9]+)?)"


class WordKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of word: all of `pattern`, or one of `words`."""

    meaning: str
    pattern: str = ""
    words: tuple[str, ...] = ()
    path: str = ""  # a pattern whose first group is the path that the word names
    shown: bool = False  # the program prints the file
    importable: bool = False  # Python would look for it elsewhere if it were not in the tree

    def matches(self, word: str) -> bool:
        """Whether this word is of the kind."""
        if self.words:
            return word in self.words
        return re.fullmatch(self.pattern, word) is not None and not (
            (self.importable and _is_standard_module(word)) or self._names_secret(word)
        )

    def path_in(self, word: str) -> str | None:
        """The path that such a word names, up to its first wildcard."""
        match = re.match(self.path, word) if self.path else None
        return match[1] if match else None

    def _names_secret(self, word: str) -> bool:
        path = word if WILDCARD_PATTERN.search(word) else self.path_in(word)
        return bool(self.path and path) and is_secret_file_name(
            WILDCARD_PATTERN.sub("", path or ""), is_directory=not self.shown
        )


def _is_standard_module(word: str) -> bool:
    """Whether Python would find a module of its own under this name; `test` may be a directory of the project."""
    name = word.rstrip("/")
    return (
        "/" not in name
        and not name.endswith(".py")
        and name != "test"
        and name.split(".")[0] in _STANDARD_MODULES
    )


WORD_KINDS: Mapping[OptionValueKind, WordKind] = {
    "path": WordKind(
        meaning="a path inside the tree that looks like no secret", pattern=_TREE_PATH, path=r"(.+)"
    ),
    "source": WordKind(
        meaning="a file inside the tree that looks like no secret",
        pattern=_TREE_PATH,
        path=r"(.+)",
        shown=True,
    ),
    "test": WordKind(
        meaning="a folder or a file of tests inside the tree, or one test of it (`tests/test_a.py::test_b[1]`)",
        pattern=rf"{_TEST_NAME_LOOKAHEAD}(?:{_TREE_PATH})(?:::\w+)*+(?:\[[\w.+ ,=:/-]*+\])?",
        path=r"([^:\[]+)",
    ),
    "files": WordKind(
        meaning="paths inside the tree, also with * and ?, that look like no secrets",
        pattern=_TREE_GLOB,
        path=r"([^*?]+)",
    ),
    "test_files": WordKind(
        meaning="files of tests inside the tree, also with * and ?, with test or spec in a name",
        pattern=rf"(?=(?i:.*(?:test|spec))){_TREE_GLOB}",
        path=r"([^*?]+)",
    ),
    "folder": WordKind(
        meaning="a folder inside the tree whose name is no module of Python's own",
        pattern=rf"\.|(?:\w[\w-]*+|(?=.*/)(?:{_TREE_PATH}))/?",
        path=r"(.+)",
        importable=True,
    ),
    "module": WordKind(
        meaning="the file of a test, or its dotted name, which is none of Python's own; with test in it",
        pattern=rf"(?=(?i:.*test))(?:(?!test(?:\.|\Z)|.*\.py\Z){_DOTTED_NAME_START}(?:\.\w++)*+|(?:{_TREE_PATH})(?<=\.py))",
        path=r"(.+\.py\Z|[^.]+)",
        importable=True,
    ),
    "package": WordKind(
        meaning="a package of the tree that is none of Python's own",
        pattern=rf"{_DOTTED_NAME_START}(?:\.\w++)*+",
        path=r"([^.]+)",
        importable=True,
    ),
    "go_package": WordKind(
        meaning="a package of the tree: `./...`, `./name`, `.`",
        pattern=r"\.|(?:\./)(?:\.\.\.|(?:\w[\w.+@-]*/)*(?:\w[\w.+@-]*|\.\.\.))/?",
        path=r"(.+?)/?(?:\.\.\.)?\Z",
    ),
    "tsconfig": WordKind(
        meaning="a tsconfig of the tree", pattern=r"(?:[\w-]+/){0,5}tsconfig[\w.-]*\.json", path=r"(.+)"
    ),
    "name": WordKind(meaning="a plain name", pattern=r"\w[\w.:-]{0,99}"),
    "names": WordKind(meaning="plain names with commas between", pattern=r"\w[\w.-]*+(?:[,:/]\w[\w.-]*+)*+"),
    "test_name": WordKind(meaning="a test's name, also with * and #", pattern=r"[\w*][\w.#*+,$]{0,199}"),
    "expression": WordKind(
        meaning="names joined by and, or, not and brackets", pattern=r"[\w(][\w .()\[\]:+,-]{0,499}"
    ),
    "text": WordKind(meaning="a text that does not begin with a dash", pattern=r"[^-@+\n].{0,499}"),
    "glob": WordKind(
        meaning="a name with * and ? in it", pattern=r"(?!\.\.?\Z)[\w.*?\[][\w.*?\[\],+ -]{0,199}"
    ),
    "test_glob": WordKind(
        meaning="names of test files, such as test_*.py",
        pattern=r"(?=.{0,199}[Tt]est)(?!-)[\w*?\[\]-]{1,200}(?:\.py)?",
    ),
    "number": WordKind(meaning="a number from 0 to 9999999", pattern=r"[0-9]{1,7}"),
    "jobs": WordKind(meaning="a number from 1 to 16", pattern=r"[1-9]|1[0-6]"),
    "seconds": WordKind(
        meaning="a number from 1 to 3600", pattern=r"[1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600"
    ),
    "duration": WordKind(
        meaning="a time of at most an hour, such as 90s, 10m or 1m30s",
        pattern=r"[1-9][0-9]{0,2}s|[12][0-9]{3}s|3[0-5][0-9]{2}s|3600s|[1-5]?[0-9]m[1-5]?[0-9]s|[1-9]m|[1-5][0-9]m|60m|1h",
    ),
    "revision": WordKind(
        meaning="HEAD, HEAD~N or a commit's name", pattern=r"HEAD(?:~[0-9]{1,4}|\^)?|[0-9a-f]{7,64}"
    ),
    "sed": WordKind(
        meaning="`1,9p`, `$p`, `/word/p`, `/one/,/other/p`, or `s/one/other/g`",
        pattern=rf"{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|\+[0-9]+))?[pd]|s/[^/\\\n]+/[^/\\&\n]*/[gpI0-9]{{0,3}}",
    ),
    "awk": WordKind(
        meaning="`/word/` or `NR==1`, or `{print $1, $2}` with one of these or END in front",
        pattern=rf"(?:{_AWK_CONDITION}|END)? ?\{{ ?print(?: {_AWK_FIELD}(?:,? ?{_AWK_FIELD}){{0,20}})? ?\}}|{_AWK_CONDITION}",
    ),
}


def find_word_kind(value: OptionValueKind | tuple[str, ...], commands: Commands) -> WordKind:
    """The kind that a grammar names; scripts and targets are `test` and the project's own names."""
    match value:
        case tuple():
            return _word_choice_kind(value)
        case "script":
            return _word_choice_kind(("test", *commands.scripts))
        case "target":
            return _word_choice_kind(("test", *commands.targets))
        case "phase":
            return _word_choice_kind(("clean", "test", "verify", *commands.targets))
        case "task":
            tasks = ("clean", "test", "check", *commands.targets)
            pattern = rf"(?::?[\w-]+:)*(?:{'|'.join(map(re.escape, tasks))})"
            return WordKind(meaning=f"a task: {', '.join(tasks)}", pattern=pattern)
        case _:
            return WORD_KINDS[value]


def _word_choice_kind(words: tuple[str, ...]) -> WordKind:
    return WordKind(meaning=f"one of {', '.join(words)}", words=words)


# ── command words ───────────────────────────────────────────────────────────────────────────────────────────────────────

# A command as one text, split into words; and what every word of a proposed command has to be.
#
# Quotes are understood and nothing else of a shell: whatever one would expand, join, redirect or run is refused.
# **Invariant:** what is split here gives, in a shell, the same words; linear in the length of the text; never raises.


MAX_COMMAND_CHARACTERS = 8192
MAX_WORD_CHARACTERS = 2000
MAX_COMMAND_WORDS = 64

NOT_A_COMMAND = "not a command: give one line of text, or a list of words that starts with a program"

# One word: plain characters, or `--name=` and then quotes, or quotes alone. Inside double quotes a shell still
# looks for $, `, \ and !. A ~ or # means something at the beginning of a word, and a ~ behind = or : too.
_PLAIN_CHARACTER = r"(?:[^\s'\"\\$`|&;<>(){}\[\]*?!#~^]|(?<=[^\s=:])[~#])"
_QUOTED_TEXT = r"'[^']*+'|\"[^\"\\$`!]*+\""
_COMMAND_WORD = re.compile(
    rf"(?:{_QUOTED_TEXT}|{_PLAIN_CHARACTER}++(?:(?<==)(?:{_QUOTED_TEXT}))?)(?=[ \t]|\Z)"
)
_PLAIN_CHARACTER_PATTERN = re.compile(_PLAIN_CHARACTER)
_LEADING_ASSIGNMENT = re.compile(r"\w+\+?=")
_SURROUNDING_QUOTES = re.compile(r"'([^']*+)'|\"([^\"]*+)\"")


class UnsplittableCommand(msgspec.Struct, frozen=True):
    """Not a plain line of words, and why."""

    reason: str


def split_command_line(text: str) -> Argv | UnsplittableCommand:
    """The words of a command line; NotSplit where a shell would do more than split and unquote."""
    if len(text) > MAX_COMMAND_CHARACTERS:
        return UnsplittableCommand(f"not a command: longer than {MAX_COMMAND_CHARACTERS} characters")
    if not _is_printable_command(text.replace("\t", " ")):
        return UnsplittableCommand("not a command: has a line break, a control or an invisible character")
    words, at = [], _skip_blanks(text, 0)
    while at < len(text):
        match = _COMMAND_WORD.match(text, at)
        if match is None:
            return UnsplittableCommand(_explain_special_character(text, at))
        words.append(
            _SURROUNDING_QUOTES.sub(
                lambda quoted: quoted[1] if quoted[1] is not None else quoted[2], match[0]
            )
        )
        at = _skip_blanks(text, match.end())
    if words and _LEADING_ASSIGNMENT.match(words[0]):
        return UnsplittableCommand(
            "not a command: an assignment in front of a program; the environment is not the tester's to set"
        )
    return tuple(words)


def parse_proposed_command(proposal: object) -> Argv | UnsplittableCommand:
    """The argv of a proposal that is a line or a list of words; nothing else is one, whatever else it says."""
    match proposal:
        case str():
            words = split_command_line(proposal)
        case list() | tuple() if all(isinstance(word, str) for word in proposal[: MAX_COMMAND_WORDS + 1]):
            words = tuple(proposal[: MAX_COMMAND_WORDS + 1])
        case dict():
            return UnsplittableCommand(
                "not a command: where, how long and with what it runs is not the tester's to say"
            )
        case _:
            return UnsplittableCommand(NOT_A_COMMAND)
    if isinstance(words, UnsplittableCommand):
        return words
    problem = _find_argv_problem(words)
    return words if problem is None else UnsplittableCommand(problem)


def find_command_word_problem(word: str) -> str | None:
    """What is wrong with a word of a proposed command, whatever the program; or None."""
    if not word:
        return "is empty"
    if len(word) > MAX_WORD_CHARACTERS:
        return f"is longer than {MAX_WORD_CHARACTERS} characters"
    if not _is_printable_command(word):
        return "has a control or invisible character"
    if unicodedata.normalize("NFKC", word) != word:
        return "is written with look-alike or composed characters"
    return None


def render_command_words(words: Sequence[str]) -> str:
    """A command for a message: short, on one line, with nothing a terminal would obey."""
    return clip_text(" ".join(printable_text(clip_text(word, 80)) for word in words[:20]), 160)


def _find_argv_problem(words: Argv) -> str | None:
    if not words:
        return NOT_A_COMMAND
    if len(words) > MAX_COMMAND_WORDS:
        return f"not a command: more than {MAX_COMMAND_WORDS} words"
    for number, word in enumerate(words, 1):
        if (problem := find_command_word_problem(word)) is not None:
            return f"not a command: word {number} {problem}"
    return None


def _is_printable_command(text: str) -> bool:
    return text.isprintable() and printable_text(text) == text


def _skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _explain_special_character(text: str, at: int) -> str:
    """Names the first character that stops the line from being plain words."""
    place = at
    while _PLAIN_CHARACTER_PATTERN.match(text, place):
        place += 1
    char = text[place : place + 1]
    if char in ("'", '"'):
        return (
            f"not a command: the quote at character {place + 1} does not enclose a whole word, "
            "or holds something that a shell would expand"
        )
    return f"not a command: {char!r} at character {place + 1} means something to a shell; there is none here"

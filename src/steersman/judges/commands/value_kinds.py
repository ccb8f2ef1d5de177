"""What one word of a command may be: the kinds that grammars name for values and operands.

**Invariant:** no value begins with "-" or "@"; a value that names a file stays in the tree by its words, is not below
`.git` or `.steersman`, and does not look like a file that keeps secrets.
"""

import re
import sys
from collections.abc import Mapping

import msgspec

from steersman.contracts.grammars import Commands, OptionValueKind
from steersman.judges.redaction.secret_names import is_secret_file_name

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

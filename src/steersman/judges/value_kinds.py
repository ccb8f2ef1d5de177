"""What one word of a command may be: the kinds that grammars name for values and operands.

**Invariant:** no value begins with "-" or "@"; a value that names a file stays in the tree by its words, is not below
`.git` or `.steersman`, and does not look like a file that keeps secrets.
"""

import re
import sys
from collections.abc import Mapping

import msgspec

from steersman.contracts.grammars import Commands, ValueKind
from steersman.judges.secret_names import keeps_secrets

WILDCARDS = re.compile(r"[*?]+")
_STANDARD_MODULES = sys.stdlib_module_names
_SEGMENT = r"(?!(?i:\.git|\.steersman|git~1)(?:/|:|\Z))\.?\w[\w.+@,-]*+(?: [\w.+@,-]++)*+"
_PATH = rf"(?:\./)?{_SEGMENT}(?:/{_SEGMENT})*+/?|\.|\./"
_GLOBS = r"(?:\./)?(?!(?:.*/)?(?:\.\.|(?i:\.git|\.steersman))(?:/|\Z))[\w.*?][\w.*?/+@,-]{0,399}"
# A runner executes the file that it is given, so a file has to be called a test.
_TESTS = r"(?!(?!(?i:.*(?:test|spec|check)))[^:\[]*\.py(?:::|\Z))"
_PART = r"[^\W\d_]\w*+"
_LINE = r"(?:[0-9]+|\$|/[^/\\\n]+/)"
_FIELD = r"(?:\$(?:[0-9]{1,3}|NF)|NR|NF|\"[^\"\\]{0,20}\")"
_WHERE = r"(?:/[^/\\]+/|NR ?[=!]= ?[0-9]+|NR ?[<>]=? ?[0-9]+(?: ?&& ?NR ?[<>]=? ?[0-9]+)?)"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
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
            (self.importable and _is_standard(word)) or self._names_secret(word)
        )

    def path_in(self, word: str) -> str | None:
        """The path that such a word names, up to its first wildcard."""
        match = re.match(self.path, word) if self.path else None
        return match[1] if match else None

    def _names_secret(self, word: str) -> bool:
        path = word if WILDCARDS.search(word) else self.path_in(word)
        return bool(self.path and path) and keeps_secrets(
            WILDCARDS.sub("", path or ""), folder=not self.shown
        )


def _is_standard(word: str) -> bool:
    """Whether Python would find a module of its own under this name; `test` may be a directory of the project."""
    name = word.rstrip("/")
    return (
        "/" not in name
        and not name.endswith(".py")
        and name != "test"
        and name.split(".")[0] in _STANDARD_MODULES
    )


KINDS: Mapping[ValueKind, Kind] = {
    "path": Kind(meaning="a path inside the tree that looks like no secret", pattern=_PATH, path=r"(.+)"),
    "source": Kind(
        meaning="a file inside the tree that looks like no secret", pattern=_PATH, path=r"(.+)", shown=True
    ),
    "test": Kind(
        meaning="a folder or a file of tests inside the tree, or one test of it (`tests/test_a.py::test_b[1]`)",
        pattern=rf"{_TESTS}(?:{_PATH})(?:::\w+)*+(?:\[[\w.+ ,=:/-]*+\])?",
        path=r"([^:\[]+)",
    ),
    "files": Kind(
        meaning="paths inside the tree, also with * and ?, that look like no secrets",
        pattern=_GLOBS,
        path=r"([^*?]+)",
    ),
    "test_files": Kind(
        meaning="files of tests inside the tree, also with * and ?, with test or spec in a name",
        pattern=rf"(?=(?i:.*(?:test|spec))){_GLOBS}",
        path=r"([^*?]+)",
    ),
    "folder": Kind(
        meaning="a folder inside the tree whose name is no module of Python's own",
        pattern=rf"\.|(?:\w[\w-]*+|(?=.*/)(?:{_PATH}))/?",
        path=r"(.+)",
        importable=True,
    ),
    "module": Kind(
        meaning="the file of a test, or its dotted name, which is none of Python's own; with test in it",
        pattern=rf"(?=(?i:.*test))(?:(?!test(?:\.|\Z)|.*\.py\Z){_PART}(?:\.\w++)*+|(?:{_PATH})(?<=\.py))",
        path=r"(.+\.py\Z|[^.]+)",
        importable=True,
    ),
    "package": Kind(
        meaning="a package of the tree that is none of Python's own",
        pattern=rf"{_PART}(?:\.\w++)*+",
        path=r"([^.]+)",
        importable=True,
    ),
    "go_package": Kind(
        meaning="a package of the tree: `./...`, `./name`, `.`",
        pattern=r"\.|(?:\./)(?:\.\.\.|(?:\w[\w.+@-]*/)*(?:\w[\w.+@-]*|\.\.\.))/?",
        path=r"(.+?)/?(?:\.\.\.)?\Z",
    ),
    "tsconfig": Kind(
        meaning="a tsconfig of the tree", pattern=r"(?:[\w-]+/){0,5}tsconfig[\w.-]*\.json", path=r"(.+)"
    ),
    "name": Kind(meaning="a plain name", pattern=r"\w[\w.:-]{0,99}"),
    "names": Kind(meaning="plain names with commas between", pattern=r"\w[\w.-]*+(?:[,:/]\w[\w.-]*+)*+"),
    "test_name": Kind(meaning="a test's name, also with * and #", pattern=r"[\w*][\w.#*+,$]{0,199}"),
    "expression": Kind(
        meaning="names joined by and, or, not and brackets", pattern=r"[\w(][\w .()\[\]:+,-]{0,499}"
    ),
    "text": Kind(meaning="a text that does not begin with a dash", pattern=r"[^-@+\n].{0,499}"),
    "glob": Kind(meaning="a name with * and ? in it", pattern=r"(?!\.\.?\Z)[\w.*?\[][\w.*?\[\],+ -]{0,199}"),
    "test_glob": Kind(
        meaning="names of test files, such as test_*.py",
        pattern=r"(?=.{0,199}[Tt]est)(?!-)[\w*?\[\]-]{1,200}(?:\.py)?",
    ),
    "number": Kind(meaning="a number from 0 to 9999999", pattern=r"[0-9]{1,7}"),
    "jobs": Kind(meaning="a number from 1 to 16", pattern=r"[1-9]|1[0-6]"),
    "seconds": Kind(
        meaning="a number from 1 to 3600", pattern=r"[1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600"
    ),
    "duration": Kind(
        meaning="a time of at most an hour, such as 90s, 10m or 1m30s",
        pattern=r"[1-9][0-9]{0,2}s|[12][0-9]{3}s|3[0-5][0-9]{2}s|3600s|[1-5]?[0-9]m[1-5]?[0-9]s|[1-9]m|[1-5][0-9]m|60m|1h",
    ),
    "revision": Kind(
        meaning="HEAD, HEAD~N or a commit's name", pattern=r"HEAD(?:~[0-9]{1,4}|\^)?|[0-9a-f]{7,64}"
    ),
    "sed": Kind(
        meaning="`1,9p`, `$p`, `/word/p`, `/one/,/other/p`, or `s/one/other/g`",
        pattern=rf"{_LINE}(?:,(?:{_LINE}|\+[0-9]+))?[pd]|s/[^/\\\n]+/[^/\\&\n]*/[gpI0-9]{{0,3}}",
    ),
    "awk": Kind(
        meaning="`/word/` or `NR==1`, or `{print $1, $2}` with one of these or END in front",
        pattern=rf"(?:{_WHERE}|END)? ?\{{ ?print(?: {_FIELD}(?:,? ?{_FIELD}){{0,20}})? ?\}}|{_WHERE}",
    ),
}


def find_kind(value: ValueKind | tuple[str, ...], commands: Commands) -> Kind:
    """The kind that a grammar names; scripts and targets are `test` and the project's own names."""
    match value:
        case tuple():
            return _one_of(value)
        case "script":
            return _one_of(("test", *commands.scripts))
        case "target":
            return _one_of(("test", *commands.targets))
        case "phase":
            return _one_of(("clean", "test", "verify", *commands.targets))
        case "task":
            tasks = ("clean", "test", "check", *commands.targets)
            pattern = rf"(?::?[\w-]+:)*(?:{'|'.join(map(re.escape, tasks))})"
            return Kind(meaning=f"a task: {', '.join(tasks)}", pattern=pattern)
        case _:
            return KINDS[value]


def _one_of(words: tuple[str, ...]) -> Kind:
    return Kind(meaning=f"one of {', '.join(words)}", words=words)

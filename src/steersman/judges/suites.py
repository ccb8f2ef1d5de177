"""Which files of a base tree are tests, whatever they are called, and which belong to tests alone.

Three witnesses, none of them the change: what the checks ran on the base tree, what a file's own text holds, and who
imports or names it. A helper that only tests import decides with them, and so do the values that only tests read.
**Invariant:** pure; linear in the texts. What was not read says nothing: this is a net beside the names, and no proof.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import dirname, join, normpath

from steersman.contracts.commands import CommandResult
from steersman.contracts.workspace import Text
from steersman.judges.infrastructure import is_product, is_test_file

EACH = 256 << 10  # bytes of one file that are read
TESTS = 4 << 20  # of all tests, the nearest first
OTHERS = 8 << 20
_ALIKE = 3  # files of one name that are all meant where nobody says which

# fmt: off
_HOLDS = {  # what only a test says, by the ending of the file
    ".py": r"^\s*class\s+\w+\([^)\n]*TestCase[^)\n]*\)|^@(?:behave\.)?(?:given|when|then|step)\s*\(|"
           r"^@pytest\.(?:mark|fixture)\b|^(?:async[ ]+)?def test_\w*\([^\n]*\n(?:(?:[ \t]+[^\n]*)?\n){0,200}?[ \t]+assert\b",
    ".js .mjs .cjs .jsx .ts .mts .cts .tsx .coffee": r"^\s*(?:describe|it|test|suite|Given|When|Then)(?:\.\w+)*\s*\(\s*['\"`/]",
    ".java .kt .groovy .scala": r"^\s*@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|Given|When|Then)\b|"
                                r"\bextends\s+\w*(?:TestCase|Specification|Suite|FunSpec|FlatSpec|WordSpec)\b|:\s*\w+Spec\s*\(",
    ".rb": r"^\s*class\s+\w+\s*<\s*\S*(?:Test|TestCase)\b|^\s*(?:RSpec\.)?describe\b[^\n]*\bdo\b|^\s*(?:Given|When|Then)\s*\(?\s*[/'\"]",
    ".cs .fs .vb": r"^\s*\[<?(?:Fact|Theory|Test|TestMethod|TestCase|Given|When|Then)\b",
    ".php": r"\bextends\s+\\?(?:\w+\\)*\w*TestCase\b",
    ".ex .exs": r"^\s*use\s+ExUnit\.Case\b",
    ".swift .m .mm": r"\bXCTestCase\b|^\s*@Test\b",
    ".c .cc .cpp .cxx .h .hh .hpp": r"^\s*(?:TEST|TEST_F|TEST_P|TEST_CASE|BOOST_AUTO_TEST_CASE|START_TEST|Test)\s*\(",
    ".pl .pm": r"^\s*use\s+Test2?::",
    ".lua": r"^\s*(?:describe|it)\s*\(\s*['\"]",
    ".dart": r"['\"]package:(?:test|flutter_test)/",
    ".hs .lhs": r"^import\s+(?:qualified\s+)?Test\.",
    ".clj": r"\(deftest\b",
}
_DATA = (
    ".json .jsonl .ndjson .json5 .yaml .yml .toml .csv .tsv .txt .text .xml .html .htm .sql .out .expected .golden .approved "
    ".ini .dat .data .bin .pkl .parquet .npy .npz .db .sqlite .png .jpg .jpeg .gif .svg .pdf .wav .log .diff .patch .b64 .hex "
    ".graphql .lst .list .ref .baseline .tap"
)
_HELPS = (
    "helper util support factor fixture fake stub mock expect assert matcher compar harness check verif sample case golden "
    "snapshot baseline approved"
)
# fmt: on
HOLDS = {
    ending: re.compile(pattern, re.MULTILINE)
    for endings, pattern in _HOLDS.items()
    for ending in endings.split()
}
DATA = tuple(_DATA.split())
_HELPING = re.compile("|".join(_HELPS.split()))
_EXPECTED = re.compile("expect|golden|snapshot|fixture|baseline|approved")
_ASSERTS = re.compile(
    r"^\s*assert\b|\bAssertionError\b|\bassert\w*\s*[.(!]|\bexpect\s*\(|\bpytest\b|\bunittest\b", re.MULTILINE
)
_OF_A_TEST = re.compile(r"\btest|\bassert\b|Test|\bpytest\b|\bunittest\b|\bdoctest\b")
_LINTS = re.compile(
    r"(?:ruff|mypy|mypy-status|flake8|black|isort|pylint|pycodestyle|pydocstyle)\b.*", re.IGNORECASE
)
_IMPORT = re.compile(
    r"^[ \t]*(?:from\s+(?P<of>[\w.]+)\s+import\s+(?P<names>\([^)]{1,4000}\)|[^\n#]{1,500})"
    r"|import\s+(?P<plain>[\w., ]{1,500}))",
    re.MULTILINE,
)
_QUOTED = re.compile(r"[\"'`<](?P<word>[^\"'`<>\s\\]{1,300})[\"'`>]")
_ROOTS = frozenset({"src", "lib", "python", "app"})


def ran_in(results: Sequence[CommandResult], paths: Iterable[str]) -> frozenset[str]:
    """The files that held the tests which ran, by the runner's own report."""
    files: set[str] = set()
    for report in (r.report for r in results if r.report is not None):
        names = (*report.passed, *report.failed, *report.skipped)
        if report.form == "pytest":
            files |= {file for name in names if (file := _node(name))}
        elif report.form == "unittest":
            files |= {file for name in names for file in _module_files(name)}
    if not files:
        return frozenset()
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    return frozenset(path for file in files for path in _ending(file, by_name))


def _node(name: str) -> str:
    """The file of a pytest node; nothing for an example in a docstring or a linter's verdict on a file."""
    file, _, rest = name.partition("::")
    module = file.removesuffix(".py").replace("/", ".")
    first = rest.partition("::")[0].partition("[")[0]
    shown = first in (file, file.rpartition("/")[2]) or any(
        first == tail or first.startswith(f"{tail}.") for tail in _tails(module)
    )
    return "" if not rest or (shown and not is_test_file(file)) or _LINTS.fullmatch(first) else file


def _tails(dotted: str) -> list[str]:
    parts = dotted.split(".")
    return [".".join(parts[n:]) for n in range(len(parts))]


def _module_files(name: str) -> list[str]:
    """`pkg.module.Class.method` may stand in as many files as it has dots."""
    parts = name.removeprefix("unittest.loader._FailedTest.").partition(" ")[0].split(".")[:20]
    taken = parts if name.startswith("unittest.loader.") else parts[:-2]
    modules = ["/".join(taken[:n]) for n in range(len(taken), 0, -1)]
    return [file for m in modules for file in (f"{m}.py", f"{m}/__init__.py")]


def _ending(file: str, by_name: Mapping[str, list[str]]) -> list[str]:
    """Exactly this file, or those that end in it, if they are few; the likely ones where several are meant."""
    there = by_name.get(file.rpartition("/")[2], [])
    alike = [p for p in there if f"/{p}".endswith(f"/{file}")]
    likely = [p for p in alike if is_test_file(p)] or ([file] if file in alike else alike)
    return likely if len(likely) <= _ALIKE else []


def holds_tests(path: str, text: str) -> bool:
    """Whether there are tests in it, whatever it is called."""
    pattern = HOLDS.get(_suffix(path))
    return pattern is not None and pattern.search(text) is not None


def holds_none(path: str, text: str) -> bool:
    """Whether a program of Python has no word in it that a test would need."""
    return path.endswith(".py") and bool(text.strip()) and not _OF_A_TEST.search(text)


def nearest(paths: Iterable[str], to: Sequence[str]) -> list[str]:
    """Those in the same folders first, then those below the same tops, then the rest."""
    folders = {dirname(p) for p in to}
    tops = {p.partition("/")[0] for p in to}
    return sorted(paths, key=lambda p: (dirname(p) not in folders, p.partition("/")[0] not in tops, p))


def uses(texts: Mapping[str, Text], asked: Iterable[str], *, folders: bool = False) -> dict[str, str]:
    """Which of the asked files these texts import or name, each with one of them; `folders`: data by its folder too."""
    index = _Index(asked, folders=folders)
    by: dict[str, str] = {}
    for speaker, text in texts.items():
        for path in index.meant(speaker, text.content):
            if path != speaker:
                by.setdefault(path, speaker)
    return by


class _Index:
    """The asked files by what they may be called."""

    def __init__(self, asked: Iterable[str], *, folders: bool) -> None:
        self._modules: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}
        self._packages: dict[str, list[str]] = {}
        for path in asked:
            bare = _bare(path)
            self._modules.setdefault(bare.rpartition("/")[2], []).append(path)
            self._names.setdefault(path.rpartition("/")[2], []).append(path)
            within = dirname(path).rpartition("/")[2]
            if path.endswith(".go"):
                self._packages.setdefault(within, []).append(path)
            elif folders and _is_plain_data(path):
                self._folders.setdefault(within, []).append(path)

    def meant(self, speaker: str, text: str) -> Iterator[str]:
        if speaker.endswith(".py"):
            for statement in _IMPORT.finditer(text):
                yield from (p for module in _imported(statement) for p in self._module(module, speaker))
        for quoted in _QUOTED.finditer(text):
            yield from self._word(quoted["word"].rstrip("/"), speaker)

    def _module(self, dotted: str, speaker: str) -> Iterator[str]:
        bare = dotted.lstrip(".")
        level = len(dotted) - len(bare)
        wanted = bare.replace(".", "/")
        for path in self._modules.get(wanted.rpartition("/")[2], ()):
            root = _root(_bare(path), wanted)
            if path.endswith(".py") and root is not None and _begins(root, dirname(speaker), level):
                yield path

    def _word(self, word: str, speaker: str) -> Iterator[str]:
        name = word.rpartition("/")[2]
        for path in self._names.get(name, ()):
            # Of what lies among tests many a name is that of a product's file too.
            alike = f"/{path}".endswith(f"/{word.lstrip('./@~')}") and not is_test_file(path)
            if "." in name and (alike or path in (_at(speaker, word), normpath(word))):
                yield path
        if word.startswith((".", "@/", "~/")):  # JavaScript leaves the ending out
            meant = _bare(_at(speaker, word)) if word[0] == "." else _bare(word[2:])
            for path in self._modules.get(meant.rpartition("/")[2], ()):
                root = _root(_bare(path), meant)
                if root == "" or (word[0] != "." and root is not None and root.rpartition("/")[2] in _ROOTS):
                    yield path
        if speaker.endswith(".go"):
            yield from (p for p in self._packages.get(name, ()) if f"/{word}".endswith(f"/{dirname(p)}"))
        yield from self._folders.get(name, ())


def _begins(root: str, here: str, level: int) -> bool:
    """Whether an import in this folder, by so many dots, may begin from that root."""
    if level:
        return root == normpath(join(here or ".", *[".."] * (level - 1))).removeprefix(".")
    return not root or f"{here}/".startswith(f"{root}/") or root.rpartition("/")[2] in _ROOTS


def _is_plain_data(path: str) -> bool:
    return path.endswith(DATA) and not is_test_file(path) and not _EXPECTED.search(path.casefold())


def _imported(statement: re.Match[str]) -> list[str]:
    """Every module that an import may mean: what follows `import` may be one too."""
    told = (statement["names"] or statement["plain"]).split(",")
    names = [n.strip(" ()\\\t\n").partition(" ")[0] for n in told]
    of = statement["of"]
    if of is None:
        return [name for name in names if name]
    return [of, *(f"{of}{'' if of.endswith('.') else '.'}{name}" for name in names if name)]


def _root(bare: str, wanted: str) -> str | None:
    """The folder from which a module of this name is this file; None where it is another."""
    return bare[: -len(wanted)].rstrip("/") if f"/{bare}".endswith(f"/{wanted}") else None


def _bare(path: str) -> str:
    """A module by its name: without the ending, a package by its folder."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0] or name
    package = name == "__init__.py" or (stem == "index" and not name.endswith(".py"))
    return folder if package and folder else join(folder, stem)


def _at(speaker: str, word: str) -> str:
    return normpath(join(dirname(speaker), word))


def _suffix(path: str) -> str:
    return "." + path.casefold().rpartition(".")[2]


def belonging(
    used: Mapping[str, str], elsewhere: Iterable[str], old: Mapping[str, Text], base: frozenset[str]
) -> dict[str, str]:
    """Of the files that tests use those that nothing else uses and that are there for tests, each with a test."""
    product = frozenset(elsewhere)
    tested = {_subject(path) for path in base if is_test_file(path)} if used else set()

    def belongs(path: str) -> bool:
        if path.endswith(DATA) or is_test_file(path):
            return True
        return _may_help(path, base, tested) and _helps(path, old.get(path))

    return {path: test for path, test in used.items() if path not in product and belongs(path)}


def _may_help(path: str, base: frozenset[str], tested: set[str]) -> bool:
    """A module of the product's own package, or one that has a test of its own, is what is tested."""
    top = path.partition("/")[0]
    package = "/" in path and (f"{top}/__init__.py" in base or is_product(path))
    return not package and _subject(path) not in tested


def _helps(path: str, text: Text | None) -> bool:
    named = _HELPING.search(_bare(path).rpartition("/")[2].casefold())
    return bool(named or (text is not None and _ASSERTS.search(text.content)))


def _subject(path: str) -> str:
    """What a test is about, by its name: `test_calc.py`, `calc.test.js` and `CalcTest.java` are about calc."""
    stem = path.rpartition("/")[2].casefold().partition(".")[0]
    return re.sub(r"^tests?[_-]?|[_-]?(?:tests?|spec)$", "", stem)

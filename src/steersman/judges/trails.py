"""What stands behind a check: the files that its entry names, those that these name, and so on, on the base commit.

Whoever reads files calls `trail` with what is read so far and reads what it wants, until it wants nothing more or a
bound is reached. The line (docs/adr/0048): a path in a recipe, a setting or a script is followed; what a script or a
manifest imports of the product is not; what a script in a folder of tools imports from such a folder is.
**Invariant:** pure; where a bound is reached it says so, and what it says opens the gate.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import cache, cached_property
from itertools import pairwise
from posixpath import dirname, join, normpath

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Text
from steersman.judges.entries import ALL, PROGRAMS, runs
from steersman.judges.infrastructure import is_named_as_test, is_product
from steersman.judges.recipes import Kind, Spoken, abroad, commands, script
from steersman.judges.text import printable

HOPS = 8
FILES = 200
EACH = 128 << 10
TOTAL = 2 << 20
_TOOLS = (
    "script scripts tool tools hack ci .ci bin dev devtools build-tools buildtools build_tools build-support "
    "buildscripts build-scripts automation etc misc contrib maint make mk tasks .github .gitlab test tests testing qa "
    "check checks verify verification e2e spec specs support"
)
TOOLS = frozenset(_TOOLS.split())
# They leave out what .gitignore names.
_IGNORING = "ruff black eslint prettier biome oxlint dprint stylelint rg ripgrep ag typos ty knip jscpd deno"
IGNORING = frozenset(_IGNORING.split())
_WITHOUT = (
    "",
    ".py",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    ".mts",
    ".cts",
    ".json",
    ".sh",
    ".rb",
    ".php",
    ".pl",
    "/index.js",
    "/index.ts",
    "/__main__.py",
    "/main.go",
)
_MODULE = (".py", "/__main__.py", "/__init__.py")
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".rb", ".php", ".pl", ".lua", ".exs")
_RECIPES = (
    ".sh", ".bash", ".zsh", ".ksh", ".fish", ".ps1", ".bat", ".cmd", ".mk", ".mak", ".cmake", ".yml", ".yaml", ".toml",
    ".ini", ".cfg", ".gradle", ".kts",
)  # fmt: skip
_PROSE = (".md", ".rst", ".adoc")  # a script that reads them proves little by them
_KINDS: dict[str, Kind] = {"__init__.py": "package", "conftest.py": "conftest"}
_STARTS = frozenset({"main", "app", "cli", "program", "server"})
_MAIN = re.compile(r"\bmain\s*\(")
_ALIKE = 3  # files of one name that are all meant where nobody says which
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_LOADS = re.compile(
    r"\b(?:setup\w*|global(?:Setup|Teardown)|require|import|loader|reporters?|runner|testRunner|testEnvironment|resolver"
    r"|transform|serializers?|snapshot\w+|file|files|spec|nodeArguments)[\"']?\s*:\s*(?P<value>\[[^\]]{0,4000}\]|[^\n]{0,400})"
)
_BETWEEN = re.compile(r"[\s\"'`,;:<>()\[\]{}=]+|rootDir|\$\w+")
_ROOTS = re.compile(
    r"(?:\bpythonpath\b[\"']?\s*[=:]|\bPYTHONPATH=|--start-directory[ =]|(?<!\S)-s[ \t]+)[ \t]*(?P<value>\[[^\]]{0,400}\]|\S{1,200})"
)
_PATTERNS = re.compile(r"^[ \t]*(?:python_files|testMatch|spec)\b(?P<value>.*)$", re.MULTILINE)


class Trail(msgspec.Struct, frozen=True):
    """The files behind the checks, each with the one that names it, and what has to be read to know more."""

    named: dict[str, str]  # path → the file that names it; nothing for a check itself
    wanted: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()  # by which the project says what a test is called
    examples: bool = False  # somebody tries the examples in texts
    ignoring: str = ""  # a program that looks at nothing that git ignores
    roots: tuple[str, ...] = ()  # folders that imports are said to begin from
    words: frozenset[str] = frozenset()  # words of the checks and of what they lead to
    cut: str = ""  # why it is not whole


def trail(checks: Sequence[Argv], tree: "Tree", texts: Mapping[str, Text], hop: int = 0) -> Trail:
    """What is known of the files behind the checks from the texts that were read in so many hops."""
    named, said, doubtful = _named(checks, tree, texts)
    wanted = tuple(path for path in (*named, *doubtful) if path not in texts)
    cut = _cut(named, texts) or (
        f"they lead over more than {HOPS} files in a row" if wanted and hop >= HOPS else ""
    )
    told = "\n".join((*(" ".join(argv) for argv in checks), *(t.content for t in texts.values())))
    return Trail(
        named,
        () if cut else wanted,
        tuple(sorted(set(_patterns(checks, texts)))),
        examples="doctest" in told,
        ignoring=min(said & IGNORING, default=""),
        roots=tuple(
            sorted({_path(w) for m in _ROOTS.finditer(told) for w in _BETWEEN.split(m["value"]) if w})
        ),
        words=frozenset(said),
        cut=cut,
    )


def _named(
    checks: Sequence[Argv], tree: "Tree", texts: Mapping[str, Text]
) -> tuple[dict[str, str], set[str], dict[str, None]]:
    words = frozenset(word for argv in checks for word in argv)
    # Without a check of the project's own a tester may ask for any runner.
    first = [*tree.entries(words or frozenset(PROGRAMS), ".")]
    first += [path for argv in checks for path in tree.found(_argv(argv), "", ".")]
    named = dict.fromkeys(first, "")
    asked = dict.fromkeys(first, words)
    heard = {word.rpartition("/")[2] for word in words}
    waiting = list(named)
    doubtful: dict[str, None] = {}
    while waiting:
        path = waiting.pop(0)
        if path in texts:
            spoken = tuple(_spoken(path, texts[path].content, asked[path]))
            said = frozenset(s.word.rpartition("/")[2] for s in spoken)
            heard |= said
            folder = dirname(path) or "."
            sources = tree.found((s for s in spoken if s.compiled), path, folder)
            doubtful.update(dict.fromkeys(sources))
            begun = [p for p in sources if p in texts and _begins(p, texts[p].content)]
            plain = tree.found((s for s in spoken if not s.compiled), path, folder)
            new = (*plain, *begun, *tree.entries(said, folder))
            fresh = [p for p in dict.fromkeys(new) if p not in named]
            named.update(dict.fromkeys(fresh, path))
            asked.update(dict.fromkeys(fresh, said))
            waiting += fresh
    return named, heard, doubtful


def _begins(path: str, text: str) -> bool:
    """Whether a program starts in this source; one that is called like a product's start is taken for it."""
    stem = path.rpartition("/")[2].casefold().partition(".")[0]
    return stem not in _STARTS and _MAIN.search(text) is not None


def _cut(named: Mapping[str, str], texts: Mapping[str, Text]) -> str:
    long = next((path for path, text in texts.items() if not text.whole), "")
    if long:
        return f"{printable(long)} is too long to be followed"
    return f"they name more than {FILES} files" if len(named) > FILES else ""


def _argv(argv: Argv) -> Iterator[Spoken]:
    """A check's own words: a person wrote them, and each may be a file."""
    yield from (Spoken(word.partition("=")[2] or word, loaded=word.startswith("./")) for word in argv)
    for before, word in zip(("", *argv), argv, strict=False):
        yield Spoken(word, as_module=before in ("-m", "-p"))
        yield from commands(word) if " " in word else ()


def _spoken(path: str, text: str, asked: frozenset[str]) -> Iterator[Spoken]:
    entry = _names(ALL).fullmatch(path.rpartition("/")[2].casefold())
    code = path.endswith(_SCRIPTS) or (text.startswith("#!") and "sh" not in text.partition("\n")[0])
    if is_named_as_test(path):  # it is evidence itself, and what it runs is the product
        return
    if not code:
        follow = (
            entry or path.endswith(_RECIPES) or text.startswith("#!") or "." not in path.rpartition("/")[2]
        )
        yield from commands(runs(path, text, asked)) if follow else ()
        return
    tools = _is_tool(path)
    python = path.endswith(".py") or "python" in text.partition("\n")[0]
    kind = _KINDS.get(path.rpartition("/")[2], "python" if python else "other")
    found = script(text, kind, tools=tools)
    yield from (s for s in found if not is_product(s.word.lstrip("./")))
    if tools:
        yield from (s for s in abroad(text, dirname(path)) if _is_tool(s.word))
    if entry:  # a runner's settings may keep what it loads among the product
        for setting in _LOADS.finditer(text):
            yield from (Spoken(w, loaded=True) for w in _BETWEEN.split(setting["value"]) if "/" in w)


def _is_tool(path: str) -> bool:
    return bool(TOOLS & set(dirname(path).casefold().split("/"))) and not is_product(path)


def _patterns(checks: Sequence[Argv], texts: Mapping[str, Text]) -> Iterator[str]:
    """`python_files = check_*.py`, `discover -p "check*.py"`: names of tests that no table knows."""
    for argv in checks:
        yield from (w for f, w in pairwise(argv) if f in ("-p", "--pattern") and "*" in w)
        yield from (re.sub(r"([*?[])", r"[\1]", w.partition("::")[0]) for w in argv if "::" in w)
        given = argv[argv.index("unittest") + 1 :] if "unittest" in argv and "discover" not in argv else ()
        parts = [w.split(".") for w in given if _DOTTED.fullmatch(w)]
        yield from (f"{'/'.join(p[:n])}.py" for p in parts for n in range(1, min(len(p), 20) + 1))
    for path, text in texts.items():
        for line in _PATTERNS.finditer(runs(path, text.content, frozenset())):
            yield from (w for w in re.split(r"[\s\"',=\[\]]+", line["value"]) if "*" in w.strip("*"))


class Tree:
    """The paths of a tree, by what they end in."""

    def __init__(self, paths: frozenset[str]) -> None:
        self._paths = paths
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(paths):
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        entry = _names(ALL)
        self._entries = [
            (n, p) for n, found in self._by_name.items() if entry.fullmatch(n.casefold()) for p in found
        ]

    @cached_property
    def _tools(self) -> list[str]:
        return [path for path in sorted(self._paths) if _is_tool(path)]

    def entries(self, words: frozenset[str], folder: str) -> list[str]:
        """The files that these programs read: at the top, beside the speaker, in folders that are among the words."""
        files = " ".join(
            sorted({PROGRAMS[w] for word in words if (w := word.rpartition("/")[2]) in PROGRAMS})
        )
        pattern, places = _names(files), {".", folder, *(word.rstrip("/") for word in words)}
        return [
            path
            for name, path in self._entries
            if pattern.fullmatch(name.casefold())
            and (
                name == "conftest.py"
                or (dirname(path) or ".") in places
                or dirname(path).rpartition("/")[2] in places
            )
        ]

    def found(self, spoken: Iterable[Spoken], by: str, folder: str) -> list[str]:
        """The files that these words mean, seen from a folder."""
        told = list(spoken)
        around = frozenset(part for s in told for part in s.word.split("/"))
        return [
            path
            for s in told
            for path in self._meant(s, folder, around)
            if path != by and not (by and path.endswith(_PROSE))
        ]

    def _meant(self, s: Spoken, folder: str, around: frozenset[str]) -> list[str]:
        word = s.word.replace("\\", "/")
        if "*" in word and _is_tool(word):
            return [p for p in self._tools if _names(_path(join(folder, word))).fullmatch(p)]
        if s.as_module and word not in self._paths:
            word = word.replace(".", "/").strip("/")
        elif not s.loaded and word.rpartition("/")[2] not in self._by_name:
            return []
        ends = ("", *_MODULE) if s.as_module else _WITHOUT if s.loaded else ("",)
        if s.beside:
            return [p for end in ends if (p := _path(join(folder, f"{word}{end}"))) in self._paths]
        return [p for end in ends for p in self._ending(f"{word}{end}", folder, around)]

    def _ending(self, word: str, folder: str, around: frozenset[str]) -> list[str]:
        """Exactly this path, from the speaker's folder or from the top; else those that end in it, if they are few."""
        exact = [p for p in (_path(join(folder, word)), _path(word)) if p in self._paths]
        if exact:
            return exact
        tail = _path(word)
        alike = [p for p in self._by_name.get(tail.rpartition("/")[2], ()) if f"/{p}".endswith(f"/{tail}")]
        few = "." in tail and len(alike) <= _ALIKE
        return alike if few else [p for p in alike if dirname(p).rpartition("/")[2] in around]


def _path(word: str) -> str:
    """As git would write it; what leads out of the tree means what it leads to inside."""
    return re.sub(r"^(?:\.\./|/)+", "", normpath(word)) if word else ""


@cache
def _names(words: str) -> re.Pattern[str]:
    return re.compile("|".join(translate(word) for word in words.split()), re.DOTALL)

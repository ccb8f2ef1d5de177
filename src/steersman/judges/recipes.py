"""Which words of a recipe, a script or a setting may be files that are run or loaded.

A recipe is split as a shell would split it, roughly. The sources that a compiler, a linter or a copying program is given
are read, not run: they are no part of what decides. Other files that such a program is given are: a list of tests, an
expected output, settings. A script's own imports are looked at only for what lies in a folder of tools; what it imports
from elsewhere is the product that it tests.
**Invariant:** pure; linear in the text. The text is the base commit's: it is the project's own, and no attacker's.
"""

import re
from collections.abc import Iterator
from posixpath import join, normpath
from typing import Literal, NamedTuple

MODULE_FLAGS = frozenset({"-m", "-p", "--plugin", "--plugins", "pytest_plugins", "--with-plugin", "script"})
LOAD_FLAGS = frozenset(
    {"-r", "--require", "--import", "--loader", "--experimental-loader", "-c", "--config", "-f"}
)
# fmt: off
_COMPILING = "gcc cc c++ g++ clang clang++ ld ar rustc javac kotlinc scalac ghc swiftc csc"
_READING = (
    f"{_COMPILING} tsc esbuild rollup webpack swc babel "
    "mypy pyright pyre ruff flake8 pylint black isort autopep8 yapf bandit vulture pycodestyle pydocstyle eslint "
    "prettier stylelint biome shellcheck shfmt hadolint yamllint markdownlint clang-format clang-tidy rustfmt gofmt "
    "goimports golangci-lint rubocop phpcs phpstan psalm py_compile compileall pip pip3 twine"
)
_READING_FIRST = (
    "echo printf cat cp mv rm mkdir rmdir touch ls wc head tail grep egrep diff cmp sort uniq tee sed awk find tar zip "
    "unzip gzip chmod chown ln install rsync scp curl wget git test [ set export unset rem"
)
_RUNNING = (
    "run runghc runhaskell java dart swift elixir escript scala kotlin jbang rust-script crystal nim tcc mage"
)
_COMPILED = (
    ".c .cc .cpp .cxx .h .hh .hpp .m .mm .rs .go .java .kt .scala .cs .fs .vb .swift .hs .ml .mli .zig .d .f90 .erl "
    ".ex .dart .pyx .s .asm .o .a .so .class .jar"
)
# fmt: on
READERS = frozenset(_READING.split())
_LINTERS = READERS - frozenset(_COMPILING.split())
FIRST_READERS = frozenset(_READING_FIRST.split())
RUNNERS_OF_SOURCE = frozenset(_RUNNING.split())
SOURCES = tuple(_COMPILED.split())
_SCRIPTED = ".py .pyi .js .mjs .cjs .jsx .ts .mts .cts .tsx .rb .php .pl .lua .sh .css .scss .vue .svelte"
_READ = (*SOURCES, *_SCRIPTED.split())
_SAYING = frozenset({"echo", "printf", "rem", "export", "unset", "set", "test", "[", "git", "rm", "mkdir", "rmdir", "touch"})  # fmt: skip
_SEGMENTS = re.compile(r"&&|\|\||[;|&\n(){}`]")
_BREAKS = re.compile(r"[\s\"'<>,\[\]=:$@%]+")
_KEY = re.compile(r"\s*[\w.-]+[\"']?\s*[:=]")  # `test = …`: a name, and not the program of that name
_DASHED = re.compile(r"(?<!\S)(?P<flag>-[mprcf])(?=[\w./])")
_IMPORTS = re.compile(
    r"(?:\brequire(?:_relative)?\s*\(?|\bfrom\s|\bimport\s*\(?|\binclude(?:_once)?\s*\(?|\brequire_once\s*\(?)\s*"
    r"[\"'](?P<what>[^\"'\n]{1,300})[\"']"
)
_PYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from\s+(?P<of>[\w.]+)\s+import\s+(?P<names>[^\n#]{1,500})|import\s+(?P<plain>[\w., ]{1,500}))",
    re.MULTILINE,
)
_PLUGINS = re.compile(r"\bpytest_plugins\b\s*(?::[^=\n]*)?=\s*(?P<value>\([^)]*\)|\[[^\]]*\]|[^\n]*)")


Kind = Literal["python", "package", "conftest", "other"]


class Spoken(NamedTuple):
    """One word that may be a file, and how it is meant."""

    word: str
    as_module: bool = False  # a dotted name
    loaded: bool = False  # it may lack its extension
    beside: bool = False  # it means nothing but a file in the speaker's own folder
    compiled: bool = False  # one of several sources of a program: the check's own if that begins in it


def commands(text: str, *, shell: bool = True) -> Iterator[Spoken]:
    """The words of recipes and settings, or of other text where no word is a program that only reads."""
    for segment in _SEGMENTS.split(text):
        words = [w for w in _BREAKS.split(_DASHED.sub(r"\g<flag> ", segment)) if w]
        first = shell and words[:1] != [] and words[0] in FIRST_READERS and not _KEY.match(segment)
        if first:
            yield from (Spoken(w) for w in words[1:] if words[0] not in _SAYING and not w.endswith(_READ))
        else:
            yield from _command(words, shell=shell)


def _command(words: list[str], *, shell: bool) -> Iterator[Spoken]:
    reads, runs_source, unittest = False, False, False
    many = shell and sum(word.endswith(SOURCES) for word in words) > 1
    for before, word in zip(["", *words], words, strict=False):
        if not reads and (runs_source or not word.endswith(SOURCES)):
            near = word.startswith(("./", "../")) or before in LOAD_FLAGS
            yield Spoken(word, before in MODULE_FLAGS, near)
            yield from _prefixes(word) if unittest and "/" not in word else ()
        elif many and word.endswith(SOURCES):
            yield Spoken(word, compiled=True)
        elif before.startswith("-") and not word.endswith(_READ):
            yield Spoken(word)
        name = word.rpartition("/")[2]
        many = many and name not in _LINTERS
        reads = reads or (shell and name in READERS)
        runs_source = runs_source or name in RUNNERS_OF_SOURCE
        unittest = (unittest or word == "unittest") and word != "discover"


def _prefixes(dotted: str) -> Iterator[Spoken]:
    """`qa.calc.T` is a class in a module in a package, or less."""
    parts = dotted.split(".")[:20]
    yield from (Spoken(".".join(parts[:n]), as_module=True) for n in range(1, len(parts) + 1))


def abroad(text: str, folder: str) -> Iterator[Spoken]:
    """What a script imports by its whole name, or from a folder beside its own: paths from the top, without endings."""
    for statement in _PYTHON_IMPORT.finditer(text):
        of = statement["of"] or ""
        names = _names(statement)
        modules = [of, *(f"{of}.{n}" for n in names)] if of else names
        yield from (Spoken(m.replace(".", "/"), as_module=True) for m in modules if "." in m.strip("."))
    for found in _IMPORTS.finditer(text):
        if found["what"].startswith("../"):
            yield Spoken(normpath(join(folder, found["what"])), loaded=True)


def script(text: str, kind: Kind, *, tools: bool) -> Iterator[Spoken]:
    """The words of a script: the paths that it names, and what it imports from beside itself in a folder of tools."""
    if kind == "other":
        found = [m["what"] for m in _IMPORTS.finditer(text)]
        yield from (Spoken(w, loaded=True, beside=True) for w in found if tools and w.startswith("./"))
        yield from commands(_IMPORTS.sub(" ", text), shell=False)
        return
    for statement in _PYTHON_IMPORT.finditer(text):
        within = kind == "package" and (statement["of"] or "").startswith(".")
        yield from _imported(
            statement, tools=(tools or within) and kind != "conftest", hooks=kind == "conftest"
        )
    for plugins in _PLUGINS.finditer(text):
        yield from (Spoken(w, as_module=True) for w in re.findall(r"[\w.]+", plugins["value"]))
    if kind != "conftest":  # the paths in it are those of tests
        yield from commands(_PYTHON_IMPORT.sub(" ", text), shell=False)


def _imported(statement: re.Match[str], *, tools: bool, hooks: bool) -> Iterator[Spoken]:
    """What lies beside a script of a folder of tools; what a conftest takes its hooks from lies anywhere."""
    names = _names(statement)
    module = (statement["of"] or "").lstrip(".")
    if module and (any(n.startswith("pytest_") for n in names) or (hooks and "*" in names)):
        yield Spoken(module, as_module=True)
    elif tools:
        yield from (Spoken(n, as_module=True, beside=True) for n in ([module] if module else names))


def _names(statement: re.Match[str]) -> list[str]:
    told = (statement["names"] or statement["plain"]).split(",")
    return [n.split(" as ")[0].strip(" ()\\") for n in told]

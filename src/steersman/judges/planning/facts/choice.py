"""Which files are the project's own, which are read, and by whom: known by their paths alone."""

from collections.abc import Sequence
from functools import cache

import msgspec

from steersman.judges.planning.facts import (
    c_cpp,
    ci,
    containers,
    dart,
    databases,
    documentation,
    dotnet,
    elixir,
    go,
    haskell,
    infrastructure,
    javascript,
    jvm,
    licence,
    locks,
    own_checks,
    ownership,
    php,
    python,
    ruby,
    rust,
    swift,
    tasks,
)
from steersman.judges.planning.facts.finding import Find, Reader, folder_of
from steersman.judges.planning.facts.languages import language_of
from steersman.judges.planning.facts.secret_files import is_secret

READERS: tuple[Reader, ...] = (
    *python.READERS, *javascript.READERS, *go.READERS, *rust.READERS, *jvm.READERS, *dotnet.READERS, *ruby.READERS,
    *php.READERS, *c_cpp.READERS, *elixir.READERS, *swift.READERS, *dart.READERS, *haskell.READERS, *tasks.READERS,
    *own_checks.READERS, *ci.READERS, *ownership.READERS, *containers.READERS, *infrastructure.READERS,
    *databases.READERS, *documentation.READERS, *licence.READERS, *locks.READERS,
)  # fmt: skip
# What others have written, what a tool has made, and made-up projects that tests are about.
_FOLDERS = (
    "node_modules bower_components jspm_packages vendor third_party third-party thirdparty .venv venv site-packages "
    "__pypackages__ dist build target pods carthage .git .hg .svn .tox .nox .eggs __pycache__ .mypy_cache .pytest_cache "
    ".ruff_cache .gradle .terraform .next .nuxt .yarn deriveddata elm-stuff _build .bundle .cargo .stack-work "
    "testdata fixtures __fixtures__ __snapshots__"
)
LEFT_OUT = frozenset(_FOLDERS.split())
_GENERATED = (
    ".min.js", ".min.css", ".min.mjs", ".js.map", ".css.map", "_pb2.py", "_pb2_grpc.py", ".pb.go", ".pb.cc", ".pb.h",
    ".g.dart", ".freezed.dart", ".designer.cs", ".g.cs", "_generated.go", ".generated.ts", ".d.ts.map",
)  # fmt: skip
SAMPLES = 3  # files that stand for a language
LOOKED_INTO = 50  # tests of one folder that are asked for their runner


class Choice(msgspec.Struct, frozen=True):
    """What is done with the paths of a project."""

    read: tuple[str, ...]  # sorted
    secret: tuple[str, ...]
    languages: dict[str, tuple[int, tuple[str, ...]]]  # how many files, and those that stand for them


def left_out(path: str) -> str | None:
    """The folder, from the top, for which a path is none of the project's own; None for its own."""
    folders = path.split("/")[:-1]
    for number, folder in enumerate(folders, 1):
        if folder.casefold() in LEFT_OUT:
            return "/".join(folders[:number])
    return None


def choose(paths: Sequence[str]) -> Choice:
    """Of the project's own paths, sorted: what is read, what is only named, what languages there are."""
    secret = tuple(path for path in paths if is_secret(path))
    hidden, tests = frozenset(secret), dict[str, int]()
    counts, samples, read = dict[str, int](), dict[str, list[str]](), set[str]()
    for path in paths:
        if path in hidden:
            continue
        language = None if path.casefold().endswith(_GENERATED) else language_of(path)
        if language is not None:
            counts[language] = counts.get(language, 0) + 1
            if counts[language] <= SAMPLES:
                samples.setdefault(language, []).append(path)
        finders = readers_of(path)
        if finders == (python.unittests,):
            folder = folder_of(path)
            tests[folder] = tests.get(folder, 0) + 1
            finders = finders if tests[folder] <= LOOKED_INTO else ()
        if finders:
            read.add(path)
    read.update(path for some in samples.values() for path in some)
    found = {language: (counts[language], tuple(samples[language])) for language in sorted(counts)}
    return Choice(tuple(sorted(read)), secret, found)


def readers_of(path: str) -> tuple[Find, ...]:
    """Everybody who reads a file of this name in this place."""
    folder, name = folder_of(path), path.rpartition("/")[2].casefold()
    exact, patterns = _table()
    near = (*patterns.get(name.rpartition(".")[2], ()), *patterns.get("", ()))
    readers = [*exact.get(name, ()), *(r for start, end, r in near if _fits(name, start, end))]
    return tuple(reader.find for reader in readers if reader.where is None or reader.where(folder))


def _fits(name: str, start: str, end: str) -> bool:
    return len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)


@cache
def _table() -> tuple[dict[str, list[Reader]], dict[str, list[tuple[str, str, Reader]]]]:
    """Readers by whole names, and those with a `*`, as what comes before and behind it, by the ending of their names."""
    exact: dict[str, list[Reader]] = {}
    patterns: dict[str, list[tuple[str, str, Reader]]] = {}
    for reader in READERS:
        for name in dict.fromkeys(reader.names.split()):
            start, star, end = name.partition("*")
            if star:
                patterns.setdefault(end.rpartition(".")[2], []).append((start, end, reader))
            else:
                exact.setdefault(name, []).append(reader)
    return exact, patterns

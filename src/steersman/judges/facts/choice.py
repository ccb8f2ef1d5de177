"""Chooses by their paths which files belong to the project, which are read, and which readers read them.

**Invariant:** a file that keeps secrets is never opened. A pack holds neither its text nor a digest of its content, because
a digest lets an attacker test guesses of a short secret.
"""

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.python_facts import read_unittest_file
from steersman.judges.facts.finding import (
    FactFinding,
    FactReader,
    ProjectSource,
    marker_reader,
    parent_directory,
)
from steersman.judges.facts.reading import find_text_problem
from steersman.judges.redaction.named_secrets import is_secret_file_name
from steersman.judges.text import clip_text, lazy_pattern, printable_line

LOCK_FILE_READER = marker_reader(
    " ".join(ecosystem.lock_files for ecosystem in ECOSYSTEMS), "lock_file", "{file}"
)
ALL_FACT_READERS: tuple[FactReader, ...] = (
    *(reader for ecosystem in ECOSYSTEMS for reader in ecosystem.fact_readers),
    LOCK_FILE_READER,
)
# What others have written, what a tool has made, and made-up projects that tests are about.
_FOREIGN_DIRECTORIES = (
    "node_modules bower_components jspm_packages vendor third_party third-party thirdparty .venv venv site-packages "
    "__pypackages__ dist build target pods carthage .git .hg .svn .tox .nox .eggs __pycache__ .mypy_cache .pytest_cache "
    ".ruff_cache .gradle .terraform .next .nuxt .yarn deriveddata elm-stuff _build .bundle .cargo .stack-work "
    "testdata fixtures __fixtures__ __snapshots__"
)
EXCLUDED_DIRECTORIES = frozenset(_FOREIGN_DIRECTORIES.split())
_GENERATED_ENDINGS = (
    ".min.js", ".min.css", ".min.mjs", ".js.map", ".css.map", "_pb2.py", "_pb2_grpc.py", ".pb.go", ".pb.cc", ".pb.h",
    ".g.dart", ".freezed.dart", ".designer.cs", ".g.cs", "_generated.go", ".generated.ts", ".d.ts.map",
)  # fmt: skip
# Programming languages by the endings of file names.
_LANGUAGE_ENDINGS = """
assembly: s asm | c: c h | c#: cs | c++: cc cpp cxx hpp hh hxx | clojure: clj cljs cljc | cobol: cob cbl
css: css scss sass less | dart: dart | elixir: ex exs | erlang: erl hrl | f#: fs fsx | fortran: f90 f95 f | go: go
groovy: groovy | haskell: hs | html: html htm | java: java | javascript: js mjs cjs jsx | julia: jl | kotlin: kt kts
lua: lua | nim: nim | objective-c: m mm | ocaml: ml mli | perl: pl pm | php: php | powershell: ps1 psm1
protocol-buffers: proto | python: py pyi pyx | r: r | ruby: rb rake | rust: rs | scala: scala sc | shell: sh bash zsh
solidity: sol | sql: sql | starlark: bzl | svelte: svelte | swift: swift | terraform: tf | typescript: ts mts cts tsx
visual-basic: vb | vue: vue | zig: zig
"""
LANGUAGE_BY_ENDING = {
    ending: language.strip()
    for language, _, endings in (
        entry.partition(":") for entry in _LANGUAGE_ENDINGS.strip().replace("\n", "|").split("|")
    )
    for ending in endings.split()
}
_TEMPLATE_NAME = lazy_pattern(
    r"(?:^|[._-])(?:example|sample|template|tmpl|dist|defaults?)(?:[._-]|$)", re.IGNORECASE
)
# Settings of package managers, which are secret only if they contain a token.
_PACKAGE_MANAGER_SETTINGS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml", ".condarc", "pip.conf"})
SAMPLES_PER_LANGUAGE = 3  # files that stand for a language
MAX_TESTS_PER_DIRECTORY = 50  # tests of one folder that are asked for their runner


class FileSelection(msgspec.Struct, frozen=True):
    """What is done with the paths of a project."""

    read: tuple[str, ...]  # sorted
    secret: tuple[str, ...]
    languages: dict[str, tuple[int, tuple[str, ...]]]  # how many files, and those that stand for them


def find_excluded_directory(path: str) -> str | None:
    """The folder, from the top, for which a path is none of the project's own; None for its own."""
    directories = path.split("/")[:-1]
    for number, directory in enumerate(directories, 1):
        if directory.casefold() in EXCLUDED_DIRECTORIES:
            return "/".join(directories[:number])
    return None


def select_project_files(paths: Sequence[str]) -> FileSelection:
    """Of the project's own paths, sorted: what is read, what is only named, what languages there are."""
    secret = tuple(path for path in paths if is_secret_file(path))
    secret_paths, test_counts = frozenset(secret), dict[str, int]()
    counts, samples, read_paths = dict[str, int](), dict[str, list[str]](), set[str]()
    for path in paths:
        if path in secret_paths:
            continue
        language = None if path.casefold().endswith(_GENERATED_ENDINGS) else find_file_language(path)
        if language is not None:
            counts[language] = counts.get(language, 0) + 1
            if counts[language] <= SAMPLES_PER_LANGUAGE:
                samples.setdefault(language, []).append(path)
        readers = find_file_readers(path)
        if [reader.find for reader in readers] == [read_unittest_file]:
            directory = parent_directory(path)
            test_counts[directory] = test_counts.get(directory, 0) + 1
            readers = readers if test_counts[directory] <= MAX_TESTS_PER_DIRECTORY else ()
        if readers:
            read_paths.add(path)
    read_paths.update(path for sample_paths in samples.values() for path in sample_paths)
    languages = {language: (counts[language], tuple(samples[language])) for language in sorted(counts)}
    return FileSelection(tuple(sorted(read_paths)), secret, languages)


def find_unread_reason(source: ProjectSource, readers: Sequence[FactReader]) -> str:
    """Why a manifest says nothing, with its line where that is known; empty for one that can be read, and for other files."""
    for find_problem in (reader.find_problem for reader in readers if reader.find_problem is not None):
        reason = find_text_problem(source.text) or find_problem(source.text)
        return clip_text(printable_line(f"{source.path}{reason}"), 400) if reason else ""
    return ""


def find_file_readers(path: str) -> tuple[FactReader, ...]:
    """All readers of a file with this name in this place."""
    directory, name = parent_directory(path), path.rpartition("/")[2].casefold()
    exact, patterns = _reader_tables()
    candidates = (*patterns.get(name.rpartition(".")[2], ()), *patterns.get("", ()))
    readers = [
        *exact.get(name, ()),
        *(r for start, end, r in candidates if _matches_name_pattern(name, start, end)),
    ]
    return tuple(reader for reader in readers if reader.where is None or reader.where(directory))


def _matches_name_pattern(name: str, start: str, end: str) -> bool:
    return len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)


@cache
def _reader_tables() -> tuple[dict[str, list[FactReader]], dict[str, list[tuple[str, str, FactReader]]]]:
    """Readers by whole names, and those with a `*`, as what comes before and behind it, by the ending of their names."""
    exact: dict[str, list[FactReader]] = {}
    patterns: dict[str, list[tuple[str, str, FactReader]]] = {}
    for reader in ALL_FACT_READERS:
        for name in dict.fromkeys(reader.names.split()):
            start, star, end = name.partition("*")
            if star:
                patterns.setdefault(end.rpartition(".")[2], []).append((start, end, reader))
            else:
                exact.setdefault(name, []).append(reader)
    return exact, patterns


def find_file_language(path: str) -> str | None:
    """The language of a file; None where its name has no ending that is known."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return LANGUAGE_BY_ENDING.get(ending.casefold()) if dot and stem else None


def is_secret_file(path: str) -> bool:
    """Is this a file that keeps secrets, and no pattern for one?"""
    name = path.rpartition("/")[2]
    return (
        name.casefold() not in _PACKAGE_MANAGER_SETTINGS
        and not _TEMPLATE_NAME.search(name)
        and is_secret_file_name(path)
    )


def secret_file_finding(path: str) -> FactFinding:
    """It is there, where it should not be."""
    return FactFinding("secret_file", path, root=parent_directory(path))

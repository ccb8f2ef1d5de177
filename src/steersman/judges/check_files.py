"""The files of a project that a check is made of: a change to one of them opens the gate.

They are the files that the words of a check name, the manifest that its program reads by convention, and the files that
the used recipe or script of that manifest names. Nothing is followed further: what a script starts is judged by how the
checks run, on the change and on its variants (docs/adr/0088).
**Invariant:** pure; a word counts only where it is a path of the tree.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import dirname, join, normpath

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Text
from steersman.judges.manifests import used_part

MOST = 200  # manifests that are read
_PYTHON = "pytest.ini .pytest.ini tox.ini setup.cfg pyproject.toml noxfile.py"
_READS = {  # what programs take recipes, scripts or options from; build files are known by their names alone
    "make gmake": "makefile gnumakefile",
    "just": "justfile .justfile",
    "task": "taskfile.yml taskfile.yaml",
    "rake": "rakefile",
    "npm npx pnpm yarn bun": "package.json",
    "deno": "deno.json deno.jsonc",
    "pytest py.test tox nox uv poetry hatch pdm poe": _PYTHON,
    "composer": "composer.json",
}
READS = {name: frozenset(files.split()) for names, files in _READS.items() for name in names.split()}
_READ_ONLY = (".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".go", ".java", ".kt", ".md", ".rst")  # fmt: skip
_BREAKS = re.compile(r"[\s\"'`;&|<>(){}\[\],=:$@\\]+")


def argv_words(checks: Sequence[Argv]) -> frozenset[str]:
    """Every word of the checks, also of a command inside one."""
    return frozenset(word for argv in checks for text in argv for word in (text, *_BREAKS.split(text)))


def find_manifests(checks: Sequence[Argv], paths: Collection[str]) -> tuple[str, ...]:
    """The files that the programs of the checks read; those of every known program where there are no checks."""
    words = argv_words(checks) if checks else frozenset(READS)
    return tuple(_manifests_of(words, paths))[:MOST]


def _manifests_of(words: Collection[str], paths: Collection[str]) -> list[str]:
    names = {name for word in words for name in READS.get(word.rpartition("/")[2], ())}
    return sorted(p for p in paths if p.rpartition("/")[2].casefold() in names)


def find_check_files(
    checks: Sequence[Argv], paths: Collection[str], texts: Mapping[str, Text]
) -> dict[str, str]:
    """Each file that a check is made of with the manifest that names it; nothing for one that the check names itself."""
    asked, manifests = argv_words(checks), _manifests_of(READS, paths)
    found = dict.fromkeys((*_files_of(asked, "", paths), *find_manifests(checks, manifests)), "")
    found |= {path: "" for argv in checks for path in _modules(argv) if path in paths}
    for by in [path for path in found if path in texts]:
        words = _BREAKS.split(used_part(by, texts[by].content, asked))
        modules = (path for path in _modules(words) if path in paths)
        named = (*_files_of(words, dirname(by), paths), *modules, *_manifests_of(words, manifests))
        found = {path: by for path in named if not path.endswith(_READ_ONLY)} | found
    return found


def used_words(checks: Sequence[Argv], texts: Mapping[str, Text]) -> frozenset[str]:
    """The words of the checks and of the recipes and scripts that they use."""
    asked = argv_words(checks)
    used = (used_part(t.path, t.content, asked) for t in texts.values())
    return asked.union(*(_BREAKS.split(part) for part in used))


def _files_of(words: Collection[str], folder: str, paths: Collection[str]) -> Iterator[str]:
    for word in filter(None, words):
        yield from (p for p in dict.fromkeys((normpath(join(folder, word)), normpath(word))) if p in paths)


def _modules(words: Sequence[str]) -> Iterator[str]:
    """The files behind `-m name` and `-p name`."""
    for flag, name in pairwise(words):
        if flag in ("-m", "-p"):
            module = name.replace(".", "/")
            yield from (f"{module}{end}" for end in (".py", "/__main__.py", "/__init__.py"))

"""The files of a project that a check is made of: a change to one of them opens the gate.

They are the files that the words of a check name, the manifest that its program reads by convention, and the files that
the used recipe or script of that manifest names. Nothing is followed further: what a script starts is judged by how the
checks run, on the change and on its variants (docs/adr/0040).
**Invariant:** pure; a word counts only where it is a path of the tree.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import dirname, join, normpath

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import FileText
from steersman.judges.changes.manifests import used_manifest_part
from steersman.judges.ecosystems import ECOSYSTEMS

MAX_READ_MANIFESTS = 200  # manifests that are read
PROGRAM_MANIFESTS = {  # build files are known by their names alone
    name: frozenset(files.split())
    for ecosystem in ECOSYSTEMS
    for names, files in ecosystem.program_files.items()
    for name in names.split()
}
_UNEXECUTED_ENDINGS = (".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".go", ".java", ".kt", ".md", ".rst")  # fmt: skip
_WORD_BREAKS = re.compile(r"[\s\"'`;&|<>(){}\[\],=:$@\\]+")


def list_check_words(checks: Sequence[Argv]) -> frozenset[str]:
    """Every word of the checks, also of a command inside one."""
    return frozenset(word for argv in checks for text in argv for word in (text, *_WORD_BREAKS.split(text)))


def find_check_manifests(checks: Sequence[Argv], paths: Collection[str]) -> tuple[str, ...]:
    """The files that the programs of the checks read; those of every known program where there are no checks."""
    words = list_check_words(checks) if checks else frozenset(PROGRAM_MANIFESTS)
    return tuple(_find_program_manifests(words, paths))[:MAX_READ_MANIFESTS]


def _find_program_manifests(words: Collection[str], paths: Collection[str]) -> list[str]:
    names = {name for word in words for name in PROGRAM_MANIFESTS.get(word.rpartition("/")[2], ())}
    return sorted(path for path in paths if path.rpartition("/")[2].casefold() in names)


def find_check_files(
    checks: Sequence[Argv], paths: Collection[str], texts: Mapping[str, FileText]
) -> dict[str, str]:
    """Each file that a check is made of with the manifest that names it; nothing for one that the check names itself."""
    check_words, manifests = list_check_words(checks), _find_program_manifests(PROGRAM_MANIFESTS, paths)
    manifest_by_file = dict.fromkeys(
        (*_find_files_named_by(check_words, "", paths), *find_check_manifests(checks, manifests)), ""
    )
    manifest_by_file |= {path: "" for argv in checks for path in _list_module_files(argv) if path in paths}
    for manifest in [path for path in manifest_by_file if path in texts]:
        words = _WORD_BREAKS.split(used_manifest_part(manifest, texts[manifest].content, check_words))
        modules = (path for path in _list_module_files(words) if path in paths)
        named_files = (
            *_find_files_named_by(words, dirname(manifest), paths),
            *modules,
            *_find_program_manifests(words, manifests),
        )
        manifest_by_file = {
            path: manifest for path in named_files if not path.endswith(_UNEXECUTED_ENDINGS)
        } | manifest_by_file
    return manifest_by_file


def list_used_check_words(checks: Sequence[Argv], texts: Mapping[str, FileText]) -> frozenset[str]:
    """The words of the checks and of the recipes and scripts that they use."""
    check_words = list_check_words(checks)
    used = (used_manifest_part(text.path, text.content, check_words) for text in texts.values())
    return check_words.union(*(_WORD_BREAKS.split(part) for part in used))


def _find_files_named_by(words: Collection[str], directory: str, paths: Collection[str]) -> Iterator[str]:
    for word in filter(None, words):
        yield from (
            path for path in dict.fromkeys((normpath(join(directory, word)), normpath(word))) if path in paths
        )


def _list_module_files(words: Sequence[str]) -> Iterator[str]:
    """The files behind `-m name` and `-p name`."""
    for flag, name in pairwise(words):
        if flag in ("-m", "-p"):
            module = name.replace(".", "/")
            yield from (f"{module}{end}" for end in (".py", "/__main__.py", "/__init__.py"))

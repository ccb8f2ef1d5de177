"""Which changed files decide what runs, and which speak to agents: known by their names alone.

A tool loads such a file without being asked: settings of a runner, a start-up hook, a list of packages. A change to one
opens a gate, however harmless it looks. The tables are data; a test goes through every word of them.
**Invariant:** nothing is read; letter case, forms of Unicode and a leading "./" make no difference.
"""

import configparser
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from posixpath import dirname, join, normpath
from typing import Any

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import FileText
from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.ecosystem import PACKAGES_REASON, DecisionTopic, FileNameRule, ManifestParts
from steersman.judges.ecosystems.generic import GENERIC

MAX_PATH_BYTES = 4096  # bytes in a path that a file system takes
# Those of every ecosystem first, then the lock files: the first rule that fits says why.
DECISIVE_FILE_RULES = (
    *GENERIC.decisive_files,
    *(rule for ecosystem in ECOSYSTEMS if ecosystem is not GENERIC for rule in ecosystem.decisive_files),
    FileNameRule(
        PACKAGES_REASON, " ".join(each.lock_files for each in ECOSYSTEMS).casefold(), about="dependencies"
    ),
)

# fmt: off
TEST_SUPPORT_RULES = (
    FileNameRule("tests load it",
         "conftest.py pytest_plugin*.py spec_helper.rb rails_helper.rb test_helper.* minitest.rb .minitest.rb "
         "setuptests.* setup-tests.* setup_tests.* test-setup* testsetup* globalsetup.* global-setup.* globalteardown.* "
         "global-teardown.* test-env* testenv* testmain.* "
         "test-helper* testhelper* test-util* testutil* test-support* testsupport* testlib* test-lib* testkit* "
         "expected.* *_expected.* *-expected.* *.expected *.golden",
         folders="test-utils test_utils testutils testutil test-helpers test_helpers testhelpers test-support "
         "test_support testsupport test-lib testlib testkit"),
)

AGENT_FILE_RULES = (
    FileNameRule("an agent takes its instructions from it",
         "agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md codex.md "
         "copilot-instructions.md *.instructions.md .cursorrules .windsurfrules .clinerules .roorules* "
         ".goosehints conventions.md skill.md llms.txt",
         folders=".cursor .windsurf .clinerules .roo .goose .continue .junie"),
    FileNameRule("an agent takes its settings from it",
         ".claude.json opencode.json* .mcp.json mcp.json .aider* .crush.json crush.json",
         folders=".claude .codex .gemini .opencode .agents .agent .amp .kiro .qwen .copilot .openhands "
         ".augment .trae"),
)

TEST_FILE_RULES = (
    FileNameRule("a test",
         " ".join(ecosystem.test_files for ecosystem in ECOSYSTEMS),
         folders="test tests __tests__ __snapshots__ __mocks__ __fixtures__ testdata test-data test_data fixtures cassettes "
         "e2e cypress golden goldens testcases test_cases test-cases unit_tests integration_tests unittests uitests "
         "step_definitions *_tests *-tests *.tests"),
)
# Tests as well as not: a product has such names too. Below one of its folders they mean nothing.
LOOSE_TEST_RULES = (
    FileNameRule("perhaps a test",
         "test*.py",
         folders="testing spec specs features snapshots steps acceptance integration unit qa t"),
)
# fmt: on
_PRODUCT_DIRECTORY_WORDS = "src lib app apps pkg packages internal cmd source sources crates include main"
PRODUCT_DIRECTORIES = frozenset(_PRODUCT_DIRECTORY_WORDS.split())
_SAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")  # shown to people, loaded by nothing
_TOO_LONG_RULE = FileNameRule("its name is longer than that of any file", "")


def find_execution_reason(path: str) -> str | None:
    """Why a tool will execute this file, or obey it, without being asked; None for an ordinary one."""
    rule = _find_decisive_rule(path)
    return rule.why if rule else None


def find_decision_by_name(path: str, words: frozenset[str]) -> tuple[DecisionTopic, str] | None:
    """Whether a change to this file is shown whatever is in it: what it decides about, and why in one sentence.

    Settings of a linter decide where a check runs it: `words` are those of the checks.
    """
    rule = _find_decisive_rule(path)
    if rule is None or rule.about == "recipe":
        return None
    if rule.about == "linter":
        name = _fold_path_parts(path)[-1].replace(".", "")
        is_linter_used = any(len(word) > 2 and word.partition("-")[0] in name for word in words)
        return ("tests", rule.why) if is_linter_used or ("tsc" in words and "tsconfig" in name) else None
    return rule.about, rule.why


def _find_decisive_rule(path: str) -> FileNameRule | None:
    parts = _fold_path_parts(path)
    is_sample = bool(parts) and parts[-1].startswith(".env.") and parts[-1].endswith(_SAMPLE_ENDINGS)
    return None if is_sample else _find_name_rule(parts, DECISIVE_FILE_RULES)


def find_agent_instruction_reason(path: str) -> str | None:
    """Why an agent would obey what this file says; None where none would."""
    rule = _find_name_rule(_fold_path_parts(path), AGENT_FILE_RULES)
    return rule.why if rule else None


def is_test_file(path: str, *, loose: bool = True) -> bool:
    """Whether this looks like a test, or like something that a test compares with; `loose` names may be a product's."""
    directory, _, name = path.rpartition("/")
    rules = (*TEST_FILE_RULES, *LOOSE_TEST_RULES) if loose else TEST_FILE_RULES
    return (
        len(path) > MAX_PATH_BYTES
        or _is_test_directory(directory, loose)
        or _find_name_rule(_fold_path_parts(name), rules) is not None
    )


@lru_cache(maxsize=10_000)
def _is_test_directory(directory: str, loose: bool) -> bool:
    parts = _fold_path_parts(directory)
    strict = not loose or (parts[:1] and parts[0] in PRODUCT_DIRECTORIES)
    rules = TEST_FILE_RULES if strict else (*TEST_FILE_RULES, *LOOSE_TEST_RULES)
    return any(map(_compile_name_globs(" ".join(rule.folders for rule in rules)).fullmatch, parts))


def is_test_support(path: str) -> bool:
    """Whether tests alone load this, or take their settings from it, by its name."""
    return _find_name_rule(_fold_path_parts(path), TEST_SUPPORT_RULES) is not None


def is_named_as_test(path: str) -> bool:
    """Whether its own name says that it is a test and can hardly mean anything else."""
    return _find_name_rule(_fold_path_parts(path)[-1:], TEST_FILE_RULES) is not None


def _fold_path_parts(path: str) -> list[str]:
    """As a file system that forgives case and forms of Unicode would see it; nothing of what is too long."""
    if len(path) > MAX_PATH_BYTES:
        return []
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return [part for part in folded.split("/") if part not in ("", ".")]


def _find_name_rule(parts: list[str], rules: tuple[FileNameRule, ...]) -> FileNameRule | None:
    if not parts:
        return _TOO_LONG_RULE
    for rule in rules:
        directory_globs, top_globs = _compile_name_globs(rule.folders), _compile_name_globs(rule.top_folders)
        if _compile_name_globs(rule.names).fullmatch(parts[-1]) or any(map(directory_globs.fullmatch, parts)):
            return rule
        if len(parts) > 1 and top_globs.fullmatch(parts[0]):
            return rule
    return None


@cache
def _compile_name_globs(words: str) -> re.Pattern[str]:
    """No part of a path is empty, so that no words match nothing."""
    return re.compile(
        "|".join(re.escape(word.casefold()).replace(r"\*", ".*") for word in words.split()), re.DOTALL
    )


# ── manifests ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# What of a project's manifest says which tests run, and what says which packages they run with.
#
# A manifest has many purposes: a version number, a description or a script that no check runs decides nothing.
# **Invariant:** pure; a manifest that cannot be read counts as a whole.


_VERSION_LINE = re.compile(
    r"\s*[\"']?(?:version|__version__|VERSION)[\"']?\s*[:=]\s*[\"']?[\w.+-]*[\"']?,?\s*(?:#.*)?"
)
_DEFAULT_TEST_TARGETS = frozenset({"test", "tests", "check"})
_MANIFEST_ERRORS = (ValueError, RecursionError, configparser.Error, AttributeError, TypeError)
_NO_PARTS = ManifestParts()
_PARTS_BY_NAME = {
    name: parts
    for ecosystem in ECOSYSTEMS
    for names, parts in ecosystem.manifest_parts.items()
    for name in names.split()
}


def has_only_version_change(old: str, new: str) -> bool:
    """Whether two texts differ in lines with a version number alone."""
    before, after = old.splitlines(), new.splitlines()
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(
        old_line == new_line or (_VERSION_LINE.fullmatch(old_line) and _VERSION_LINE.fullmatch(new_line))
        for old_line, new_line in pairs
    )


def is_known_manifest(path: str) -> bool:
    """Whether its parts can be told apart here."""
    return _manifest_parts(path).dependencies is not None


def has_test_setting_change(path: str, old: str, new: str, words: frozenset[str]) -> bool:
    """Whether the part that says which tests run, and how, is not the same; `words` are those of the checks."""
    before, after = (_read_test_settings(path, text, words | _DEFAULT_TEST_TARGETS) for text in (old, new))
    return before != after


def has_dependency_change(path: str, old: str, new: str) -> bool:
    """Whether the part that says which packages are installed is not the same."""
    read = _manifest_parts(path).dependencies
    return read is not None and bool(_read_or_whole(read, old) != _read_or_whole(read, new))


def find_dependency_paths_outside(path: str, text: str) -> tuple[str, ...]:
    """The places outside the tree from which go or cargo would take code, as the manifest names them."""
    find_paths = _manifest_parts(path).dependency_paths
    try:
        dependency_paths = find_paths(text) if find_paths is not None else ()
    except _MANIFEST_ERRORS:
        return ()
    return tuple(place for place in dependency_paths if _is_dependency_outside_tree(path, place))


def used_manifest_part(path: str, text: str, words: frozenset[str]) -> str:
    """The recipes, scripts and options that are used when these words are asked for; all of it where in doubt."""
    used = _manifest_parts(path).used
    return _read_or_whole(lambda content: used(content, words), text) if used is not None else text


def _is_dependency_outside_tree(path: str, place: str) -> bool:
    depth = 0 if not place.startswith("/") else -1
    for part in (*path.split("/")[:-1], *place.split("/")):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _manifest_parts(path: str) -> ManifestParts:
    return _PARTS_BY_NAME.get(path.rpartition("/")[2].casefold(), _NO_PARTS)


def _read_or_whole(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except _MANIFEST_ERRORS:
        return text


def _read_test_settings(path: str, text: str, words: frozenset[str]) -> tuple[Any, ...]:
    """What is used, and the settings of runners beside it; nothing of an empty manifest."""
    if not text.strip():
        return ()
    read_settings = _manifest_parts(path).settings
    used = used_manifest_part(path, text, words).strip()
    beside = _read_or_whole(lambda content: read_settings(content, words), text) if read_settings else ""
    return (used, beside) if used or beside else ()


# ── check files ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# The files of a project that a check is made of: a change to one of them opens the gate.
#
# They are the files that the words of a check name, the manifest that its program reads by convention, and the files that
# the used recipe or script of that manifest names. Nothing is followed further: what a script starts is judged by how the
# checks run, on the change and on its variants (docs/adr/0040).
# **Invariant:** pure; a word counts only where it is a path of the tree.


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

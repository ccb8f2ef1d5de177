"""Which changed files decide what runs, and which speak to agents: known by their names alone.

A tool loads such a file without being asked: settings of a runner, a start-up hook, a list of packages. A change to one
opens a gate, however harmless it looks. The tables are data; a test goes through every word of them.
**Invariant:** nothing is read; letter case, forms of Unicode and a leading "./" make no difference.
"""

import re
import unicodedata
from functools import cache, lru_cache

from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.ecosystem import PACKAGES_REASON, DecisionTopic, FileNameRule
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

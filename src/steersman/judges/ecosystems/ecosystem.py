"""What there is to know about an ecosystem, declared once: detection, facts, checks and test infrastructure read it.

Names of files are words in one text, and `*` in them is any part of a name.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from steersman.judges.ecosystems.project import ProjectFiles, SetupProposal
from steersman.judges.facts.finding import FactReader

DecisionTopic = Literal["tests", "dependencies", "ci"]
LINTER_REASON = "a linter or a type checker reads it"
RECIPE_REASON = "make or a task runner executes it"
INSTALLER_REASON = "installing the project executes it"
PACKAGES_REASON = "it says which packages are installed"
INSTALLED_REASON = "installed packages are what the tests run with"


class FileNameRule(msgspec.Struct, frozen=True):
    """One line of a table: why it matters, the file names it is about (`*` is any part), folders at any depth, folders
    that count only at the top, and what it decides about; a linter's settings decide where a check runs the linter, a
    recipe where a check uses it."""

    why: str
    names: str
    folders: str = ""
    top_folders: str = ""
    about: DecisionTopic | Literal["linter", "recipe"] = "tests"


class RunnerSummaryPattern(NamedTuple):
    """One runner's closing lines. Groups: `passed`, `failed`, `ran` (both together), `skipped` and `left` (of those
    that ran), `parts` (numbers with their words); a pattern without a group says that nothing ran. Of those in `ran`
    `good` passed, or all but `failures` and `errors`.
    """

    name: str
    words: str
    nested: bool = False  # the sum is printed for each part and for the whole: the greatest counts


class ManifestParts(msgspec.Struct, frozen=True, kw_only=True):
    """What of a manifest says which packages tests run with, and which tests run and how; a reader may raise."""

    dependencies: Callable[[str], Any] | None = None  # None where the parts cannot be told apart
    # The recipes, scripts and options that are used when words are asked for; all of it where there is no reader.
    used: Callable[[str, frozenset[str]], str] | None = None
    # Of runners, and of the tools that the words name.
    settings: Callable[[str, frozenset[str]], Any] | None = None
    dependency_paths: Callable[[str], Iterable[str]] | None = None  # from which code is taken


COUNT_DIGITS = r"\d{1,9}"
COUNT_WITH_WORD = rf"{COUNT_DIGITS} [a-z]+(?: [a-z]+)?"


def propose_nothing(_: ProjectFiles) -> SetupProposal | None:
    """For what projects of every ecosystem have."""
    return None


class Ecosystem(msgspec.Struct, frozen=True, kw_only=True):
    """One language with its tools."""

    name: str
    # Setup and checks.
    manifests: tuple[str, ...] = ()  # a project has one of them
    proposal_inputs: tuple[str, ...] = ()  # files whose texts proposals depend on
    is_further_input: Callable[[str], bool] | None = None
    is_test: Callable[[str], bool] | None = None  # of tests some are read too, to tell their form
    propose: Callable[[ProjectFiles], SetupProposal | None] = propose_nothing
    covers_below: bool = True  # whether what is proposed at the top covers the folders below
    # Facts.
    fact_readers: tuple[FactReader, ...]
    preferred_runners: tuple[tuple[str, ...], ...] = ()  # of each line the first test command is a check
    # What is installed.
    lock_files: str = ""
    install_inputs: str = ""  # other files that say what is installed
    installed_entries: str = ""  # what package managers create in a tree, beside lock files
    # Changes.
    decisive_files: tuple[FileNameRule, ...] = ()  # a change is shown to a person
    manifest_parts: Mapping[str, ManifestParts] = {}  # by names in small letters
    test_files: str = ""
    # Programs, with the files they take recipes, scripts or options from.
    program_files: Mapping[str, str] = {}
    # Checks that run.
    launchers: str = ""  # programs that start a runner that they are told
    test_runners: str = ""  # programs that do nothing but run tests
    test_subcommands: str = ""  # programs whose subcommand `test` runs tests
    runner_summaries: tuple[RunnerSummaryPattern, ...] = ()
    toolchain_variables: str = ""  # where toolchains are; they install nothing by themselves
    network_variables: str = ""  # for setup: package indexes, which may hold credentials
    cache_directories: Mapping[str, str] = {}  # by their variables, below the home
    offline_variables: Mapping[str, str] = {}  # for checks

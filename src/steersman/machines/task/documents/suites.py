"""What steersman ran for a task, as one report on exactly one tree.

**Invariant:** absence of evidence is failure: no suite, no test, another tree or a doubtful record never pass.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from steersman.contracts.commands import CommandResult, VariantFinding
from steersman.contracts.facts import CheckFacts
from steersman.judges.evidence.baseline import is_known_failure, sound_verdict
from steersman.judges.evidence.check_results import check_key
from steersman.judges.text import clip_text
from steersman.kernel.canonical import digest_of
from steersman.machines.task.documents.schemas import SuiteResult, TestReport
from steersman.machines.task.documents.words import SuiteKind

SuiteVerdict = Literal["passed", "failed", "blocked", "timeout", "no_tests"]

_LINT_WORDS = (
    "ruff flake8 pylint pycodestyle pydocstyle black isort bandit yamllint codespell typos sqlfluff vulture "
    "eslint prettier biome stylelint oxlint xo standard jshint tslint markdownlint markdownlint-cli2 "
    "golangci-lint gofmt gofumpt golint revive clippy fmt rustfmt rubocop standardrb shellcheck shfmt hadolint "
    "actionlint phpcs php-cs-fixer ktlint detekt checkstyle spotless swiftlint swiftformat scalafmt clang-format "
    "credo pre-commit lint linting linter format fmt-check format-check style"
)
_STATIC_CHECKER_WORDS = (
    "mypy dmypy pyright basedpyright pytype pyre pyrefly ty lint-imports import-linter semgrep tsc vue-tsc "
    "svelte-check flow vet staticcheck errcheck govulncheck phpstan psalm clang-tidy cppcheck spotbugs dialyzer "
    "srb steep typecheck type-check typing types static"
)
_LAUNCHER_WORDS = (
    "uv uvx poetry hatch pdm pipenv pipx rye coverage env xvfb-run npx npm pnpm yarn bun bunx bundle make gmake just "
    "task tox nox poe invoke nx turbo mix composer gradle gradlew mvn mvnw cargo go deno run exec run-script x dlx "
    "tool python python3"
)
LINT_PROGRAMS, STATIC_CHECKERS, LAUNCHER_PROGRAMS = (
    frozenset(words.split()) for words in (_LINT_WORDS, _STATIC_CHECKER_WORDS, _LAUNCHER_WORDS)
)
STATIC_CHECK_COMMANDS = frozenset(
    {("cargo", "check"), ("deno", "check"), ("dart", "analyze"), ("flutter", "analyze")}
)
VERDICTS_WORST_FIRST: tuple[SuiteVerdict, ...] = ("timeout", "failed", "no_tests", "blocked")


def classify_suite_command(name: str, argv: Sequence[str], counts_tests: bool) -> SuiteKind:
    """What a command is, by the program that it starts, else by its own name, else by whether it counts tests."""
    for word in (_find_working_program(argv), name.casefold()):
        if word in STATIC_CHECKERS:
            return "static"
        if word in LINT_PROGRAMS:
            return "lint"
    return "test" if counts_tests else "lint"


def _find_working_program(argv: Sequence[str]) -> str:
    """The program or target that does the work: launchers, their words and options are passed over."""
    words = [word.rpartition("/")[2] for word in argv if not word.startswith(("-", "+"))]
    if tuple(words[:2]) in STATIC_CHECK_COMMANDS:
        return "static"
    at_work = (word for word in words if word not in LAUNCHER_PROGRAMS and "=" not in word)
    return next(at_work, "").partition(":")[0].casefold()


def build_task_test_report(
    task_id: str,
    round_: int,
    tree: str,
    results: Sequence[CommandResult],
    facts: CheckFacts,
    no_tests: Collection[str],
    known: Collection[str],
) -> TestReport:
    """Every suite and whether all of them speak for exactly this tree; runs of one command are one suite."""
    groups: dict[tuple[str, ...], list[CommandResult]] = {}
    for result in (run for run in results if not run.variant):
        groups.setdefault((result.name, *result.argv), []).append(result)
    suites = tuple(_build_suite(runs, facts, no_tests, known) for runs in groups.values())
    suites += tuple(
        _build_variant_suite(run, finding)
        for run in results
        for finding in run.findings
        if finding.weight == "failure"
    )
    all_suites_pass = bool(suites) and all(suite.verdict == "passed" or suite.known for suite in suites)
    return TestReport(
        task_id=task_id,
        round=round_,
        tree=tree,
        overall_pass=all_suites_pass and _has_clean_check_facts(facts, tree),
        summary={
            "passed": facts.passed,
            "failed": facts.failed,
            "blocked": facts.blocked,
            "timeout": facts.timeout,
            "no_tests": facts.no_tests,
            "known": facts.known,
            "flaky": facts.flaky,
            "tests": facts.tests,
        },
        suites=suites[:200],
    )


def _has_clean_check_facts(facts: CheckFacts, tree: str) -> bool:
    problem_count = facts.failed + facts.blocked + facts.timeout + facts.no_tests
    return not problem_count and not facts.error and facts.tests > 0 and bool(tree) and facts.tree == tree


def _build_suite(
    runs: Sequence[CommandResult], facts: CheckFacts, no_tests: Collection[str], known: Collection[str]
) -> SuiteResult:
    verdicts = [sound_verdict(run) for run in runs]
    verdict: SuiteVerdict = next((word for word in VERDICTS_WORST_FIRST if word in verdicts), "passed")
    worst_run = runs[verdicts.index(verdict)]
    return SuiteResult(
        name=clip_text(worst_run.name, 400),
        kind=classify_suite_command(worst_run.name, worst_run.argv, worst_run.name not in no_tests),
        argv=tuple(clip_text(word, 4000) for word in worst_run.argv[:64]),
        verdict=verdict,
        exit_code=worst_run.exit_code,
        tests=worst_run.tests,
        known=verdict == "failed" and _is_known_failing_suite(runs, facts, known),
        reason=clip_text(worst_run.reason, 4000),
    )


def _build_variant_suite(result: CommandResult, finding: VariantFinding) -> SuiteResult:
    """A suite that fails on a variant of the tree, as its reason says."""
    return SuiteResult(
        name=clip_text(result.name, 400),
        kind="test",
        argv=tuple(clip_text(word, 4000) for word in result.argv[:64]),
        verdict="failed",
        exit_code=result.exit_code,
        tests=result.tests,
        reason=clip_text("\n".join((finding.sentence, *finding.tests)), 4000),
    )


def _is_known_failing_suite(runs: Sequence[CommandResult], facts: CheckFacts, known: Collection[str]) -> bool:
    """Counted as known, and not as failed, where it was held against the base tree; and acknowledged by name."""
    if not facts.known or digest_of(check_key(runs[0]))[:16] in facts.failed_commands:
        return False
    failing = [run for run in runs if sound_verdict(run) == "failed"]
    return runs[0].name in known or all(
        run.report is not None
        and bool(run.report.failed)
        and all(is_known_failure(name, known) for name in run.report.failed)
        for run in failing
    )

"""What steersman ran for a task, as one report on exactly one tree.

**Invariant:** absence of evidence is failure: no suite, no test, another tree or a doubtful record never pass.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from steersman.contracts.commands import CommandResult, Finding
from steersman.contracts.facts import CheckFacts
from steersman.contracts.task.documents import Suite, TestReport
from steersman.contracts.task.words import Kind
from steersman.judges.baseline import is_known, sound
from steersman.judges.evidence import check_key
from steersman.judges.text import clip
from steersman.kernel.canonical import digest_of

Verdict = Literal["passed", "failed", "blocked", "timeout", "no_tests"]

_LINTS = (
    "ruff flake8 pylint pycodestyle pydocstyle black isort bandit yamllint codespell typos sqlfluff vulture "
    "eslint prettier biome stylelint oxlint xo standard jshint tslint markdownlint markdownlint-cli2 "
    "golangci-lint gofmt gofumpt golint revive clippy fmt rustfmt rubocop standardrb shellcheck shfmt hadolint "
    "actionlint phpcs php-cs-fixer ktlint detekt checkstyle spotless swiftlint swiftformat scalafmt clang-format "
    "credo pre-commit lint linting linter format fmt-check format-check style"
)
_STATICS = (
    "mypy dmypy pyright basedpyright pytype pyre pyrefly ty lint-imports import-linter semgrep tsc vue-tsc "
    "svelte-check flow vet staticcheck errcheck govulncheck phpstan psalm clang-tidy cppcheck spotbugs dialyzer "
    "srb steep typecheck type-check typing types static"
)
_LAUNCHERS = (
    "uv uvx poetry hatch pdm pipenv pipx rye coverage env xvfb-run npx npm pnpm yarn bun bunx bundle make gmake just "
    "task tox nox poe invoke nx turbo mix composer gradle gradlew mvn mvnw cargo go deno run exec run-script x dlx "
    "tool python python3"
)
LINTS, STATICS, LAUNCHERS = (frozenset(words.split()) for words in (_LINTS, _STATICS, _LAUNCHERS))
CHECKERS = frozenset({("cargo", "check"), ("deno", "check"), ("dart", "analyze"), ("flutter", "analyze")})
WORST: tuple[Verdict, ...] = ("timeout", "failed", "no_tests", "blocked")


def kind_of(name: str, argv: Sequence[str], counts_tests: bool) -> Kind:
    """What a command is, by the program that it starts, else by its own name, else by whether it counts tests."""
    for word in (_program(argv), name.casefold()):
        if word in STATICS:
            return "static"
        if word in LINTS:
            return "lint"
    return "test" if counts_tests else "lint"


def _program(argv: Sequence[str]) -> str:
    """The program or target that does the work: launchers, their words and options are passed over."""
    words = [word.rpartition("/")[2] for word in argv if not word.startswith(("-", "+"))]
    if tuple(words[:2]) in CHECKERS:
        return "static"
    at_work = (word for word in words if word not in LAUNCHERS and "=" not in word)
    return next(at_work, "").partition(":")[0].casefold()


def test_report(
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
    for result in (r for r in results if not r.variant):
        groups.setdefault((result.name, *result.argv), []).append(result)
    suites = tuple(_suite(runs, facts, no_tests, known) for runs in groups.values())
    suites += tuple(_variant(r, f) for r in results for f in r.findings if f.weight == "failure")
    spoken = bool(suites) and all(one.verdict == "passed" or one.known for one in suites)
    return TestReport(
        task_id=task_id,
        round=round_,
        tree=tree,
        overall_pass=spoken and _clean(facts, tree),
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


def _clean(facts: CheckFacts, tree: str) -> bool:
    against = facts.failed + facts.blocked + facts.timeout + facts.no_tests
    return not against and not facts.error and facts.tests > 0 and bool(tree) and facts.tree == tree


def _suite(
    runs: Sequence[CommandResult], facts: CheckFacts, no_tests: Collection[str], known: Collection[str]
) -> Suite:
    found = [sound(run) for run in runs]
    verdict: Verdict = next((word for word in WORST if word in found), "passed")
    shown = runs[found.index(verdict)]
    return Suite(
        name=clip(shown.name, 400),
        kind=kind_of(shown.name, shown.argv, shown.name not in no_tests),
        argv=tuple(clip(word, 4000) for word in shown.argv[:64]),
        verdict=verdict,
        exit_code=shown.exit_code,
        tests=shown.tests,
        known=verdict == "failed" and _is_known(runs, facts, known),
        reason=clip(shown.reason, 4000),
    )


def _variant(result: CommandResult, finding: Finding) -> Suite:
    """A suite that fails on a variant of the tree, as its reason says."""
    return Suite(
        name=clip(result.name, 400),
        kind="test",
        argv=tuple(clip(word, 4000) for word in result.argv[:64]),
        verdict="failed",
        exit_code=result.exit_code,
        tests=result.tests,
        reason=clip("\n".join((finding.sentence, *finding.tests)), 4000),
    )


def _is_known(runs: Sequence[CommandResult], facts: CheckFacts, known: Collection[str]) -> bool:
    """Counted as known, and not as failed, where it was held against the base tree; and acknowledged by name."""
    if not facts.known or digest_of(check_key(runs[0]))[:16] in facts.failed_commands:
        return False
    failing = [run for run in runs if sound(run) == "failed"]
    return runs[0].name in known or all(
        run.report is not None
        and bool(run.report.failed)
        and all(is_known(name, known) for name in run.report.failed)
        for run in failing
    )

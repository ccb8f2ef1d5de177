"""What the base's tests say about new code, and what new tests say about the base's code.

The checks run on two variants of a change's tree. "Old tests" has the change's product files and the base's test files.
"New tests" has the base's product files and the change's test files. Both are held against the checks on the base tree
and on the change's own tree.
**Invariant:** pure; a variant can fail a check or ask a person, and never makes a check pass.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from steersman.contracts.commands import CommandResult, VariantFinding
from steersman.contracts.workspace import TouchedPath
from steersman.judges.changes.infrastructure import is_named_as_test, is_test_file, is_test_support
from steersman.judges.evidence.baseline import (
    count_ran_tests,
    has_named_tests,
    is_no_worse_than_base,
    list_result_reports,
    max_test_count,
    sound_verdict,
)

CheckRuns = Sequence[CommandResult]


class ChangedTestFiles(msgspec.Struct, frozen=True):
    """The test files that a change touches: tests, and what only tests use."""

    __test__ = False

    changed: frozenset[str] = frozenset()  # they were there before: changed or removed
    added: frozenset[str] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them, sorted."""
        return tuple(sorted(self.changed | self.added))


def find_changed_test_files(
    touched: Sequence[TouchedPath], base: Iterable[CommandResult], now: Iterable[CommandResult]
) -> ChangedTestFiles:
    """Returns the touched files that are tests: by the runners' reports, then by their names.

    What ran on the change's tree speaks for new files alone: a file of the product stays one when the change puts a
    test into it, or the base's product would be judged in its place.
    """
    before = find_files_with_tests(base)
    ran = before | (find_files_with_tests(now) & {change.path for change in touched if not change.old})
    top_directories = {
        path.partition("/")[0]
        for path in (*ran, *(change.path for change in touched if is_named_as_test(change.path)))
    }
    test_files = [
        change
        for change in touched
        if change.path in ran or is_test_support(change.path) or _is_test_path(change.path, top_directories)
    ]
    return ChangedTestFiles(
        frozenset(change.path for change in test_files if change.old),
        frozenset(change.path for change in test_files if not change.old),
    )


def _is_test_path(path: str, directories: Collection[str]) -> bool:
    """By its name; one that a product may have too counts in a folder that has tests."""
    return is_test_file(path, loose=False) or (is_test_file(path) and path.partition("/")[0] in directories)


def find_files_with_tests(results: Iterable[CommandResult]) -> frozenset[str]:
    """Returns the files of the tree from which tests ran, as the runners told."""
    return frozenset(file for result in results if result.report is not None for file in result.report.files)


def has_new_passing_tests(now: CheckRuns, base: CheckRuns) -> bool:
    """Whether a test passed that the base tree does not know by name."""
    return bool(_find_new_tests(now, base))


def judge_old_tests_variant(
    now: CheckRuns, base: CheckRuns, variant: CheckRuns, tests: ChangedTestFiles
) -> tuple[VariantFinding, ...]:
    """Returns what the base's tests say about the new code, for one check."""
    if not has_named_tests(base) or not has_named_tests(now):
        return _judge_variant_counts(now, base, variant, tests)
    lost = _find_lost_tests(now, base, variant)
    passed = Counter(name for report in list_result_reports(base) for name in report.passed)
    rewritten = [name for name in lost if _is_rewritten_test(name, base, tests)]
    before = [name for name in rewritten if name in passed]
    after = [name for name in rewritten if name not in passed]
    passes = {name for report in list_result_reports(now) for name in report.passed}
    others = [name for name in lost if name not in rewritten and name in passes]
    if rewritten and any(report.broken for report in list_result_reports(variant)):
        # A rewritten file that cannot be loaded keeps others from running: only what ran there has failed.
        failed = {name for report in list_result_reports(variant) for name in report.failed}
        others = [name for name in others if name in failed]
    findings = [
        _build_variant_finding("question", before, "passed before and fail{s} with the new code; the change rewrites {them}"),
        _build_variant_finding("question", after, "failed before and still fail{s} with the new code; the change rewrites {them}"),
        _build_variant_finding("failure", others, "pass{es} only because of the change's other test files; the change does not touch {them}"),
    ]  # fmt: skip
    return tuple(finding for finding in findings if finding is not None)


def judge_new_tests_variant(
    now: CheckRuns, base: CheckRuns, variant: CheckRuns
) -> tuple[VariantFinding, ...]:
    """Returns which new tests pass with the base's code too, for one check."""
    passed = {name for report in list_result_reports(variant) for name in report.passed}
    names = sorted(_find_new_tests(now, base) & passed)
    finding = _build_variant_finding(
        "note", names, "pass{es} on the base's code too and prove{s} nothing about the change", new=True
    )
    return () if finding is None else (finding,)


def _find_new_tests(now: CheckRuns, base: CheckRuns) -> set[str]:
    known = {
        name
        for report in list_result_reports(base)
        for name in (*report.passed, *report.failed, *report.skipped)
    }
    return {name for report in list_result_reports(now) for name in report.passed} - known


def _find_lost_tests(now: CheckRuns, base: CheckRuns, variant: CheckRuns) -> list[str]:
    """What ran on the base tree and does not pass in the variant, unless it fails in the change's own tree too."""
    passed: Counter[str] = Counter()
    for report in list_result_reports(variant):
        passed |= Counter(report.passed)
    failing = {name for report in list_result_reports(now) for name in report.failed}
    lost = [name for name in (count_ran_tests(base) - passed).elements() if name not in failing]
    broken = {name for report in list_result_reports(base) for name in report.broken} - failing
    still = {name for report in list_result_reports(variant) for name in report.broken}
    return sorted([*lost, *(broken & still)])


def _is_rewritten_test(name: str, base: CheckRuns, tests: ChangedTestFiles) -> bool:
    """Whether the change touches the file of a test, or support that was there before: a helper, data, a fixture."""
    files = {
        file for report in list_result_reports(base) for file, names in report.files.items() if name in names
    }
    support = tests.changed - find_files_with_tests(base)
    return bool(support) or not tests.changed.isdisjoint(files)


def _judge_variant_counts(
    now: CheckRuns, base: CheckRuns, variant: CheckRuns, tests: ChangedTestFiles
) -> tuple[VariantFinding, ...]:
    """Without names the check as a whole is compared: its verdict, and how many tests it counted."""
    passed_before = any(sound_verdict(result) == "passed" for result in base)
    ran_before = max_test_count(base)
    passes = any(sound_verdict(result) == "passed" for result in variant)
    if passes and max_test_count(variant) >= ran_before:
        return ()
    if all(sound_verdict(result) == "failed" for result in (*now, *base)) and is_no_worse_than_base(
        variant, base
    ):
        return ()  # acknowledged as a whole, or variants would not have been run: it fails as it did
    if not passed_before and not ran_before and not tests.changed:
        return ()  # there were no tests yet
    outcome = "it passed before and fails" if passed_before else "it failed before and still fails"
    return (
        VariantFinding(
            "question", f"{outcome} with the base's tests and the new code; the change touches tests"
        ),
    )


def _build_variant_finding(
    weight: str, names: Collection[str], words: str, *, new: bool = False
) -> VariantFinding | None:
    if not names:
        return None
    is_single = len(names) == 1
    sentence = words.format(
        s="s" if is_single else "", es="es" if is_single else "", them="it" if is_single else "them"
    )
    noun = f"{'new ' if new else ''}{'test' if is_single else 'tests'}"
    return msgspec.convert(
        {"weight": weight, "sentence": f"{len(names)} {noun} {sentence}", "tests": tuple(names)},
        VariantFinding,
    )

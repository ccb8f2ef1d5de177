"""What the base's tests say about new code, and what new tests say about the base's code.

The checks run on two variants of a change's tree. "Old tests" has the change's product files and the base's test files.
"New tests" has the base's product files and the change's test files. Both are held against the checks on the base tree
and on the change's own tree.
**Invariant:** pure; a variant can fail a check or ask a person, and never makes a check pass.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from steersman.contracts.commands import CommandResult, Finding
from steersman.contracts.workspace import Touched
from steersman.judges.baseline import fails_no_worse, has_names, most_tests, ran_tests, reports_of, sound
from steersman.judges.infrastructure import is_named_as_test, is_test_file, is_test_support

Runs = Sequence[CommandResult]


class TestFiles(msgspec.Struct, frozen=True):
    """The test files that a change touches: tests, and what only tests use."""

    __test__ = False

    changed: frozenset[str] = frozenset()  # they were there before: changed or removed
    added: frozenset[str] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them, sorted."""
        return tuple(sorted(self.changed | self.added))


def find_test_files(
    touched: Sequence[Touched], base: Iterable[CommandResult], now: Iterable[CommandResult]
) -> TestFiles:
    """Returns the touched files that are tests: by the runners' reports, then by their names.

    What ran on the change's tree speaks for new files alone: a file of the product stays one when the change puts a
    test into it, or the base's product would be judged in its place.
    """
    before = files_with_tests(base)
    ran = before | (files_with_tests(now) & {t.path for t in touched if not t.old})
    tops = {path.partition("/")[0] for path in (*ran, *(t.path for t in touched if is_named_as_test(t.path)))}
    found = [t for t in touched if t.path in ran or is_test_support(t.path) or _is_test(t.path, tops)]
    return TestFiles(frozenset(t.path for t in found if t.old), frozenset(t.path for t in found if not t.old))


def _is_test(path: str, tops: Collection[str]) -> bool:
    """By its name; one that a product may have too counts in a folder that has tests."""
    return is_test_file(path, loose=False) or (is_test_file(path) and path.partition("/")[0] in tops)


def files_with_tests(results: Iterable[CommandResult]) -> frozenset[str]:
    """Returns the files of the tree from which tests ran, as the runners told."""
    return frozenset(file for r in results if r.report is not None for file in r.report.files)


def has_new_tests(now: Runs, base: Runs) -> bool:
    """Whether a test passed that the base tree does not know by name."""
    return bool(_new_tests(now, base))


def judge_old_tests(now: Runs, base: Runs, variant: Runs, tests: TestFiles) -> tuple[Finding, ...]:
    """Returns what the base's tests say about the new code, for one check."""
    if not has_names(base) or not has_names(now):
        return _judge_counts(now, base, variant, tests)
    lost = _lost_tests(now, base, variant)
    passed = Counter(name for report in reports_of(base) for name in report.passed)
    rewritten = [name for name in lost if _is_rewritten(name, base, tests)]
    before = [name for name in rewritten if name in passed]
    after = [name for name in rewritten if name not in passed]
    passes = {name for report in reports_of(now) for name in report.passed}
    others = [name for name in lost if name not in rewritten and name in passes]
    if rewritten and any(report.broken for report in reports_of(variant)):
        # A rewritten file that cannot be loaded keeps others from running: only what ran there has failed.
        failed = {name for report in reports_of(variant) for name in report.failed}
        others = [name for name in others if name in failed]
    found = [
        _finding("question", before, "passed before and fail{s} with the new code; the change rewrites {them}"),
        _finding("question", after, "failed before and still fail{s} with the new code; the change rewrites {them}"),
        _finding("failure", others, "pass{es} only because of the change's other test files; the change does not touch {them}"),
    ]  # fmt: skip
    return tuple(f for f in found if f is not None)


def judge_new_tests(now: Runs, base: Runs, variant: Runs) -> tuple[Finding, ...]:
    """Returns which new tests pass with the base's code too, for one check."""
    passed = {name for report in reports_of(variant) for name in report.passed}
    names = sorted(_new_tests(now, base) & passed)
    found = _finding(
        "note", names, "pass{es} on the base's code too and prove{s} nothing about the change", new=True
    )
    return () if found is None else (found,)


def _new_tests(now: Runs, base: Runs) -> set[str]:
    known = {
        name for report in reports_of(base) for name in (*report.passed, *report.failed, *report.skipped)
    }
    return {name for report in reports_of(now) for name in report.passed} - known


def _lost_tests(now: Runs, base: Runs, variant: Runs) -> list[str]:
    """What ran on the base tree and does not pass in the variant, unless it fails in the change's own tree too."""
    passed: Counter[str] = Counter()
    for report in reports_of(variant):
        passed |= Counter(report.passed)
    failing = {name for report in reports_of(now) for name in report.failed}
    lost = [name for name in (ran_tests(base) - passed).elements() if name not in failing]
    broken = {name for report in reports_of(base) for name in report.broken} - failing
    still = {name for report in reports_of(variant) for name in report.broken}
    return sorted([*lost, *(broken & still)])


def _is_rewritten(name: str, base: Runs, tests: TestFiles) -> bool:
    """Whether the change touches the file of a test, or support that was there before: a helper, data, a fixture."""
    files = {file for r in reports_of(base) for file, names in r.files.items() if name in names}
    support = tests.changed - files_with_tests(base)
    return bool(support) or not tests.changed.isdisjoint(files)


def _judge_counts(now: Runs, base: Runs, variant: Runs, tests: TestFiles) -> tuple[Finding, ...]:
    """Without names the check as a whole is compared: its verdict, and how many tests it counted."""
    passed_before = any(sound(r) == "passed" for r in base)
    ran_before = most_tests(base)
    passes = any(sound(r) == "passed" for r in variant)
    if passes and most_tests(variant) >= ran_before:
        return ()
    if all(sound(r) == "failed" for r in (*now, *base)) and fails_no_worse(variant, base):
        return ()  # acknowledged as a whole, or variants would not have been run: it fails as it did
    if not passed_before and not ran_before and not tests.changed:
        return ()  # there were no tests yet
    said = "it passed before and fails" if passed_before else "it failed before and still fails"
    return (Finding("question", f"{said} with the base's tests and the new code; the change touches tests"),)


def _finding(weight: str, names: Collection[str], words: str, *, new: bool = False) -> Finding | None:
    if not names:
        return None
    one = len(names) == 1
    told = words.format(s="s" if one else "", es="es" if one else "", them="it" if one else "them")
    noun = f"{'new ' if new else ''}{'test' if one else 'tests'}"
    return msgspec.convert(
        {"weight": weight, "sentence": f"{len(names)} {noun} {told}", "tests": tuple(names)}, Finding
    )

"""What a round of commands proves, judged from what steersman recorded itself.

**Invariant:** absence of evidence is failure: no results, zero tests or a timeout never pass.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from steersman.contracts.commands import CommandResult, VariantFinding, full_output
from steersman.contracts.workspace import TouchedPath
from steersman.judges.changes.infrastructure import is_named_as_test, is_test_file, is_test_support
from steersman.judges.evidence.baseline import (
    CheckJudgement,
    count_ran_tests,
    has_named_tests,
    is_acknowledged_as_whole,
    is_no_worse_than_base,
    judge_check,
    list_result_reports,
    max_test_count,
    sound_verdict,
)
from steersman.judges.evidence.runner_reports import NO_TEST_COUNT_REASON
from steersman.judges.text import clip_text, count_with_noun, printable_text

RoundResults = Sequence[CommandResult]
RUNS_NO_TESTS_REASON = (
    "its exit code is 0, but it runs no tests (`no_tests` in steersman.toml), and without a test nothing is approved:"
    " add a check that runs tests under [checks]"
)
ACKNOWLEDGED_AS_WHOLE = "is acknowledged as a whole"
MAX_NAMED_TESTS = 40  # tests that are told by name

_OUTPUT_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
# Addresses, times, durations, process numbers and temporary paths change while a failure stays the same.
_VARYING_OUTPUT = re.compile(r"0x[0-9a-f]+|/tmp/\S+|\d+", re.IGNORECASE)


class RoundEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One round's results, counted beside those of the base tree."""

    passed: int
    failed: int
    blocked: int
    timeout: int
    no_tests: int
    known: int
    flaky: int
    tests: int  # that speak for a pass; a check whose exit code is enough by choice counts as one
    missing: int  # tests that ran on the base tree and did not run now
    doubts: int
    failed_commands: tuple[str, ...]
    failure_keys: tuple[str, ...]
    first: CommandResult | None  # the first that has failed, or else has not passed, or else proves nothing
    questions: tuple[str, ...]  # what a person should look at before this counts, in words


def explain_unproven_results(results: RoundResults, no_tests: Collection[str] = ()) -> list[CommandResult]:
    """The same results; where all passed and no test was counted, each check of the project says why that is no proof.

    `no_tests` are the checks that run none, by name: of them nothing else was to be expected.
    """
    if any(result.tests or result.exit_code_only for result in results) or any(
        sound_verdict(result) != "passed" for result in results
    ):
        return list(results)
    return [_explain_unproven_result(r, no_tests) if r.source == "project" else r for r in results]


def _explain_unproven_result(result: CommandResult, no_tests: Collection[str]) -> CommandResult:
    if result.name in no_tests:
        return msgspec.structs.replace(result, reason=RUNS_NO_TESTS_REASON)
    return msgspec.structs.replace(result, verdict="no_tests", reason=NO_TEST_COUNT_REASON)


def note_acknowledged_checks(
    results: RoundResults, base: RoundResults | None, known: frozenset[str]
) -> list[CommandResult]:
    """The same results; a check that is acknowledged as a whole says what speaks for it and what is not judged."""
    before, notes = _group_by_command(base or ()), {}
    for key, runs in _group_by_command(results).items():
        judgement = judge_check(runs, before.get(key), known)
        if is_acknowledged_as_whole(runs, judgement):
            passed = f"{count_with_noun(judgement.tests, 'test')} passed"
            notes[key] = f"check {judgement.name} {ACKNOWLEDGED_AS_WHOLE}: {passed}, its failures are not judged by name"  # fmt: skip
    return [_append_result_note(result, notes.get((result.name, *result.argv), "")) for result in results]


def _append_result_note(result: CommandResult, note: str) -> CommandResult:
    return (
        msgspec.structs.replace(result, reason="; ".join(filter(None, (result.reason, note))))
        if note
        else result
    )


def weigh_check_results(
    results: RoundResults, base: RoundResults | None = None, known: frozenset[str] = frozenset()
) -> RoundEvidence:
    """Counts a round; `base` are the results on the base tree, None where there are none.

    Results of the same command are runs of it on the same tree.
    """
    groups = _group_by_command([result for result in results if not result.variant])
    before = _group_by_command(base or ())
    findings = [(result, finding) for result in results for finding in result.findings]
    judgements = [judge_check(runs, before.get(key), known) for key, runs in groups.items()]
    failing = _list_judged_results(groups.values(), judgements, _FAILED_VERDICTS)
    failing += [
        msgspec.structs.replace(result, reason=_render_variant_finding(finding))
        for result, finding in findings
        if finding.weight == "failure"
    ]
    unresolved = _list_judged_results(groups.values(), judgements, _OPEN_VERDICTS)
    verdicts = [judgement.verdict for judgement in judgements]
    tests = sum(j.tests for j in judgements if j.verdict in ("passed", "known", "flaky"))
    return RoundEvidence(
        passed=verdicts.count("passed"),
        failed=verdicts.count("failed") + sum(finding.weight == "failure" for _, finding in findings),
        blocked=verdicts.count("blocked"),
        timeout=verdicts.count("timeout"),
        no_tests=verdicts.count("no_tests"),
        known=verdicts.count("known"),
        flaky=verdicts.count("flaky"),
        tests=tests,
        missing=sum(judgement.missing for judgement in judgements),
        doubts=sum(bool(j.doubt) + bool(j.silent) + bool(j.tampered) for j in judgements)
        + sum(finding.weight == "question" for _, finding in findings),
        failed_commands=tuple(dict.fromkeys(map(check_key, failing))),
        failure_keys=tuple(dict.fromkeys(failure_key(r, output_digest(full_output(r))) for r in failing)),
        first=next(iter((*failing, *unresolved, *(results if tests == 0 else ()))), None),
        questions=(
            *(line for judgement in judgements for line in _list_evidence_questions(judgement)),
            *(
                line
                for result, finding in findings
                for line in (
                    f"{_base_check_name(result)}: {finding.sentence}",
                    *_list_test_names(finding.tests),
                )
            ),
        ),
    )


def _list_judged_results(
    groups: Iterable[Sequence[CommandResult]], judgements: Iterable[CheckJudgement], verdicts: Collection[str]
) -> list[CommandResult]:
    """The first run of each command that was judged with one of these verdicts."""
    return [runs[0] for runs, j in zip(groups, judgements, strict=True) if j.verdict in verdicts]


def _base_check_name(result: CommandResult) -> str:
    return result.name.removesuffix(f" ({result.variant})")


def _render_variant_finding(finding: VariantFinding) -> str:
    return "\n".join((finding.sentence, *_list_test_names(finding.tests)))


_FAILED_VERDICTS = ("failed", "timeout", "no_tests")
_OPEN_VERDICTS = ("blocked", "flaky")


def _group_by_command(results: RoundResults) -> Mapping[tuple[str, ...], list[CommandResult]]:
    groups: dict[tuple[str, ...], list[CommandResult]] = {}
    for result in results:
        groups.setdefault((result.name, *result.argv), []).append(result)
    return groups


def _list_evidence_questions(judgement: CheckJudgement) -> list[str]:
    questions = [f"{judgement.name}: {judgement.doubt}"] if judgement.doubt else []
    if (missing_count := judgement.missing - len(judgement.skipped)) > 0:
        questions.append(
            f"{judgement.name}: {count_with_noun(missing_count, 'test')} that ran before {_agreeing_verb(missing_count)} gone"
        )
        questions += _list_test_names(judgement.vanished)
    if judgement.skipped:
        questions.append(
            f"{judgement.name}: {count_with_noun(len(judgement.skipped), 'test')} that ran before {_agreeing_verb(len(judgement.skipped))} skipped now"
        )
        questions += _list_test_names(judgement.skipped)
    questions += [
        f"{judgement.name}: {printable_text(clip_text(line, 400))}"
        for line in judgement.tampered[:MAX_NAMED_TESTS]
    ]
    if judgement.silent:
        questions.append(
            f"{judgement.name}: {len(judgement.silent)} broke on the base tree and have no test that passes now,"
            " or are skipped now in what broke there"
        )
        questions += _list_test_names(judgement.silent)
    return questions


def _agreeing_verb(count: int) -> str:
    return "is" if count == 1 else "are"


def _list_test_names(names: Sequence[str]) -> list[str]:
    lines = [f"    {printable_text(clip_text(name, 200))}" for name in names[:MAX_NAMED_TESTS]]
    return [*lines, f"    and {len(names) - MAX_NAMED_TESTS} more"] if len(names) > MAX_NAMED_TESTS else lines


def check_key(result: CommandResult) -> str:
    """One command for those who compare failures: the same argv in another folder is another command."""
    return command_key((f"{result.cwd}:", *result.argv) if result.cwd else result.argv)


def command_key(argv: Sequence[str]) -> str:
    """The argv as one line that splits back into the same argv."""
    return shlex.join(argv)


def failure_key(result: CommandResult, digest: str) -> str:
    """Equal for the same command that fails in the same way."""
    exit_code = "-" if result.exit_code is None else result.exit_code
    return f"{command_key(result.argv)} #{result.verdict} {exit_code} {digest}"


def output_digest(output: str) -> str:
    """Sixteen hex digits, the same for outputs that differ only in what shifts from run to run."""
    lines = _VARYING_OUTPUT.sub("#", _OUTPUT_ESCAPES.sub("", output)).split()
    return hashlib.sha256(" ".join(lines).encode("utf-8", "backslashreplace")).hexdigest()[:16]


# ── variants ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# What the base's tests say about new code, and what new tests say about the base's code.
#
# The checks run on two variants of a change's tree. "Old tests" has the change's product files and the base's test files.
# "New tests" has the base's product files and the change's test files. Both are held against the checks on the base tree
# and on the change's own tree.
# **Invariant:** pure; a variant can fail a check or ask a person, and never makes a check pass.


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

"""What a round of commands proves, judged from what steersman recorded itself.

**Invariant:** absence of evidence is failure: no results, zero tests or a timeout never pass.
"""

import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from steersman.contracts.commands import CommandResult, Finding, full_output
from steersman.judges.baseline import Judged, acknowledged_as_whole, judge_check, sound
from steersman.judges.reports import NOT_TOLD
from steersman.judges.text import clip, count_of, printable

Runs = Sequence[CommandResult]
RUNS_NONE = (
    "its exit code is 0, but it runs no tests (`no_tests` in steersman.toml), and without a test nothing is approved:"
    " add a check that runs tests under [checks]"
)
AS_WHOLE = "is acknowledged as a whole"
NAMED = 40  # tests that are told by name

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
# Addresses, times, durations, process numbers and temporary paths change while a failure stays the same.
_SHIFTING = re.compile(r"0x[0-9a-f]+|/tmp/\S+|\d+", re.IGNORECASE)


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
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


def told(results: Runs, no_tests: Collection[str] = ()) -> list[CommandResult]:
    """The same results; where all passed and no test was counted, each check of the project says why that is no proof.

    `no_tests` are the checks that run none, by name: of them nothing else was to be expected.
    """
    if any(r.tests or r.exit_code_only for r in results) or any(sound(r) != "passed" for r in results):
        return list(results)
    return [_unproven(r, no_tests) if r.source == "project" else r for r in results]


def _unproven(r: CommandResult, no_tests: Collection[str]) -> CommandResult:
    if r.name in no_tests:
        return msgspec.structs.replace(r, reason=RUNS_NONE)
    return msgspec.structs.replace(r, verdict="no_tests", reason=NOT_TOLD)


def note_acknowledged(results: Runs, base: Runs | None, known: frozenset[str]) -> list[CommandResult]:
    """The same results; a check that is acknowledged as a whole says what speaks for it and what nobody judges."""
    before, notes = _grouped(base or ()), {}
    for key, runs in _grouped(results).items():
        judged = judge_check(runs, before.get(key), known)
        if acknowledged_as_whole(runs, judged):
            passed = f"{count_of(judged.tests, 'test')} passed"
            notes[key] = f"check {judged.name} {AS_WHOLE}: {passed}, its failures are not judged by name"  # fmt: skip
    return [_with_note(r, notes.get((r.name, *r.argv), "")) for r in results]


def _with_note(r: CommandResult, note: str) -> CommandResult:
    return msgspec.structs.replace(r, reason="; ".join(filter(None, (r.reason, note)))) if note else r


def weigh(results: Runs, base: Runs | None = None, known: frozenset[str] = frozenset()) -> Weighed:
    """Counts a round; `base` are the results on the base tree, None where there are none.

    Results of the same command are runs of it on the same tree.
    """
    groups, before = _grouped([r for r in results if not r.variant]), _grouped(base or ())
    findings = [(r, f) for r in results for f in r.findings]
    judged = [judge_check(runs, before.get(key), known) for key, runs in groups.items()]
    bad = [runs[0] for runs, j in zip(groups.values(), judged, strict=True) if j.verdict in _FAILED]
    bad += [msgspec.structs.replace(r, reason=_said(f)) for r, f in findings if f.weight == "failure"]
    open_ = [runs[0] for runs, j in zip(groups.values(), judged, strict=True) if j.verdict in _OPEN]
    found = [j.verdict for j in judged]
    tests = sum(j.tests for j in judged if j.verdict in ("passed", "known", "flaky"))
    return Weighed(
        passed=found.count("passed"),
        failed=found.count("failed") + sum(f.weight == "failure" for _, f in findings),
        blocked=found.count("blocked"),
        timeout=found.count("timeout"),
        no_tests=found.count("no_tests"),
        known=found.count("known"),
        flaky=found.count("flaky"),
        tests=tests,
        missing=sum(j.missing for j in judged),
        doubts=sum(bool(j.doubt) + bool(j.silent) + bool(j.tampered) for j in judged)
        + sum(f.weight == "question" for _, f in findings),
        failed_commands=_once(check_key(r) for r in bad),
        failure_keys=_once(failure_key(r, output_digest(full_output(r))) for r in bad),
        first=next(iter((*bad, *open_, *(results if tests == 0 else ()))), None),
        questions=(
            *(line for j in judged for line in _questions(j)),
            *(line for r, f in findings for line in (f"{_check_name(r)}: {f.sentence}", *_listed(f.tests))),
        ),
    )


def _check_name(r: CommandResult) -> str:
    return r.name.removesuffix(f" ({r.variant})")


def _said(f: Finding) -> str:
    return "\n".join((f.sentence, *_listed(f.tests)))


_FAILED = ("failed", "timeout", "no_tests")
_OPEN = ("blocked", "flaky")


def _grouped(results: Runs) -> Mapping[tuple[str, ...], list[CommandResult]]:
    groups: dict[tuple[str, ...], list[CommandResult]] = {}
    for r in results:
        groups.setdefault((r.name, *r.argv), []).append(r)
    return groups


def _questions(j: Judged) -> list[str]:
    told = [f"{j.name}: {j.doubt}"] if j.doubt else []
    if (gone := j.missing - len(j.skipped)) > 0:
        told.append(f"{j.name}: {count_of(gone, 'test')} that ran before {_verb(gone)} gone")
        told += _listed(j.vanished)
    if j.skipped:
        told.append(
            f"{j.name}: {count_of(len(j.skipped), 'test')} that ran before {_verb(len(j.skipped))} skipped now"
        )
        told += _listed(j.skipped)
    told += [f"{j.name}: {printable(clip(line, 400))}" for line in j.tampered[:NAMED]]
    if j.silent:
        told.append(
            f"{j.name}: {len(j.silent)} broke on the base tree and have no test that passes now,"
            " or are skipped now in what broke there"
        )
        told += _listed(j.silent)
    return told


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


def _listed(names: Sequence[str]) -> list[str]:
    told = [f"    {printable(clip(name, 200))}" for name in names[:NAMED]]
    return [*told, f"    and {len(names) - NAMED} more"] if len(names) > NAMED else told


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
    lines = _SHIFTING.sub("#", _ESCAPES.sub("", output)).split()
    return hashlib.sha256(" ".join(lines).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

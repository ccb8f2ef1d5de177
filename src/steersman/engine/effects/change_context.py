"""Reads what a change is judged by, within bounds: the base tree, the files of its checks, and its texts.

**Invariant:** everything comes from recorded commits; the judges decide what it means.
"""

import asyncio
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from steersman.contracts.commands import Argv, Command, CommandResult, VariantFinding
from steersman.contracts.workspace import Change
from steersman.engine.effects import EffectCall
from steersman.engine.project_files import program_roles
from steersman.judges.changes.infrastructure import (
    find_check_files,
    find_check_manifests,
    find_dependency_paths_outside,
    list_used_check_words,
)
from steersman.judges.changes.review_reasons import (
    ChangeContext,
    SuspiciousFile,
    find_agent_instructions,
    find_gating_files,
    find_suspicious_files,
    render_suspicious_files,
)
from steersman.judges.evidence.check_results import (
    ChangedTestFiles,
    find_changed_test_files,
    find_files_with_tests,
    has_new_passing_tests,
    judge_new_tests_variant,
    judge_old_tests_variant,
    weigh_check_results,
)
from steersman.kernel.snapshot import runtime_field
from steersman.ports.workspace import Workspace

if TYPE_CHECKING:
    from steersman.judges.planning.plan_bounds import PlanBounds


MAX_TEXT_BYTES = 256 << 10  # bytes of one changed file that are read
MAX_ALL_TEXTS_BYTES = 8 << 20


def read_change_context(
    workspace: Workspace,
    base: str,
    change: Change,
    checks: Sequence[Argv],
    base_results: Sequence[CommandResult] = (),
    programs: Mapping[str, str] | None = None,
) -> ChangeContext:
    """Reads the context of a change; `base_results` are the checks' results on the base tree."""
    base_files = frozenset(workspace.paths(base))
    files = [t.path for t in change.touched if t.kind == "file"]
    old_texts, new_texts = (
        {t.path: t for t in workspace.read_texts(commit, files, MAX_TEXT_BYTES, MAX_ALL_TEXTS_BYTES)}
        for commit in (base, change.commit)
    )
    texts = {
        t.path: t
        for t in workspace.read_texts(
            base, find_check_manifests(checks, base_files), MAX_TEXT_BYTES, MAX_ALL_TEXTS_BYTES
        )
    }
    check_files = find_check_files(checks, base_files.union(change.files), texts)
    examples = frozenset(file for r in base_results if r.report is not None for file in r.report.examples)
    links = workspace.link_targets(change.commit)
    base_links = workspace.link_targets(base) if links else {}
    test_files, words = find_files_with_tests(base_results), list_used_check_words(checks, texts)
    return ChangeContext(
        base_files,
        check_files,
        words,
        old_texts,
        new_texts,
        test_files,
        examples,
        links,
        base_links,
        programs or {},
    )


def find_code_outside_tree(workspace: Workspace, commit: str) -> str:
    """Returns the first path outside the tree from which a manifest of go or cargo takes code, or nothing."""
    manifests = [
        p for p in workspace.paths(commit) if p.rpartition("/")[2] in ("go.mod", "go.work", "Cargo.toml")
    ]
    texts = workspace.read_texts(commit, manifests, MAX_TEXT_BYTES, MAX_ALL_TEXTS_BYTES)
    return next((place for t in texts for place in find_dependency_paths_outside(t.path, t.content)), "")


# ── suspicious files ────────────────────────────────────────────────────────────────────────────────────────────────────

# Finds what in a change decides about tests or agents.
#
# **Invariant:** every such file is reported; the project's rules alone decide whether the change needs a person.


def find_change_suspects(
    call: EffectCall, workspace: Workspace, change: Change
) -> tuple[SuspiciousFile, ...]:
    """Returns the files of a change that could weaken checks or instruct agents."""
    checks = tuple(check.run for check in call.config.checks.values())
    commands = (*checks, *(step.run for step in call.config.worktree.setup))
    change_context = read_change_context(
        workspace,
        call.given("base"),
        change,
        commands,
        _decode_base_results(call),
        program_roles(call.config),
    )
    return find_suspicious_files(change.touched, commands, change_context)


def _decode_base_results(call: EffectCall) -> list[CommandResult]:
    """Returns the results of the checks on the base tree."""
    ref = call.given("baseline")
    return msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else []


def count_suspects(
    call: EffectCall, change: Change, suspects_found: tuple[SuspiciousFile, ...]
) -> dict[str, Any]:
    """Returns how many of them need a person, and all of them as text."""
    put, instruction_files = call.payloads.add_text, find_agent_instructions(change.touched)
    return {
        "infrastructure": len(find_gating_files(suspects_found, call.config.rules.changed_tests)),
        "infrastructure_ref": put(render_suspicious_files(suspects_found)),
        "instructions_ref": put(json.dumps(instruction_files)) if instruction_files else "",
    }


# ── variants ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Runs the checks again on variants of a change's tree: the base's tests with new code, new tests with the base's code.
#
# A change that touches no test file costs nothing here.
# **Invariant:** a variant's result is marked as one and never counts as evidence for the tree that would be delivered.


VariantName = Literal["old tests", "new tests"]
CommandResults = list[CommandResult]


class CheckRound(Protocol):
    """Runs commands on one recorded commit, each journaled as a part of the effect."""

    def __init__(self, call: EffectCall, commit: str = "", label: str = "") -> None: ...

    async def all(
        self, commands: list[Command], base: CommandResults | None, *, again: bool = True
    ) -> CommandResults:
        """Runs each command, `again` where it fails, and returns its results."""
        ...


async def run_variants(
    call: EffectCall,
    round_of: type[CheckRound],
    commands: Sequence[Command],
    results: CommandResults,
    base: CommandResults | None,
) -> CommandResults:
    """Returns the judged results of the checks on the variants; nothing where variants could not add anything."""
    if base is None or not call.given("base") or _has_failed_already(call, results, base):
        return []
    workspace = call.world.workspace(call.config)
    change = await asyncio.to_thread(workspace.change, call.given("commit"), call.given("base"))
    tests = find_changed_test_files(change.touched, base, results)
    if not tests.paths:
        return []
    runner = _VariantRunner(call, workspace, round_of, change, tests)
    judged_results: CommandResults = []
    for command in commands:
        change_results = _results_for_command(command, results)
        base_results = _results_for_command(command, base)
        if not command.tests or not base_results or not any(r.tests for r in change_results):
            continue
        old_test_results = await runner.run("old tests", command, base_results)
        findings = tuple(
            _apply_changed_tests_rule(f, call)
            for f in judge_old_tests_variant(change_results, base_results, old_test_results, tests)
        )
        judged_results += _mark_variant_results("old tests", old_test_results, findings, command)
        if has_new_passing_tests(change_results, base_results):
            new_test_results = await runner.run("new tests", command, change_results)
            judged_results += _mark_variant_results(
                "new tests",
                new_test_results,
                judge_new_tests_variant(change_results, base_results, new_test_results),
                command,
            )
    return judged_results


def _has_failed_already(call: EffectCall, results: CommandResults, base: CommandResults) -> bool:
    """Whether the change's own tree has failed already."""
    weighed = weigh_check_results(results, base, frozenset(call.config.known_failures))
    return weighed.failed + weighed.blocked + weighed.timeout + weighed.no_tests > 0 or not weighed.tests


class _VariantRunner:
    """Makes each variant once and runs commands on it."""

    def __init__(
        self,
        call: EffectCall,
        workspace: Any,
        round_of: type[CheckRound],
        change: Change,
        tests: ChangedTestFiles,
    ) -> None:
        self._call, self._workspace, self._round_of = call, workspace, round_of
        self._change, self._tests = change, tests
        self._rounds: dict[VariantName, tuple[CheckRound, str]] = {}

    async def run(self, variant: VariantName, command: Command, same: CommandResults) -> CommandResults:
        """Runs one command; `same` are its results where the change touches nothing but tests."""
        if len(self._tests.paths) == len(self._change.touched):
            return same
        if variant not in self._rounds:
            self._rounds[variant] = await self._composed(variant)
        round_, tree = self._rounds[variant]
        variant_results = await round_.all([command], same, again=variant == "old tests")
        return [replace(r, tree=tree) for r in variant_results]

    async def _composed(self, variant: VariantName) -> tuple[CheckRound, str]:
        call = self._call
        commits = (call.given("commit"), call.given("base"))
        kept_commit, other_commit = commits if variant == "old tests" else reversed(commits)
        label = f"{variant.replace(' ', '-')}-{call.effect.split(':')[1]}"
        composed = await asyncio.to_thread(
            self._workspace.compose, call.run, kept_commit, other_commit, self._tests.paths, label
        )
        return self._round_of(call, composed.commit, variant), composed.tree


def _apply_changed_tests_rule(finding: VariantFinding, call: EffectCall) -> VariantFinding:
    """Turns a question into a note where the settings only show changed tests."""
    is_only_shown = call.config.rules.changed_tests == "show" and finding.weight == "question"
    return replace(finding, weight="note") if is_only_shown else finding


def _results_for_command(command: Command, results: CommandResults) -> CommandResults:
    return [r for r in results if (r.name, r.argv) == (command.name, command.argv)]


def _mark_variant_results(
    variant: VariantName, results: CommandResults, findings: tuple[VariantFinding, ...], command: Command
) -> CommandResults:
    """Marks the results of one command on a variant; the first one carries the findings."""
    named_results = [replace(r, name=f"{command.name} ({variant})", variant=variant) for r in results]
    return [replace(r, findings=findings if r is named_results[0] else ()) for r in named_results]


# ── plan bounds ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Finds the frozen plan that bounds an effect: that of its own task, or of the task that started the run.
#
# **Invariant:** the bounds are those that the task stored when it began; a child never has wider ones.


def find_plan_bounds(call: EffectCall) -> "PlanBounds | None":
    """Returns the bounds of an effect; None without a plan."""
    ref = call.given("bounds", "") or _inherited_bounds_ref(call)
    if not ref:
        return None
    from steersman.judges.planning.plan_bounds import PlanBounds

    return msgspec.json.decode(call.payloads.get(ref), type=PlanBounds)


def _inherited_bounds_ref(call: EffectCall) -> str:
    """Returns the payload name of the nearest ancestor's bounds."""
    from steersman.engine.active_run import load_active_run

    journal = call.world.journal
    head = journal.head(call.run) if journal is not None else None
    while head is not None and head.parent:
        ref: str = runtime_field(load_active_run(call.world, head.parent).snapshot.context, "bounds_ref")
        if ref:
            return ref
        head = journal.head(head.parent)
    return ""


def allowed_commands(bounds: "PlanBounds | None") -> tuple[Argv, ...] | None:
    """Returns the plan's commands without a blank to fill in, which an agent may run by itself."""
    if bounds is None:
        return None
    return tuple(dict.fromkeys(a.argv for a in bounds.actions if a.argv and not a.blanks))


def files_outside_bounds(bounds: "PlanBounds | None", names: Sequence[str]) -> dict[str, str]:
    """Returns the files that the plan does not cover, each with why; all of them where they are too many."""
    if bounds is None:
        return {}
    from steersman.judges.planning.plan_bounds import find_outside_bounds

    reasons_by_name = {
        name: problems[0].message
        for name in names
        if (problems := find_outside_bounds(bounds, files=(name,)))
    }
    if reasons_by_name:
        return reasons_by_name
    return {name: problem.message for problem in find_outside_bounds(bounds, files=names) for name in names}


def describe_commands_outside_bounds(bounds: "PlanBounds | None", scripts: Iterable[str]) -> list[str]:
    """Returns one sentence for each command that the plan does not have."""
    return (
        [f"{script} is not a command of {bounds.plan_id}." for script in scripts]
        if bounds is not None
        else []
    )


def command_outside_bounds(bounds: "PlanBounds | None", argv: Argv) -> str:
    """Returns why the plan does not allow a command; empty where it does."""
    if bounds is None:
        return ""
    from steersman.judges.planning.plan_bounds import find_outside_bounds

    return (
        f"{shlex.join(argv)} is not a command of {bounds.plan_id}"
        if find_outside_bounds(bounds, argvs=(argv,))
        else ""
    )

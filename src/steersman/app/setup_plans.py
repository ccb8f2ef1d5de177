"""Chooses how a project is set up and checked: proposals from its files, proven one after another until one works.

**Invariant:** `prove_setup_plans` tries only plans of the choice that it is given, so that a face can show them first.
"""

import re
import shlex
import shutil
from collections.abc import Container, Iterable, Mapping

import msgspec

from steersman.contracts.commands import CommandResult, full_output
from steersman.contracts.config import Check, Config, Rules, SetupStep, Worktree
from steersman.engine.check_proof import CheckProof, ProofListener, prove_checks
from steersman.engine.ports import Ports
from steersman.judges.ecosystems import (
    ProjectFiles,
    SetupPlan,
    SetupProposal,
    list_files_to_read,
    propose_project_checks,
)
from steersman.judges.evidence.baseline import is_known_failure
from steersman.judges.text import clip_text, printable_line
from steersman.ports.workspace import Workspace

__all__ = [
    "CheckProof",
    "ProvenSetup",
    "SetupChoice",
    "find_missing_programs",
    "has_counted_tests",
    "is_setup_proven",
    "list_base_failures",
    "list_plan_commands",
    "list_unknown_failures",
    "propose_setup_plans",
    "prove_checks",
    "prove_setup_plans",
    "read_project_files",
]

MAX_PLAN_ATTEMPTS = 4
MAX_SETUP_FILE_BYTES, MAX_SETUP_TOTAL_BYTES = 64 * 1024, 4 * 1024 * 1024  # bytes of files that are read
_ERROR_LINE_PATTERN = re.compile(r"\berr|fail|not found|cannot|unsupported", re.IGNORECASE)


class SetupChoice(msgspec.Struct, frozen=True):
    """One plan for each proposal."""

    proposals: tuple[SetupProposal, ...]
    chosen: tuple[int, ...]

    @property
    def plans(self) -> tuple[SetupPlan, ...]:
        """The plans that are chosen now."""
        return tuple(
            proposal.plans[index] for proposal, index in zip(self.proposals, self.chosen, strict=True)
        )

    def config(self, seconds: int) -> Config:
        """The configuration that they make together."""
        checks: dict[str, Check] = {}
        env: dict[str, str] = {}
        steps: list[SetupStep] = []
        for plan in self.plans:
            checks |= plan.checks
            env |= plan.env
            steps += plan.setup
        return Config(
            checks=checks, env=env, worktree=Worktree(setup=tuple(steps)), rules=Rules(check_seconds=seconds)
        )

    def owner_of_step(self, step: int) -> int:
        """Which proposal the setup step of this number (1 is the first) belongs to."""
        for index, plan in enumerate(self.plans):
            step -= len(plan.setup)
            if step <= 0:
                return index
        return len(self.plans) - 1

    def failed_steps(self, step: int) -> tuple[SetupStep, ...]:
        """The steps of the plan that a setup step belongs to, up to that one."""
        owner = self.owner_of_step(step)
        return self.plans[owner].setup[: step - sum(len(plan.setup) for plan in self.plans[:owner])]

    def advance(self, owner: int, failed: Iterable[tuple[SetupStep, ...]]) -> "SetupChoice | None":
        """The next plan of one proposal that does not begin with steps that failed; None where there is none."""
        plans, failed_setups = self.proposals[owner].plans, tuple(failed)
        later_indexes = [
            index
            for index in range(self.chosen[owner] + 1, len(plans))
            if not any(plans[index].setup[: len(steps)] == steps for steps in failed_setups)
        ]
        if not later_indexes:
            return None
        indexes = tuple(
            later_indexes[0] if index == owner else current_index
            for index, current_index in enumerate(self.chosen)
        )
        return SetupChoice(self.proposals, indexes)

    def add_steps(self, owner: int) -> "SetupChoice | None":
        """The next plan of one proposal with the same checks and more setup steps; None where there is none.

        A plan that installs less could turn green because its failing tests are skipped.
        """
        plans, current_plan = self.proposals[owner].plans, self.plans[owner]
        for index in range(self.chosen[owner] + 1, len(plans)):
            is_longer = plans[index].setup[: len(current_plan.setup)] == current_plan.setup and len(
                plans[index].setup
            ) > len(current_plan.setup)
            if is_longer and plans[index].checks == current_plan.checks:
                indexes = tuple(
                    index if number == owner else current_index
                    for number, current_index in enumerate(self.chosen)
                )
                return SetupChoice(self.proposals, indexes)
        return None

    def without(self, owner: int) -> "SetupChoice | None":
        """The other proposals; None where there are none."""
        remaining = [index for index in range(len(self.proposals)) if index != owner]
        choice = SetupChoice(
            tuple(self.proposals[index] for index in remaining),
            tuple(self.chosen[index] for index in remaining),
        )
        return choice if remaining else None


class ProvenSetup(msgspec.Struct, frozen=True):
    """The configuration that came farthest, what happened to it, and what was given up on the way."""

    config: Config
    proof: CheckProof
    given_up: tuple[str, ...] = ()  # in words: what was tried first, and how it failed


def read_project_files(workspace: Workspace, commit: str) -> ProjectFiles:
    """The files of a commit, with the texts that proposals depend on."""
    paths = workspace.paths(commit)
    texts = workspace.read_texts(
        commit, list_files_to_read(paths), MAX_SETUP_FILE_BYTES, MAX_SETUP_TOTAL_BYTES
    )
    return ProjectFiles(frozenset(paths), {text.path: text.content for text in texts if text.whole})


def propose_setup_plans(
    files: ProjectFiles, fallback_checks: Mapping[str, tuple[str, ...]]
) -> tuple[SetupChoice, list[str]]:
    """The proposals whose programs are installed, and notes; `otherwise` are checks where no ecosystem is known."""
    proposals, notes = propose_project_checks(files)
    if not proposals and fallback_checks:
        checks = {name: Check(tuple(argv)) for name, argv in fallback_checks.items()}
        proposals = [SetupProposal("other", "", (SetupPlan(checks=checks),))]
    missing = {
        name: None
        for proposal_item in proposals
        for plan in proposal_item.plans
        for name in find_missing_programs(plan)
    }
    notes += [f"{name} is not installed" for name in missing]
    installed = [_keep_installed_plans(proposal) for proposal in proposals]
    usable = [proposal_item for proposal_item in installed if proposal_item.plans] or proposals
    left_out = [
        proposal_item for proposal_item in installed if not proposal_item.plans and usable is not proposals
    ]
    notes += [
        f"{proposal_item.ecosystem} is left out{f' in {proposal_item.folder}' if proposal_item.folder else ''}"
        for proposal_item in left_out
    ]
    return SetupChoice(tuple(usable), (0,) * len(usable)), notes


def _keep_installed_plans(proposal: SetupProposal) -> SetupProposal:
    """The same with those plans alone whose programs this machine has."""
    plans = tuple(plan for plan in proposal.plans if not find_missing_programs(plan))
    return SetupProposal(proposal.ecosystem, proposal.folder, plans)


def find_missing_programs(plan: SetupPlan) -> list[str]:
    """The programs of a plan that this machine does not have; those inside the tree are made by setup."""
    programs = [command.run[0] for command in list_plan_commands(plan)]
    return [word for word in dict.fromkeys(programs) if "/" not in word and shutil.which(word) is None]


def list_plan_commands(plan: SetupPlan) -> tuple[SetupStep | Check, ...]:
    """Everything that a plan runs: its setup steps, then its checks."""
    return (*plan.setup, *plan.checks.values())


async def prove_setup_plans(
    ports: Ports, commit: str, choice: SetupChoice, seconds: int, on_progress: ProofListener
) -> ProvenSetup:
    """Proves the chosen plans; where setup fails or a check counts nothing, the next plan of that proposal; where tests
    fail, a plan with more setup steps too."""
    best: ProvenSetup | None = None
    abandoned: list[str] = []
    failed_setups: list[tuple[SetupStep, ...]] = []
    for attempt in range(MAX_PLAN_ATTEMPTS):
        config = choice.config(seconds)
        proof = await prove_checks(ports, config, commit, on_progress)
        if best is None or _setup_proof_score(proof) > _setup_proof_score(best.proof):
            best = ProvenSetup(config, proof)
        troubled_index = _find_troubled_proposal(choice, proof)
        if troubled_index is None:
            longer_choice, added_steps = _choose_longer_setup(choice, proof)
            if longer_choice is None or attempt + 1 == MAX_PLAN_ATTEMPTS:
                break
            on_progress(f"tests fail: trying {added_steps} in setup too", 0)
            config = longer_choice.config(seconds)
            proof = await prove_checks(ports, config, commit, on_progress)
            is_better = _setup_proof_score(proof) > _setup_proof_score(best.proof)
            best = ProvenSetup(config, proof) if is_better else best
            abandoned.append(
                f"setup without {added_steps}" if is_better else f"{added_steps} in setup: no better"
            )
            break
        if proof.failed_setup is not None:
            failed_setups.append(choice.failed_steps(proof.failed_step))
        next_choice = choice.advance(troubled_index, failed_setups)
        if next_choice is None and proof.failed_setup is not None:
            next_choice = choice.without(troubled_index)
        if next_choice is None:
            break
        abandoned.append(_describe_setup_failure(proof))
        on_progress(f"{abandoned[-1]}: trying another way", 0)
        choice = next_choice
    assert best is not None  # noqa: S101  the loop runs at least once
    return ProvenSetup(best.config, best.proof, tuple(abandoned))


def _find_troubled_proposal(choice: SetupChoice, proof: CheckProof) -> int | None:
    """The proposal that needs another plan; None where all is proven, or no other plan would help."""
    if proof.problem or not choice.proposals:
        return None
    if proof.failed_setup is not None:
        return choice.owner_of_step(proof.failed_step)
    bad_names = {
        result.name
        for result in proof.results
        if not has_counted_tests(result) and result.verdict != "timeout"
    }
    return next((index for index, plan in enumerate(choice.plans) if bad_names & set(plan.checks)), None)


def _choose_longer_setup(choice: SetupChoice, proof: CheckProof) -> tuple[SetupChoice | None, str]:
    """The choice with a longer plan for the first proposal whose tests fail, and the added steps in words."""
    failed_names = {result.name for result in proof.results if result.verdict == "failed"}
    for index, plan in enumerate(choice.plans):
        longer_choice = choice.add_steps(index) if failed_names & set(plan.checks) else None
        if longer_choice is not None:
            steps = longer_choice.plans[index].setup[len(plan.setup) :]
            return longer_choice, ", ".join(f"`{shlex.join(step.run)}`" for step in steps)
    return None, ""


def has_counted_tests(result: CommandResult) -> bool:
    """Whether a check ran and counted tests, passed or failed."""
    return result.verdict in ("passed", "failed") and bool(result.tests or result.exit_code_only)


def _setup_proof_score(proof: CheckProof) -> tuple[int, int, int, int]:
    """Green checks first, then checks that count tests, then tests that pass."""
    first_results = {
        result.name: result for result in reversed(proof.results)
    }  # a check that failed was run again
    counted_results = [result for result in first_results.values() if has_counted_tests(result)]
    green_count = sum(result.verdict == "passed" for result in counted_results)
    passing_tests = sum(
        (result.tests or 0) - (result.report.failures if result.report is not None else 0)
        for result in counted_results
    )
    return green_count, len(counted_results), passing_tests, len(first_results)


def _describe_setup_failure(proof: CheckProof) -> str:
    failed_setup = proof.failed_setup
    if failed_setup is not None:
        lines = full_output(failed_setup).strip().splitlines() or [""]
        error_line = next((line for line in reversed(lines) if _ERROR_LINE_PATTERN.search(line)), lines[-1])
        reason = clip_text(printable_line(failed_setup.reason or error_line), 200)
        return f"`{shlex.join(failed_setup.argv)}` failed" + (f" ({reason})" if reason else "")
    bad_result = next(
        result for result in proof.results if not has_counted_tests(result) and result.verdict != "timeout"
    )
    return f"{bad_result.name} {'counted no test' if bad_result.exit_code == 0 else 'failed before it counted a test'}"


def is_setup_proven(proof: CheckProof, known_failures: Container[str] = ()) -> bool:
    """Whether setup worked, tests were counted, and each check passed or came to its tests or is known to fail."""
    if proof.problem or proof.failed_setup is not None or not proof.results:
        return False
    all_reached_tests = all(
        result.verdict == "passed"
        or (result.verdict == "failed" and (has_counted_tests(result) or result.name in known_failures))
        for result in proof.results
    )
    return all_reached_tests and any(has_counted_tests(result) for result in proof.results)


def list_base_failures(proof: CheckProof) -> list[str]:
    """The tests that fail on the base, by name; where a failure has no name, the check."""
    names: dict[str, None] = {}
    for result in proof.results:
        if result.verdict == "failed" and has_counted_tests(
            result
        ):  # one that did not come to its tests is broken, not red
            has_names = result.report is not None and not result.report.cut and bool(result.report.failed)
            names |= dict.fromkeys(
                result.report.failed if has_names and result.report is not None else (result.name,)
            )
    return list(names)


def list_unknown_failures(config: Config, proof: CheckProof) -> list[str]:
    """Returns the failures that the file does not acknowledge."""
    remaining_results = tuple(result for result in proof.results if result.name not in config.known_failures)
    return [
        name
        for name in list_base_failures(CheckProof(remaining_results))
        if not is_known_failure(name, config.known_failures)
    ]

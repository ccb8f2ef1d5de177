"""Chooses how a project is set up and checked: proposals from its files, proven one after another until one works.

**Invariant:** nothing is run before it was shown; every plan that may be tried is in `commands_shown`.
"""

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from steersman.contracts.commands import CommandResult, full_output
from steersman.contracts.config import Check, Config, Rules, SetupStep, Worktree
from steersman.judges.ecosystems import Plan, ProjectFiles, Proposal, files_to_read, propose_all
from steersman.judges.text import clip, one_line

if TYPE_CHECKING:
    from steersman.ports.workspace import Workspace
    from steersman.runtime.check_proof import Listener, Proof
    from steersman.runtime.world import World

MOST_ATTEMPTS = 4
EACH, TOTAL = 64 * 1024, 4 * 1024 * 1024  # bytes of files that are read
_BLAMES = re.compile(r"\berr|fail|not found|cannot|unsupported", re.IGNORECASE)
SHOWN = 6  # other commands that are named before the question


class SetupChoice(msgspec.Struct, frozen=True):
    """One plan for each proposal."""

    proposals: tuple[Proposal, ...]
    chosen: tuple[int, ...]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans that are chosen now."""
        return tuple(p.plans[n] for p, n in zip(self.proposals, self.chosen, strict=True))

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
        for n, plan in enumerate(self.plans):
            step -= len(plan.setup)
            if step <= 0:
                return n
        return len(self.plans) - 1

    def failed_steps(self, step: int) -> tuple[SetupStep, ...]:
        """The steps of the plan that a setup step belongs to, up to that one."""
        owner = self.owner_of_step(step)
        return self.plans[owner].setup[: step - sum(len(plan.setup) for plan in self.plans[:owner])]

    def advance(self, owner: int, failed: Iterable[tuple[SetupStep, ...]]) -> "SetupChoice | None":
        """The next plan of one proposal that does not begin with steps that failed; None where there is none."""
        plans, bad = self.proposals[owner].plans, tuple(failed)
        later = [
            n
            for n in range(self.chosen[owner] + 1, len(plans))
            if not any(plans[n].setup[: len(steps)] == steps for steps in bad)
        ]
        if not later:
            return None
        chosen = tuple(later[0] if n == owner else old for n, old in enumerate(self.chosen))
        return SetupChoice(self.proposals, chosen)

    def add_steps(self, owner: int) -> "SetupChoice | None":
        """The next plan of one proposal with the same checks and more setup steps; None where there is none.

        A plan that installs less could turn green because its failing tests are skipped.
        """
        plans, now = self.proposals[owner].plans, self.plans[owner]
        for n in range(self.chosen[owner] + 1, len(plans)):
            longer = plans[n].setup[: len(now.setup)] == now.setup and len(plans[n].setup) > len(now.setup)
            if longer and plans[n].checks == now.checks:
                chosen = tuple(n if number == owner else old for number, old in enumerate(self.chosen))
                return SetupChoice(self.proposals, chosen)
        return None

    def without(self, owner: int) -> "SetupChoice | None":
        """The other proposals; None where there are none."""
        rest = [n for n in range(len(self.proposals)) if n != owner]
        made = SetupChoice(tuple(self.proposals[n] for n in rest), tuple(self.chosen[n] for n in rest))
        return made if rest else None


class ProvenSetup(msgspec.Struct, frozen=True):
    """The configuration that came farthest, what happened to it, and what was given up on the way."""

    config: Config
    proof: "Proof"
    given_up: tuple[str, ...] = ()  # in words: what was tried first, and how it failed


def read_project(workspace: "Workspace", commit: str) -> ProjectFiles:
    """The files of a commit, with the texts that proposals depend on."""
    paths = workspace.paths(commit)
    texts = workspace.texts(commit, files_to_read(paths), EACH, TOTAL)
    return ProjectFiles(frozenset(paths), {text.path: text.content for text in texts if text.whole})


def propose_plans(
    files: ProjectFiles, otherwise: Mapping[str, tuple[str, ...]]
) -> tuple[SetupChoice, list[str]]:
    """The proposals whose programs are installed, and notes; `otherwise` are checks where no ecosystem is known."""
    proposals, notes = propose_all(files)
    if not proposals and otherwise:
        checks = {name: Check(tuple(argv)) for name, argv in otherwise.items()}
        proposals = [Proposal("other", "", (Plan(checks=checks),))]
    missing = {name: None for p in proposals for plan in p.plans for name in missing_programs(plan)}
    notes += [f"{name} is not installed" for name in missing]
    installed = [_installed(proposal) for proposal in proposals]
    usable = [p for p in installed if p.plans] or proposals
    left = [p for p in installed if not p.plans and usable is not proposals]
    notes += [f"{p.ecosystem} is left out{f' in {p.folder}' if p.folder else ''}" for p in left]
    return SetupChoice(tuple(usable), (0,) * len(usable)), notes


def _installed(proposal: Proposal) -> Proposal:
    """The same with those plans alone whose programs this machine has."""
    plans = tuple(plan for plan in proposal.plans if not missing_programs(plan))
    return Proposal(proposal.ecosystem, proposal.folder, plans)


def missing_programs(plan: Plan) -> list[str]:
    """The programs of a plan that this machine does not have; those inside the tree are made by setup."""
    words = [command.run[0] for command in (*plan.setup, *plan.checks.values())]
    return [word for word in dict.fromkeys(words) if "/" not in word and shutil.which(word) is None]


def commands_shown(config: Config, choice: SetupChoice | None = None) -> Iterator[str]:
    """Everything that is about to run, in groups, on one screen."""
    if config.worktree.setup:
        yield "  setup:"
        yield from (f"    {_command(step.run, step.cwd)}" for step in config.worktree.setup)
    yield "  checks:"
    yield from (f"    {name}: {_command(check.run, check.cwd)}" for name, check in config.checks.items())
    if config.env:
        yield f"  variables: {', '.join(f'{name}={value}' for name, value in config.env.items())}"
    others = list(_other_commands(choice)) if choice is not None else []
    if others:
        yield "  only if that fails:"
        yield from (f"    {line}" for line in others[:SHOWN])
    if len(others) > SHOWN:
        yield f"    and {len(others) - SHOWN} more of the same kind"


def _other_commands(choice: SetupChoice) -> Iterator[str]:
    now = {_command(c.run, c.cwd) for plan in choice.plans for c in (*plan.setup, *plan.checks.values())}
    for proposal in choice.proposals:
        for plan in proposal.plans[1:]:
            for command in (*plan.setup, *plan.checks.values()):
                if (line := _command(command.run, command.cwd)) not in now:
                    now.add(line)
                    yield line


def _command(argv: Sequence[str], cwd: str) -> str:
    return shlex.join(argv) + (f"   (in {cwd})" if cwd else "")


async def prove_plans(
    world: "World", commit: str, choice: SetupChoice, seconds: int, heard: "Listener"
) -> ProvenSetup:
    """Proves the chosen plans; where setup fails or a check counts nothing, the next plan of that proposal; where tests
    fail, a plan with more setup steps too."""
    from steersman.runtime.check_proof import prove_checks

    best: ProvenSetup | None = None
    given_up: list[str] = []
    failed_setups: list[tuple[SetupStep, ...]] = []
    for attempt in range(MOST_ATTEMPTS):
        config = choice.config(seconds)
        proof = await prove_checks(world, config, commit, heard)
        if best is None or _score(proof) > _score(best.proof):
            best = ProvenSetup(config, proof)
        troubled = _troubled(choice, proof)
        if troubled is None:
            longer, added = _with_more_steps(choice, proof)
            if longer is None or attempt + 1 == MOST_ATTEMPTS:
                break
            heard(f"tests fail: trying {added} in setup too", 0)
            config = longer.config(seconds)
            proof = await prove_checks(world, config, commit, heard)
            better = _score(proof) > _score(best.proof)
            best = ProvenSetup(config, proof) if better else best
            given_up.append(f"setup without {added}" if better else f"{added} in setup: no better")
            break
        if proof.failed_setup is not None:
            failed_setups.append(choice.failed_steps(proof.failed_step))
        advanced = choice.advance(troubled, failed_setups)
        if advanced is None and proof.failed_setup is not None:
            advanced = choice.without(troubled)
        if advanced is None:
            break
        given_up.append(_what_failed(proof))
        heard(f"{given_up[-1]}: trying another way", 0)
        choice = advanced
    assert best is not None  # noqa: S101  the loop runs at least once
    return ProvenSetup(best.config, best.proof, tuple(given_up))


def _troubled(choice: SetupChoice, proof: "Proof") -> int | None:
    """The proposal that needs another plan; None where all is proven, or no other plan would help."""
    if proof.problem or not choice.proposals:
        return None
    if proof.failed_setup is not None:
        return choice.owner_of_step(proof.failed_step)
    bad = {r.name for r in proof.results if not counts_tests(r) and r.verdict != "timeout"}
    return next((n for n, plan in enumerate(choice.plans) if bad & set(plan.checks)), None)


def _with_more_steps(choice: SetupChoice, proof: "Proof") -> tuple[SetupChoice | None, str]:
    """The choice with a longer plan for the first proposal whose tests fail, and the added steps in words."""
    red = {r.name for r in proof.results if r.verdict == "failed"}
    for n, plan in enumerate(choice.plans):
        longer = choice.add_steps(n) if red & set(plan.checks) else None
        if longer is not None:
            steps = longer.plans[n].setup[len(plan.setup) :]
            return longer, ", ".join(f"`{shlex.join(step.run)}`" for step in steps)
    return None, ""


def counts_tests(result: CommandResult) -> bool:
    """Whether a check ran and counted tests, passed or failed."""
    return result.verdict in ("passed", "failed") and bool(result.tests or result.exit_code_only)


def _score(proof: "Proof") -> tuple[int, int, int, int]:
    """Green checks first, then checks that count tests, then tests that pass."""
    first = {r.name: r for r in reversed(proof.results)}  # a check that failed was run again
    counted = [r for r in first.values() if counts_tests(r)]
    green = sum(r.verdict == "passed" for r in counted)
    passing = sum((r.tests or 0) - (r.report.failures if r.report is not None else 0) for r in counted)
    return green, len(counted), passing, len(first)


def _what_failed(proof: "Proof") -> str:
    failed = proof.failed_setup
    if failed is not None:
        lines = full_output(failed).strip().splitlines() or [""]
        blamed = next((line for line in reversed(lines) if _BLAMES.search(line)), lines[-1])
        why = clip(one_line(failed.reason or blamed), 200)
        return f"`{shlex.join(failed.argv)}` failed" + (f" ({why})" if why else "")
    bad = next(r for r in proof.results if not counts_tests(r) and r.verdict != "timeout")
    return f"{bad.name} {'counted no test' if bad.exit_code == 0 else 'failed before it counted a test'}"

"""Before a run: what it could come to, and whether it can be left alone. **Invariant:** creates nothing."""

import os
import shutil
import textwrap
from typing import Any

import msgspec

from steersman.errors import SteersmanError, UserError
from steersman.faces.deck import DONE, Deck
from steersman.kernel.machine import Machine
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.forecast import Forecast, forecast
from steersman.views.moments import LABELS, amount

ROOM = 512 * 1024 * 1024  # bytes that have to be free for a run that nobody watches


def show_outlook(deck: Deck, machine: str, config: Any, options: dict[str, Any]) -> int:
    """`run --dry`: gates that can be reached, the most agent calls, checks, budget; nothing is created."""
    m = machine_named(deck, machine)
    seen = _forecast(m, config, options)
    attempts = 1 + max((r.retries for r in config.roles.values()), default=0)
    told = {
        "machine": machine,
        "options": options,
        "gates": [*seen.gates, *(["budget"] if _limits(config) else [])],
        "agent_calls": seen.calls,
        "agent_attempts": seen.calls * attempts,
        "stretches": msgspec.to_builtins(seen.stretches),
        "roles": {name: r.agent for name, r in config.roles.items()},
        "checks": {name: list(check.run) for name, check in config.checks.items()},
        "check_options": {name: _options_of(config, name) for name in config.checks},
        "budget": _limits(config),
        "problems": problems(deck, m, config),
        "exit_code": DONE,
    }
    deck.tell(told)
    for line in _lines(told, seen):
        deck.say(line)
    return DONE


def _lines(told: dict[str, Any], seen: Forecast) -> list[str]:
    checks = []
    for name, argv in told["checks"].items():
        checks.append(f"    {name}: {' '.join(argv)}")
        checks += [f"      {words}" for words in _option_lines(told["check_options"][name])]
    limits = [
        f"    {LABELS.get(name, name)}: {amount(name, value)}" for name, value in told["budget"].items()
    ]
    return [
        "nothing is created. This run could come to:",
        _wrapped(f"  gates where it waits for a person: {', '.join(told['gates']) or 'none'}"),
        f"  agent calls at most: {told['agent_calls']}, with every retry {told['agent_attempts']}",
        *(_wrapped(f"    after {s.after}: {s.calls}") for s in seen.stretches),
        f"  roles: {', '.join(f'{k} = {v}' for k, v in told['roles'].items()) or 'nobody yet'}",
        "  checks that are always run:" if checks else "  checks: none; without evidence nothing is approved",
        *checks,
        "  budget:" if limits else "  budget: no limit",
        *limits,
        *(f"  would not start: {p}" for p in told["problems"]),
    ]


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 80, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)


def _options_of(config: Any, name: str) -> dict[str, Any]:
    """What decides about a check beside its command."""
    check = config.checks[name]
    return {
        "cwd": check.cwd,
        "exit_code_is_enough": check.exit_code_is_enough,
        "no_tests": name in config.no_tests,
    }


def _option_lines(options: dict[str, Any]) -> list[str]:
    lines = [f"in the folder {options['cwd']}"] if options["cwd"] else []
    if options["exit_code_is_enough"]:
        lines.append("its exit code is enough: no test is counted (exit_code_is_enough)")
    if options["no_tests"]:
        lines.append("runs no tests: it proves nothing by itself (no_tests)")
    return lines


def ready_alone(deck: Deck, machine: str, config: Any, options: dict[str, Any]) -> None:
    """`run --unattended`: refuses what would stop it halfway; says which gates will wait."""
    m = machine_named(deck, machine)
    found = problems(deck, m, config)
    if not config.checks:
        found.append("[checks] is empty: without evidence nothing is approved; run `steersman init`")
    if found:
        raise _UnreadyError("; ".join(found))
    gates = [*_forecast(m, config, options).gates, *(["budget"] if _limits(config) else [])]
    box = deck.helm.sandbox(config)
    if not box.isolated:
        deck.warn(f"{NOT_ISOLATED}: {box.why}; {box.fix}", fg="yellow")
    deck.say(f"agents, disk and git are fine; gates that will wait for you: {', '.join(gates) or 'none'}")


class _UnreadyError(UserError):
    """The run was not started."""

    exit_code = 4


def problems(deck: Deck, m: Machine, config: Any) -> list[str]:
    """What would stop a run from starting, going on or being delivered; each with the fix."""
    return [*crew_problems(deck, m, config), *delivery_problems(deck, config)]


def delivery_problems(deck: Deck, config: Any) -> list[str]:
    """What is missing for handing a change over: found out before it is made; a broken repository is told elsewhere."""
    workspace = deck.helm.open_world(deck.project, journal=None).workspace(config)
    if workspace.problem():
        return []
    try:
        missing = workspace.undeliverable(config.deliver, workspace.base(config.base or None).branch)
    except SteersmanError as error:
        return [str(error)]
    return [missing] if missing else []


def crew_problems(deck: Deck, m: Machine, config: Any) -> list[str]:
    """What would stop a run from starting or going on: git, a sandbox that is required, agents, disk; each with the fix."""
    world = deck.helm.open_world(deck.project, journal=None)
    found = []
    problem = world.workspace(config).problem()
    if problem:
        found.append(problem)
    try:
        deck.helm.sandbox(config)
    except SteersmanError as error:
        found.append(str(error))
    from steersman.runtime.project_files import freeze_now

    frozen = None
    try:
        frozen = freeze_now(world, config)
    except SteersmanError as error:
        found.append(str(error))
    for role in m.roles if frozen else ():
        try:
            world.agent(role, frozen)
            if told := deck.helm.obstacle(config.roles[role]):
                found.append(f"[roles.{role}] {told}")
        except SteersmanError as error:
            found.append(str(error))
    free = shutil.disk_usage(_existing(str(deck.helm.state_dir(deck.project)))).free
    if free < ROOM:
        found.append(f"only {free // 2**20} MB are free where the store is: make room")
    return found


def _existing(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def machine_named(deck: Deck, name: str) -> Machine:
    """The machine of this name; a UserError that lists those there are."""
    found = deck.helm.machines().get(name)
    if found is None:
        known = ", ".join(sorted(deck.helm.machines()))
        raise UserError(f"there is no machine {name!r}: there are {known}; see `{deck.me} machine list`")
    return found


def _forecast(m: Machine, config: Any, options: dict[str, Any]) -> Forecast:
    settings = {"deliver": config.deliver, "max_iterations": config.rules.max_iterations, **options}
    return forecast(m, settings)


def _limits(config: Any) -> dict[str, int]:
    from steersman.runtime.budget import limits

    return limits(config)

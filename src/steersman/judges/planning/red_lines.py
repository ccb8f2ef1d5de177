"""The red lines I1 to I5 of an intent, each looked at whatever the others say and however broken the document is.

**Invariant:** total; a red line that asks for something is broken where that is missing, and one that forbids a
combination is judged by the stricter of what intent, policy and registry say.
"""

from collections.abc import Iterator
from typing import Any

from steersman.contracts.planning.decisions import Problem, RedLine, RedLineCheck
from steersman.contracts.planning.words import MODES, RISKS, Assessed, Kind, Mode, Risk, graver
from steersman.judges.planning.places import NO_LINES, Lines, Path, problem
from steersman.judges.planning.raw import at, each, text, texts
from steersman.judges.planning.registry import Registry, cited_content
from steersman.judges.planning.sense import evidence, known_commands
from steersman.judges.text import clip

Told = tuple[Path, str, str]


def red_lines(
    raw: Any,
    mode: Mode | None,
    payload: tuple[Problem, ...],
    registry: Registry,
    lines: Lines = NO_LINES,
) -> tuple[RedLineCheck, ...]:
    """All five; `mode` is the stricter one of intent and policy, as far as they say one."""
    found: dict[RedLine, tuple[Told, ...]] = {
        "I1": tuple(_execution(raw)),
        "I2": tuple(_asking(raw)),
        "I3": tuple(_grave(raw, mode, registry)),
        "I4": tuple(_unsupported(raw)),
        "I5": tuple(_fabricated(raw, registry)),
    }
    told = {line: tuple(problem(*one, lines) for one in these) for line, these in found.items()}
    told["I1"] = (*payload, *told["I1"])
    unsaid = (
        {"I1"} if _forbids(raw) is None else set()
    )  # the schema asks for it; nothing is passed in silence
    return tuple(
        RedLineCheck(red_line=n, passed=not details and n not in unsaid, details=details)
        for n, details in told.items()
    )


def stricter_mode(raw: Any, policy_raw: Any) -> Mode | None:
    """The stricter of the two modes, as far as there are any."""
    said = (text(raw, "interaction", "mode"), text(policy_raw, "mode"))
    return max((m for m in MODES if m in said), key=MODES.index, default=None)


def stated_risk(raw: Any, registry: Registry) -> Risk:
    """The gravest risk that the intent states or that the registry has for one of its commands."""
    said = [text(raw, "risk", "overall")]
    said += [text(item, "risk_level") for _, item in each(raw, "planned_commands")]
    return graver(
        *(r for r in RISKS if r in said), *(c.spec.risk_level for c in known_commands(raw, registry))
    )


def claimed_risk(raw: Any, registry: Registry) -> Assessed:
    """The same for telling: what nobody states is unknown, never low."""
    risk = stated_risk(raw, registry)
    return risk if risk != "low" or text(raw, "risk", "overall") == "low" else "unknown"


def _execution(raw: Any) -> Iterator[Told]:
    if _forbids(raw) is False:
        yield ("constraints", "execution"), "does not say that execution is forbidden (I1)", "write forbidden"


def _forbids(raw: Any) -> bool | None:
    """Whether execution is forbidden; None where nothing is said about it."""
    said = at(raw, ("constraints", "execution"))
    return None if said is None else said == "forbidden"


def _asking(raw: Any) -> Iterator[Told]:
    if text(raw, "interaction", "mode") != "full_auto":
        return
    budget = at(raw, ("interaction", "question_budget"))
    if budget != 0 or isinstance(budget, bool):
        yield ("interaction", "question_budget"), "is not 0, and the mode is full_auto (I2)", "write 0, or choose another mode"  # fmt: skip
    if text(raw, "interaction", "question_policy") != "never":
        yield ("interaction", "question_policy"), "is not never, and the mode is full_auto (I2)", "write never, or choose another mode"  # fmt: skip


def _grave(raw: Any, mode: Mode | None, registry: Registry) -> Iterator[Told]:
    risk = stated_risk(raw, registry)
    if mode == "full_auto" and risk in ("high", "critical"):
        yield (
            ("interaction", "mode"),
            f"the plan's risk is {risk}, and a plan of such a risk is never full_auto, by the intent or by the policy (I3)",
            "choose interactive or semi_auto in both, or leave the dangerous commands out",
        )


def _unsupported(raw: Any) -> Iterator[Told]:
    for path, item in each(raw, "planned_commands"):
        refs = [ref for _, ref in texts(item, "evidence_refs") if ref.strip()]
        if not refs:
            name = text(item, "command_id") or "the command"
            yield (*path, "evidence_refs"), f"nothing speaks for {name} (I4)", "name at least one piece of evidence, such as fact://test_command/pytest"  # fmt: skip


def _fabricated(raw: Any, registry: Registry) -> Iterator[Told]:
    for name in ("no_fabrication", "registry_only"):
        if at(raw, ("constraints", name)) is not True:
            yield ("constraints", name), "is not true (I5)", "write true"
    for path, kind, id_ in named(raw):
        if registry.get(kind, id_) is None:
            yield path, f"{clip(id_, 80) or 'what is named here'} is no {kind} of the registry (I5)", f"`steersman registry list {kind}` has them all"  # fmt: skip
    for path, ref in evidence(raw):
        found = cited_content(ref)
        if ref.startswith(("rule://", "registry://")) and (found is None or registry.get(*found[:2]) is None):
            yield path, f"{clip(ref, 200)} is nothing of the registry (I5)", "cite what `steersman registry list` has"  # fmt: skip


_GROUPS: tuple[tuple[Kind, str, str], ...] = (
    ("workflow", "selected_workflows", "workflow_id"),
    ("agent", "selected_agents", "agent_id"),
    ("command", "planned_commands", "command_id"),
)


def named(raw: Any) -> Iterator[tuple[Path, Kind, str]]:
    """Every place in an intent that names content of the registry: path, kind, and the id where it is one."""
    for kind, group, name in _GROUPS:
        yield from (((*path, name), kind, text(item, name)) for path, item in each(raw, group))

"""The page of what is built in: workflows, agents, commands, rules, and the variables of rules, as Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steersman.contracts.planning.content import AgentProfile, CommandSpec, Rule, Workflow
from steersman.contracts.planning.words import Kind
from steersman.judges.planning.environment import VARIABLES
from steersman.judges.planning.registry import Registry
from steersman.views.planning.content import scope_of, words
from steersman.views.quotation import cell, inline

OPENING = """What comes with steersman and can be planned with. A project adds to it and replaces parts of it in \
`.steersman/registry/`; `steersman registry list` shows what holds there. How rules outweigh each other is in \
[Which rule holds](../explanation/which-rule-holds.md), how to write one in [Write a rule](../how-to/write-a-rule.md)."""


def registry_page(registry: Registry, notice: str) -> str:
    """The whole page."""
    rows = [f"| `{v.name}` | {v.shape} | {cell(v.meaning)} |" for v in VARIABLES]
    parts = [
        notice,
        "# Registry",
        OPENING,
        "## Workflows",
        *_workflows(_held(registry, "workflow")),
        "## Agents",
        *_agents(_held(registry, "agent")),
        "## Commands",
        *_commands(_held(registry, "command")),
        "## Rules",
        *_rules(_held(registry, "rule")),
        "## What a rule can speak about",
        "\n".join(["| variable | type | meaning |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts) + "\n"


def _held(registry: Registry, kind: Kind) -> Any:
    return [item.content for item in registry.held[kind].values()]


def _workflows(contents: Sequence[Workflow]) -> Iterator[str]:
    for w in contents:
        yield f"### `{w.id}`: {inline(w.title)}"
        yield inline(w.description)
        rows = [
            f"| {p.phase} | {_notes(w, n)} | {cell(p.role)} | {_code(p.commands)} |"
            for n, p in enumerate(w.phases)
        ]
        yield "\n".join(["| phase | what for | role | commands |", "|---|---|---|---|", *rows])


def _notes(workflow: Workflow, n: int) -> str:
    p = workflow.phases[n]
    said = [inline(p.purpose)]
    said += [f"after {words(p.after)}"] if p.after else []
    said += [f"if {inline(p.condition)}"] if p.condition else []
    said += [f"where it fails: {p.fallback}"] if p.fallback else []
    said += [f"review: {words(p.review)}"] if p.review else []
    return "; ".join(said)


def _agents(contents: Sequence[AgentProfile]) -> Iterator[str]:
    rows = [
        f"| `{a.id}` | {cell(a.role)} | {words(a.phases)} | {cell(a.description)} | {cell(words(m.model for m in a.models))} |"
        for a in contents
    ]
    yield "\n".join(["| agent | role | phases | what for | models |", "|---|---|---|---|---|", *rows])


def _commands(contents: Sequence[CommandSpec]) -> Iterator[str]:
    rows = [
        f"| `{c.id}` | {cell(c.description)} | {words(c.effects)} | {c.risk_level}{', destructive' if c.destructive else ''} | {words(c.phases)} | {cell(c.rollback)} |"
        for c in contents
    ]
    yield "\n".join(
        [
            "| command | what it does | effects | risk | phases | way back |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def _rules(contents: Sequence[Rule]) -> Iterator[str]:
    for r in contents:
        yield f"### `{r.id}`: {inline(r.title)}"
        yield inline(r.description)
        yield "\n".join(
            [
                f"- looks at {inline(scope_of(r))}",
                f"- **{r.then.decision}** at severity **{r.severity}**: {inline(r.then.reason)}",
                *(f"- what would help: {inline(change)}" for change in r.then.required_changes),
                *([f"- who looks: {words(r.then.review)}"] if r.then.review else []),
                f"- goes by {words(r.evidence_required)}",
            ]
        )
        yield f"```\n{r.when}\n```"


def _code(values: Iterable[str]) -> str:
    return " ".join(f"`{value}`" for value in values) or "–"

"""The page of what is built in: workflows, agents, commands, rules, and the variables of rules, as Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steersman.contracts.planning.content import AgentProfile, CommandSpec, RegistryRule, Workflow
from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.environment import RULE_VARIABLES
from steersman.judges.planning.registry import Registry
from steersman.views.planning.content import describe_rule_scope, join_words
from steersman.views.screen import quote_cell, quote_inline

REGISTRY_PAGE_OPENING = """What comes with steersman and can be planned with. A project adds to it and replaces parts of it in \
`.steersman/registry/`; `steersman registry list` shows what holds there. How rules outweigh each other is in \
[Which rule holds](../explanation/which-rule-holds.md), how to write one in [Write a rule](../how-to/write-a-rule.md)."""


def render_registry_page(registry: Registry, notice: str) -> str:
    """The whole page."""
    rows = [f"| `{v.name}` | {v.shape} | {quote_cell(v.meaning)} |" for v in RULE_VARIABLES]
    parts = [
        notice,
        "# Registry",
        REGISTRY_PAGE_OPENING,
        "## Workflows",
        *_render_workflows(_list_kind_contents(registry, "workflow")),
        "## Agents",
        *_render_agents(_list_kind_contents(registry, "agent")),
        "## Commands",
        *_render_commands(_list_kind_contents(registry, "command")),
        "## Rules",
        *_render_rules(_list_kind_contents(registry, "rule")),
        "## What a rule can speak about",
        "\n".join(["| variable | type | meaning |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts) + "\n"


def _list_kind_contents(registry: Registry, kind: ContentKind) -> Any:
    return [item.content for item in registry.held[kind].values()]


def _render_workflows(contents: Sequence[Workflow]) -> Iterator[str]:
    for workflow in contents:
        yield f"### `{workflow.id}`: {quote_inline(workflow.title)}"
        yield quote_inline(workflow.description)
        rows = [
            f"| {p.phase} | {_render_phase_notes(workflow, n)} | {quote_cell(p.role)} | {_render_code_words(p.commands)} |"
            for n, p in enumerate(workflow.phases)
        ]
        yield "\n".join(["| phase | what for | role | commands |", "|---|---|---|---|", *rows])


def _render_phase_notes(workflow: Workflow, index: int) -> str:
    phase = workflow.phases[index]
    notes = [quote_inline(phase.purpose)]
    notes += [f"after {join_words(phase.after)}"] if phase.after else []
    notes += [f"if {quote_inline(phase.condition)}"] if phase.condition else []
    notes += [f"where it fails: {phase.fallback}"] if phase.fallback else []
    notes += [f"review: {join_words(phase.review)}"] if phase.review else []
    return "; ".join(notes)


def _render_agents(contents: Sequence[AgentProfile]) -> Iterator[str]:
    rows = [
        f"| `{a.id}` | {quote_cell(a.role)} | {join_words(a.phases)} | {quote_cell(a.description)} | {quote_cell(join_words(m.model for m in a.models))} |"
        for a in contents
    ]
    yield "\n".join(["| agent | role | phases | what for | models |", "|---|---|---|---|---|", *rows])


def _render_commands(contents: Sequence[CommandSpec]) -> Iterator[str]:
    rows = [
        f"| `{c.id}` | {quote_cell(c.description)} | {join_words(c.effects)} | {c.risk_level}{', destructive' if c.destructive else ''} | {join_words(c.phases)} | {quote_cell(c.rollback)} |"
        for c in contents
    ]
    yield "\n".join(
        [
            "| command | what it does | effects | risk | phases | way back |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def _render_rules(contents: Sequence[RegistryRule]) -> Iterator[str]:
    for rule in contents:
        yield f"### `{rule.id}`: {quote_inline(rule.title)}"
        yield quote_inline(rule.description)
        yield "\n".join(
            [
                f"- looks at {quote_inline(describe_rule_scope(rule))}",
                f"- **{rule.then.decision}** at severity **{rule.severity}**: {quote_inline(rule.then.reason)}",
                *(f"- what would help: {quote_inline(change)}" for change in rule.then.required_changes),
                *([f"- who looks: {join_words(rule.then.review)}"] if rule.then.review else []),
                f"- goes by {join_words(rule.evidence_required)}",
            ]
        )
        yield f"```\n{rule.when}\n```"


def _render_code_words(values: Iterable[str]) -> str:
    return " ".join(f"`{value}`" for value in values) or "–"

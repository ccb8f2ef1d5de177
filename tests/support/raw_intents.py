"""A small registry, and an intent that passes every check against it; tests change one thing."""

import copy
from typing import Any

import msgspec

from steersman.contracts.planning.content import CONTENT_TYPES
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.judges.planning.intent import compute_intent_checksum
from steersman.judges.planning.registry import Registry, RegistryItem, format_pin

RAW_LINEAGE = {"introduced_in": "test"}


def raw_content(kind: str, id_: str, **fields: Any) -> RegistryItem:
    """One piece of content, active unless it says otherwise."""
    plain = {
        "id": id_, "version": "1.0.0", "status": "active", "title": id_, "description": f"What {id_} is.",
        "lineage": RAW_LINEAGE, **fields,
    }  # fmt: skip
    return RegistryItem(msgspec.convert(plain, CONTENT_TYPES[kind]), "built-in")


def raw_phase(name: str, role: str, **fields: Any) -> dict[str, Any]:
    return {"phase": name, "purpose": f"{name} it", "role": role, **fields}


RAW_ITEMS = (
    raw_content("workflow", "wf_fix", phases=[raw_phase("analysis", "reader"), raw_phase("implementation", "coder")]),
    raw_content("workflow", "wf_old", phases=[raw_phase("review", "reader")], status="deprecated"),
    raw_content("agent", "agent_coder", role="coder", phases=["implementation"], capabilities=["writes code"]),
    raw_content("agent", "agent_reader", role="reader", phases=["analysis"], capabilities=["reads code"]),
    raw_content("command", "cmd_read", effects=["read"], risk_level="low", phases=["analysis"]),
    raw_content("command", "cmd_edit", effects=["read", "write"], risk_level="medium", phases=["implementation"]),
    raw_content("command", "cmd_ship", effects=["deploy", "network"], risk_level="critical", phases=["release"]),
    raw_content(
        "rule", "rule_one", severity="warn", scope={"effects": ["write"]}, when="true",
        then={"decision": "warn", "reason": "because"}, evidence_required=["language"],
    ),
)  # fmt: skip
RAW_REGISTRY = Registry(RAW_ITEMS)

PLAIN_INTENT: dict[str, Any] = {
    "id": "intent_fix_login",
    "type": "execution_intent",
    "title": "Fix the login",
    "description": "People with a dot in their name cannot log in.",
    "version": "1.0.0",
    "created_at": "2026-01-25T09:30:00Z",
    "status": "draft",
    "lineage": RAW_LINEAGE,
    "scope": {"project_id": "shop", "repo_root": ".", "targets": {"files": ["src/login.py"]}},
    "objective": {"goal": "Names with dots log in.", "success_criteria": ["a test shows it"]},
    "selected_workflows": [{"workflow_id": "wf_fix", "phases": ["analysis", "implementation"]}],
    "selected_agents": [
        {"agent_id": "agent_coder", "role": "coder", "responsibilities": ["the change"]},
        {"agent_id": "agent_reader", "role": "reader", "responsibilities": ["the cause"]},
    ],
    "planned_commands": [
        {"command_id": "cmd_read", "intent": "find the cause", "effects": ["read"], "risk_level": "low", "evidence_refs": ["fact://language/python"]},
        {
            "command_id": "cmd_edit", "intent": "allow dots", "effects": ["read", "write"],
            "risk_level": "medium", "evidence_refs": ["scan://ev0123456789ab", "doc://docs/names.md"],
        },
    ],
    "interaction": {"mode": "interactive", "question_budget": 5, "question_policy": "conceptual_only"},
    "risk": {"overall": "medium", "drivers": ["it is the login"], "requires_review": ["security"]},
    "budgets": {"max_files": 5, "max_commits": 2, "max_tokens": 100_000, "max_cost_usd": 5},
    "evidence_refs": ["fact://language/python"],
    "constraints": {
        "execution": "forbidden", "no_fabrication": True, "registry_only": True,
        "lock_scope": {"mode": "none"},
    },
    "audit": {"created_by": "ada", "source": "human", "checksum": "0" * 64},
}  # fmt: skip
INTERACTIVE_POLICY: dict[str, Any] = msgspec.to_builtins(POLICY_PRESETS["interactive"])


def pin_intent(raw: dict[str, Any], registry: Registry = RAW_REGISTRY) -> dict[str, Any]:
    """With a pin for everything that the registry has and the intent names."""
    ids = {w["workflow_id"] for w in raw["selected_workflows"]} | {
        a["agent_id"] for a in raw["selected_agents"]
    }
    ids |= {c["command_id"] for c in raw["planned_commands"]}
    refs = [format_pin(entry) for (_, id_), entry in registry.entries.items() if id_ in ids]
    return {**raw, "evidence_refs": [*raw["evidence_refs"], *refs]}


def seal_raw_intent(raw: dict[str, Any]) -> dict[str, Any]:
    """With the checksum of what stands in it."""
    return {**raw, "audit": {**raw["audit"], "checksum": compute_intent_checksum(raw)}}


def raw_intent() -> dict[str, Any]:
    """An intent that passes."""
    return seal_raw_intent(pin_intent(copy.deepcopy(PLAIN_INTENT)))


def set_field(raw: Any, path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a path such as `planned_commands.0.effects`; `...` takes the field out."""
    changed = copy.deepcopy(raw)
    *way, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    here = changed
    for name in way:
        here = here[name]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return changed


def change_raw_intent(path: str, value: Any) -> dict[str, Any]:
    """The intent that passes with one thing changed, pinned and sealed again as far as it can be."""
    return seal_raw_intent(pin_intent(set_field(PLAIN_INTENT, path, value)))

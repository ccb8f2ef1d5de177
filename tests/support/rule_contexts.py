"""The built-in registry, bundles with a few facts, and rules of one line."""

from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.storage.registry_files import FileRegistries
from steersman.contracts.planning.context import (
    ContextBundle,
    FactPack,
    MemoryPack,
    ProjectFact,
    RecalledMemory,
    ScanBounds,
    ScanEvidence,
)
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import POLICY_PRESETS, ExecutionPolicy
from steersman.judges.facts.choice import find_excluded_directory, select_project_files
from steersman.judges.facts.finding import ProjectSource, parent_directory
from steersman.judges.facts.pack import build_fact_pack, examine_project_file
from steersman.judges.planning.intent import resolve_effective_asking
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.rule_evidence import compile_rules
from steersman.judges.planning.rules import decide_planned_commands
from steersman.kernel.canonical import sha256_hex
from tests.support.raw_intents import PLAIN_INTENT, raw_content, set_field

BUILT_IN_REGISTRY = FileRegistries(Path("nowhere"), Path("nowhere")).built_in().registry

SCANNED_FILES = tuple(
    ScanEvidence(
        id=f"ev{n:012x}", source_file=name, first_line=1, last_line=9, digest=f"{n:064x}", snippet="so it is"
    )
    for n, name in enumerate(("why", "guide", "docs/more/page"))
)


def fact_bundle(
    *facts: str,
    policy: ExecutionPolicy = POLICY_PRESETS["interactive"],
    complete: bool = True,
    memories: int = 1,
) -> ContextBundle:
    """What is known: facts as `kind/name`, two files that were read, that many memories, one policy."""
    pairs = [fact.split("/", 1) for fact in facts]
    bounds = ScanBounds(
        files_seen=3,
        files_read=3,
        bytes_read=9,
        skipped=0,
        complete=complete,
        stopped_by="" if complete else "too many files",
    )
    kept = tuple(
        RecalledMemory(id=f"mem_{n:012x}", scope="project", text=f"lesson {n}", tags=("lesson",))
        for n in range(memories)
    )
    found: Any = tuple(
        ProjectFact(kind=kind, name=name, evidence=("ev0123456789ab",)) for kind, name in pairs
    )
    return ContextBundle(
        memory=MemoryPack(project_id="shop", query="login", scopes=("project",), threshold=1, memories=kept),
        facts=FactPack(
            project_id="shop", fingerprint="f" * 64, facts=found, evidence=SCANNED_FILES, bounds=bounds
        ),
        policy=policy,
        evidence_refs=tuple(sorted([*(f"fact://{f}" for f in facts), *(f"memory://{m.id}" for m in kept)])),
    )


def plan_commands(*commands: str, registry: Registry = BUILT_IN_REGISTRY, **changes: Any) -> ExecutionIntent:
    """An intent that plans these commands as the registry has them; `risk__requires_review=[]` changes a field."""
    raw: Any = set_field(PLAIN_INTENT, "planned_commands", [registry_command(c, registry) for c in commands])
    for path, value in changes.items():
        raw = set_field(raw, path.replace("__", "."), value)
    return msgspec.convert(raw, ExecutionIntent)


def registry_command(id_: str, registry: Registry = BUILT_IN_REGISTRY) -> dict[str, Any]:
    spec: Any = registry.get("command", id_)
    return {
        "command_id": id_,
        "intent": "because",
        "effects": list(spec.effects) if spec else ["read"],
        "risk_level": spec.risk_level if spec else "low",
        "evidence_refs": ["doc://why"],
    }


def warning_rule(id_: str, when: str = "true", **fields: Any) -> Any:
    """A rule about everything that warns, unless it says otherwise."""
    decision = fields.pop("decision", "warn")
    then = {"decision": decision, "reason": f"{id_} says so", **fields.pop("then", {})}
    if decision == "require_review":
        then.setdefault("review", ["security"])
    return raw_content(
        "rule",
        id_,
        **{
            "severity": "warn",
            "scope": {"risks": ["low", "medium", "high", "critical"]},
            "when": when,
            "then": then,
            "evidence_required": ["intent"],
            **fields,
        },
    ).content


def decide_commands(
    intent: ExecutionIntent, known: ContextBundle, *rules: Any, registry: Registry = BUILT_IN_REGISTRY
) -> Any:
    """The decision about every planned command, by these rules or by all of the registry."""
    book = compile_rules(rules or registry.all_usable("rule"))
    return decide_planned_commands(
        intent, registry, known, book, resolve_effective_asking(intent, known.policy)
    )


SCANNED = ScanBounds(files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=True)


def scan_texts(files, bounds=SCANNED):
    """The pack of a project that is only a table of texts."""
    choice = select_project_files(tuple(sorted(p for p in files if find_excluded_directory(p) is None)))
    return build_fact_pack(
        "shop",
        examine_texts({path: files[path] for path in files if path in choice.read}, files),
        choice,
        bounds,
    )


def examine_texts(files, beside=()):
    """What each file gives."""
    siblings = {
        folder: frozenset(p.rpartition("/")[2] for p in beside if parent_directory(p) == folder)
        for folder in map(parent_directory, files)
    }
    return [
        examine_project_file(
            ProjectSource(path, text, siblings[parent_directory(path)]),
            sha256_hex(text.encode("utf-8", "replace")),
        )
        for path, text in files.items()
    ]

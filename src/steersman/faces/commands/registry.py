"""`steersman registry …`: what can be planned with, what is wrong with it, what changed. **Invariant:** nothing is written."""

import os
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, ENDED, Deck, verb

if TYPE_CHECKING:
    from steersman.judges.planning.registry import Difference, Item, Registry
    from steersman.ports.registry import Loaded

HERE = "registry"
KNOWN = {
    "list": (f"{HERE}:list_", "Workflows, agents, commands and rules."),
    "show": (f"{HERE}:show", "One of them, whole, with the pin that an intent would have."),
    "check": (f"{HERE}:check", "Everything that is wrong with the registry, with file, line and field."),
    "diff": (f"{HERE}:diff", "What changed from one registry to another, or since an intent was sealed."),
    "variables": (f"{HERE}:variables", "What a rule can speak about."),
}
KINDS = ("workflow", "agent", "command", "rule")
STATUSES = ("draft", "active", "deprecated", "frozen")
EXITS = "0 done · 2 wrong usage"
FOUND = "0 nothing found · 1 something found · 2 wrong usage"


@click.group("registry", cls=Lazy, known=KNOWN, no_args_is_help=False, epilog=f"Exit codes: {FOUND}")
def registry() -> None:
    """What can be planned with: the workflows, agents, commands and rules that come with steersman, and those that the
    project adds or replaces in `.steersman/registry/{workflows,agents,commands,rules}/*.yaml`."""


@verb("list", "steersman registry list", "steersman registry list rule", "steersman registry list --status deprecated", exits=EXITS)  # fmt: skip
@click.argument("kind", required=False, type=click.Choice(KINDS))
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only what has this status.")
def list_(deck: Deck, *, kind: Any, status: str | None) -> None:
    """What the registry holds, or only its KIND (workflow, agent, command, rule)."""
    from steersman.views.planning.content import listed

    deck.quiet = True
    found = _loaded(deck).registry
    kinds = (kind,) if kind else KINDS
    chosen = {k: [i for i in found.held[k].values() if status in (None, i.content.status)] for k in kinds}
    deck.tell([_entry(found, k, item) for k, items in chosen.items() for item in items])
    for k, items in chosen.items():
        deck.say(f"{k}s: {len(items)}")
        for line in listed(items) if items else []:
            deck.say(f"  {line}")


@verb("show", "steersman registry show cmd_deploy_production", "steersman registry show rule_release_needs_ci --json", exits=EXITS)  # fmt: skip
@click.argument("name", metavar="ID")
def show(deck: Deck, *, name: str) -> None:
    """Everything about the workflow, agent, command or rule with this ID."""
    from steersman.views.planning.content import shown

    deck.quiet = True
    found = _loaded(deck).registry
    kinds: Any = [kind for kind in KINDS if name in found.held[kind]]  # type: ignore[index]  kinds are its keys
    if not kinds:
        raise UserError(f"the registry has nothing called {name!r}{_near(found, name)}")
    items = [(kind, found.held[kind][name]) for kind in kinds]
    told = [{**_entry(found, kind, item), "content": item.content} for kind, item in items]
    deck.tell(told[0] if len(told) == 1 else told)
    for kind, item in items:
        for line in shown(item, found.entries[kind, name]):
            deck.say(line)


@verb("check", "steersman registry check", "steersman registry check ../platform/registry --json", exits=FOUND)  # fmt: skip
@click.argument("folder", required=False, metavar="[DIR]")
def check(deck: Deck, *, folder: str | None) -> int:
    """Everything that is wrong with the registry of this project, or with what the files in DIR would make of the
    built-in one: files that cannot be read, names that lead nowhere, phases in a circle, rules that do not type-check."""
    from steersman.judges.planning.soundness import problems

    deck.quiet = True
    if folder is not None and not os.path.isdir(folder):
        raise UserError(
            f"{folder!r} is not a folder: give one with {', '.join(k + 's' for k in KINDS)} in it"
        )
    loaded = deck.helm.registries(deck.project).load(folder or "")
    found = tuple(dict.fromkeys((*loaded.problems, *problems(loaded.registry))))
    deck.tell({"digest": loaded.registry.digest, "counts": _counts(loaded.registry), "problems": found})
    for p in found:
        line = f", line {p.line}" if p.line else ""
        deck.say(f"{p.field}{line}: {p.message}{f'; {p.fix}' if p.fix else ''}", fg="red")
    counted = ", ".join(f"{n} {kind}s" for kind, n in _counts(loaded.registry).items())
    deck.say(
        f"{counted}; {len(found) or 'no'} problem{'' if len(found) == 1 else 's'}; digest {loaded.registry.digest}"
    )
    return ENDED if found else DONE


@verb(
    "diff",
    "steersman registry diff                 # what this project changes of what is built in",
    "steersman registry diff fix.yaml        # what changed since this intent was sealed",
    "steersman registry diff 6db874df101a    # since a plan was made with the registry of this digest",
    "steersman registry diff now ../platform/registry",
    exits=FOUND,
)
@click.argument("old", default="built-in", metavar="[OLD]")
@click.argument("new", default="now", metavar="[NEW]")
def diff(deck: Deck, *, old: str, new: str) -> int:
    """What changed from OLD to NEW, down to the fields. Each is `built-in`, `now` (this project), the digest of a
    registry that a plan was made with, or a folder of registry files; OLD can be the file of an intent."""
    from steersman.views.planning.content import changed

    deck.quiet = True
    after = _named(deck, new)
    if os.path.isfile(old):
        return _since(deck, old, after)
    before = _named(deck, old)
    found = _differences(before, after)
    deck.tell({"old": before.digest, "new": after.digest, "differences": [_plain(d) for d in found]})
    for line in changed(found):
        deck.say(line)
    deck.say(f"{len(found) or 'no'} difference{'' if len(found) == 1 else 's'}")
    return ENDED if found else DONE


@verb("variables", "steersman registry variables", exits=EXITS)
def variables(deck: Deck) -> None:
    """What the condition of a rule can speak about: names, types, meanings."""
    from steersman.judges.planning.environment import VARIABLES
    from steersman.views.planning.content import variables as lines

    deck.quiet = True
    deck.tell([{"name": v.name, "type": v.shape, "meaning": v.meaning} for v in VARIABLES])
    for line in lines():
        deck.say(line)


def _loaded(deck: Deck) -> "Loaded":
    """The registry as far as it can be read; what is wrong with it is told beside the answer."""
    loaded = deck.helm.registries(deck.project).load()
    if loaded.problems:
        deck.warn(f"problems: {len(loaded.problems)}. Nothing can be planned before they are solved; see `{deck.me} registry check`", fg="red")  # fmt: skip
    return loaded


def _entry(registry: "Registry", kind: Any, item: "Item") -> dict[str, Any]:
    from msgspec import to_builtins

    from steersman.judges.planning.registry import pin

    entry = registry.entries[kind, item.content.id]
    return {**to_builtins(entry), "title": item.content.title, "pin": pin(entry), "file": item.file}


def _counts(registry: "Registry") -> dict[str, int]:
    return {kind: len(held) for kind, held in registry.held.items()}


def _near(registry: "Registry", name: str) -> str:
    import difflib

    known = [id_ for held in registry.held.values() for id_ in held]
    near = difflib.get_close_matches(name, known, 1, 0.5)
    return f": did you mean {near[0]}?" if near else ": `steersman registry list` has everything"


def _named(deck: Deck, name: str) -> "Registry":
    registries = deck.helm.registries(deck.project)
    if name == "built-in":
        return registries.built_in().registry
    if name == "now":
        return _loaded(deck).registry
    if os.path.isdir(name):
        return registries.load(name).registry
    kept = registries.kept(name)
    if kept is None:
        raise UserError(
            f"{name!r} is neither built-in, now, a folder, nor the digest of one of {len(registries.digests())} kept registries"
        )
    return kept


def _differences(old: "Registry", new: "Registry") -> "tuple[Difference, ...]":
    from steersman.judges.planning.registry import differences

    return differences(old, new)


def _plain(d: "Difference") -> dict[str, Any]:
    fields = [{"field": path, "old": was, "new": now} for path, was, now in d.fields]
    return {"kind": d.kind, "id": d.id, "old": d.old, "new": d.new, "fields": fields}


def _since(deck: Deck, file: str, now: "Registry") -> int:
    """What an intent has pinned and what holds now; the pinned content itself where a plan has kept it."""
    from steersman.judges.planning.drift import drift
    from steersman.views.planning.content import drifted

    refs = deck.helm.documents().read(file, "execution_intent").value.get("evidence_refs", ())
    registries = deck.helm.registries(deck.project)
    kept = (registries.kept(digest) for digest in registries.digests())
    found = drift([ref for ref in refs if isinstance(ref, str)], now, [r for r in kept if r is not None])
    deck.tell({"intent": file, "new": now.digest, "drifted": [d._asdict() for d in found]})
    for line in drifted(found):
        deck.say(line)
    deck.say(f"{len(found) or 'nothing'} of what {file} pins {'has' if len(found) < 2 else 'have'} changed")
    return ENDED if found else DONE

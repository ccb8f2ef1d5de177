"""`steersman registry …`: what can be planned with, what is wrong with it, what changed. **Invariant:** nothing is written."""

import os
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from steersman.contracts.planning.words import ContentKind
    from steersman.judges.planning.registry import Registry, RegistryDifference, RegistryItem
    from steersman.ports.registry import LoadedRegistry

REGISTRY_MODULE = "registry"
REGISTRY_COMMANDS = {
    "list": (f"{REGISTRY_MODULE}:registry_list_command", "List workflows, agents, commands and rules."),
    "show": (
        f"{REGISTRY_MODULE}:registry_show_command",
        "Show one of them, with the pin for an intent.",
    ),
    "check": (
        f"{REGISTRY_MODULE}:registry_check_command",
        "List every problem of the registry, with file, line and field.",
    ),
    "diff": (
        f"{REGISTRY_MODULE}:registry_diff_command",
        "Show what changed between two registries, or since an intent was sealed.",
    ),
    "variables": (f"{REGISTRY_MODULE}:registry_variables_command", "List the variables of rules."),
}
REGISTRY_KINDS: "tuple[ContentKind, ...]" = ("workflow", "agent", "command", "rule")
REGISTRY_STATUSES = ("draft", "active", "deprecated", "frozen")
REGISTRY_READ_EXIT_CODES = "0 done · 2 wrong usage"
REGISTRY_CHECK_EXIT_CODES = "0 no problem or difference · 1 a problem or a difference · 2 wrong usage"


@click.group(
    "registry",
    cls=LazyGroup,
    known=REGISTRY_COMMANDS,
    no_args_is_help=False,
    epilog=f"Exit codes: {REGISTRY_CHECK_EXIT_CODES}",
)
def registry_group() -> None:
    """List and check what plans are made of: the workflows, agents, commands and rules that come with steersman, and those that the project adds or replaces in `.steersman/registry/{workflows,agents,commands,rules}/*.yaml`."""


@define_command("list", "steersman registry list", "steersman registry list rule", "steersman registry list --status deprecated", exits=REGISTRY_READ_EXIT_CODES)  # fmt: skip
@click.argument("kind", required=False, type=click.Choice(REGISTRY_KINDS))
@click.option(
    "--status", type=click.Choice(REGISTRY_STATUSES), default=None, help="List only entries with this status."
)
def registry_list_command(context: CommandContext, *, kind: "ContentKind | None", status: str | None) -> None:
    """List the registry, or only one kind: workflow, agent, command or rule."""
    from steersman.views.planning.content import render_registry_list

    context.quiet = True
    loaded_registry = _load_registry_with_warning(context).registry
    kinds: tuple[ContentKind, ...] = (kind,) if kind else REGISTRY_KINDS
    items_by_kind = {
        item_kind: [
            registry_item
            for registry_item in loaded_registry.held[item_kind].values()
            if status in (None, registry_item.content.status)
        ]
        for item_kind in kinds
    }
    context.set_result(
        [
            _registry_item_fields(loaded_registry, item_kind, item)
            for item_kind, items in items_by_kind.items()
            for item in items
        ]
    )
    for item_kind, items in items_by_kind.items():
        context.print(f"{item_kind}s: {len(items)}")
        for line in render_registry_list(items) if items else []:
            context.print(f"  {line}")


@define_command("show", "steersman registry show cmd_deploy_production", "steersman registry show rule_release_needs_ci --json", exits=REGISTRY_READ_EXIT_CODES)  # fmt: skip
@click.argument("name", metavar="ID")
def registry_show_command(context: CommandContext, *, name: str) -> None:
    """Show everything about the workflow, agent, command or rule ID."""
    from steersman.views.planning.content import render_registry_item

    context.quiet = True
    loaded_registry = _load_registry_with_warning(context).registry
    kinds = [kind for kind in REGISTRY_KINDS if name in loaded_registry.held[kind]]
    if not kinds:
        raise UserError(
            f"the registry has nothing called {name!r}{_suggest_registry_id(loaded_registry, name)}"
        )
    items = [(kind, loaded_registry.held[kind][name]) for kind in kinds]
    item_fields = [
        {**_registry_item_fields(loaded_registry, kind, item), "content": item.content}
        for kind, item in items
    ]
    context.set_result(item_fields[0] if len(item_fields) == 1 else item_fields)
    for kind, item in items:
        for line in render_registry_item(item, loaded_registry.entries[kind, name]):
            context.print(line)


@define_command("check", "steersman registry check", "steersman registry check ../platform/registry --json", exits=REGISTRY_CHECK_EXIT_CODES)  # fmt: skip
@click.argument("folder", required=False, metavar="[DIR]")
def registry_check_command(context: CommandContext, *, folder: str | None) -> int:
    """List every problem of this project's registry, or of the built-in registry with the files in DIR: files that cannot be read, names that do not exist, phases in a circle, rules that do not type-check."""
    from steersman.judges.planning.validate import find_registry_problems

    context.quiet = True
    if folder is not None and not os.path.isdir(folder):
        raise UserError(
            f"{folder!r} is not a folder: give one with {', '.join(kind_name + 's' for kind_name in REGISTRY_KINDS)} in it"
        )
    loaded = context.services.open_registries(context.project).load(folder or "")
    problem_list = tuple(dict.fromkeys((*loaded.problems, *find_registry_problems(loaded.registry))))
    context.set_result(
        {
            "digest": loaded.registry.digest,
            "counts": _count_registry_items(loaded.registry),
            "problems": problem_list,
        }
    )
    for registry_problem in problem_list:
        line = f", line {registry_problem.line}" if registry_problem.line else ""
        context.print(
            f"{registry_problem.field}{line}: {registry_problem.message}{f'; {registry_problem.fix}' if registry_problem.fix else ''}",
            fg="red",
        )
    counts_text = ", ".join(
        f"{item_count} {kind}s" for kind, item_count in _count_registry_items(loaded.registry).items()
    )
    context.print(
        f"{counts_text}; {len(problem_list) or 'no'} problem{'' if len(problem_list) == 1 else 's'}; digest {loaded.registry.digest}"
    )
    return EXIT_ENDED if problem_list else EXIT_DONE


@define_command(
    "diff",
    "steersman registry diff                 # what this project changes of what is built in",
    "steersman registry diff fix.yaml        # what changed since this intent was sealed",
    "steersman registry diff 6db874df101a    # since a plan was made with the registry of this digest",
    "steersman registry diff now ../platform/registry",
    exits=REGISTRY_CHECK_EXIT_CODES,
)
@click.argument("old", default="built-in", metavar="[OLD]")
@click.argument("new", default="now", metavar="[NEW]")
def registry_diff_command(context: CommandContext, *, old: str, new: str) -> int:
    """What changed from OLD to NEW, down to the fields. Each is `built-in`, `now` (this project), the digest of a
    registry that a plan was made with, or a folder of registry files; OLD can be the file of an intent."""
    from steersman.views.planning.content import render_registry_changes

    context.quiet = True
    after = _find_registry_version(context, new)
    if os.path.isfile(old):
        return _print_intent_drift(context, old, after)
    before = _find_registry_version(context, old)
    difference_list = _compare_registries(before, after)
    context.set_result(
        {
            "old": before.digest,
            "new": after.digest,
            "differences": [_registry_difference_fields(difference) for difference in difference_list],
        }
    )
    for line in render_registry_changes(difference_list):
        context.print(line)
    context.print(f"{len(difference_list) or 'no'} difference{'' if len(difference_list) == 1 else 's'}")
    return EXIT_ENDED if difference_list else EXIT_DONE


@define_command("variables", "steersman registry variables", exits=REGISTRY_READ_EXIT_CODES)
def registry_variables_command(context: CommandContext) -> None:
    """List the variables that a rule's condition can use: names, types, meanings."""
    from steersman.judges.planning.environment import RULE_VARIABLES
    from steersman.views.planning.content import render_rule_variables as variable_lines

    context.quiet = True
    context.set_result(
        [
            {"name": variable.name, "type": variable.shape, "meaning": variable.meaning}
            for variable in RULE_VARIABLES
        ]
    )
    for line in variable_lines():
        context.print(line)


def _load_registry_with_warning(context: CommandContext) -> "LoadedRegistry":
    """Reads the registry as far as possible and prints its problems on standard error."""
    loaded = context.services.open_registries(context.project).load()
    if loaded.problems:
        context.warn(f"problems: {len(loaded.problems)}. Nothing can be planned before they are solved; see `{context.command_prefix} registry check`", fg="red")  # fmt: skip
    return loaded


def _registry_item_fields(registry: "Registry", kind: Any, item: "RegistryItem") -> dict[str, Any]:
    from msgspec import to_builtins

    from steersman.judges.planning.registry import format_pin

    entry = registry.entries[kind, item.content.id]
    return {**to_builtins(entry), "title": item.content.title, "pin": format_pin(entry), "file": item.file}


def _count_registry_items(registry: "Registry") -> dict[str, int]:
    return {kind: len(items_by_id) for kind, items_by_id in registry.held.items()}


def _suggest_registry_id(registry: "Registry", name: str) -> str:
    import difflib

    known_ids = [id_ for items_by_id in registry.held.values() for id_ in items_by_id]
    close_matches = difflib.get_close_matches(name, known_ids, 1, 0.5)
    return (
        f": did you mean {close_matches[0]}?"
        if close_matches
        else ": `steersman registry list` has everything"
    )


def _find_registry_version(context: CommandContext, name: str) -> "Registry":
    registries = context.services.open_registries(context.project)
    if name == "built-in":
        return registries.built_in().registry
    if name == "now":
        return _load_registry_with_warning(context).registry
    if os.path.isdir(name):
        return registries.load(name).registry
    kept_registry = registries.find_stored_registry(name)
    if kept_registry is None:
        raise UserError(
            f"{name!r} is neither built-in, now, a folder, nor the digest of one of {len(registries.digests())} kept registries"
        )
    return kept_registry


def _compare_registries(old: "Registry", new: "Registry") -> "tuple[RegistryDifference, ...]":
    from steersman.judges.planning.registry import compare_registries

    return compare_registries(old, new)


def _registry_difference_fields(difference: "RegistryDifference") -> dict[str, Any]:
    fields = [
        {"field": path, "old": old_value, "new": new_value}
        for path, old_value, new_value in difference.fields
    ]
    return {
        "kind": difference.kind,
        "id": difference.id,
        "old": difference.old,
        "new": difference.new,
        "fields": fields,
    }


def _print_intent_drift(context: CommandContext, file: str, current_registry: "Registry") -> int:
    """What an intent has pinned and what holds now; the pinned content itself where a plan has kept it."""
    from steersman.judges.planning.registry import find_pin_drift
    from steersman.views.planning.content import render_pin_drift

    refs = context.services.open_documents().read(file, "execution_intent").value.get("evidence_refs", ())
    registries = context.services.open_registries(context.project)
    kept_registries = (registries.find_stored_registry(digest) for digest in registries.digests())
    drift_list = find_pin_drift(
        [ref for ref in refs if isinstance(ref, str)],
        current_registry,
        [kept_registry for kept_registry in kept_registries if kept_registry is not None],
    )
    context.set_result(
        {
            "intent": file,
            "new": current_registry.digest,
            "drifted": [drifted_item._asdict() for drifted_item in drift_list],
        }
    )
    for line in render_pin_drift(drift_list):
        context.print(line)
    context.print(
        f"{len(drift_list) or 'nothing'} of what {file} pins {'has' if len(drift_list) < 2 else 'have'} changed"
    )
    return EXIT_ENDED if drift_list else EXIT_DONE

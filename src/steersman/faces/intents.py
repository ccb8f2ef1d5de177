"""What the commands about intents have in common: making one, looking at one, and saying what was found."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from steersman.errors import MemoryUnavailable, SteersmanError, UserError
from steersman.faces.deck import Deck
from steersman.judges.text import count_of

if TYPE_CHECKING:
    from steersman.contracts.planning.context import ContextBundle
    from steersman.contracts.planning.decisions import Problem
    from steersman.contracts.planning.intent import ExecutionIntent
    from steersman.contracts.planning.policy import ExecutionPolicy
    from steersman.contracts.planning.words import Mode
    from steersman.judges.planning.places import Lines
    from steersman.judges.planning.registry import Registry
    from steersman.machines.coordinator.drafting import Draft
    from steersman.machines.coordinator.goals import Choice
    from steersman.ports.documents import Form, Written


def registry_of(deck: Deck) -> "Registry":
    """The registry of the project, where a person trusts it and nothing is wrong with it."""
    deck.load_config()
    loaded = deck.helm.registries(deck.project).load()
    if loaded.problems:
        first = loaded.problems[0]
        raise UserError(
            f"the registry has {count_of(len(loaded.problems), 'problem')}, the first in {first.field}: {first.message}; "
            f"see `{deck.me} registry check`"
        )
    return loaded.registry


def draft_for(deck: Deck, goal: str) -> "Written":
    """A draft as it would stand in a file, with what was chosen said beside the answer."""
    draft = drafted(deck, goal, mode="interactive")
    for line in to_look_at(draft):
        deck.warn(line)
    return written(deck, draft, "json", "the draft")


def written(deck: Deck, draft: "Draft", form: "Form", file: str) -> "Written":
    """A draft as a file of this form would hold it."""
    documents = deck.helm.documents()
    return documents.parse(documents.render(draft.value, form).encode(), file, "execution_intent")


def drafted(
    deck: Deck,
    goal: str,
    *,
    mode: "Mode",
    workflow: str = "",
    files: tuple[str, ...] = (),
    areas: tuple[Any, ...] = (),
) -> "Draft":
    """A whole intent for a goal, from the project's own files."""
    from steersman.judges.planning.paths import why_outside, why_pattern
    from steersman.judges.planning.sight import why_unnamed, why_unseen
    from steersman.judges.text import clip, one_line, visible
    from steersman.machines.coordinator import goals
    from steersman.machines.coordinator.drafting import Wish, draft

    if not visible(goal):
        raise UserError('a goal is missing, such as: steersman intent new "Fix the rounding of invoices"')
    if why := why_unseen(goal):
        raise UserError(
            f"the goal {why} ({clip(one_line(goal), 200)}): write it again by hand; nothing was drafted"
        )
    files = tuple(from_the_top(deck, file) for file in files)
    for file in files:
        if why := why_outside(file) or why_pattern(file) or why_unnamed(file):
            raise UserError(
                f"--file {one_line(file)} {why}: name a file of the repository, such as src/app.py"
            )
    registry, name = registry_of(deck), project_id(deck)
    named = files or tuple(f for f in goals.files(goal) if os.path.lexists(os.path.join(deck.top, f)))
    wish = Wish(goal.strip(), name, deck.person, _now(), mode, named, areas)
    choice = _choice(workflow, registry) if workflow else goals.choose(goal, registry)
    if choice is None:
        raise UserError(f"the registry has no workflow to plan with: see `{deck.me} registry list workflow`")
    return draft(wish, choice, deck.helm.scanner(deck.project).scan(name), registry)


def from_the_top(deck: Deck, file: str) -> str:
    """A name as a person types it, from where that person stands, as documents have it: from the top."""
    if not file.strip():
        raise UserError("--file is given without a name: name a file of the repository, such as src/app.py")
    top, whole = os.path.realpath(deck.top), os.path.isabs(file)
    here = _standing(deck, top)
    if here == top and not whole:
        return file
    place = os.path.normpath(os.path.join(here, file))
    name = os.path.relpath(_settled(place, top) if whole else place, top)
    folder = os.path.basename(file) in ("", os.curdir, os.pardir) and name != os.curdir
    return name.replace(os.sep, "/") + ("/" if folder else "")


def _settled(place: str, top: str) -> str:
    """A whole name by the folder that it is in: a link is named, not what it leads to, unless it is the top itself."""
    if os.path.realpath(place) == top:
        return top
    return os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))


def _standing(deck: Deck, top: str) -> str:
    """Where a person stands in the repository: here, else in the directory that was given, else at the top."""
    for place in (os.curdir, deck.start):
        try:
            here = os.path.realpath(place)
        except FileNotFoundError:  # this directory is gone, and another was given
            continue
        if here == top or here.startswith(os.path.join(top, "")):
            return here
    return top


def absent(deck: Deck, value: Any, lines: "Lines | None" = None) -> "list[Problem]":
    """Remarks on the files in scope: what is not there would be made, and a folder should look like one."""
    from steersman.judges.planning.paths import folder, plain, why_outside
    from steersman.judges.planning.places import NO_LINES, problem
    from steersman.judges.planning.raw import texts

    found = []
    for path, name in texts(value, "scope", "targets", "files"):
        place = os.path.join(deck.top, plain(name))
        if why_outside(name):
            continue
        if not os.path.lexists(place):
            said = (
                f"{name} is not there: a plan about it makes it",
                "correct the name if you mean one that is",
            )
            found.append(problem(path, *said, lines or NO_LINES))
        elif os.path.isdir(place) and not folder(name):
            said = f"{name} is a folder: everything in it is in scope", f"write {name}/, or name files in it"
            found.append(problem(path, *said, lines or NO_LINES))
    return found


def proposed(deck: Deck, draft: "Draft", role: str) -> "Draft":
    """The draft with what the agent of a role proposes for it; whoever has no agent, or no fitting answer, is told."""
    import asyncio

    from steersman.machines.coordinator.drafting import amended
    from steersman.runtime.proposing import propose
    from steersman.runtime.roles import role_of

    config = deck.load_config().config
    obstacle = deck.helm.obstacle(role_of(config, role))
    if obstacle:
        raise UserError(obstacle)
    world = deck.helm.open_world(deck.project, journal=None)
    deck.warn(f"asking the agent of {role} …")
    found = asyncio.run(propose(world, config, role, draft.value["objective"]["goal"], draft.value))
    if found.reply is None:
        raise UserError(
            f"the agent of {role} gave no proposal, nothing was written: {'; '.join(found.problems)}"
        )
    if found.hid:
        deck.warn("a secret was taken out of what the agent said", fg="yellow")
    return amended(draft, found.reply)


def unmet(
    deck: Deck, written: "Written", policy: "Written", registry: "Registry"
) -> "tuple[list[Problem], list[Problem]]":
    """What an intent cites and planning would not find here: problems where nobody would be asked, else remarks."""
    from steersman.contracts.planning.intent import ExecutionIntent
    from steersman.contracts.planning.policy import ExecutionPolicy
    from steersman.judges.planning.evidence import Shelf
    from steersman.judges.planning.intent import effective
    from steersman.judges.planning.shape import fitting
    from steersman.judges.planning.unfound import unfound

    intent = fitting(written.value, ExecutionIntent, "execution_intent")
    rules = fitting(policy.value, ExecutionPolicy, "execution_policy")
    if intent is None or rules is None:  # what is wrong with their form is told already
        return [], []
    bundle, lacking = _known(deck, intent, rules)
    found = unfound(intent, Shelf(intent, registry, bundle), written.lines)
    if effective(intent, rules).budget:
        return [], [*lacking, *found.of_commands, *found.of_whole]
    return list(found.of_commands), [*lacking, *found.of_whole]


def _known(
    deck: Deck, intent: "ExecutionIntent", policy: "ExecutionPolicy"
) -> "tuple[ContextBundle, list[Problem]]":
    """What planning would go by, and which part of it cannot be had."""
    from steersman.contracts.planning.context import Bounds, FactPack, MemoryPack
    from steersman.judges.planning.citations import bundled
    from steersman.judges.planning.places import problem

    project, lacking = intent.scope.project_id, []
    unseen = Bounds(files_seen=0, files_read=0, bytes_read=0, skipped=0, complete=False)
    facts = FactPack(project_id=project, fingerprint="0" * 64, facts=(), evidence=(), bounds=unseen)
    memory = MemoryPack(project_id=project, query="", scopes=(), threshold=1, memories=())
    try:
        facts = deck.helm.scanner(deck.project).scan(project, intent.scope.repo_root)
    except (SteersmanError, OSError) as error:
        lacking.append(problem(("scope", "repo_root"), str(error)))
    try:
        memory = deck.helm.memories(deck.project).pack(intent.objective.goal, project)
    except MemoryUnavailable as error:
        lacking.append(problem(("memory",), str(error)))
    return bundled(memory, facts, policy), lacking


def project_id(deck: Deck) -> str:
    """What the project is called in documents: as it says itself, else by the name of its folder."""
    from steersman.judges.text import clip, printable

    return deck.read_config().config.project or clip(printable(os.path.basename(deck.top)), 120) or "project"


def _choice(id_: str, registry: "Registry") -> "Choice":
    from steersman.contracts.planning.content import Workflow
    from steersman.machines.coordinator.goals import Choice

    found = registry.usable("workflow", id_)
    if not isinstance(found, Workflow):
        known = ", ".join(w.id for w in registry.all_usable("workflow"))
        raise UserError(f"there is no workflow {id_!r} to plan with: there are {known}")
    return Choice(found, "it was asked for by name")


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_look_at(draft: "Draft") -> list[str]:
    """What a person should read before a draft is planned."""
    value = draft.value
    targets = value["scope"]["targets"]
    told = [f"workflow {value['selected_workflows'][0]['workflow_id']}: {draft.why}"]
    told += [f"plans {c['command_id']} ({c['risk_level']}): {c['intent']}" for c in value["planned_commands"]]
    told += [f"leaves out {left.command_id}: {left.why}" for left in draft.left_out]
    if not (targets["files"] or targets["areas"]):
        told.append("scope.targets is empty: name the files or areas, or you will be asked")
    reviews = value["risk"]["requires_review"]
    told.append(f"risk {value['risk']['overall']}; to be reviewed: {', '.join(reviews) or 'nothing'}")
    return told


def lines_of(problems: "Iterable[Problem]", file: str) -> list[str]:
    """Problems as people read them, in the order of the file."""
    return [
        f"{file}{f', line {p.line}' if p.line else ''}: {p.field}: {p.message}{f'; {p.fix}' if p.fix else ''}"
        for p in sorted(problems, key=lambda p: p.line)
    ]

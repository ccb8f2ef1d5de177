"""What the commands of `plan` have in common: reading what is to be planned, and showing what came of it."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.errors import UserError
from steersman.faces.deck import DONE, ENDED, WAITING, Deck

if TYPE_CHECKING:
    from steersman.contracts.planning.decisions import Problem
    from steersman.ports.documents import Written
    from steersman.runtime.start import Order
    from steersman.views.planning.differences import Side

INTENT = "send an intent, such as: steersman plan - < intent.yaml"
SUFFIXES = (".json", ".yaml", ".yml")


def read_intent(deck: Deck, what: str) -> "Written | None":
    """The intent in a file, or on standard input where the file is -; None where the words are a goal."""
    if what == "-":
        return deck.helm.documents().parse(standard_input(INTENT), "standard input", "execution_intent")
    if os.path.isfile(what):
        return deck.helm.documents().read(what, "execution_intent")
    looks_like_one = what.endswith(SUFFIXES) or (os.sep in what and " " not in what)
    if looks_like_one:
        raise UserError(f'there is no file {what}: `{deck.me} intent new "goal" --out {what}` makes one')
    if not what.strip():
        raise UserError('what shall be planned? give a file with an intent, or a goal: steersman plan "…"')
    return None


def standard_input(fix: str) -> bytes:
    """A document from standard input; raises where nothing comes, with what would help."""
    import sys

    from steersman.ports.documents import MAX_BYTES

    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if not data.strip():
        raise UserError(f"standard input is empty: {fix}")
    return data


def drafted(deck: Deck, goal: str) -> "Written":
    """An intent for a goal in words, from the scanned project; it is shown what was chosen and why."""
    from steersman.faces.intents import draft_for

    return draft_for(deck, goal)


def policy_of(deck: Deck, given: str, intent: Any) -> "Written":
    """A policy by the name of a preset, from a file, or the preset of the mode that the intent asks for."""
    from steersman.contracts.planning.policy import PRESETS

    interaction = intent.get("interaction") if isinstance(intent, Mapping) else None
    wanted = interaction.get("mode") if isinstance(interaction, Mapping) else None
    name = given or (wanted if wanted in PRESETS else "interactive")
    documents = deck.helm.documents()
    if name in PRESETS:
        return documents.parse(msgspec.json.encode(PRESETS[name]), f"policy {name}", "execution_policy")
    if not os.path.isfile(name):
        raise UserError(f"there is no policy {name!r}: give {', '.join(PRESETS)}, or a file")
    return documents.read(name, "execution_policy")


def order_for(deck: Deck, written: "Written", policy: "Written", out: str) -> "Order":
    """What begins a planning run: the documents word for word, the mode, and where the plan goes."""
    from steersman.judges.planning.red_lines import stricter_mode
    from steersman.runtime.start import Order

    place = os.path.abspath(os.path.join(deck.start, out)) if out else ""
    problem = deck.helm.plans(deck.project).problem(place) if place else None
    if problem:
        raise UserError(problem)
    rules = policy.value if isinstance(policy.value, Mapping) else {}
    seconds = rules.get("timeout_seconds", 604_800)
    options = {
        "mode": stricter_mode(written.value, policy.value) or "interactive",
        "fallback": "stop" if rules.get("auto_fallback") is False else "defaults",
        "wait_ms": seconds * 1000 if type(seconds) is int and 0 < seconds < 10**8 else 604_800_000,
    }
    texts = {
        "intent": _plain(written.value),
        "policy": _plain(policy.value),
        **({"out": place} if place else {}),
    }
    return Order("coordinator", _title(written.value), deck.person, deck.load_config().config, options, texts)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _title(value: Any) -> str:
    title = value.get("title") if isinstance(value, Mapping) else None
    return title if isinstance(title, str) and title.strip() else "an intent without a title"


# ── frozen plans ────────────────────────────────────────────────────────────────────────────────────────────────────


def files_of(deck: Deck, place: str) -> dict[str, bytes]:
    """The files of a frozen plan; raises where there is none."""
    return deck.helm.plans(deck.project).read(place)


def verified(deck: Deck, place: str, key: str = "") -> "tuple[tuple[Problem, ...], str]":
    """Everything by which a folder is not the plan that was frozen, and what its signature says."""
    from steersman.machines.coordinator.trust import Key, trusted

    known = Key(deck.helm.key_here(deck.project, key), deck.helm.verifies)
    odd = deck.helm.plans(deck.project).odd(place)
    found, said = trusted(files_of(deck, place), known)
    problems = (*_odd(odd), *(p for p in found if p.field not in odd))
    whose = "" if problems else ", by the given key" if key else ", by this project's key"
    return problems, f"{said}{whose}"


def _odd(found: Mapping[str, str]) -> "Iterator[Problem]":
    """What lies in a plan's folder and is no file: the digest of nothing would say nothing."""
    from steersman.contracts.planning.decisions import Problem
    from steersman.judges.text import clip

    for name, what in found.items():
        fix = "Put the file itself there, or plan again from the same inputs; what does not belong there is removed."
        yield Problem(field=clip(name, 400), message=f"It is {what}.", fix=fix)


def compared(deck: Deck, one: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Two frozen plans: the inputs that differ, the files that differ, and what of the plan does, in words."""
    from steersman.machines.coordinator.attest import ENVELOPE
    from steersman.machines.coordinator.verify import differing

    a, b = files_of(deck, one), files_of(deck, other)
    for place, files in ((one, a), (other, b)):
        files.pop(ENVELOPE, None)
        if "manifest.json" not in files:
            raise UserError(f"{place} holds no frozen plan: there is no manifest.json")
    files = tuple(_file_changes(a, b))
    return differing(a, b), files, tuple(_plan_changes(a, b))


def _file_changes(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*a, *b}):
        if name not in b:
            yield f"{name}: only in the first"
        elif name not in a:
            yield f"{name}: only in the second"
        elif a[name] != b[name]:
            yield f"{name}: differs"


def _plan_changes(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> Iterator[str]:
    from steersman.views.planning.differences import differences

    try:
        sides = [_side(files) for files in (a, b)]
    except (KeyError, msgspec.MsgspecError):
        yield "the plans cannot be compared: see `plan verify`"
        return
    yield from differences(*sides)


def _side(files: Mapping[str, bytes]) -> "Side":
    from steersman.contracts.planning.graph import ExecutionGraph
    from steersman.contracts.planning.questions import QuestionPack, Settled
    from steersman.contracts.planning.review import ReviewPack
    from steersman.views.planning.differences import Side

    return Side(
        msgspec.json.decode(files["review_pack.json"], type=ReviewPack),
        msgspec.json.decode(files["question_pack.json"], type=tuple[QuestionPack, ...]),
        msgspec.json.decode(files["settled_questions.json"], type=Settled),
        msgspec.json.decode(files["execution_graph.json"], type=ExecutionGraph),
    )


def explanation(deck: Deck, what: str) -> tuple[list[str], Any, int]:
    """A plan in a folder or of a run as lines, as a value, and as an exit code."""
    if os.path.isdir(what):
        files = files_of(deck, what)
        if "plan.md" not in files:
            raise UserError(f"{what} holds no frozen plan: there is no plan.md")
        return files["plan.md"].decode("utf-8", "replace").splitlines(), _review(files), DONE
    from steersman.runtime.projections import picture
    from steersman.views.planning.outcome import failure_of, outcome_lines, plan_lines, review_of

    run = deck.sight.find(what)
    seen = picture(deck.sight.world, run)
    if seen.live.machine.name != "coordinator":
        raise UserError(f"run {run} is no plan: see `{deck.me} show {run}`")
    ends = {"DONE": DONE, "BLOCKED": ENDED, "ABORTED": ENDED}
    code = ENDED if seen.snapshot.ended else ends.get(seen.snapshot.state, WAITING)
    found = failure_of(seen.snapshot, seen.text) or review_of(seen.snapshot, seen.text)
    told = plan_lines(seen.snapshot, seen.text) or outcome_lines(seen.snapshot, seen.text, seen.entries)
    return (
        told or [f"run {run} is in {seen.snapshot.state}: see `{deck.me} why {run}`"],
        msgspec.to_builtins(found),
        code,
    )


def _review(files: Mapping[str, bytes]) -> Any:
    try:
        return msgspec.json.decode(files["review_pack.json"])
    except (KeyError, msgspec.MsgspecError):
        return None

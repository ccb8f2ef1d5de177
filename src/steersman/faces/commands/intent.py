"""`steersman intent …`: draft, check and seal what is to be planned. **Invariant:** nothing is planned by any of these."""

from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, REFUSED, Deck, verb
from steersman.judges.text import count_of

if TYPE_CHECKING:
    from steersman.contracts.planning.decisions import PrecheckReport, Problem
    from steersman.judges.planning.registry import Registry
    from steersman.ports.documents import Written

HERE = "intent"
KNOWN = {
    "new": (f"{HERE}:new", "Draft an intent for a goal, from the project's own files."),
    "check": (f"{HERE}:check", "Everything that is wrong with an intent or a policy, with line and field."),
    "seal": (f"{HERE}:seal", "Pin what an intent names and write its checksum."),
}
EXITS = "0 fine · 2 wrong usage · 4 refused: something is wrong with it"
MODES = ("interactive", "semi_auto", "full_auto")
AREAS = ("frontend", "backend", "infra", "docs", "tests", "ops", "security", "data")
_INTENT, _POLICY = "execution_intent", "execution_policy"


@click.group("intent", cls=Lazy, known=KNOWN, no_args_is_help=False, epilog=f"Exit codes: {EXITS}")
def intent() -> None:
    """What is to be planned: draft it, check it, seal it."""


# ── new ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@verb(
    "new",
    'steersman intent new "Fix the rounding of invoices" --out fix.yaml',
    'steersman intent new "Upgrade requests" --mode semi_auto --file pyproject.toml --out upgrade.json',
    'steersman intent new "Explain how prices are made" --workflow wf_documentation --area docs',
    'steersman intent new "Fix the rounding of invoices" --from-agent coder --out fix.yaml',
    exits=EXITS,
)
@click.argument("goal")
@click.option("--out", default="", metavar="FILE", help="Write it there, as JSON where the name ends so (default: print YAML).")  # fmt: skip
@click.option("--workflow", default="", metavar="ID", help="This workflow, not the one that the goal's words ask for.")  # fmt: skip
@click.option("--mode", type=click.Choice(MODES), default="interactive", show_default=True, help="How much may be asked.")  # fmt: skip
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="What may be touched, named from where you stand; may be repeated.",
)
@click.option("--area", "areas", multiple=True, type=click.Choice(AREAS), help="The same by area; may be repeated.")  # fmt: skip
@click.option("--from-agent", "role", default="", metavar="ROLE", help="Let the agent of this role propose changes to the draft; you seal it.")  # fmt: skip
def new(
    deck: Deck, *, goal: str, out: str, workflow: str, mode: Any, files: tuple[str, ...], areas: tuple[str, ...], role: str
) -> int:  # fmt: skip
    """Draft an intent for GOAL: no model is asked. The workflow is chosen by the words of the goal, its commands by what
    the project's own files show, and the draft is sealed as it stands. Read it before you plan it."""
    from steersman.faces.intents import absent, drafted, lines_of, to_look_at
    from steersman.faces.linked import linked

    deck.quiet = True
    named = tuple(file.removeprefix("./") or file for file in files)  # as a shell may complete them
    draft = drafted(deck, goal, mode=mode, workflow=workflow, files=named, areas=areas)
    if role:
        from steersman.faces.intents import proposed

        draft = proposed(deck, draft, role)
    form = "json" if out.endswith(".json") else "yaml"
    documents = deck.helm.documents()
    text = documents.render(draft.value, form)
    if out:
        documents.write(out, text, new=True)
    say = deck.say if out else deck.warn
    for line in to_look_at(draft):
        say(line)
    wrong = _wrong(deck, draft.value)
    for line in wrong:
        say(line, fg="red")
    noted = lines_of((*absent(deck, draft.value), *linked(deck, draft.value)), "the draft")
    for line in noted:
        say(f"note: {line}")
    deck.tell(
        {
            "file": out or None,
            "intent": draft.value,
            "why": draft.why,
            "left_out": dict(draft.left_out),
            "sealed": not role,
            "problems": wrong,
            "remarks": noted,
        }
    )
    if not out:
        deck.say(text.rstrip("\n"))
        return DONE
    return _then(deck, out, sealed=not role)


def _wrong(deck: Deck, value: Any) -> list[str]:
    """What has to be mended by hand before the draft can be planned."""
    from steersman.faces.intents import lines_of, registry_of
    from steersman.judges.planning.sense import sense_problems
    from steersman.judges.planning.shape import schema_problems

    return lines_of((*schema_problems(value), *sense_problems(value, registry_of(deck))), "the draft")


def _then(deck: Deck, out: str, *, sealed: bool) -> int:
    deck.say(f"written: {out}" + ("" if sealed else "; it is not sealed: an agent had its hand in it"))
    after = f"{deck.me} intent check {out}" if sealed else f"read it, then {deck.me} intent seal {out}"
    deck.say(f"next: {after}, then {deck.me} plan {out}")
    return DONE


# ── check ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@verb(
    "check",
    "steersman intent check fix.yaml",
    "steersman intent check fix.yaml --policy team-policy.yaml --json",
    "steersman intent check --policy team-policy.yaml",
    exits=EXITS,
)
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--policy", default="", metavar="NAME_OR_FILE", help="Look at it under this policy, and at the policy; without FILE at the policy alone.")  # fmt: skip
def check(deck: Deck, *, file: str | None, policy: str) -> int:
    """Everything that is wrong with the intent in FILE, at once, with line and field: its form, what it says, its
    checksum, the red lines, what it names in the registry, the policy, and what it cites: the project is scanned, and a
    reference that leads nowhere is told. That is a problem where nobody would be asked about it, and else a remark."""
    from steersman.faces.intents import registry_of

    deck.quiet = True
    if not file and not policy:
        raise click.UsageError("a file with an intent is missing, such as: steersman intent check fix.yaml")
    registry = registry_of(deck)
    if not file:
        return _policy_alone(deck, policy, registry)
    written = deck.helm.documents().read(file, _INTENT)
    return _verdict(deck, written, _policy(deck, policy, written.value), registry)


def _policy(deck: Deck, given: str, value: Any) -> "Written":
    from steersman.faces.planning import policy_of

    return policy_of(deck, given, value)


def _policy_alone(deck: Deck, given: str, registry: "Registry") -> int:
    from steersman.judges.planning.policy import policy_problems

    written = _policy(deck, given, None)
    found = policy_problems(written.value, registry, written.lines)
    return _say(deck, written.file, found, (), {"policy": written.file})


def _verdict(deck: Deck, written: "Written", policy: "Written", registry: "Registry") -> int:
    from steersman.faces.intents import absent, lines_of, unmet
    from steersman.faces.linked import linked
    from steersman.judges.planning.precheck import precheck, troubles
    from steersman.judges.planning.sense import remarks

    report = precheck(written.value, policy.value, registry, written.lines, policy.lines, _name(deck))
    for line in lines_of(report.policy_problems, policy.file):
        deck.say(line, fg="red")
    found = [p for p in troubles(report) if p not in report.policy_problems]
    found += _unfit(report, deck, written)
    about = {"policy": policy.file, "policy_problems": report.policy_problems, "report": report}
    groundless, doubtful = unmet(deck, written, policy, registry)
    found += groundless
    noted = (
        *remarks(written.value, registry, written.lines),
        *absent(deck, written.value, written.lines),
        *linked(deck, written.value, written.lines),
        *doubtful,
    )
    return _say(deck, written.file, found, noted, about, also=len(report.policy_problems))


def _name(deck: Deck) -> str:
    return deck.read_config().config.project or ""


def _unfit(report: "PrecheckReport", deck: Deck, written: "Written") -> "list[Problem]":
    """What the report says without being a sentence of its own: the checksum, and what is not as it was pinned."""
    from steersman.judges.planning.places import problem
    from steersman.judges.planning.precheck import unfit, unsealed

    found = list(unfit(report, "inactive", "drifted", "unpinned"))  # what is missing crosses a red line
    if not report.checksum_matches:
        seal = f"read what changed, then run `{deck.me} intent seal {written.file}`"
        found.append(problem(("audit", "checksum"), unsealed(report), seal, written.lines))
    return found


def _say(
    deck: Deck, file: str, found: "Any", noted: "Any", about: dict[str, Any], *, also: int = 0
) -> int:  # fmt: skip
    from steersman.faces.intents import lines_of

    for line in lines_of(found, file):
        deck.say(line, fg="red")
    for line in lines_of(noted, file):
        deck.say(f"note: {line}")
    count = len(found) + also
    code = REFUSED if count else DONE
    result = "refuse" if count else "accept"
    deck.tell(
        {
            "file": file,
            "result": result,
            "problems": list(found),
            "remarks": list(noted),
            **about,
            "exit_code": code,
        }
    )
    deck.say(
        f"refuse: {count_of(count, 'problem')}" if count else "accept: nothing is wrong with it",
        fg="red" if count else "green",
    )
    return code


# ── seal ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@verb(
    "seal",
    "steersman intent seal fix.yaml",
    "steersman intent seal fix.yaml --out sealed.yaml --json",
    exits=EXITS,
)
@click.argument("file")
@click.option("--out", default="", metavar="FILE", help="Write a new file and leave this one as it is.")
def seal(deck: Deck, *, file: str, out: str) -> int:
    """Pin every workflow, agent and command that the intent in FILE names to the registry as it is now, and write the
    checksum: SHA-256 over the RFC 8785 bytes of the whole document without `audit.checksum`."""
    from steersman.faces.intents import lines_of, registry_of
    from steersman.judges.planning.intent import sealed_bytes
    from steersman.judges.planning.seal import dangling_pins, sealed
    from steersman.judges.planning.shape import schema_problems

    deck.quiet = True
    registry, documents = registry_of(deck), deck.helm.documents()
    was = documents.read(file, _INTENT)
    if not isinstance(was.value, dict):
        raise UserError(f"{file} holds no intent: `{deck.me} intent new` makes one")
    value = sealed(was.value, registry)
    wrong = schema_problems(value, was.lines)
    if wrong:
        deck.tell({"file": file, "result": "refuse", "problems": list(wrong), "exit_code": REFUSED})
        for line in lines_of(wrong, file):
            deck.say(line, fg="red")
        deck.say("refuse: only a whole intent can be sealed; nothing was written", fg="red")
        return REFUSED
    now, kept = documents.sealed(was, value, _INTENT)
    documents.write(out or file, now.text, new=bool(out))
    deck.helm.registries(deck.project).keep(registry)
    if not kept:
        deck.warn(
            f"{out or file} was written anew: comments and layout of {file} could not be kept", fg="yellow"
        )
    removed = dangling_pins(was.value, registry)
    for ref in removed:
        deck.warn(f"{ref} was taken out: the registry has nothing of this name", fg="yellow")
    covered, pinned = sealed_bytes(value), [r for r in value["evidence_refs"] if r.startswith("registry://")]
    deck.tell({"file": out or file, "result": "sealed", "checksum": value["audit"]["checksum"], "bytes": len(covered),
               "pins": pinned, "removed": removed, "registry": registry.digest})  # fmt: skip
    deck.say(f"sealed: {out or file}")
    deck.say(f"  {len(pinned)} pins to the registry {registry.digest[:12]}")
    deck.say(
        f"  checksum {value['audit']['checksum']}: SHA-256 over {len(covered)} bytes, the document without"
    )
    deck.say("  audit.checksum in the form of RFC 8785 (keys sorted, no blanks, UTF-8)")
    return DONE

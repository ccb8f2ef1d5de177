"""`steersman audit …`: questions to a tape. Only `prune` changes anything, and only what is over."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, STORE, Deck, UnheardError, verb
from steersman.judges.text import one_line, printable_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from steersman.runtime.audit import Verdict

HERE = "audit"
KNOWN = {
    "tape": (f"{HERE}:tape", "The entries of a run, one a line."),
    "verify": (f"{HERE}:verify", "Hold tape, state, texts and anchors against each other."),
    "replay": (f"{HERE}:replay", "Decide every recorded step again."),
    "anchor": (f"{HERE}:anchor", "Sign the tape as it is now, outside the store."),
    "prune": (f"{HERE}:prune", "Drop the texts of a run that is over; hashes stay."),
    "export": (f"{HERE}:export", "A run as lines that need no steersman to be checked."),
}
EXITS = "0 everything fits · 2 wrong usage · 5 the tape or the store does not fit"
_run = click.argument("run")


@click.group("audit", cls=Lazy, known=KNOWN, no_args_is_help=False, epilog=f"Exit codes: {EXITS}")
def audit() -> None:
    """The tape: read, verify, replay, anchor, prune, export."""


@verb(
    "tape",
    "steersman audit tape 261116-abc",
    "steersman audit tape 261116-abc --after 20 --json",
    "steersman audit tape 261116-abc --as runtape   # of a plan",
    exits=EXITS,
)
@_run
@click.option("--after", type=click.IntRange(0), default=0, help="Only entries after this one.")
@click.option("--as", "form", type=click.Choice(["entries", "runtape", "auditlog"]), default="entries", show_default=True,
              help="As steersman keeps it, or a plan's tape in one of its specification's forms, as JSON.")  # fmt: skip
def tape(deck: Deck, *, run: str, after: int, form: str) -> int:
    """The entries of RUN, one a line; with --json one JSON object a line."""
    if form != "entries":
        return _in_form(deck, run, form)
    from steersman.kernel.replay import Bad
    from steersman.runtime.audit import tape as entries_of

    for link in entries_of(deck.journal, _found(deck, run)):
        if isinstance(link, Bad):
            deck.warn(f"the tape cannot be read from entry {link.seq} on: {link.why}", fg="red")
            return STORE
        if link[0].seq > after:
            deck.stream({**msgspec.to_builtins(link[0]), "hash": link[1]})
            deck.say(one_line(_line(link[0], link[1])))
    return DONE


def _in_form(deck: Deck, run: str, form: str) -> int:
    from steersman.runtime.projections import form as rendered
    from steersman.runtime.projections import picture

    seen = picture(deck.sight.world, _found(deck, run))
    if seen.live.machine.name != "coordinator":
        raise UserError(f"run {seen.snapshot.run} is no plan: `--as {form}` is a form of plans")
    document = rendered(seen, form)
    deck.say(printable_json(msgspec.json.format(msgspec.json.encode(document)).decode()))
    deck.tell(msgspec.to_builtins(document))
    return DONE


def _line(e: Any, hash_: str) -> str:
    from steersman.views.moments import stamp

    way = f"{e.source or '·'} → {e.to}" if e.to and not e.stay else e.to or e.source or ""
    yes = [name for name, answer in e.guards.items() if answer]
    no = [name for name, answer in e.guards.items() if not answer]
    parts = [
        f"{e.seq:4}  {stamp(e.at)}  {e.kind:15} {way:20} {e.event}",
        f"by {e.actor}" if e.actor != "steersman" else "",
        f"yes: {', '.join(yes)}" if yes else "",
        f"no: {', '.join(no)}" if no else "",
        f"retry {e.retry.retry_count} ({e.retry.retry_reason})" if e.retry else "",
        f"why: {e.why}" if e.why else "",
        "late" if e.late else "",
        hash_[:12],
    ]
    return "  ".join(p for p in parts if p)


@verb("verify", "steersman audit verify 261116-abc", "steersman audit verify   # every run", exits=EXITS)
@click.argument("run", required=False)
def verify(deck: Deck, *, run: str | None) -> int:
    """Hold chain, state, seals, snapshot, head, texts, anchors and git refs of RUN (or of every run, and what the store holds beside them) against each other."""
    known, ask = _askable(deck)
    runs = [_among(known, run)] if run else known
    verdicts = [ask(name) for name in runs]
    if not run and deck.has_store():
        verdicts += _around(deck)
    deck.tell(verdicts[0] if run else verdicts)
    for verdict in verdicts:
        _told(deck, verdict)
    for beyond in dict.fromkeys(words for v in verdicts for words in v.beyond):
        deck.say(f"cannot be seen in any run: {beyond}")
    return DONE if all(v.ok for v in verdicts) else STORE


def _around(deck: Deck) -> "list[Verdict]":
    """What the store holds beside its runs, where something is wrong with it."""
    from steersman.runtime.audit import around

    verdict = around(deck.sight.world)
    return [] if verdict.ok and not verdict.gone else [verdict]


def _askable(deck: Deck) -> "tuple[list[str], Callable[[str], Verdict]]":
    """The runs there are or were, and how to ask about one; a store that is gone has lost all that anchors name."""
    from steersman.faces.lost import hint, world_without_store
    from steersman.runtime.audit import audited, known_runs, lost_runs, missing

    bare = world_without_store(deck)
    lost = lost_runs(bare, lambda _run: False) if bare is not None else []
    if bare is None or not lost:
        world = deck.sight.world
        return known_runs(world), lambda run: audited(world, run)
    deck.warn(hint(deck, lost), fg="red")
    return lost, lambda run: missing(bare, run)


def _among(known: list[str], prefix: str) -> str:
    """Like finding a run, but among those whose head row is gone, too."""
    found = [prefix] if prefix in known else [r for r in known if r.startswith(prefix)]
    found = [r for r in found if "." not in r] or found
    if not found:
        raise UserError(f"there is no run {prefix!r}: see `steersman runs --all`")
    if len(found) > 1:
        raise UserError(f"{prefix!r} could be {', '.join(found[:20])}: write more of it")
    return found[0]


def _told(deck: Deck, v: "Verdict") -> None:
    if v.ok and not v.run:
        deck.say("the store beside the runs: all fits", fg="green")
    elif v.ok:
        by = "and an anchor agrees" if v.anchored else "but no anchor says how long it was"
        deck.say(f"run {v.run}: {v.entries} entries, all fit, {by}", fg="green")
    else:
        where = f", first at entry {v.first_bad}" if v.first_bad is not None else ""
        what = f"run {v.run}" if v.run else "the store beside the runs"
        deck.say(f"{what}: does not fit{where}", fg="red", bold=True)
    for problem in v.problems:
        deck.say(f"  {one_line(problem)}")
    for lost in v.gone:
        deck.say(f"  {'gone from git' if v.run else 'not here'}: {one_line(lost)}", fg="yellow")
    for sent in v.waiting:
        deck.say(f"  waiting to be taken: {one_line(sent)}")
    for unseen in v.unseen:
        deck.say(f"  cannot be seen: {unseen}")


@verb("replay", "steersman audit replay 261116-abc", exits=EXITS)
@_run
def replay(deck: Deck, *, run: str) -> int:
    """Decide every recorded step of RUN again; what another version of the machine decided is said to be so."""
    from steersman.runtime.audit import replay as replayed

    found = _found(deck, run)
    head = deck.sight.head(found)
    m = deck.helm.machines().get(head.machine)
    if m is None:
        raise UserError(f"run {found} needs machine {head.machine}, which is not installed here")
    r = replayed(deck.sight.world.journal, m, found)
    deck.tell(r)
    deck.say(
        f"run {found}: {r.same} decided the same again, {r.different} differently, {r.other_version} by another version"
    )
    for d in r.decisions:
        deck.say(f"  entry {d.seq}: {d.verdict} {d.detail}")
    if r.bad is not None:
        deck.say(f"  the tape cannot be read from entry {r.bad.seq} on: {r.bad.why}", fg="red")
    return DONE if not r.different and r.bad is None else STORE


@verb(
    "anchor", "steersman audit anchor 261116-abc", "steersman audit anchor 261116-abc --to git", exits=EXITS
)
@_run
@click.option("--to", "where", default="file", show_default=True, help="file, git, or command.")
def anchor(deck: Deck, *, run: str, where: str) -> None:
    """Sign the tape of RUN as it is now and keep the statement outside the store."""
    from steersman.runtime.audit import anchor as keep

    if where == "command":
        deck.load_config()
    made = keep(deck.bridge.world, _found(deck, run), where)
    deck.tell(made)
    deck.say(f"run {made.run}: entry {made.seq} with hash {made.hash[:12]}… is anchored ({where})")


@verb("prune", 'steersman audit prune 261116-abc --reason "a year old" --yes', exits=EXITS)
@_run
@click.option("--reason", default="", help="Why; it stays on tape.")
@click.option("--yes", is_flag=True, help="Do not ask: the texts cannot be had back.")
def prune(deck: Deck, *, run: str, reason: str, yes: bool) -> int:
    """Drop prompts, replies, output and diffs of RUN and its children; entries, hashes and state stay."""
    from steersman.faces.speech import insider
    from steersman.runtime.audit import prune as drop

    found = _found(deck, run)
    refused = insider(deck, found, "prune")
    if refused is not None:
        return refused
    question = f"drop all texts of run {found} and its children? They cannot be had back"
    if not yes and not deck.agreed(question, f"{deck.me} audit prune {found} --yes"):
        raise UserError("nothing was dropped")
    done = drop(deck.bridge.world, found, deck.person, reason)
    deck.tell(done)
    deck.say(f"run {done.run}: {done.payloads} texts dropped, entry {done.seq} says so")
    return DONE


@verb(
    "export",
    "steersman audit export 261116-abc --out run.jsonl",
    "steersman audit export 261116-abc --payloads",
    exits=EXITS,
)
@_run
@click.option("--payloads", is_flag=True, help="With all texts and the key that names them.")
@click.option("--out", metavar="FILE", default=None, help="Write it here instead of printing it.")
def export(deck: Deck, *, run: str, payloads: bool, out: str | None) -> None:
    """RUN as lines of canonical JSON (with or without --json) that need no steersman to be checked."""
    from steersman.runtime.audit import export as lines_of
    from steersman.runtime.audit import kept_anchors

    found = _found(deck, run)
    world = deck.sight.world
    lines = lines_of(world.journal, found, payloads=payloads, anchors=kept_anchors(world, found))
    try:
        with click.open_file(out or "-", "wb") as file:
            for line in lines:
                file.write(printable_json(line.decode()).encode() + b"\n")
            file.flush()  # a reader who has enough is met here, not at exit
    except BrokenPipeError:
        raise  # whoever read has enough: no trouble of the file's
    except OSError as error:
        if out is None:
            raise UnheardError(error) from None
        raise UserError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    if out:
        deck.warn(f"written to {out}")


def _found(deck: Deck, run: str) -> str:
    return deck.sight.find(run)

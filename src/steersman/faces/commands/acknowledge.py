"""`steersman acknowledge`: writes what fails on a run's base tree into `known_failures` of steersman.toml.

**Invariant:** a person's word: nothing that works for a run can acknowledge, and nothing is written unshown.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.faces.deck import DONE, REFUSED, Deck, verb
from steersman.faces.speech import insider
from steersman.faces.trust import is_trusted, record_trust

KEY = "known_failures"
LISTED = 12


@verb(
    "acknowledge",
    "steersman acknowledge 261116-abc",
    "steersman acknowledge 261116-abc tests/test_shop.py::test_cart --yes",
    exits="0 written, or nothing was left to write · 2 wrong usage · 4 not agreed to",
)
@click.argument("run")
@click.argument("names", nargs=-1)
@click.option("--yes", is_flag=True, help="Write without asking.")
def acknowledge(deck: Deck, *, run: str, names: tuple[str, ...], yes: bool) -> int:
    """Acknowledge what fails on the base tree of RUN: all of it, or only these NAMES. The names are written into
    `known_failures` of steersman.toml, everything else in the file stays as it is. The next run goes on with them."""
    found = deck.sight.find(run)
    refused = insider(deck, found, "acknowledge")
    if refused is not None:
        return refused
    loaded = deck.read_config()
    if loaded.path is None:
        raise UserError(f"there is no steersman.toml to write to: run `{deck.me} init` first")
    wanted = _choose(deck, _base_results(deck, found), names, loaded.config)
    if not wanted:
        deck.tell({"file": str(loaded.path), "added": [], "exit_code": DONE})
        deck.say(f"nothing to add: what fails on the base tree of {found} is acknowledged in {loaded.path}")
        return DONE
    new = edit_known_failures(loaded.path, wanted)
    for line in (f"to be added to {KEY} in {loaded.path}:", *_listed(wanted)):
        deck.say(line)
    if not yes and not deck.agreed("Acknowledge these failures?", "--yes writes without asking"):
        return REFUSED
    write_known_failures(deck, loaded, new)
    again = _start_again(deck, found)
    deck.tell({"file": str(loaded.path), "added": list(wanted), "next": [again], "exit_code": DONE})
    deck.say(f"{len(wanted)} written; a failure that is not among them still fails a check", fg="green")
    deck.say("next:")
    deck.say(f"  {again}")
    return DONE


def _base_results(deck: Deck, run: str) -> list[CommandResult]:
    import msgspec

    context: Any = deck.sight.live(run).snapshot.context
    ref = getattr(context, "baseline_ref", "")
    if not ref:
        raise UserError(f"no check of run {run} has been run on its base tree: see `{deck.me} show {run}`")
    try:
        return msgspec.json.decode(deck.sight.live(run).payloads.get(ref), type=list[CommandResult])
    except msgspec.MsgspecError:
        raise UserError(f"the results of run {run} were pruned: start a new run") from None


def _choose(
    deck: Deck, results: list[CommandResult], names: tuple[str, ...], config: Config
) -> tuple[str, ...]:
    from steersman.judges.base_checks import acknowledgeable
    from steersman.judges.baseline import is_known

    known = frozenset(config.known_failures)
    found = acknowledgeable(results, known, config.no_tests)
    for name, why in found.refused:
        deck.warn(f"{name} cannot be acknowledged: {why}", fg="yellow")
    if found.refused and not found.names:
        raise UserError("nothing here can be acknowledged: correct the checks above in steersman.toml")
    unknown = [name for name in names if not is_known(name, (*found.names, *known))]
    if unknown:
        raise UserError(f"{unknown[0]} did not fail on the base tree; what did: {', '.join(found.names)}")
    return tuple(n for n in found.names if is_known(n, names)) if names else found.names


def edit_known_failures(path: Path, names: Sequence[str]) -> str:
    """The text of the file with these names in known_failures and everything else as it is."""
    from steersman.judges.toml_edit import add_to_list

    try:
        new = add_to_list(path.read_text(encoding="utf-8"), KEY, names)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if new is None:
        raise UserError(f"cannot edit {path} safely; add these to {KEY} by hand: {', '.join(names)}")
    return new


def write_known_failures(deck: Deck, loaded: Any, text: str) -> None:
    """Writes what a person has just read; settings that were trusted stay so."""
    trusted = is_trusted(deck, loaded)
    write_settings(loaded.path, text)
    if trusted:
        record_trust(deck, loaded, deck.read_config().powerful)


def write_settings(path: Path, text: str) -> None:
    """Writes steersman.toml, or says who has to look after it."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; check who owns the directory") from None


def _listed(names: tuple[str, ...]) -> list[str]:
    rest = len(names) - LISTED
    return [*(f"  {name}" for name in names[:LISTED]), *([f"  and {rest} more"] if rest > 0 else [])]


def _start_again(deck: Deck, run: str) -> str:
    from steersman.views.base_stop import start_again_command

    live = deck.sight.live(run)
    return start_again_command(live.snapshot.machine, live.title, deck.me)

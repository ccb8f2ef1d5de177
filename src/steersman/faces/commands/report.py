"""`steersman report`: a run as Markdown."""

import click

from steersman.errors import UserError
from steersman.faces.deck import Deck, verb


@verb(
    "report",
    "steersman report 261116-abc",
    "steersman report 261116-abc --out report.md",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run")
@click.option("--out", metavar="FILE", default=None, help="Write it here instead of printing it.")
def report(deck: Deck, *, run: str, out: str | None) -> None:
    """What was asked, decided, changed and proven in RUN, and by whom."""
    import msgspec

    from steersman.runtime.projections import markdown, picture
    from steersman.views.reviews import reviews

    found = deck.sight.find(run)
    seen = picture(deck.sight.world, found)
    words = markdown(seen)
    told = msgspec.to_builtins(reviews(seen.entries, seen.text))
    deck.tell({"run": found, "report": words, "reviews": told, "file": out})
    if out is None:
        deck.say(words.rstrip("\n"))
        return
    try:
        with open(out, "w", encoding="utf-8") as file:
            file.write(words)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    deck.say(f"written to {out}")

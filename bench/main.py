"""The benchmark: every contender through every section, then the tables. See `bench/run --help`."""

import argparse
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import report
from contender import names
from harness import Figures, Session
from sections import SECTIONS
from sizes import FULL, QUICK, Sizes

DATA = Path(__file__).parent / ".data"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run", description="Measures steersman beside its peers.")
    parser.add_argument("--quick", action="store_true", help="a smoke run of a minute or two")
    parser.add_argument("--reps", type=int, help="repetitions of each measurement (5, quick 1)")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="these sections")
    parser.add_argument("--contenders", nargs="+", choices=names(), default=names(), help="these contenders")
    parser.add_argument("--data", type=Path, default=DATA, help="a folder on the disk to measure")
    return parser.parse_args()


def sizes(asked: argparse.Namespace) -> Sizes:
    chosen = QUICK if asked.quick else FULL
    what = chosen.what if len(asked.only) == len(SECTIONS) else f"{chosen.what}-{'-'.join(asked.only)}"
    if len(asked.contenders) < len(names()):
        what = f"{what}-of-{'-'.join(asked.contenders)}"
    if asked.reps and asked.reps < chosen.reps:
        what = f"{what}-{asked.reps}-reps"
    return replace(chosen, what=what, reps=asked.reps or chosen.reps)


def introduce(session: Session, contenders: list[str]) -> dict[str, Figures]:
    """What each contender says of itself; one that cannot be imported is out."""
    abouts = {}
    with session.folder("about") as folder:
        for name in contenders:
            about = session.attempt("about", name, partial(session.measure, name, "about", folder))
            if about:
                abouts[name] = about
    return abouts


def main() -> int:
    asked = arguments()
    session = Session(asked.data.resolve(), sizes(asked))
    facts = report.environment(session)
    abouts = introduce(session, asked.contenders)
    results = {}
    for section in asked.only:
        start = time.monotonic()
        results[section] = SECTIONS[section](session, abouts)
        print(f"{section}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    text = report.render(
        facts, results, {name: about["name"] for name, about in abouts.items()}, session.failures
    )
    print(text)
    print(f"Kept in {report.write(facts, results, text, session.failures).name}, the samples beside it.")
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())

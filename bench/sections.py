"""The disciplines: which contenders take part, what one repetition is, and what is derived from it."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from harness import Figures, Samples, Session, cpu_seconds

Abouts = Mapping[str, Figures]
THREE_IMPORTS = "import click, apsw, msgspec"


def _able(abouts: Abouts, *methods: str) -> list[str]:
    return [name for name, about in abouts.items() if set(methods) <= set(about["offers"])]


def _fresh(session: Session, what: str, name: str, rep: int) -> Figures:
    with session.folder(f"{what}-{name}-{rep}") as folder:
        return session.measure(name, what, folder)


def memory(session: Session, abouts: Abouts) -> Samples:
    once = partial(_fresh, session, "memory")
    return session.interleave("memory", _able(abouts, "in_memory"), once, session.sizes.rounds)


def _synced(session: Session, abouts: Abouts, section: str, rounds: int) -> Samples:
    samples = session.interleave(section, _able(abouts, section), partial(_fresh, session, section), rounds)
    for name, figures in samples.items():
        extra = session.attempt(section, name, partial(session.syncs, name, section))
        for sample in figures:
            sample.update(extra or {})
    return samples


def durable(session: Session, abouts: Abouts) -> Samples:
    return _synced(session, abouts, "durable", session.sizes.rounds)


def concurrent(session: Session, abouts: Abouts) -> Samples:
    return _synced(session, abouts, "concurrent", 1)


def growth(session: Session, abouts: Abouts) -> Samples:
    return session.interleave("growth", _able(abouts, "growth"), partial(_fresh, session, "growth"))


def growing(session: Session, abouts: Abouts) -> Samples:
    return session.interleave("growing", _able(abouts, "growth"), partial(_fresh, session, "growing"))


def _filled(session: Session, section: str, names: list[str], what: str, stack: ExitStack) -> dict[str, Path]:
    """A store for each contender, made once and read in every repetition."""
    folders = {}
    for name in names:
        folder = stack.enter_context(session.folder(f"{section}-{what}-{name}"))
        if session.attempt(section, name, partial(session.measure, name, what, folder)) is not None:
            folders[name] = folder
    return folders


def many(session: Session, abouts: Abouts) -> Samples:
    with ExitStack() as stack:
        folders = _filled(session, "many", _able(abouts, "fill", "reader"), "fill", stack)

        def once(name: str, _rep: int) -> Figures:
            return session.measure(name, "many", folders[name])

        return session.interleave("many", list(folders), once)


def parked(session: Session, abouts: Abouts) -> Samples:
    with ExitStack() as stack:
        able = _able(abouts, "fill", "waiting")
        none = _filled(session, "parked", able, "fill_none", stack)
        some = _filled(session, "parked", list(none), "fill_parked", stack)

        def once(name: str, _rep: int) -> Figures:
            idle = session.measure(name, "parked", none[name])
            busy = session.measure(name, "parked", some[name])
            return {
                "runs": min(session.sizes.parked, abouts[name]["limits"].get("parked", session.sizes.parked)),
                "threads": busy["threads"],
                "more_threads": busy["threads"] - idle["threads"],
                "mb": busy["mb"],
                "mb_ratio": busy["mb"] / idle["mb"],
                "idle_ms_per_s": busy["idle_ms_per_s"],
                "more_idle_ms": busy["idle_ms_per_s"] - idle["idle_ms_per_s"],
            }

        return session.interleave("parked", list(some), once)


def start(session: Session, abouts: Abouts) -> Samples:
    """CPU over an empty start, of a contender's command where it has one, else of its import."""
    with ExitStack() as stack:
        folder = stack.enter_context(session.folder("start"))
        stores = _filled(session, "start", _able(abouts, "command"), "fill_none", stack)
        lines = {name: ["-c", about["import_line"]] for name, about in abouts.items()}
        for name, store in stores.items():
            asked = session.attempt("start", name, partial(session.measure, name, "command", store))
            lines[name] = asked["command"] if asked else lines[name]

        def once(name: str, _rep: int) -> Figures:
            # The three are taken side by side, so that their differences and ratios belong together.
            empty = cpu_seconds(["-c", "pass"], folder)
            three = cpu_seconds(["-c", THREE_IMPORTS], folder) - empty
            own = cpu_seconds(lines[name], stores.get(name, folder)) - empty
            return {
                "cpu_ms": own * 1e3,
                "empty_ms": empty * 1e3,
                "three_ms": three * 1e3,
                "ratio": own / three,
            }

        return session.interleave("start", list(lines), once, session.sizes.rounds)


SECTIONS: Mapping[str, Callable[[Session, Abouts], Samples]] = {
    section.__name__: section
    for section in (memory, durable, concurrent, growth, growing, many, start, parked)
}

"""How an argv is held against a grammar: options, values, positions, launchers."""

import msgspec
import pytest

from steersman.judges.grammar import Fitted, Grammar, Misfit, fit, fit_any
from steersman.judges.grammars.values import PATH, WORD, flags, number, one_of, takes

TOOL = Grammar(
    name="tool",
    set="x",
    about="",
    starts=(("tool",), ("tool", "run")),
    options=(
        *flags("-q/--quiet -x"),
        *flags("-v", often=2),
        takes("-n/--number", number(2, 5), "=", " ", ""),
        takes("--mode", one_of("fast", "slow"), "="),
        takes("--dir", PATH, " "),
    ),
    rest=PATH,
    most=2,
    clusters=True,
)
STRICT = Grammar(
    name="strict",
    set="x",
    about="",
    starts=(("strict",),),
    options=flags("-a/--all -b"),
    first=(WORD,),
    rest=PATH,
    least=1,
    needs=("-a",),
    tail=flags("--loud"),
)
HUNGRY = Grammar(
    name="hungry", set="x", about="", starts=(("hungry", "now"),), options=flags("--cov -q"), rest=PATH, greedy=("--cov",)
)  # fmt: skip
ALONE = Grammar(name="alone", set="x", about="", starts=(("alone",),))
LAUNCHER = Grammar(
    name="go",
    set="x",
    about="",
    starts=(("go",),),
    options=flags("-f"),
    inner=(TOOL, ALONE),
    proves="nothing",
)

FITS = [
    (TOOL, "tool"),
    (TOOL, "tool run"),
    (TOOL, "tool -q -x a b"),
    (TOOL, "tool a --quiet b -x"),
    (TOOL, "tool -qx"),
    (TOOL, "tool -xvv a"),
    (TOOL, "tool -v -v"),
    (TOOL, "tool -n 5"),
    (TOOL, "tool -n5"),
    (TOOL, "tool --number=2"),
    (TOOL, "tool --number 3"),
    (TOOL, "tool --mode=fast"),
    (TOOL, "tool --dir a/b"),
    (STRICT, "strict -a name path"),
    (STRICT, "strict --all name path -b"),
    (STRICT, "strict -a name path -- --loud"),
    (HUNGRY, "hungry now --cov -q a"),
    (HUNGRY, "hungry now a --cov"),
    (ALONE, "alone"),
    (LAUNCHER, "go alone"),
    (LAUNCHER, "go -f tool -q a"),
]
MISFITS = [
    (TOOL, "other", "is not `tool`"),
    (TOOL, "tools", "is not `tool`"),
    (TOOL, "tool -z", "`-z` is not an option"),
    (TOOL, "tool -qz", "is not an option"),
    (TOOL, "tool -q -q", "more than 1 times"),
    (TOOL, "tool -qq", "more than 1 times"),
    (TOOL, "tool -vvv", "more than 2 times"),
    (TOOL, "tool --quie", "is not an option"),
    (TOOL, "tool --quiet=yes", "is not an option"),
    (TOOL, "tool -n 1", "from 2 to 5"),
    (TOOL, "tool -n 6", "from 2 to 5"),
    (TOOL, "tool -n x", "from 2 to 5"),
    (TOOL, "tool -n", "from 2 to 5"),
    (TOOL, "tool --number=", "from 2 to 5"),
    (TOOL, "tool -n=3", "from 2 to 5"),
    (TOOL, "tool --number3", "is not an option"),
    (TOOL, "tool --mode fast", "is not an option"),
    (TOOL, "tool --mode=other", "one of fast, slow"),
    (TOOL, "tool --dir=a", "is not an option"),
    (TOOL, "tool --dir ../a", "a path inside the tree"),
    (TOOL, "tool ../a", "is not a path inside the tree"),
    (TOOL, "tool a b c", "more than 2 operands"),
    (TOOL, "tool --", "is not an option"),
    (TOOL, "tool -", "is not an option"),
    (STRICT, "strict -a", "a plain name"),
    (STRICT, "strict -a name", "a path inside the tree"),
    (STRICT, "strict name path", "needs -a"),
    (STRICT, "strict -ab name path", "is not an option"),
    (STRICT, "strict -a name path -- -b", "is not an option"),
    (STRICT, "strict -a name path -- --", "is not an option"),
    (HUNGRY, "hungry now --cov a", "would be taken for the value of `--cov`"),
    (HUNGRY, "hungry", "is not `hungry now`"),
    (ALONE, "alone x", "has no place"),
    (LAUNCHER, "go", "a command"),
    (LAUNCHER, "go -f", "a command"),
    (LAUNCHER, "go go alone", "is not a program"),
    (LAUNCHER, "go tool -z", "`-z` is not an option of `tool`"),
]


@pytest.mark.parametrize(("grammar", "line"), FITS, ids=lambda v: getattr(v, "name", v))
def test_what_fits(grammar, line):
    """Each option in each of its forms, operands where they belong, a launcher before a whole command."""
    assert isinstance(fit(tuple(line.split()), grammar), Fitted)


@pytest.mark.parametrize(("grammar", "line", "words"), MISFITS, ids=lambda v: getattr(v, "name", v))
def test_what_does_not(grammar, line, words):
    """Everything else, with the word that has no place."""
    found = fit(tuple(line.split()), grammar)
    assert isinstance(found, Misfit)
    assert words in found.reason


def test_paths_are_told():
    """The paths among the words are known, so that they can be looked at on a disk."""
    assert fit(("tool", "--dir", "a", "b", "c/d"), TOOL).reach.paths == ("a", "b", "c/d")
    assert fit(("go", "tool", "b"), LAUNCHER).reach.paths == ("b",)


def test_a_launcher_proves_what_its_command_proves():
    """`go alone` proves what `alone` proves, under the launcher's name."""
    found = fit(("go", "alone"), LAUNCHER)
    assert (found.grammar.name, found.grammar.proves) == ("go", "tests")


def test_first_words_that_are_known_are_told():
    """A program with other words behind it than it may have: which may come; without grammars, none is known."""
    assert fit_any(("hungry", "later"), (ALONE, HUNGRY)) == Misfit(
        1, "after `hungry` has to come `now`, not `later`"
    )
    assert fit_any(("hungry",), (HUNGRY, HUNGRY)) == Misfit(1, "after `hungry` has to come `now`")
    assert fit_any(("x",), ()) == Misfit(0, "`x` is not a program of the table")


def test_the_misfit_that_came_furthest_is_told():
    """Of several grammars the one in which most words have a place says what is wrong."""
    again = msgspec.structs.replace(STRICT, options=flags("-a -c"))
    assert fit_any(("strict", "-c", "-z"), (STRICT, again)).at == 2
    assert "`-z` is not an option of `tool run`" in fit_any(("tool", "run", "-z"), (ALONE, TOOL)).reason
    assert fit_any(("x",), (ALONE, TOOL)) == Misfit(0, "`x` is not a program of the table")
    assert isinstance(fit_any(("alone",), (TOOL, ALONE)), Fitted)

"""A rule's condition in the Common Expression Language: read, bounded, typed, compiled. The only file that knows the library.

Growth is bounded by what may be written: no function that builds values, two loops inside each other, six in all, twenty
sums, patterns that the library takes. How often loops turn is bounded by the library (10,000 times in one evaluation);
beyond that nothing is decided.
**Invariant:** an expression that compiles yields yes, no, or an error; never another value.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from steersman.errors import UserError
from steersman.judges.planning.environment import VARIABLES, Shape
from steersman.judges.text import clip, one_line

LOOPS = frozenset({"all", "exists", "exists_one", "filter"})
FUNCTIONS = LOOPS | {"size", "has", "contains", "startsWith", "endsWith", "matches"}
DEEPEST, MOST_LOOPS, MOST_SUMS, LONGEST = 2, 6, 20, 2000

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*)
      | (?P<fences>'{3}|"{3})
      | (?P<text>"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'|[rR]"[^"\r\n]*"|[rR]'[^'\r\n]*'
        |(?<![A-Za-z0-9_])[bB][rR]?["'])
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>[0-9]+)
      | (?P<mark>&&|\|\||[=!<>]=|[-+*/%?:!<>()\[\],.])""",
    re.VERBOSE,
)
_COMPLAINT = re.compile(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")


Program = Callable[[Any], Any]  # an activation → a value of the library


class Fault(NamedTuple):
    """What is wrong with an expression, and what would mend it."""

    message: str
    fix: str = ""


class Mute(msgspec.Struct, frozen=True):
    """In place of a program where there is none: its value is the reason."""

    why: str

    def __call__(self, _values: Any) -> "Mute":
        return self

    def value(self) -> str:
        """The reason."""
        return self.why


def compiled(source: str) -> Program | tuple[Fault, ...]:
    """The expression, or everything that is wrong with it."""
    if len(source) > LONGEST:
        return (Fault(f"longer than {LONGEST} characters", "split it into several rules"),)
    truth, env = _environment()
    faults = [*_unbounded(source), *_unmatchable(source)]
    try:
        expression = env.compile(source)
    except Exception as error:
        return (*faults, *_complaints(str(error)))
    said = expression.return_type()
    if said != truth:
        faults.append(
            Fault(f"says {said.name().lower()}, not yes or no", "compare it with something, or ask `in`")
        )
    return tuple(faults) or expression.eval


def activation(values: Mapping[str, Any]) -> Any:
    """The values of the variables, for any number of programs; what is left out is an error where it is needed."""
    return _environment()[1].Activation(values)


def words(source: str) -> frozenset[str]:
    """The names that an expression uses, such as `facts`; text and comments are left out."""
    return frozenset(lexeme for kind, lexeme in _tokens(source) if kind == "word")


def quoted_texts(source: str) -> Iterator[str]:
    """The texts that an expression has in quotes, as they are written."""
    return (lexeme.lstrip("rR")[1:-1] for kind, lexeme in _tokens(source) if kind == "text")


@cache
def _environment() -> tuple[Any, Any]:
    """The type of what is true or not, and what compiles expressions."""
    try:
        # It brings no types of its own.
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ImportError:
        raise UserError('rules need cel-expr-python: pip install "steersman[plan]"') from None
    text = cel.Type.STRING
    texts = cel.Type.List(text)
    types: dict[Shape, Any] = {
        "string": text,
        "bool": cel.Type.BOOL,
        "int": cel.Type.INT,
        "list(string)": texts,
        "map(string, list(string))": cel.Type.Map(text, texts),
    }
    return cel.Type.BOOL, cel.NewEnv(variables={v.name: types[v.shape] for v in VARIABLES})


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    """Kind and text of every token but blanks; what is none of them comes as `other`."""
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            yield "other", source[at]
            at += 1
            continue
        at = match.end()
        if match.lastgroup != "blank":
            yield str(match.lastgroup), match[0]


def _unbounded(source: str) -> Iterator[Fault]:
    """Everything that could grow beyond bounds, or that is outside the part of the language rules are written in."""
    open_calls: list[str] = []
    before, loops, deepest, sums = "", 0, 0, 0
    for kind, lexeme in _tokens(source):
        if kind in ("other", "fences") or (kind == "text" and lexeme[0] in "bB"):
            yield Fault(
                f"{one_line(lexeme)} has no place in a rule",
                "rules have words, numbers, 'text', lists and operators; no bytes, no maps, no text over several lines",
            )
        elif lexeme == "(":
            open_calls.append(before)
            if before and before not in FUNCTIONS:
                yield Fault(
                    f"{clip(before, 60)}() is not a function of rules",
                    f"there are {', '.join(sorted(FUNCTIONS))}",
                )
            if before in LOOPS:
                loops += 1
                deepest = max(deepest, sum(call in LOOPS for call in open_calls))
        elif lexeme == ")" and open_calls:
            open_calls.pop()
        elif lexeme == "+":
            sums += 1
        before = lexeme if kind == "word" and lexeme != "in" else ""
    if deepest > DEEPEST:
        yield Fault(f"loops are nested {deepest} deep; {DEEPEST} is the most", "ask for less in one rule")
    if loops > MOST_LOOPS:
        yield Fault(f"{loops} loops; {MOST_LOOPS} is the most", "split it into several rules")
    if sums > MOST_SUMS:
        yield Fault(f"{sums} sums; {MOST_SUMS} is the most", "write the value out")


def _unmatchable(source: str) -> Iterator[Fault]:
    """Patterns that no text could be held against: only whoever tries one knows whether it is within the library's bounds."""
    tokens = [*_tokens(source), ("", ""), ("", ""), ("", "")]
    for n, (kind, lexeme) in enumerate(tokens[:-3]):
        if (kind, lexeme, tokens[n + 1][1]) != ("word", "matches", "("):
            continue
        (wanted, pattern), (_, after) = tokens[n + 2], tokens[n + 3]
        if wanted != "text" or after != ")":
            yield Fault("matches() is asked for a pattern that is not written out", "write .matches('…')")
        elif why := _tried(pattern):
            yield Fault(
                f"the pattern {clip(pattern, 60)}: {clip(one_line(why), 400)}", "ask for a simpler one"
            )


def _tried(pattern: str) -> str:
    """Why a pattern cannot be used; nothing where it can, or where it is no text at all, which is told anyway."""
    _, env = _environment()
    try:
        said = env.compile(f"''.matches({pattern})").eval(activation({})).value()
    except Exception:
        return ""
    return "" if isinstance(said, bool) else str(said).removeprefix("INVALID_ARGUMENT: ")


def _complaints(said: str) -> Iterator[Fault]:
    found = _COMPLAINT.findall(said)
    if not found:
        deep = "recursion limit" in said
        yield Fault(
            "is nested too deep" if deep else "is not text that can be read",
            "write it with fewer brackets inside each other" if deep else "write it in plain characters",
        )
    for line, column, what in found:
        told = clip(one_line(what.replace(" (in container '')", "")), 400)
        yield Fault(f"line {line}, column {column}: {told}", _remedy(what))


def _remedy(what: str) -> str:
    unknown = _UNDECLARED.search(what)
    if unknown is None:
        return ""
    import difflib  # slow to import, and only for what is misspelt

    near = difflib.get_close_matches(unknown[1], [v.name for v in VARIABLES], 1, 0.6)
    return f"did you mean {near[0]}?" if near else "`steersman registry variables` lists what there is"

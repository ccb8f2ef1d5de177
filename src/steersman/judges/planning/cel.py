"""Reads, bounds, types and compiles the condition of a rule, in the Common Expression Language. No other file uses the library.

The source bounds the growth: no function builds values, at most two loops inside each other, six loops, twenty sums, and
only patterns that the library accepts. The library bounds the turns of loops (10,000 in one evaluation); a rule that
needs more is undecidable.
**Invariant:** a compiled expression yields true, false or an error, and never another value.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from steersman.errors import UserError
from steersman.judges.planning.environment import RULE_VARIABLES, VariableType
from steersman.judges.text import clip_text, printable_line

CEL_LOOPS = frozenset({"all", "exists", "exists_one", "filter"})
CEL_FUNCTIONS = CEL_LOOPS | {"size", "has", "contains", "startsWith", "endsWith", "matches"}
MAX_LOOP_DEPTH, MAX_LOOPS, MAX_SUMS, MAX_EXPRESSION_LENGTH = 2, 6, 20, 2000

_CEL_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*)
      | (?P<fences>'{3}|"{3})
      | (?P<text>"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'|[rR]"[^"\r\n]*"|[rR]'[^'\r\n]*'
        |(?<![A-Za-z0-9_])[bB][rR]?["'])
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>[0-9]+)
      | (?P<mark>&&|\|\||[=!<>]=|[-+*/%?:!<>()\[\],.])""",
    re.VERBOSE,
)
_CEL_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)")
_UNDECLARED_NAME = re.compile(r"undeclared reference to '([^']*)'")


CelProgram = Callable[[Any], Any]  # an activation → a value of the library


class RuleFault(NamedTuple):
    """What is wrong with an expression, and how to fix it."""

    message: str
    fix: str = ""


class FailedProgram(msgspec.Struct, frozen=True):
    """In place of a program where there is none: its value is the reason."""

    why: str

    def __call__(self, _values: Any) -> "FailedProgram":
        return self

    def value(self) -> str:
        """The reason."""
        return self.why


def compile_cel_expression(source: str) -> CelProgram | tuple[RuleFault, ...]:
    """The expression, or everything that is wrong with it."""
    if len(source) > MAX_EXPRESSION_LENGTH:
        return (RuleFault(f"longer than {MAX_EXPRESSION_LENGTH} characters", "split it into several rules"),)
    truth, env = _cel_environment()
    faults = [*_find_unbounded_parts(source), *_find_bad_patterns(source)]
    try:
        expression = env.compile(source)
    except Exception as error:
        return (*faults, *_parse_cel_errors(str(error)))
    result_type = expression.return_type()
    if result_type != truth:
        faults.append(
            RuleFault(
                f"says {result_type.name().lower()}, not yes or no", "compare it with something, or ask `in`"
            )
        )
    return tuple(faults) or expression.eval


def build_cel_activation(values: Mapping[str, Any]) -> Any:
    """The values of the variables, for any number of programs; what is left out is an error where it is needed."""
    return _cel_environment()[1].Activation(values)


def find_cel_words(source: str) -> frozenset[str]:
    """The names that an expression uses, such as `facts`; text and comments are left out."""
    return frozenset(lexeme for kind, lexeme in _tokenize_cel(source) if kind == "word")


def find_quoted_texts(source: str) -> Iterator[str]:
    """The texts that an expression has in quotes, as they are written."""
    return (lexeme.lstrip("rR")[1:-1] for kind, lexeme in _tokenize_cel(source) if kind == "text")


@cache
def _cel_environment() -> tuple[Any, Any]:
    """The type of what is true or not, and what compiles expressions."""
    try:
        # It brings no types of its own.
        from cel_expr_python import cel  # type: ignore[import-untyped]
    except ImportError:
        raise UserError('rules need cel-expr-python: pip install "steersman[plan]"') from None
    text = cel.Type.STRING
    texts = cel.Type.List(text)
    types: dict[VariableType, Any] = {
        "string": text,
        "bool": cel.Type.BOOL,
        "int": cel.Type.INT,
        "list(string)": texts,
        "map(string, list(string))": cel.Type.Map(text, texts),
    }
    return cel.Type.BOOL, cel.NewEnv(variables={v.name: types[v.shape] for v in RULE_VARIABLES})


def _tokenize_cel(source: str) -> Iterator[tuple[str, str]]:
    """Kind and text of every token but blanks; what is none of them comes as `other`."""
    position = 0
    while position < len(source):
        match = _CEL_TOKEN.match(source, position)
        if match is None:
            yield "other", source[position]
            position += 1
            continue
        position = match.end()
        if match.lastgroup != "blank":
            yield str(match.lastgroup), match[0]


def _find_unbounded_parts(source: str) -> Iterator[RuleFault]:
    """Everything that could grow beyond bounds, or that is outside the part of the language rules are written in."""
    open_calls: list[str] = []
    previous_word, loops, deepest, sums = "", 0, 0, 0
    for kind, lexeme in _tokenize_cel(source):
        if kind in ("other", "fences") or (kind == "text" and lexeme[0] in "bB"):
            yield RuleFault(
                f"{printable_line(lexeme)} is not allowed in a rule",
                "rules use words, numbers, 'text', lists and operators, and no bytes, maps or text over several lines",
            )
        elif lexeme == "(":
            open_calls.append(previous_word)
            if previous_word and previous_word not in CEL_FUNCTIONS:
                yield RuleFault(
                    f"{clip_text(previous_word, 60)}() is not a function of rules",
                    f"there are {', '.join(sorted(CEL_FUNCTIONS))}",
                )
            if previous_word in CEL_LOOPS:
                loops += 1
                deepest = max(deepest, sum(call in CEL_LOOPS for call in open_calls))
        elif lexeme == ")" and open_calls:
            open_calls.pop()
        elif lexeme == "+":
            sums += 1
        previous_word = lexeme if kind == "word" and lexeme != "in" else ""
    if deepest > MAX_LOOP_DEPTH:
        yield RuleFault(
            f"loops are nested {deepest} deep; {MAX_LOOP_DEPTH} is the most", "ask for less in one rule"
        )
    if loops > MAX_LOOPS:
        yield RuleFault(f"{loops} loops; {MAX_LOOPS} is the most", "split it into several rules")
    if sums > MAX_SUMS:
        yield RuleFault(f"{sums} sums; {MAX_SUMS} is the most", "write the value out")


def _find_bad_patterns(source: str) -> Iterator[RuleFault]:
    """Patterns that the library refuses. Only compiling a pattern shows whether it is within the library's bounds."""
    tokens = [*_tokenize_cel(source), ("", ""), ("", ""), ("", "")]
    for index, (kind, lexeme) in enumerate(tokens[:-3]):
        if (kind, lexeme, tokens[index + 1][1]) != ("word", "matches", "("):
            continue
        (argument_kind, pattern), (_, following_text) = tokens[index + 2], tokens[index + 3]
        if argument_kind != "text" or following_text != ")":
            yield RuleFault("matches() is asked for a pattern that is not written out", "write .matches('…')")
        elif why := _pattern_error(pattern):
            yield RuleFault(
                f"the pattern {clip_text(pattern, 60)}: {clip_text(printable_line(why), 400)}",
                "ask for a simpler one",
            )


def _pattern_error(pattern: str) -> str:
    """Why a pattern cannot be used; empty where it can, or where it is not a text, which is reported anyway."""
    _, env = _cel_environment()
    try:
        result = env.compile(f"''.matches({pattern})").eval(build_cel_activation({})).value()
    except Exception:
        return ""
    return "" if isinstance(result, bool) else str(result).removeprefix("INVALID_ARGUMENT: ")


def _parse_cel_errors(error_text: str) -> Iterator[RuleFault]:
    errors = _CEL_ERROR.findall(error_text)
    if not errors:
        deep = "recursion limit" in error_text
        yield RuleFault(
            "is nested too deep" if deep else "is not text that can be read",
            "write it with fewer brackets inside each other" if deep else "write it in plain characters",
        )
    for line, column, message in errors:
        shown_message = clip_text(printable_line(message.replace(" (in container '')", "")), 400)
        yield RuleFault(f"line {line}, column {column}: {shown_message}", _suggest_variable(message))


def _suggest_variable(message: str) -> str:
    undeclared = _UNDECLARED_NAME.search(message)
    if undeclared is None:
        return ""
    import difflib  # slow to import, and only for what is misspelt

    matches = difflib.get_close_matches(undeclared[1], [v.name for v in RULE_VARIABLES], 1, 0.6)
    return f"did you mean {matches[0]}?" if matches else "`steersman registry variables` lists what there is"

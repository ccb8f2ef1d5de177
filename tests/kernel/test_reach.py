"""What a piece of source reaches: every function and constant it names, through imports, and nothing else."""

from tests.support.cases import for_each_case

from steersman.kernel.reach import SourceTexts

# One table, with what it imports from three other rooms in every way that Python knows.
TEXTS = {
    "room": "",
    "room.table": """
from __future__ import annotations
import os
import room.deep.well
import room.deep.well as spring
from room import rules
from room.rules import limit as ceiling, Sizes
from . import near
from .near import Kind
from .deep import well
from elsewhere import outside

HERE = 3
PAIR, OTHER = 1, 2
TOTAL: int = HERE
TOTAL += 1
if HERE:
    INSIDE = "if"
else:
    OUTSIDE = "else"
try:
    TRIED = 1
except ImportError:
    pass

def start(c, e: Sizes) -> Kind:
    "A docstring."
    return c.x > CALLED_LATER and helper(e)

CALLED_LATER = 5

def helper(e):
    rules = e  # its own: not the module
    return rules

def by_module(c): return rules.judge(c)
def by_name(c): return c > ceiling
def by_relative(c): return near.around(c)
def by_deep(c): return room.deep.well.draw(c)
def by_alias(c): return spring.draw(c)
def by_package(c): return well.draw(c)
def by_class(c): return Kind(c)
def by_attribute(c): return Sizes.small
def by_method(c): return Sizes.measure(c)
def by_field(c): return Sizes.field
def by_total(c): return TOTAL + PAIR
def by_inside(c): return INSIDE + OUTSIDE
def by_tried(c): return TRIED
def by_outside(c): return outside(c) + os.sep + len(c)
def by_call(c): return rules.judge(c).strip().upper()
def by_value(c): return HERE.real
async def later(c): return HERE
""",
    "room.rules": """
from room.near import BASE
limit = BASE * 2

class Sizes:
    "Sizes of things."
    small = 1
    large = 2
    field: int = 3

    def measure(self): return limit

def judge(c): return c > BASE
""",
    "room.near": """
from room.near import loop
BASE = 10

class Kind:
    size: int
    name: str = "x"

def around(c): return c
""",
    "room.deep": "",
    "room.deep.well": "def draw(c): return DEPTH\nDEPTH = 9\n",
}


def hashed(name, **edits):
    """The hash of one function of the table, with some of the texts edited: `module=(old, new)`."""
    texts = dict(TEXTS)
    for module, (old, new) in edits.items():
        key = f"room.{module.replace('__', '.')}"
        assert old in texts[key]
        texts[key] = texts[key].replace(old, new)
    read = SourceTexts(texts)
    return read.hashed("room.table", *read.module("room.table").nodes[name])


# fmt: off
REACHED = [
    ("start",        {"table": ("CALLED_LATER = 5", "CALLED_LATER = 6")}),
    ("start",        {"table": ("rules = e  #", "rules = e + 1  #")}),
    ("start",        {"table": ("c.x >", "c.x >=")}),
    ("by_module",    {"rules": ("c > BASE", "c >= BASE")}),
    ("by_module",    {"near": ("BASE = 10", "BASE = 11")}),
    ("by_name",      {"rules": ("BASE * 2", "BASE * 3")}),
    ("by_name",      {"near": ("BASE = 10", "BASE = 11")}),
    ("by_relative",  {"near": ("return c", "return -c")}),
    ("by_deep",      {"deep__well": ("DEPTH = 9", "DEPTH = 8")}),
    ("by_alias",     {"deep__well": ("DEPTH = 9", "DEPTH = 8")}),
    ("by_package",   {"deep__well": ("DEPTH = 9", "DEPTH = 8")}),
    ("by_class",     {"near": ("size: int", "size: float")}),
    ("by_class",     {"near": ('"x"', '"y"')}),
    ("by_attribute", {"rules": ("small = 1", "small = 0")}),
    ("by_method",    {"rules": ("return limit", "return limit + 1")}),
    ("by_method",    {"near": ("BASE = 10", "BASE = 11")}),
    ("by_field",     {"rules": ("field: int = 3", "field: int = 4")}),
    ("by_total",     {"table": ("TOTAL += 1", "TOTAL += 2")}),
    ("by_total",     {"table": ("HERE = 3", "HERE = 4")}),
    ("by_total",     {"table": ("= 1, 2", "= 0, 2")}),
    ("by_inside",    {"table": ('"if"', '"when"')}),
    ("by_inside",    {"table": ('"else"', '"or"')}),
    ("by_tried",     {"table": ("TRIED = 1", "TRIED = 2")}),
    ("by_outside",   {"table": ("outside(c) +", "outside(c) -")}),
    ("by_call",      {"rules": ("c > BASE", "c >= BASE")}),
    ("by_value",     {"table": ("HERE = 3", "HERE = 4")}),
    ("later",        {"table": ("HERE = 3", "HERE = 4")}),
]
UNTOUCHED = [
    ("start",        {"table": ("A docstring.", "Another one.")}),
    ("start",        {"table": ("# its own: not the module", "# a comment")}),
    ("start",        {"table": ("e: Sizes", "e")}),
    ("start",        {"table": (") -> Kind", ")")}),
    ("start",        {"rules": ("c > BASE", "c >= BASE")}),
    ("by_name",      {"rules": ("small = 1", "small = 0")}),
    ("by_attribute", {"rules": ("large = 2", "large = 3")}),
    ("by_attribute", {"rules": ("Sizes of things.", "Other things.")}),
    ("by_module",    {"rules": ("def judge(c): return c > BASE", "def judge(c):\n    return (\n        c\n        > BASE\n    )")}),
    ("by_outside",   {"near": ("BASE = 10", "BASE = 11")}),
    ("by_tried",     {"table": ("HERE = 3", "HERE = 4")}),
]
# fmt: on


@for_each_case(("name", "edit"), REACHED)
def test_what_is_reached_counts(name, edit):
    """A change in anything that a function reaches, wherever it lies, is another hash."""
    assert hashed(name, **edit) != hashed(name)


@for_each_case(("name", "edit"), UNTOUCHED)
def test_what_is_not_reached_does_not_count(name, edit):
    """Comments, layout, docstrings, a function's annotations, and what it does not reach, change nothing."""
    assert hashed(name, **edit) == hashed(name)


@for_each_case(
    ("one", "other"),
    [
        ("{**a, b: c}", "{b: a, **c}"),
        ("f(a, *b)", "f(*a, b)"),
        ("a[1:]", "a[:1]"),
        ("None", "0"),
        ("1", "True"),
        ("1", "1.0"),
        ("'1'", "1"),
        ("b'1'", "'1'"),
        ("lambda x: 1", "lambda: 1"),
        ("f'{a}b'", "f'{a!r}b'"),
    ],
)
def test_two_programs_have_two_hashes(one, other):
    """Programs that differ have different hashes, also where only the place of an absent part differs."""
    first, second = (SourceTexts({"m": f"x = {text}\n"}) for text in (one, other))
    assert first.hashed("m", *first.module("m").nodes["x"]) != second.hashed(
        "m", *second.module("m").nodes["x"]
    )


def test_a_name_that_leads_nowhere_is_not_followed():
    """An import of something that a module does not have, even of itself, ends the search there."""
    texts = SourceTexts({"m": "from m import ghost\ndef f(): return ghost.x\n"})
    assert len(texts.hashed("m", *texts.module("m").nodes["f"])) == 16
    assert "m" in texts
    assert "n" not in texts


def test_the_hash_of_a_text_never_changes():
    """The same text has the same hash on every Python: this one is written down."""
    text = 'def f(c, *, e: int = 0) -> bool:\n    "Said."\n    return [x async for x in c] or f"{c}{e!r:>3}" in {**c, "k": None}\n'
    texts = SourceTexts({"m": text})
    assert texts.hashed("m", *texts.module("m").nodes["f"]) == "5000c1120533f462"


RENAMED = """
import msgspec
from typing import NamedTuple
from room import rules

class Size(NamedTuple):
    width: int

class Stored(msgspec.Struct):
    depth: int
    def measure(self, more): return self.depth + more

def start(c, e):
    from room.rules import BASE
    def inner(y): return y > BASE
    try:
        size = Size(width=c.first)
    except ValueError as bad:
        return bad
    match e:
        case Size(width=w):
            return rules.judge(c, limit=w) and Stored(depth=w).measure(size.width)
        case {"key": _, **rest}:
            return inner(rest)
    return sum(x.depth for x in c)
"""
JUDGE = "def judge(c, *, limit): return limit > BASE and judge(c, limit=limit - 1)\nBASE = 3\n"


def start_hash(table, rules, name="rules"):
    """The hash of the function that starts, in texts of which one module is called `name`."""
    texts = SourceTexts({"room": "", "room.table": table, f"room.{name}": rules})
    return texts.hashed("room.table", texts.module("room.table").tree.body[-1])


# fmt: off
NEW_NAMES = (
    ("def start", "def begin_now"), ("Size", "Extent"), ("width", "breadth"), ("Stored", "Record"), ("measure", "add_depth"),
    ("size", "extent"), ("bad", "error"), ("w)", "wide)"), ("=w)", "=wide)"), ("(more)", "(extra)"), ("more", "extra"), ("inner", "is_over"), ("rest", "others"), ("(y)", "(z)"), ("y >", "z >"),
    ("c, e", "context, event"), ("c.first", "context.first"), ("match e", "match event"), ("judge(c,", "judge(context,"), ("in c)", "in context)"),
)
# fmt: on


def test_what_things_are_called_does_not_count():
    """Functions, classes, parameters, locals, members and modules may get other names, and move; nothing else changes."""
    table, rules = RENAMED, JUDGE
    for old, new in NEW_NAMES:
        table = table.replace(old, new)
    table = table.replace("from room.rules import BASE", "from room.verdicts import LOWEST as BASE")
    table = table.replace("from room import rules", "from room import verdicts as rules")
    table = table.replace("rules.judge(context, limit", "rules.is_over(context, ceiling")
    rules = rules.replace("judge", "is_over").replace("limit", "ceiling").replace("BASE", "LOWEST")
    assert table != RENAMED
    assert start_hash(table, rules, "verdicts") == start_hash(RENAMED, JUDGE)


@for_each_case("old", ["c.first", "depth", '"a"', "ValueError", "sum("])
def test_what_is_stored_or_comes_from_outside_keeps_its_name(old):
    """A field that is stored, a key, and a name from outside decide by what they are called."""
    table = RENAMED.replace("c.first", 'c.first["a"]')
    assert start_hash(table.replace(old, old[:-1] + "_x" + old[-1]), JUDGE) != start_hash(table, JUDGE)

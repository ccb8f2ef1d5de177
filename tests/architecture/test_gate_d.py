"""Gate D of specification 001, for our own source: the planner can describe and can do nothing.

Its code, and everything of ours that this code imports, near or far, neither starts a process nor writes, opens a
socket or loads code; it does not import what could, and does not name what could. That it does not, is then tried.
"""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest
from cases import for_each_case
from gate import OUTSIDE, found_in, types_in

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PLANNER = ("steersman.machines.coordinator", "steersman.judges.planning")

# Said by name beside the gate's lists, so that whoever widens those has to look here.
HARMFUL = {
    "apsw", "asyncio", "code", "concurrent", "ctypes", "cffi", "ftplib", "glob", "http", "importlib", "io", "marshal",
    "multiprocessing", "os", "pathlib", "pickle", "pkgutil", "posix", "psutil", "pty", "runpy", "shelve", "shutil",
    "signal", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "urllib",
    "webbrowser", "yaml", "zipfile", "zipimport", "builtins", "gc", "inspect", "mmap", "select", "selectors", "secrets",
    "random", "time", "click", "rich", "cryptography", "operator", "dataclasses", "codecs", "logging", "traceback",
}  # fmt: skip
# What general rooms need that the planner's own packages do not: each by module, and never in those packages.
EXCUSED = {
    "steersman.contracts.replies": {"attribute __name__"},
    "steersman.errors": {"attribute __init__", "attribute run"},  # the run that an error is about
    "steersman.judges.patterns": {"built-in vars", "getattr of a computed name"},  # of its own compiled pattern
    "steersman.kernel.canonical": {"attribute __name__"},
    "steersman.kernel.complaints": {"attribute __struct_config__", "attribute __struct_fields__"},
    "steersman.kernel.definition": {"built-in vars"},  # the states and events of a class body
    "steersman.kernel.machine": {"getattr of a computed name"},  # the limit that a cap names
    "steersman.kernel.ops": {  # a fold's ops name fields of a context
        "attribute __class__", "attribute __copy__", "attribute __name__", "attribute __struct_config__", "attribute copy",
        "built-in setattr", "getattr of a computed name",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("steersman", include_external_packages=True, cache_dir=None)


@pytest.fixture(scope="module")
def reached(graph):
    """The planner's modules, and everything that they import, near or far."""
    own = {m for m in graph.modules if m.startswith(PLANNER)}
    return own.union(*(graph.find_upstream_modules(module) for module in own))


def ours(reached):
    return sorted(module for module in reached if module.startswith("steersman"))


def file_of(module):
    plain = SOURCE / Path(*module.split("."))
    return plain.with_suffix(".py") if plain.with_suffix(".py").is_file() else plain / "__init__.py"


def test_the_gate_looks_at_the_whole_planner(reached):
    """The packages are there, and the import graph has seen every file of them."""
    for package in PLANNER:
        folder = SOURCE / Path(*package.split("."))
        files = set(folder.rglob("*.py"))
        assert len(files) > 10
        assert files <= {file_of(module) for module in ours(reached)}


def test_nothing_is_imported_that_could_act(graph, reached):
    """Gate D: no module that starts processes, writes, opens sockets or loads code, imported near or far."""
    outside = {module for module in reached if not module.startswith("steersman")}
    chains = {
        module: sorted(m for m in graph.find_modules_that_directly_import(module) if m in reached)
        for module in outside - {name.partition(".")[0] for name in OUTSIDE}
    }
    assert chains == {}
    assert set() == {name.partition(".")[0] for name in OUTSIDE} & HARMFUL


def test_nothing_of_ours_is_imported_that_reaches_the_world(reached):
    """The planner knows contracts, judges, the kernel and itself; no runtime, adapter, face or port."""
    rooms = {module.split(".")[1] for module in ours(reached) if "." in module}
    assert rooms <= {"contracts", "errors", "judges", "kernel", "machines"}
    assert not [m for m in ours(reached) if m.startswith("steersman.machines.") and not m.startswith(PLANNER)]


def inside(module, name):
    """Whether a module of ours has a name that is not one from outside; without a name, whether there is the module."""
    if not module.startswith("steersman") or not file_of(module).is_file():
        return False
    return not name or name in own_names(module)


@cache
def own_names(module):
    """What a module defines, and what it has from other modules of ours, which are looked at themselves."""
    found, foreign = set(), set()
    for node in ast.walk(ast.parse(file_of(module).read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.ImportFrom(module=str(source), names=names) if source.startswith("steersman"):
                found |= {each.asname or each.name for each in names}
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                foreign |= {(each.asname or each.name).partition(".")[0] for each in names}
    return frozenset(found - foreign)


@cache
def types_of(module):
    return types_in(file_of(module).read_text(encoding="utf-8"), inside, typed)


def typed(module, name):
    """Whether a name of a module of ours is a type there."""
    return inside(module, name) and types_of(module)(name)


def found(text):
    """What the gate finds in a module that stands among ours."""
    return found_in(text, inside, typed)


def test_nothing_is_named_that_could_act(reached):
    """Gate D: every name in every module of ours within reach is on a list of what computes, or it is excused by name;
    nothing in the planner's own packages is excused."""
    words = {
        module: {word for word, _ in found(file_of(module).read_text(encoding="utf-8"))}
        for module in ours(reached)
    }
    assert {module: some for module, some in words.items() if some} == EXCUSED
    assert not [module for module in EXCUSED if module.startswith(PLANNER)]


PLAIN = [
    "open('x', 'w')", "exec('1')", "eval('1')", "compile('1', '', 'eval')", "__import__('os')", "import subprocess",
    "from os import system", "import os.path", "x.system('ls')", "().__class__.__subclasses__()",
    "f.__globals__['os']", "getattr(x, 'system')", "p.write_text('x')", "__builtins__['open']",
    "def f():\n    import socket", "from pathlib import Path", "print('x')", "input()", "globals()", "locals()", "vars()",
    "breakpoint()", "exit()", "help()", "setattr(x, 'y', 1)", "delattr(x, 'y')", "dir(x)", "memoryview(b'')",
]  # fmt: skip
SLY = {
    "a module of a module": "import json\njson.codecs.open('x', 'w').write('y')",
    "the modules of a module": "import dataclasses\ndataclasses.sys.modules['subprocess'].run(['touch', 'x'])",
    "a module out of a module": "from json import codecs",
    "a module under another name": "import json as harmless\nharmless.codecs",
    "a module put aside": "import json\nj = json\nj.decoder",
    "a module in a list": "import re\n[re][0].sys",
    "a module given away": "import re\nf(re)",
    "a module returned": "import re\ndef f():\n    return re",
    "a module as a default": "import re\ndef f(r=re):\n    return r.x",
    "a module by walrus": "import re\n(r := re).x",
    "a module of ours handed on": "from steersman.machines.coordinator import goals\ngoals.re.sys",
    "what ours has from outside": "from steersman.machines.coordinator.goals import re",
    "a submodule as a value": "import msgspec\nj = msgspec.json",
    "a module's other attribute": "import msgspec\nmsgspec.inspect",
    "a struct made of text": "import msgspec\nmsgspec.defstruct('X', [('a', '__import__(\"os\")')])",
    "a module's private attribute": "import re\nre._compiler",
    "a parser that opens": "import xml.etree.ElementTree",
    "a hash of a file": "import hashlib\nhashlib.file_digest(f, 'sha256')",
    "a class made by exec": "from collections import namedtuple",
    "everything at once": "from re import *",
    "from nowhere": "from . import table",
    "a loader": "import importlib",
    "getattr by a computed name": "getattr(x, 'o' + 'pen')('x')",
    "getattr by a name in a variable": "n = 'codecs'\ngetattr(x, n)",
    "getattr put aside": "g = getattr\ng(x, 'codecs')",
    "getattr mapped": "map(getattr, [x], ['codecs'])",
    "getattr of a module": "import re\ngetattr(re, 'sys')",
    "getattr of a dunder": "getattr(x, '__class__')",
    "an attribute by a pattern": "import re\nmatch re:\n    case object(sys=s):\n        s",
    "a class by a pattern": "match x:\n    case object(__class__=c):\n        c",
    "through a function": "f.__globals__",
    "through a built-in": "len.__self__",
    "through a bound method": "x.f.__func__.__globals__",
    "through a wrapper": "f.__wrapped__",
    "through a closure": "f.__closure__[0].cell_contents",
    "through a class": "type(x).__mro__[1]",
    "through a class's own method": "type(x).mro()[1].__subclasses__()",
    "through its dictionary": "x.__dict__['y']",
    "through an error": "try:\n    pass\nexcept ValueError as e:\n    e.__traceback__.tb_frame.f_globals",
    "through a traceback kept": "t.tb_frame",
    "through a generator": "g.gi_frame.f_builtins",
    "through a coroutine": "c.cr_frame",
    "through reduction": "x.__reduce_ex__(2)",
    "through an attribute's own reader": "object.__getattribute__(x, 'y')",
    "its own loader": "__loader__.load_module('os')",
    "its own specification": "__spec__.loader",
    "its own file": "__file__",
    "an attribute called like a module": "x.os.system('ls')",
    "an attribute that runs": "x.run(['ls'])",
    "an attribute that writes": "x.write('y')",
    "an attribute that starts": "x.Popen(['ls'])",
    "the table of modules": "x.sys.modules['os']",
    "a type with a body": "type('X', (), {'f': f})",
    "an operator that looks up": "from operator import attrgetter",
    "a method by its name": "import operator\noperator.methodcaller('open')",
    "code in an annotation": 'class X:\n    a: \'__import__("os").system("ls")\'',
    "code in a parameter's annotation": "def f(a: 'open(1)'): pass",
    "code in a return annotation": "def f() -> 'eval(1)': pass",
    "code in a nested annotation": "class X:\n    a: tuple['f()', ...]",
    "code in an alias": "T = list['f()']",
    "code in a bound": "from typing import TypeVar\nT = TypeVar('T', bound='exec(1)')",
    "code in a tuple's fields": "from typing import NamedTuple\nT = NamedTuple('T', [('a', 'exec(1)')])",
    "hints evaluated": "from typing import get_type_hints",
    "annotations set": "class X:\n    __annotations__ = {'a': 'exec(1)'}",
    "a schema that fetches": "import jsonschema_rs\njsonschema_rs.validator_for({'$ref': 'http://x'})",
    "an f-string": "f'{x.__class__}'",
    "a lambda's default": "lambda f=open: f",
    "a decorator": "@x.os.system\ndef f(): pass",
    "inside a class body": "class X:\n    import os",
    "inside a condition": "if False:\n    import os",
    "leaving by an error": "raise SystemExit",
}

RUNS = "__import__('os').system('ls')"
HELD = f'import msgspec\nfrom typing import Annotated, Literal, NamedTuple, TypeVar\nW = "{RUNS}"\n'
FETCHED = "{'$ref': 'http://127.0.0.1:9/x'}"
WRITTEN = {
    "text in a constant": "class A(msgspec.Struct):\n    x: W",
    "text in a constant, in a list": "class A(msgspec.Struct):\n    x: list[W]",
    "text in a constant, by its name": "class A(msgspec.Struct):\n    x: 'W'",
    "text in a constant, or nothing": "class A(msgspec.Struct):\n    x: W | None",
    "text in a constant, with a note": "class A(msgspec.Struct):\n    x: Annotated[W, 1]",
    "text in a constant of a class": f'class A(msgspec.Struct):\n    V = "{RUNS}"\n    x: V',
    "text in a parameter": f'def f(v="{RUNS}"):\n    class A(msgspec.Struct):\n        x: v',
    "text in a loop": f'for v in ["{RUNS}"]:\n    class A(msgspec.Struct):\n        x: v',
    "text by walrus": f'class A(msgspec.Struct):\n    x: (v := "{RUNS}")',
    "text from a function": "def f():\n    return W\nclass A(msgspec.Struct):\n    x: f()",
    "text from a dictionary": "D = {'a': W}\nclass A(msgspec.Struct):\n    x: D['a']",
    "text from a pattern": "match W:\n    case v:\n        class A(msgspec.Struct):\n            x: v",
    "text unpacked": f'v, u = "{RUNS}", 1\nclass A(msgspec.Struct):\n    x: v',
    "text in an alias": "T = list[W]\nclass A(msgspec.Struct):\n    x: T",
    "text in an alias of an alias": "T = list[W]\nU = T\nclass A(msgspec.Struct):\n    x: U",
    "text added up": "class A(msgspec.Struct):\n    x: W + ''",
    "text formatted": "class A(msgspec.Struct):\n    x: f'{W}'",
    "text of a class": f'class B:\n    v = "{RUNS}"\nclass A(msgspec.Struct):\n    x: B.v',
    "text of a module of ours": "from steersman.machines.coordinator import attest\nclass A(msgspec.Struct):\n    x: attest.PAYLOAD_TYPE",
    "text from a module of ours": "from steersman.machines.coordinator.attest import PAYLOAD_TYPE\nclass A(msgspec.Struct):\n    x: PAYLOAD_TYPE",
    "a class that is text by a decorator": "def f(_):\n    return W\n@f\nclass B: pass\nclass A(msgspec.Struct):\n    x: B",
    "a class that is text by its index": "class B:\n    def __class_getitem__(cls, x):\n        return W\nclass A(msgspec.Struct):\n    x: B[int]",
    "a class that is text by a metaclass": "def f(*_):\n    return W\nclass B(metaclass=f): pass\nclass A(msgspec.Struct):\n    x: B",
    "a class that is text afterwards": "class B: pass\nB = W\nclass A(msgspec.Struct):\n    x: B",
    "a type of Python's that is text": "int = W\nclass A(msgspec.Struct):\n    x: int",
    "an import that is text": "from steersman.errors import UserError\nUserError = W\nclass A(msgspec.Struct):\n    x: UserError",
    "words that are a list": f'Literal = list\nclass A(msgspec.Struct):\n    x: Literal["{RUNS}"]',
    "words that are ours": f'class Literal(list): pass\nclass A(msgspec.Struct):\n    x: Literal["{RUNS}"]',
    "words under a type's name": f'from typing import Literal as L\nL = list\nclass A(msgspec.Struct):\n    x: L["{RUNS}"]',
    "a note that is a tuple": f'Annotated = tuple\nclass A(msgspec.Struct):\n    x: Annotated[int, "{RUNS}"]',
    "a noted text": f'class A(msgspec.Struct):\n    x: Annotated["{RUNS}", 1]',
    "a tuple's fields in a constant": "X = NamedTuple('X', [('a', W)])",
    "a tuple's fields by another name": "from typing import NamedTuple as N\nX = N('X', [('a', W)])",
    "a tuple's fields by a module": f'import typing\nX = typing.NamedTuple("X", [("a", "{RUNS}")])',
    "a tuple's fields by a module's other name": "import typing as t\nX = t.NamedTuple('X', [('a', W)])",
    "a tuple's maker put aside": "N = NamedTuple\nX = N('X', [('a', W)])",
    "a tuple's maker given away": "from functools import partial\nX = partial(NamedTuple, 'X')([('a', W)])",
    "a tuple's maker in a list": "X = [NamedTuple][0]('X', [('a', W)])",
    "a dictionary's fields": "from typing import TypedDict\nX = TypedDict('X', {'a': W})",
    "a struct's fields": "X = msgspec.defstruct('X', [('a', W)])",
    "a bound in a constant": "T = TypeVar('T', bound=W)",
    "a bound by another name": "from typing import TypeVar as V\nT = V('T', bound=W)",
    "a class with a body": "X = type('X', (), {'a': W})",
    "a class's class put aside": "T = type\nX = T('X', (), {'a': W})",
    "a class's class with an index": "X = type[int]('X', (), {'a': W})",
    "a class's class as a base": "class M(type): pass\nX = M('X', (), {'a': W})",
    "a class's class of a value": "X = type(msgspec.Struct)('X', (msgspec.Struct,), {'a': W})",
    "a class's class of a value, put aside": "T = type(msgspec.Struct)\nX = T('X', (), {'a': W})",
    "a class's class in a list": "X = [type][0]('X', (), {'a': W})",
    "a class's class by a pattern": "match W:\n    case type():\n        pass",
    "a class's class mapped": "map(type, ['X'], [()], [{'a': W}])",
    "annotations by a method": "class A(msgspec.Struct):\n    def __annotations__(self): return {'x': W}",
    "a schema by its own name": f"from jsonschema_rs import validator_for\nvalidator_for({FETCHED})",
    "a schema by another name": f"from jsonschema_rs import validator_for as v\nv({FETCHED})",
    "a schema by a module's other name": f"import jsonschema_rs as j\nj.validator_for({FETCHED})",
    "a schema with no retriever": f"import jsonschema_rs\njsonschema_rs.validator_for({FETCHED}, retriever=None)",
    "a schema with a retriever that fetches": f"import jsonschema_rs\ndef f(u):\n    return u\njsonschema_rs.validator_for({FETCHED}, retriever=f)",
    "a schema with a retriever from elsewhere": f"import jsonschema_rs\njsonschema_rs.validator_for({FETCHED}, retriever=len)",
    "a schema with a retriever that refuses at first": f"import jsonschema_rs\ndef f(u):\n    raise ValueError\nf = len\njsonschema_rs.validator_for({FETCHED}, retriever=f)",
    "a schema with whatever": f"import jsonschema_rs\njsonschema_rs.validator_for({FETCHED}, **{{}})",
    "a schema given away": f"import jsonschema_rs\nfrom functools import partial\npartial(jsonschema_rs.validator_for, {FETCHED})()",
    "a schema put aside": f"import jsonschema_rs\nv = jsonschema_rs.validator_for\nv({FETCHED})",
    "a schema mapped": f"from jsonschema_rs import validator_for\nmap(validator_for, [{FETCHED}])",
    "a template that looks up": "'{0.__globals__[os]}'.format(f)",
    "a template that looks up by an index": "'{0[os]}'.format(f)",
    "a template that looks up in its form": "'{0:{1.os}}'.format(f, f)",
    "a template by its name": "t = '{0.os}'\nt.format(f)",
    "a template of a class": "str.format('{0.os}', f)",
    "a template put together": "('{0.' + 'os}').format(f)",
    "a template in an f-string": "f'{W}'.format(f)",
    "a template mapped": "map('{0.os}'.format, [f])",
    "a template put aside": "g = '{0.os}'.format\ng(f)",
    "a template with a mapping": "'{a.os}'.format_map({'a': f})",
    "a template by getattr": "getattr('{0.os}', 'format')(f)",
    "a template by a pattern": "match '{0.os}':\n    case str(format=g):\n        g(f)",
}


@for_each_case("lines", WRITTEN.values())
def test_nothing_makes_text_into_code_or_fetches(lines):
    """Gate D: no annotation holds text that somebody else evaluates, no class is made of text, no schema fetches, no
    template looks up; under whichever name."""
    assert not found(HELD)
    assert found(HELD + lines)


@for_each_case("line", PLAIN)
def test_the_gate_can_fail(line):
    """Each of these would be found."""
    assert found(line)


@for_each_case("line", SLY.values())
def test_no_way_around_the_gate_is_known(line):
    """Gate D: each of these reaches the world without naming it at first sight, and would be found."""
    assert found(line)


def test_the_gate_lets_honest_code_pass():
    """What computes is not found: the lists are no wall."""
    honest = """
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import jsonschema_rs
import msgspec

from steersman.machines.coordinator import goals
from steersman.judges.text import clip

_WORD = re.compile("[a-z]+")

Word = Annotated[str, msgspec.Meta(pattern="f(x)")]
Kind = Literal["open(x)", "other"]
Pairs = tuple["Pair", ...] | None
T = TypeVar("T", bound=msgspec.Struct)

def _refuses(uri: str) -> Any:
    raise ValueError(uri)

def told(value: type[T], pairs: Pairs, kind: Kind = "other") -> Word:
    jsonschema_rs.validator_for({}, retriever=_refuses)
    return "{0} of {name:>4}".format(type(value) is int, name=kind)

class Pair(NamedTuple):
    name: str
    later: "Pair | None" = None

def words(text: str, known: "Mapping[str, int]") -> list[str]:
    match Pair(text):
        case Pair(name=name):
            raw = msgspec.json.decode(name.encode())
    return sorted({clip(m[0], 9) for m in _WORD.finditer(text)} | set(goals.files(text)) | {getattr(raw, "name", "")})
"""
    assert found(honest) == []


TRIED = """
import sys
sys.path[:0] = [{tests!r}]
from specimens import KEY, asked_of, decision, files, inputs, intent, outputs, plain, registry, rule, signed
from steersman.judges.planning.precheck import precheck
from steersman.judges.planning.rulebook import compile_rules
from steersman.judges.planning.rules import adjudicate
from steersman.machines.coordinator.answers import problems
from steersman.machines.coordinator.bounds import bounds
from steersman.machines.coordinator.failure import About, precheck_failure
from steersman.machines.coordinator.graph import draft
from steersman.machines.coordinator.uncertainties import choose

def plan(title):
    i = inputs(intent(title=title), ruled=(decision("edit_files", "require_review", "warn"),))
    report = precheck(plain(i.intent), {{}}, registry())
    precheck_failure(About(i.intent.id), report)
    adjudicate(i.intent, i.registry, i.bundle, compile_rules((rule("rule_story"),)), i.effective)
    chosen = choose(asked_of(i), i.effective, i.bundle.policy, consumed=0, round_=1, plan_id=i.plan_id, intent=i.intent)
    problems(chosen.pack, {{"answers": 1}})
    draft(i)
    return bounds(signed(files(outputs(i))), KEY).plan_id

heard = []
def hook(event, args):
    if not event.startswith(("object.__getattr__", "sys._getframe", "code.__new__", "gc.")):
        writes = event == "open" and (args[2] & 3 or str(args[1] or "r")[0] in "wax" or "+" in str(args[1]))
        heard.append("open to write" if writes else event)
sys.addaudithook(hook)
{first}
plan("A title to warm up with")
warm, heard = sorted({{*heard}} - {LOADS!r}), []
found = plan("A title for the gate")
{also}
told = list(heard)
print(found, warm, told)
"""
LOADS = {  # a late import
    "import", "open", "exec", "marshal.loads", "compile", "os.listdir", "os.scandir", "object.__setattr__",
}  # fmt: skip


@pytest.mark.parametrize(
    ("first", "also", "expected"),
    [
        ("", "", "[] []"),
        ("", "open('/dev/null')", "[] ['open']"),
        ("open('/dev/null', 'w')", "", "['open to write'] []"),
        ("import subprocess; subprocess.run(['true'])", "", "'subprocess.Popen'] []"),
        ("import socket; socket.socket()", "", "['socket.__new__'] []"),
    ],
)
def test_planning_touches_nothing(first, also, expected):
    """§Implementation Notes: from precheck to frozen files and bounds, the interpreter reports no open, process, socket or import, and the
    first time, when libraries are still loaded, none that writes or starts; it would."""
    tests = str(ROOT / "tests" / "machines" / "coordinator")
    script = TRIED.format(tests=tests, first=first, also=also, LOADS=LOADS)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    name, _, events = done.stdout.strip().partition(" ")
    assert name.startswith("plan_")
    assert events.endswith(expected)
    assert events == expected or first

"""Gate D of specification 001, for our own source: the planner can describe and can do nothing.

Its code, and everything of ours that this code imports, near or far, neither starts a process nor writes, opens a
socket or loads code; it does not import what could, and does not name what could. That it does not, is then tried.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PLANNER = ("steersman.machines.coordinator", "steersman.judges.planning")

# Everything from outside that the planner's code may import. None of it starts, writes, connects or loads.
HARMLESS = {
    "base64", "binascii", "bisect", "calendar", "collections", "contextlib", "dataclasses", "datetime", "difflib", "enum",
    "fnmatch", "functools", "hashlib", "heapq", "hmac", "html", "itertools", "json", "math", "msgspec", "operator", "re",
    "rfc8785", "string", "tomllib", "types", "typing", "unicodedata",
    "cel_expr_python",  # evaluates expressions in a language without effects
    "jsonschema_rs",  # could fetch what a schema refers to; judges.problems gives it a retriever that refuses
    "xml",  # its parser is told to resolve nothing; adapters and judges bound what it is given
}  # fmt: skip
# Said by name beside the list above, so that whoever widens that list has to look here.
HARMFUL = {
    "apsw", "asyncio", "code", "concurrent", "ctypes", "cffi", "ftplib", "glob", "http", "importlib", "io", "marshal",
    "multiprocessing", "os", "pathlib", "pickle", "pkgutil", "posix", "psutil", "pty", "runpy", "shelve", "shutil",
    "signal", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "urllib",
    "webbrowser", "yaml", "zipfile", "zipimport", "builtins", "gc", "inspect", "mmap", "select", "selectors", "secrets",
    "random", "time", "click", "rich", "cryptography",
}  # fmt: skip
FORBIDDEN_NAMES = {
    "open", "exec", "eval", "compile", "__import__", "__builtins__", "__loader__", "__spec__", "breakpoint", "input",
    "print", "globals",
}  # fmt: skip
FORBIDDEN_ATTRIBUTES = {
    "__subclasses__", "__globals__", "__builtins__", "__code__", "__loader__", "__mro__", "__bases__", "__import__",
    "__reduce__", "system", "popen", "spawn", "fork", "execv", "execve", "write_text", "write_bytes", "read_text",
    "unlink", "connect", "urlopen", "load_module", "exec_module", "import_module",
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
        for module in outside - HARMLESS
    }
    assert chains == {}
    assert set() == HARMLESS & HARMFUL


def test_nothing_of_ours_is_imported_that_reaches_the_world(reached):
    """The planner knows contracts, judges, the kernel and itself; no runtime, adapter, face or port."""
    rooms = {module.split(".")[1] for module in ours(reached) if "." in module}
    assert rooms <= {"contracts", "errors", "judges", "kernel", "machines"}
    assert not [m for m in ours(reached) if m.startswith("steersman.machines.") and not m.startswith(PLANNER)]


def told(tree):
    """Every forbidden word of a module, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in FORBIDDEN_NAMES:
                yield name, node.lineno
            case ast.Attribute(attr=name) if name in FORBIDDEN_ATTRIBUTES:
                yield name, node.lineno
            case ast.Import(names=names):
                yield from ((n.name, node.lineno) for n in names if n.name.partition(".")[0] in HARMFUL)
            case ast.ImportFrom(module=str(name)) if name.partition(".")[0] in HARMFUL:
                yield name, node.lineno
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]) if (
                name in FORBIDDEN_ATTRIBUTES
            ):
                yield f"getattr of {name}", node.lineno


def test_nothing_is_named_that_could_act(reached):
    """Gate D: no open, exec, eval, compile or __import__, and no way around them, in any module of ours within reach."""
    found = {
        f"{module}:{line}": word
        for module in ours(reached)
        for word, line in told(ast.parse(file_of(module).read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "open('x', 'w')", "exec('1')", "eval('1')", "compile('1', '', 'eval')", "__import__('os')", "import subprocess",
        "from os import system", "import os.path", "x.system('ls')", "().__class__.__subclasses__()",
        "f.__globals__['os']", "getattr(x, 'system')", "p.write_text('x')", "__builtins__['open']",
        "def f():\n    import socket", "from pathlib import Path",
    ],
)  # fmt: skip
def test_the_gate_can_fail(line):
    """Each of these would be found."""
    assert list(told(ast.parse(line)))


TRIED = """
import sys
sys.path[:0] = [{tests!r}]
from specimens import KEY, asked_of, decision, files, inputs, intent, outputs, signed
from steersman.machines.coordinator.answers import problems
from steersman.machines.coordinator.bounds import bounds
from steersman.machines.coordinator.graph import draft
from steersman.machines.coordinator.uncertainties import choose

def plan(title):
    i = inputs(intent(title=title), ruled=(decision("edit_files", "require_review", "warn"),))
    chosen = choose(asked_of(i), i.effective, i.bundle.policy, consumed=0, round_=1, plan_id=i.plan_id, intent=i.intent)
    problems(chosen.pack, {{"answers": 1}})
    draft(i)
    return bounds(signed(files(outputs(i))), KEY).plan_id

plan("A title to warm up with")
heard = []
def hook(event, args):
    if not event.startswith(("object.__getattr__", "sys._getframe", "code.__new__", "gc.")):
        heard.append(event)
sys.addaudithook(hook)
found = plan("A title for the gate")
{also}
told = list(heard)
print(found, told)
"""


@pytest.mark.parametrize(("also", "expected"), [("", "[]"), ("open('/dev/null')", "['open']")])
def test_planning_touches_nothing(also, expected):
    """From draft to frozen files and bounds, the interpreter reports no open, process, socket or import; it would."""
    script = TRIED.format(tests=str(ROOT / "tests" / "machines" / "coordinator"), also=also)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    name, _, events = done.stdout.strip().partition(" ")
    assert name.startswith("plan_")
    assert events == expected

"""Python that reaches for the runner it is tested by: seen in its syntax tree, not in its words.

It is a net for what can be seen, no proof of innocence: a name put together at run time is not seen here. Reviewers
judge the diff.
**Invariant:** pure; nothing is imported or executed, every text gets an answer, and what cannot be read is told.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from steersman.judges.patches_python import left_on
from steersman.judges.programs_python import begins, guards, run_at_import, says_failure

RUNNERS = frozenset(
    {"pytest", "_pytest", "unittest", "doctest", "nose", "nose2", "hypothesis", "pluggy", "xdist"}
)
_RUNNERS_AS_TEXT = frozenset({"pytest", "_pytest", "unittest", "pluggy", "SkipTest", "_exit", "skipTest"})
PLACES = (  # where a report, a runner or an interpreter is told what to do
    "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_CURRENT_TEST", "junitxml", "junit.xml", "junit-xml", "NODE_OPTIONS",
    "GOFLAGS", "LD_PRELOAD", "PYTHONSTARTUP", "STEERSMAN_", "/proc/self", "/dev/fd", "/dev/stdout", "/dev/stderr",
)  # fmt: skip
_ENDS = frozenset(
    {"sys.exit", "exit", "quit", "SystemExit", "builtins.exit", "builtins.quit", "builtins.SystemExit"}
)
_HOOKS = {
    **dict.fromkeys(("os._exit", "posix._exit", "os.abort"), "ends the process at once"),
    **dict.fromkeys(
        [f"os.exec{end}" for end in ("v", "ve", "vp", "vpe", "l", "le", "lp", "lpe")], "puts another program in its place"
    ),
    **dict.fromkeys(
        ("sys.settrace", "sys.setprofile", "threading.settrace", "threading.setprofile", "sys.monitoring"),
        "hooks into the interpreter",
    ),
    **dict.fromkeys(("sys.meta_path", "sys.path_hooks", "sys.path_importer_cache"), "decides what an import finds"),
    **dict.fromkeys(
        ("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames",
         "inspect.currentframe", "inspect.stack", "inspect.getouterframes", "BaseException.__subclasses__",
         "Exception.__subclasses__", "object.__subclasses__"),
        "looks for the runner from inside",
    ),
    **dict.fromkeys(("os.dup2", "os.dup", "os.closerange", "sys.__stdout__", "sys.__stderr__"), "takes over the output"),
    **dict.fromkeys(("unittest.SkipTest", "pytest.skip", "pytest.exit"), "skips or ends tests"),
}  # fmt: skip
_MODULES = {
    "atexit": "acts when the process ends",
    "ctypes": "reaches into the process's memory",
    "cffi": "reaches into the process's memory",
    "__main__": "reaches into the program that runs it",
    "builtins": "reaches into the builtins",
}
_DEFINES = frozenset({"load_tests", "pytest_plugins", "TEST_RUNNER", "__name__"})
_TEXT_AS_CODE = frozenset({"exec", "eval", "__import__", "runpy.run_path", "runpy.run_module"})
_STREAMS = frozenset({"sys.stdout", "sys.stderr", "sys.excepthook", "sys.unraisablehook", "sys.displayhook"})
_SET_IN_TESTS = frozenset(
    {"sys.stdout", "sys.stderr", "sys.stdin", "sys.argv"}
)  # in a test function, and put back
_SETTINGS = frozenset({"testing", "TESTING", "debug", "DEBUG"})  # of an application, set for its tests
_CHANGES = frozenset(
    {
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "popitem",
        "clear",
        "update",
        "setdefault",
        "__setitem__",
        "__delitem__",
    }
)
_CHANGES_CONSTANTS = frozenset(
    {"add", "discard", "sort", "reverse"}
)  # of other things these are ordinary verbs
_FROM_OUTSIDE = frozenset({"importlib.import_module", "__import__", "sys.modules"})
_TELLTALES = (
    *RUNNERS, *PLACES, *_MODULES, *_DEFINES, "exit", "quit", "SystemExit", "exec", "eval", "__import__", "runpy", "os.write",
    "SkipTest", "skipTest", "settrace", "setprofile", "monitoring", "meta_path", "path_hooks", "importer_cache", "get_obj",
    "get_refer", "frame", "stack", "__subclasses__", "abort", "closerange", "dup", "__stdout__", "__stderr__", "sys.std",
    "hook", "modules", "__code__", "def pytest_", "__eq__", "__builtins__", "import *", "from os", "from sys",
)  # fmt: skip
WORDS = tuple(w for w in _TELLTALES if not any(other in w for other in _TELLTALES if other != w))


_TELLING = (
    ast.Import, ast.ImportFrom, ast.Attribute, ast.Name, ast.Subscript, ast.Call, ast.Raise, ast.Constant,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AugAssign,
)  # fmt: skip
_OPENING = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With,
    ast.AsyncWith, ast.Try, ast.TryStar, ast.Lambda, ast.Match,
)  # fmt: skip


class Found(NamedTuple):
    """One place: its line, what it does, and what makes it the same place in another version of the file."""

    line: int
    what: str
    key: tuple[str, ...]


class Around(NamedTuple):
    """What is known of a file beside its text."""

    test: bool = False
    program: bool = False  # it is started and never imported: `__main__.py`
    noticed: bool = False  # every check has a report that misses its end
    own: frozenset[str] | None = None  # modules and packages of the project; None where nobody knows them


def looked_through(text: str, known: Around) -> list[Found]:
    """Every place of a file that reaches for its runner, in the order of its lines."""
    if not worth_a_look(text, test=known.test):
        return []
    try:
        tree = ast.parse(text)
        found = sorted(set(_Look(tree, text.splitlines(), known).all()))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        return [Found(line, "cannot be read as Python: nobody has looked through it", ("unreadable",))]
    return found


def worth_a_look(text: str, *, test: bool) -> bool:
    """Whether a file has to be parsed at all; a test always has."""
    return test or any(word in text for word in WORDS)


class _Place(NamedTuple):
    """Where in a file a node stands."""

    heads: tuple[str, ...]  # the lines that open the blocks around it
    inside: bool  # of a function: not run when the file is imported
    guarded: bool  # below `if __name__ == "__main__"`
    begins: bool = False  # in the function that a program begins with


class _Look:
    """One file; names are followed to what they were imported as."""

    def __init__(self, tree: ast.Module, lines: list[str], around: Around) -> None:
        self._tree, self._lines, self._around, self._test = tree, lines, around, around.test
        self._known: dict[str, str] = {}  # name → what it was imported as
        self._modules: set[str] = set()  # names of whole modules
        nodes = list(ast.walk(tree))
        self._functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._learn(node)
        pairs = [pair for node in nodes for pair in _bindings(node)]
        for _ in range(3):  # a name for a name for a name
            for name, value in pairs:
                self._alias(name, value)
        self._at_import = run_at_import(tree, test=self._test)
        self._left = left_on(tree, self.dotted) if self._test else frozenset()

    def all(self) -> Iterator[Found]:
        """Goes through the tree without recursion, so that its depth does not matter."""
        waiting: list[tuple[ast.AST, _Place]] = [
            (self._tree, _Place((), inside=False, guarded=self._around.program))
        ]
        while waiting:
            node, place = waiting.pop()
            if isinstance(node, _TELLING):
                for what in self._whats(node, place):
                    yield Found(node.lineno, what, (what, *place.heads, self._line(node.lineno)))
            opens = isinstance(node, _OPENING)
            waiting += [(c, self._below(node, place, c) if opens else place) for c in _children(node)]

    def _line(self, number: int) -> str:
        return self._lines[number - 1].strip() if number <= len(self._lines) else ""

    def _below(self, node: ast.AST, place: _Place, child: ast.AST) -> _Place:
        """Where the parts of a node stand that opens a block."""
        if isinstance(node, ast.Lambda):
            return place._replace(inside=True)
        inside, first = place.inside, place.begins
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = inside or bool(place.heads) or node.name not in self._at_import
            first = first or (not place.heads and begins(node))
        inside = inside or (isinstance(node, ast.ClassDef) and child in node.decorator_list)
        head = self._line(getattr(node, "lineno", 1))
        return _Place((*place.heads[-20:], head), inside, place.guarded or guards(node, child), first)

    def _learn(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            module = "." * bool(node.level) + (node.module or "")
            self._known.update({a.asname or a.name: f"{module}.{a.name}" for a in node.names})
            return
        for a in node.names:
            top = a.name.partition(".")[0]
            self._known[a.asname or top] = a.name if a.asname else top
            self._modules.add(a.asname or top)

    def _alias(self, name: str, value: ast.expr) -> None:
        """`m = calc`, `T = unittest.TestCase`, `m = importlib.import_module("calc")`."""
        if name not in self._known and self._reached(value):
            self._known[name] = self.dotted(value) or "?"
            self._modules.add(name)

    def _reached(self, value: ast.expr) -> bool:
        base = (
            value.func
            if isinstance(value, ast.Call)
            else value.value
            if isinstance(value, ast.Subscript)
            else None
        )
        if base is not None:
            return self.dotted(base) in _FROM_OUTSIDE
        return isinstance(value, ast.Name | ast.Attribute) and _root(value) in self._known

    def dotted(self, node: ast.AST) -> str:
        """What an expression names, through imports; nothing where it is no plain name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join((self._known.get(node.id, node.id), *reversed(parts)))

    # ── what a node does ────────────────────────────────────────────────────────────────────────────────────────────

    def _whats(self, node: ast.AST, place: _Place) -> Iterator[str]:
        match node:
            case ast.Import(names):
                yield from (w for a in names for w in self._import(a.name))
            case ast.ImportFrom(module=str(module), names=names):
                yield from self._import(module)
                yield from (w for a in names if (w := _HOOKS.get(f"{module}.{a.name}")))
            case ast.Attribute() | ast.Name():
                yield from self._name(node, place)
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                yield from self._item(node, place)
            case ast.AugAssign(target=ast.Name() as target) if self._changes(target, place):
                yield f"changes {self.dotted(target)} for everybody"
            case ast.Call():
                yield from self._call(node, place)
            case ast.Raise(exc=ast.Name() as name) if self.dotted(name) in _ENDS and self._counts(place):
                yield "ends the process as a success"
            case ast.Constant(value=str(text)):
                yield from self._text(text)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _definition(node, name)
            case ast.ClassDef(bases=bases) if any(self.dotted(b) in _ENDS for b in bases):
                yield "ends the process as a success"
            case ast.Assign(targets=[ast.Name("__eq__")], value=ast.Lambda(body=ast.Constant(value=True))):
                yield "equals everything"
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as target], value=value) if self._test:
                own = isinstance(value, ast.Lambda) or (
                    isinstance(value, ast.Name) and value.id in self._functions
                )
                shared = not place.inside or isinstance(target, ast.Attribute)
                if own and shared and _root(target.value) in self._known:
                    yield "puts its own function into what is tested"
            case _:
                return

    def _import(self, module: str) -> Iterator[str]:
        top = module.partition(".")[0]
        if top in RUNNERS and not self._test:
            yield f"knows the test runner ({top})"
        if top in _MODULES and not (self._test and top == "builtins"):
            yield _MODULES[top]

    def _name(self, node: ast.Attribute | ast.Name, place: _Place) -> Iterator[str]:
        name = self.dotted(node)
        told = _HOOKS.get(name)
        if told and not (self._test and name in ("pytest.skip", "unittest.SkipTest")):
            yield told
        if not self._test and not told and name.rpartition(".")[2] in ("SkipTest", "skipTest"):
            yield "skips or ends tests"
        if name == "__builtins__" and not self._test:
            yield _MODULES["builtins"]
        if isinstance(node.ctx, ast.Load):
            return
        if isinstance(node, ast.Name):
            yield from ("decides how tests are run",) if node.id in _DEFINES else ()
        elif node.attr == "__code__" or name.startswith("builtins."):
            yield "changes code that others run"
        elif name in _STREAMS and not (self._test and place.inside):
            yield "takes over the output"
        elif node.attr not in _SETTINGS and self._patched(node.value, name, place):
            yield f"changes {name or node.attr} for everybody"

    def _patched(self, target: ast.expr, name: str, place: _Place) -> bool:
        """A store into what was imported: into a runner from anywhere; into anything else from a test."""
        root = _root(target)
        if root not in self._known:
            return isinstance(target, ast.Call | ast.Subscript) and self._reached(target)
        if not self._test:
            return self._known[root].partition(".")[0] in RUNNERS
        if place.inside and name in _SET_IN_TESTS:
            return False
        last = self.dotted(target).rpartition(".")[2]
        return not place.inside or root in self._modules or last[:1].isupper()

    def _counts(self, place: _Place) -> bool:
        """An end of the process matters when the file is imported, and in a function where nobody misses the rest."""
        if place.guarded:
            return False
        return not place.inside or not (self._around.noticed or (place.begins and not self._test))

    def _changes(self, base: ast.AST, place: _Place) -> bool:
        """Whether this is the product's own data, and it is changed for everybody when a test is imported."""
        while isinstance(base, ast.Subscript):
            base = base.value
        name, own = self.dotted(base), self._around.own
        if not self._test or place.inside or _root(base) not in self._known or name in self._modules:
            return False
        if isinstance(base, ast.Attribute) and base.attr == "config" and _root(base) not in self._modules:
            return False
        return own is None or name.partition(".")[0] in own or name.startswith(".")

    def _item(self, node: ast.Subscript, place: _Place) -> Iterator[str]:
        base = node.value
        if self.dotted(base) == "sys.modules":
            yield "puts a module in the place of another"
        if self._test and (_is_call(base, "globals") or self._dictionary(base)):
            yield "changes names behind the tests' back"
        elif self._changes(base, place):
            yield f"changes {self.dotted(base) or 'what it imports'} for everybody"

    def _dictionary(self, base: ast.AST) -> bool:
        """`calc.__dict__` or `vars(calc)`."""
        if isinstance(base, ast.Attribute) and base.attr in ("__dict__", "__globals__"):
            return _root(base.value) in self._known
        return (
            isinstance(base, ast.Call)
            and _is_call(base, "vars")
            and any(_root(a) in self._known for a in base.args)
        )

    def _call(self, node: ast.Call, place: _Place) -> Iterator[str]:
        name = self.dotted(node.func)
        if name in _ENDS and self._counts(place) and not any(map(says_failure, node.args)):
            yield "ends the process as a success"
        if name in _TEXT_AS_CODE:
            yield "runs text as code"
        if name in ("os.write", "os.fdopen", "open") and node.args and _is_number(node.args[0], (1, 2)):
            yield "takes over the output"
        if id(node) in self._left:
            yield "patches for the whole process"
        last = name.rpartition(".")[2]
        if last in ("setattr", "delattr", "__setattr__", "__delattr__") and node.args and name.partition(".")[0] in (
            "setattr", "delattr", "type", "object", "builtins"
        ):  # fmt: skip
            target = node.args[0]
            if _root(target) and self._patched(target, f"{self.dotted(target)}.*", place):
                yield f"changes {self.dotted(target)} for everybody"
        if isinstance(node.func, ast.Attribute):
            yield from self._method(node.func, place)

    def _method(self, func: ast.Attribute, place: _Place) -> Iterator[str]:
        if func.attr in ("update", "setdefault", "pop", "clear", "__setitem__"):
            if self.dotted(func.value) == "sys.modules":
                yield "puts a module in the place of another"
            if self._test and (_is_call(func.value, "globals") or self._dictionary(func.value)):
                yield "changes names behind the tests' back"
                return
        if func.attr in ("__setattr__", "__delattr__") and self._patched(func.value, "", place):
            yield f"changes {self.dotted(func.value)} for everybody"
        verbs = _CHANGES | _CHANGES_CONSTANTS if _is_constant(func.value) else _CHANGES
        if func.attr in verbs and self._changes(func.value, place) and not self._is_module(func.value):
            yield f"changes {self.dotted(func.value) or 'what it imports'} for everybody"

    def _is_module(self, node: ast.expr) -> bool:
        """`from pkg import calc`: then `calc.update()` is a function's call."""
        return isinstance(node, ast.Name) and self.dotted(node).rpartition(".")[2] in (self._around.own or ())

    def _text(self, text: str) -> Iterator[str]:
        place = next((p for p in PLACES if p in text), None)
        if place:
            yield f"speaks of {place}"
        elif (
            not self._test
            and text.partition(".")[0] in _RUNNERS_AS_TEXT
            and text.replace(".", "").isidentifier()
        ):
            yield f"knows the test runner ({text[:40]})"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """A text that stands alone, such as a docstring, is passed over."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return iter(()) if alone else ast.iter_child_nodes(node)


def _definition(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[str]:
    if name in _DEFINES or name.startswith("pytest_"):
        yield "decides how tests are run"
    if name == "__eq__" and isinstance(node.body[-1], ast.Return):
        returns = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
        if all(isinstance(value, ast.Constant) and value.value is True for value in returns):
            yield "equals everything"


def _is_constant(node: ast.AST) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.isupper()


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that a node gives to values, as far as it is plain which to which."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((t.id, value) for t in targets if isinstance(t, ast.Name))
        case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value) | ast.NamedExpr(
            ast.Name(name), value
        ):
            yield name, value
        case ast.For(target=ast.Name(name), iter=ast.List(values) | ast.Tuple(values) | ast.Set(values)):
            yield from ((name, value) for value in values)
        case _:
            return


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.NamedExpr):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_number(node: ast.AST, numbers: tuple[int, ...]) -> bool:
    return isinstance(node, ast.Constant) and node.value in numbers and node.value is not True

"""Which patches of a Python test stay when the test is over.

A patch that is a decorator, that `with` takes back, or whose own stop is named somewhere is ordinary.
**Invariant:** pure; what is started and never stopped is found, and a stop of another patch does not excuse it.
"""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

_PATCHES = "mock.patch"
_STARTS = ("start", "__enter__")
_STOPS = ("stop", "__exit__", "undo", "join")  # a thread is started, too
_TAKES = ("enter_context", "enterContext", "enterClassContext", "enterModuleContext")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Key = tuple[int, str]


class _Seen(NamedTuple):
    node: ast.AST
    scope: int  # the outermost function that it stands in; 0 where it stands in none
    lasting: bool  # in a fixture that outlives its module


def left_on(tree: ast.Module, dotted: Callable[[ast.AST], str]) -> frozenset[int]:
    """The nodes of a test, by identity, that patch and take nothing back."""
    return frozenset(id(node) for node in _Patches(tree, dotted).all())


class _Patches:
    """Who makes patches, who starts them, who stops them; a name of one function is none of another's."""

    def __init__(self, tree: ast.Module, dotted: Callable[[ast.AST], str]) -> None:
        self._dotted = dotted
        self._seen = list(_scoped(tree))
        nodes = [s.node for s in self._seen]
        self._shared = {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
        self._shared |= {
            n.id
            for n, scope, _ in self._seen
            if not scope and isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        self._loops = {
            n.target.id for n in nodes if isinstance(n, ast.For) and isinstance(n.target, ast.Name)
        }
        self._all_stop = any(isinstance(n, ast.Attribute) and n.attr == "stopall" for n in nodes)
        self._fine = {id(n) for node in nodes for n in _taken(node)}
        self._any = any(isinstance(n, ast.Call) and self._is_one(n) for n in nodes)
        self._made: set[Key] = set()
        self._names: dict[int, Key] = {}  # the last name that was given to it
        self._stopped: set[Key] = set()
        for seen in self._seen:
            self._learn(seen)

    def _learn(self, seen: _Seen) -> None:
        match seen.node:
            case (
                ast.Assign(targets=[target], value=ast.Call() as value)
                | ast.NamedExpr(target=target, value=ast.Call() as value)
            ) if self._is_one(value) and (key := self._key(target, seen.scope)):
                self._made.add(key)
                self._names[id(value)] = key
                self._fine.add(id(value))
            case ast.Attribute(value=value, attr=attr) if attr in _STOPS:
                self._stopped |= {key} if (key := self._key(value, seen.scope)) else set()
            case _:
                self._stopped |= {key for n in _taken(seen.node) if (key := self._key(n, seen.scope))}

    def all(self) -> Iterator[ast.AST]:
        """The calls that change something for those who come after."""
        for seen in self._seen:
            match seen.node:
                case ast.Call(func=ast.Attribute(value=value, attr=attr)) as call if attr in _STARTS:
                    if self._starts(value, attr, seen.scope):
                        yield call
                case ast.Call() as call if self._is_one(call):
                    if seen.lasting or self._by_hand(call) or (not seen.scope and id(call) not in self._fine):
                        yield call
                case _:
                    pass

    def _starts(self, value: ast.expr, attr: str, scope: int) -> bool:
        if self._all_stop and attr == "start":
            return False
        if isinstance(value, ast.Call):
            return _PATCHES in self._dotted(value.func)
        key = self._key(value, scope)
        patcher = key in self._made or (isinstance(value, ast.Name) and value.id in self._loops and self._any)
        return patcher and key not in self._stopped

    def _by_hand(self, call: ast.Call) -> bool:
        """`MonkeyPatch()` whose undo nobody names."""
        if _PATCHES in self._dotted(call.func):
            return False
        return self._names.get(id(call)) not in self._stopped

    def _is_one(self, call: ast.Call) -> bool:
        name = self._dotted(call.func)
        return (_PATCHES in name and not name.endswith(".stopall")) or f".{name}".endswith(".MonkeyPatch")

    def _key(self, node: ast.AST, scope: int) -> Key | None:
        match node:
            case ast.Name(name):
                return (0 if name in self._shared or name in self._loops else scope, name)
            case ast.Attribute(value=ast.Name(), attr=attr):
                return (0, f".{attr}")
            case _:
                return None


def _scoped(tree: ast.Module) -> Iterator[_Seen]:
    waiting = [_Seen(tree, 0, lasting=False)]
    while waiting:
        seen = waiting.pop()
        yield seen
        node, scope, lasting = seen
        if isinstance(node, _FUNCTIONS):
            scope, lasting = scope or id(node), lasting or _outlives(node)
        waiting += [_Seen(child, scope, lasting) for child in ast.iter_child_nodes(node)]


def _outlives(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A fixture of the session goes on when the module that has it is over."""
    return any(
        keyword.arg == "scope"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value in ("session", "package")
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def _taken(node: ast.AST) -> Iterator[ast.AST]:
    """What somebody takes back: `with`, a decorator of a class, a stack of contexts."""
    match node:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (item.context_expr for item in items)
        case ast.ClassDef(decorator_list=decorators):
            yield from decorators
        case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in _TAKES:
            yield from args
        case _:
            return

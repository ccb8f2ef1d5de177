"""What an annotation of the planner's code may name: types, and nothing that could be text.

Whoever reads annotations evaluates text in them, however it came there. So each name in one is bound once, and to a
type: an import that is known to be one, a class, an alias that is itself written like an annotation.
**Invariant:** a name that is bound in any other way, or in two ways, is found.
"""

import ast
from collections.abc import Callable, Iterator

PLAIN = frozenset(
    {
        "bool",
        "bytearray",
        "bytes",
        "dict",
        "float",
        "frozenset",
        "int",
        "list",
        "object",
        "set",
        "str",
        "tuple",
        "type",
    }
)
WORDS, NOTED = "typing.Literal", "typing.Annotated"

Origin = Callable[[ast.AST], str | None]  # what an expression stands for, by module and name
Typed = Callable[[str, str], bool]  # whether a name of a module of ours is a type there


class Bound:
    """Every name that a module binds, in whichever scope, and how."""

    def __init__(self, tree: ast.AST) -> None:
        self.how: dict[str, list[ast.AST]] = {}
        named = {id(target): node for node in _body(tree) for target in _target(node)}
        bare = {id(n.target) for n in ast.walk(tree) if isinstance(n, ast.AnnAssign) and n.value is None}
        for node in ast.walk(tree):
            for name in _binds(node) if id(node) not in bare else ():
                self.how.setdefault(name, []).append(named.get(id(node), node))

    def again(self, name: str) -> bool:
        """Whether something that is imported is something else as well."""
        ways = [isinstance(node, ast.Import | ast.ImportFrom) for node in self.how.get(name, ())]
        return any(ways) and not all(ways)


def _body(tree: ast.AST) -> list[ast.stmt]:
    return tree.body if isinstance(tree, ast.Module) else []


def _target(node: ast.AST) -> Iterator[ast.AST]:
    """The one name that a statement of a module's body gives a value."""
    match node:
        case ast.Assign(targets=[ast.Name() as name]) | ast.AnnAssign(target=ast.Name() as name):
            yield name


def _binds(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((each.asname or each.name).partition(".")[0] for each in names)
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


class Types:
    """The types of one module."""

    def __init__(self, tree: ast.AST, origin: Origin, typed: Typed) -> None:
        self.bound, self.origin, self.typed = Bound(tree), origin, typed
        self.asked: set[str] = set()  # aliases that lead back to themselves

    def wrong(self, type_: ast.AST) -> Iterator[str]:
        """What in an annotation is no type."""
        match type_:
            case ast.Constant(value=str(text)):
                yield from self._text(text)
            case ast.Constant(value=value) if value in (None, ...):
                pass
            case ast.Name(id=name):
                if not self.is_type(name):
                    yield f"{name} in an annotation"
            case ast.Attribute():
                module, _, name = (self.origin(type_) or "").rpartition(".")
                if not module or (module.startswith("steersman") and not self.typed(module, name)):
                    yield f"attribute {type_.attr} in an annotation"
            case ast.Subscript(value=value, slice=inner):
                yield from self.wrong(value)
                yield from self._inside(self.origin(value), inner)
            case ast.Tuple(elts=several) | ast.List(elts=several):
                yield from (word for each in several for word in self.wrong(each))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                yield from (*self.wrong(left), *self.wrong(right))
            case _:
                yield "an annotation that computes"

    def _inside(self, generic: str | None, inner: ast.AST) -> Iterator[str]:
        if generic == WORDS:
            return  # words, which nobody evaluates
        if generic == NOTED and isinstance(inner, ast.Tuple):
            inner = inner.elts[0]  # the rest are notes, which are code like any other
        yield from self.wrong(inner)

    def _text(self, text: str) -> Iterator[str]:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError:
            yield "a type as text that is none"
        else:
            yield from self.wrong(tree.body)

    def is_type(self, name: str) -> bool:
        """Whether a name is a type of Python's own, or is bound to types only."""
        ways = self.bound.how.get(name)
        return name in PLAIN if ways is None else all(self._makes(name, node) for node in ways)

    def _makes(self, name: str, node: ast.AST) -> bool:
        match node:
            case ast.ClassDef(decorator_list=[]):
                return True
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("steersman"):
                return all(self.typed(module, n.name) for n in names if (n.asname or n.name) == name)
            case ast.Import() | ast.ImportFrom():
                return True
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.AST() as value):
                return self._alias(name, value)
        return False

    def _alias(self, name: str, value: ast.AST) -> bool:
        if isinstance(value, ast.Call):
            return self.origin(value.func) == "typing.TypeVar"
        if isinstance(value, ast.Constant) or name in self.asked:
            return False
        self.asked.add(name)
        found = [*self.wrong(value)]
        self.asked.discard(name)
        return not found

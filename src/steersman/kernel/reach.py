"""What a piece of source text reaches: the functions and constants it names, and theirs, found in the text alone.

Layout, comments, docstrings and annotations of functions do not count; what a class declares does.
**Invariant:** nothing is imported and nothing is run: the same texts give the same hashes on every Python.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

# Fields that say nothing, or that only some Pythons know.
SILENT = frozenset({"ctx", "type_comment", "kind", "type_params", "annotation", "returns"})
Definition = tuple[str, str]  # module, dotted name


@dataclass(frozen=True)
class Module:
    """One source text and what its names stand for."""

    name: str
    tree: ast.Module
    package: str
    nodes: dict[str, list[ast.AST]] = field(default_factory=dict)
    imports: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # name here -> module, and the name there

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call in the text, in its order."""
        found = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call))
        return tuple(sorted(found, key=lambda n: (n.lineno, n.col_offset)))

    @cached_property
    def assigned(self) -> dict[int, str]:
        """What a value is called where it is assigned, by the node's identity."""
        lines = (n for n in ast.walk(self.tree) if isinstance(n, ast.Assign))
        return {id(n.value): name for n in lines for name in _targets(n)}


class Texts:
    """Modules by name; what is not among them is outside and not followed."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._read: dict[str, Module] = {}

    def __contains__(self, module: str) -> bool:
        return module in self._texts

    def module(self, name: str) -> Module:
        """The module of this name, read once."""
        if name not in self._read:
            inner = any(other.startswith(f"{name}.") for other in self._texts)
            package = name if inner else name.rpartition(".")[0]
            self._read[name] = _bound(Module(name, ast.parse(self._texts[name]), package))
        return self._read[name]

    def hashed(self, module: str, *starts: ast.AST) -> str:
        """One hash over these nodes of a module and over everything they reach."""
        told = {d: [_told(n) for n in self._nodes(d)] for d in self._reached(module, starts)}
        whole = [[_told(n) for n in starts], sorted((list(d), nodes) for d, nodes in told.items())]
        return hashlib.sha256(repr(whole).encode()).hexdigest()[:16]

    def _reached(self, module: str, starts: Iterable[ast.AST]) -> set[Definition]:
        seen: set[Definition] = set()
        queue = [d for n in starts for d in self._named(module, n)]
        while queue:
            definition = queue.pop()
            if definition not in seen:
                seen.add(definition)
                queue += [d for n in self._nodes(definition) for d in self._named(definition[0], n)]
        return seen

    def _nodes(self, definition: Definition) -> list[ast.AST]:
        name, _, attribute = definition[1].partition(".")
        nodes = self.module(definition[0]).nodes[name]
        return [line for n in nodes for line in _attribute(n, attribute)] if attribute else nodes

    def _named(self, module: str, node: ast.AST) -> Iterator[Definition]:
        """The definitions that a node names directly."""
        here, own = self.module(module), _own(node)
        for chain in _chains(node):
            if chain[0] not in own:
                yield from self._resolve(here, chain)

    def _resolve(self, here: Module, chain: tuple[str, ...]) -> Iterator[Definition]:
        name, *rest = chain
        if name in here.nodes:
            attribute = rest[:1] if any(_attribute(n, rest[0]) for n in here.nodes[name] if rest) else []
            yield here.name, ".".join((name, *attribute))
        elif name in here.imports:
            parts = (*here.imports[name], *rest)
            for cut in range(len(parts) - 1, 0, -1):
                module = ".".join(parts[:cut])
                if module in self and (module, parts[cut]) != (here.name, name):
                    yield from self._resolve(self.module(module), parts[cut:])
                    break


def _bound(module: Module) -> Module:
    """The module with its top-level names filled in, those of `if` and `try` blocks included."""
    queue = list(module.tree.body)
    while queue:
        node = queue.pop(0)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                module.nodes.setdefault(node.name, []).append(node)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                for name in _targets(node):
                    module.nodes.setdefault(name, []).append(node)
            case ast.Import():
                module.imports.update(dict(_imported(node)))
            case ast.ImportFrom():
                source = _source(module, node)
                module.imports.update({a.asname or a.name: (source, a.name) for a in node.names})
            case ast.If() | ast.Try():
                queue = [*node.body, *node.orelse, *queue]
            case _:
                pass
    return module


def _imported(node: ast.Import) -> Iterator[tuple[str, tuple[str, ...]]]:
    for a in node.names:
        top = a.name.partition(".")[0]
        yield (a.asname, (a.name,)) if a.asname else (top, (top,))


def _source(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    return ".".join((*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])))


def _targets(node: ast.AST) -> Iterator[str]:
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id


def _attribute(node: ast.AST, name: str) -> list[ast.AST]:
    """The lines of a class that declare one attribute; none where there is no such class or line."""
    if not isinstance(node, ast.ClassDef):
        return []
    called = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        n
        for n in node.body
        if (isinstance(n, called) and n.name == name) or (isinstance(n, ast.Assign) and name in _targets(n))
    ]


def _own(node: ast.AST) -> set[str]:
    """Names that a function binds for itself."""
    if not isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    return {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)} | set(_targets(node))


def _chains(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """The dotted names that a node loads, longest first: `ctx.begin` is one, not two."""
    match node:
        case ast.Name(id=name):
            yield (name,)
        case ast.Attribute(attr=attr, value=value):
            inner = list(_chains(value))
            yield from [(*c, attr) for c in inner] if _dotted(value) else inner
        case _:
            for child in _said(node):
                yield from _chains(child)


def _dotted(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _dotted(node.value))


def _said(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node that count."""
    for _, value in _fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_docstring(node, child):
                yield child


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    # How a field is annotated decides how it is read; a function's annotations decide nothing.
    for name, value in ast.iter_fields(node):
        if name not in SILENT or (name == "annotation" and isinstance(node, ast.AnnAssign)):
            yield name, value


def _is_docstring(node: ast.AST, child: object) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    first = node.body[0]
    return child is first and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)


def _told(node: ast.AST) -> object:
    """A node as plain lists: what it is and what counts of it; what is absent is left out, whatever Python says it."""
    told: list[object] = [type(node).__name__]
    for name, value in _fields(node):
        values = [v for v in value if not _is_docstring(node, v)] if isinstance(value, list) else [value]
        if values and value is not None:
            told.append(
                [name, *(_told(v) if isinstance(v, ast.AST) else f"{type(v).__name__}:{v!r}" for v in values)]
            )
    return told

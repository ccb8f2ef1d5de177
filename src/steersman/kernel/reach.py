"""Finds what a piece of source text reaches: the functions and constants that it names, and those that they name.

Layout, comments, docstrings and annotations of functions do not count; the declarations of a class do. Names do not
count either: definitions, local names, parameters and members get numbers in the order in which they appear. Names that are stored (fields of a Struct) and names from outside the texts are hashed as they are.
**Invariant:** nothing is imported and nothing is run: the same texts give the same hashes on every Python.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

# Fields that say nothing, or that only some Pythons know.
IGNORED_AST_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_params", "annotation", "returns"})
# Classes whose field names are not stored.
UNSTORED_BASES = frozenset({"NamedTuple", "Protocol", "TypedDict", "dataclass"})
DefinitionName = tuple[str, str]  # module, dotted name
ResolvedName = tuple[DefinitionName, tuple[str, ...]]  # a definition, and the attributes that are asked of it
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class SourceModule:
    """One source text and what its names stand for."""

    name: str
    tree: ast.Module
    package: str
    nodes: dict[str, list[ast.AST]] = field(default_factory=dict)
    # The name here -> its module, and the name there.
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call in the text, in its order."""
        call_nodes = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call))
        return tuple(sorted(call_nodes, key=lambda n: (n.lineno, n.col_offset)))

    @cached_property
    def assigned(self) -> dict[int, str]:
        """What a value is called where it is assigned, by the node's identity."""
        lines = (n for n in ast.walk(self.tree) if isinstance(n, ast.Assign))
        return {id(n.value): name for n in lines for name in _assigned_names(n)}


class SourceTexts:
    """Modules by name; what is not among them is outside and not followed."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._read: dict[str, SourceModule] = {}

    def __contains__(self, module: str) -> bool:
        return module in self._texts

    def module(self, name: str) -> SourceModule:
        """The module of this name, read once."""
        if name not in self._read:
            inner = any(other.startswith(f"{name}.") for other in self._texts)
            package = name if inner else name.rpartition(".")[0]
            self._read[name] = _bind_module_names(SourceModule(name, ast.parse(self._texts[name]), package))
        return self._read[name]

    def hashed(self, module: str, *starts: ast.AST) -> str:
        """One hash over these nodes of a module and over everything they reach."""
        written = _HashWriter(self).write_all(module, starts)
        return hashlib.sha256(repr(written).encode()).hexdigest()[:16]

    def find_nodes(self, definition: DefinitionName) -> list[ast.AST]:
        """The lines that make a definition."""
        name, _, attribute = definition[1].partition(".")
        nodes = self.module(definition[0]).nodes[name]
        return [line for n in nodes for line in _find_attribute_lines(n, attribute)] if attribute else nodes

    def resolve(self, module_here: SourceModule, chain: tuple[str, ...]) -> ResolvedName | None:
        """The definition in the texts that a dotted name leads to; None for a name from outside."""
        name, *rest = chain
        if name in module_here.nodes:
            inside = bool(rest) and any(_find_attribute_lines(n, rest[0]) for n in module_here.nodes[name])
            cut = 1 if inside else 0
            return (module_here.name, ".".join((name, *rest[:cut]))), tuple(rest[cut:])
        if name in module_here.imports:
            parts = (*module_here.imports[name], *rest)
            for cut in range(len(parts) - 1, 0, -1):
                module = ".".join(parts[:cut])
                if module in self and (module, parts[cut]) != (module_here.name, name):
                    return self.resolve(self.module(module), parts[cut:])
        return None

    @cached_property
    def members(self) -> frozenset[str]:
        """The names of methods and attributes that classes of the texts declare and nothing stores."""
        classes = [
            n for name in self._texts for n in ast.walk(self.module(name).tree) if isinstance(n, ast.ClassDef)
        ]
        stored = {
            name
            for c in classes
            if not _class_base_names(c) & UNSTORED_BASES
            for name in _annotated_field_names(c)
        }
        return frozenset(name for c in classes for name in _declared_member_names(c)) - stored


class _HashWriter:
    """One hash in the making: who appears first has the lowest number."""

    def __init__(self, texts: SourceTexts) -> None:
        self._texts = texts
        self._definitions: dict[DefinitionName, int] = {}
        self._members: dict[str, int] = {}
        self._here: SourceModule
        self._own: dict[str, int] = {}

    def write_all(self, module: str, starts: Iterable[ast.AST]) -> list[object]:
        """The nodes as plain lists, and then every definition that they lead to, in the order of appearance."""
        written: list[object] = [self._write_nodes(module, list(starts))]
        while len(written) <= len(self._definitions):
            definition = list(self._definitions)[len(written) - 1]
            written.append(self._write_nodes(definition[0], self._texts.find_nodes(definition)))
        return written

    def _write_nodes(self, module: str, nodes: list[ast.AST]) -> list[object]:
        self._here = self._texts.module(module)
        written: list[object] = []
        for node in nodes:
            self._own = dict.fromkeys(_bound_local_names(node), -1) if isinstance(node, FunctionNode) else {}
            written.append(self._write(node))
        return written

    def _write(self, node: ast.AST) -> object:
        match node:
            case ast.Import() | ast.ImportFrom():
                return []  # where a name is used, it is written where it leads
            case ast.Name() | ast.Attribute() if chain := _dotted_name_parts(node):
                return self._write_chain(chain)
            case ast.Attribute(value=value, attr=attr):
                return ["Attribute", self._write(value), self._write_member(attr)]
            case ast.Call(func=func, args=args, keywords=keywords):
                keyword_values = [[self._write_keyword(func, k.arg), self._write(k.value)] for k in keywords]
                return ["Call", self._write(func), [self._write(a) for a in args], keyword_values]
            case ast.ClassDef():
                return self._write_class(node)
            case _:
                return [type(node).__name__, *self._write_fields(node)]

    def _write_fields(self, node: ast.AST) -> Iterator[list[object]]:
        """Leaves absent fields out, because Python versions differ in how they write them."""
        for name, value in _significant_ast_fields(node):
            values = [v for v in value if not _is_docstring(node, v)] if isinstance(value, list) else [value]
            if values and value is not None:
                yield [name, *(self._write_value(node, name, v) for v in values)]

    def _write_value(self, node: ast.AST, name: str, value: object) -> object:
        if isinstance(value, ast.AST):
            return self._write(value)
        if isinstance(value, str) and not isinstance(node, ast.Constant):
            if name == "kwd_attrs":
                return self._write_member(value)
            # What a top-level definition is called.
            return self._write_own(value) if value in self._own else ""
        return f"{type(value).__name__}:{value!r}"

    def _write_class(self, node: ast.ClassDef) -> object:
        """A class with its fields; its methods keep names of their own."""
        outer, body = self._own, [n for n in node.body if not _is_docstring(node, n)]
        written: list[object] = ["ClassDef", [self._write(n) for n in (*node.bases, *node.decorator_list)]]
        written += [[k.arg, self._write(k.value)] for k in node.keywords]
        for line in body:
            self._own = (
                {**outer, **dict.fromkeys(_bound_local_names(line), -1)}
                if isinstance(line, FunctionNode)
                else outer
            )
            written.append(
                [[self._write_member(name) for name in _class_line_names(line)], self._write_line(line)]
            )
        self._own = outer
        return written

    def _write_line(self, line: ast.AST) -> object:
        match line:
            case ast.Assign(value=value):
                return ["Assign", self._write(value)]
            case ast.AnnAssign(annotation=annotation, value=value):
                return ["AnnAssign", self._write(annotation), self._write(value) if value else None]
            case _:
                return self._write(line)

    def _write_chain(self, chain: tuple[str, ...]) -> object:
        if chain[0] in self._own:
            return ["own", self._write_own(chain[0]), *map(self._write_member, chain[1:])]
        target = self._texts.resolve(self._here, chain)
        if target is not None:
            number = self._definitions.setdefault(target[0], len(self._definitions))
            return ["definition", number, *map(self._write_member, target[1])]
        outside = (*self._here.imports.get(chain[0], (chain[0],)), *chain[1:])
        return ["outside", *outside]

    def _write_own(self, name: str) -> int:
        if self._own[name] < 0:
            self._own[name] = max(self._own.values()) + 1
        return self._own[name]

    def _write_member(self, name: str) -> object:
        return self._members.setdefault(name, len(self._members)) if name in self._texts.members else name

    def _write_keyword(self, func: ast.AST, name: str | None) -> object:
        """A keyword by the number of the parameter that it names, where the function is in the texts."""
        chain = _dotted_name_parts(func)
        target = self._texts.resolve(self._here, chain) if chain and chain[0] not in self._own else None
        if name is None or target is None or target[1]:
            return name
        for node in self._texts.find_nodes(target[0]):
            if isinstance(node, FunctionNode) and name in (
                names := [a.arg for a in _function_parameters(node)]
            ):
                return names.index(name)
        return self._write_member(name)


def _bind_module_names(module: SourceModule) -> SourceModule:
    """The module with its top-level names filled in, those of `if` and `try` blocks included, and with all imports."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            module.imports.update(dict(_imported_names(node)))
        elif isinstance(node, ast.ImportFrom):
            source = _import_source(module, node)
            module.imports.update({a.asname or a.name: (source, a.name) for a in node.names})
    queue = list(module.tree.body)
    while queue:
        node = queue.pop(0)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                module.nodes.setdefault(node.name, []).append(node)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                for name in _assigned_names(node):
                    module.nodes.setdefault(name, []).append(node)
            case ast.If() | ast.Try():
                queue = [*node.body, *node.orelse, *queue]
            case _:
                pass
    return module


def _imported_names(node: ast.Import) -> Iterator[tuple[str, tuple[str, ...]]]:
    for alias in node.names:
        top = alias.name.partition(".")[0]
        yield (alias.asname, (alias.name,)) if alias.asname else (top, (top,))


def _import_source(module: SourceModule, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    return ".".join((*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])))


def _assigned_names(node: ast.AST) -> Iterator[str]:
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id


def _find_attribute_lines(node: ast.AST, name: str) -> list[ast.AST]:
    """The lines of a class that declare one attribute; none where there is no such class or line."""
    if not isinstance(node, ast.ClassDef):
        return []
    called = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        n
        for n in node.body
        if (isinstance(n, called) and n.name == name)
        or (isinstance(n, ast.Assign) and name in _assigned_names(n))
    ]


def _bound_local_names(node: ast.AST) -> Iterator[str]:
    """Names that a function binds for itself; `*` and handlers of exceptions and patterns bind some too."""
    for n in ast.walk(node):
        match n:
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) if (
                n is not node
            ):
                yield name
            case _:
                pass


def _function_parameters(node: FunctionNode) -> Iterator[ast.arg]:
    yield from (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)


def _class_base_names(node: ast.ClassDef) -> set[str]:
    chains = filter(
        None, map(_dotted_name_parts, (*node.bases, *(getattr(d, "func", d) for d in node.decorator_list)))
    )
    return {chain[-1] for chain in chains}


def _annotated_field_names(node: ast.ClassDef) -> Iterator[str]:
    return (n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name))


def _declared_member_names(node: ast.ClassDef) -> Iterator[str]:
    """The members of a class: what its body names, and what its methods set on `self`."""
    for line in node.body:
        yield from _class_line_names(line)
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            yield n.attr


def _class_line_names(line: ast.AST) -> Iterator[str]:
    match line:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            if not name.startswith("__"):
                yield name
        case ast.Assign() | ast.AnnAssign():
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            yield from (name for target in targets for name in _assigned_names(target))
        case _:
            pass


def _dotted_name_parts(node: ast.AST) -> tuple[str, ...]:
    """The parts of a plain dotted name; nothing for anything else."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=value, attr=attr) if inner := _dotted_name_parts(value):
            return (*inner, attr)
        case _:
            return ()


def _significant_ast_fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    # How a field is annotated decides how it is read; a function's annotations decide nothing.
    for name, value in ast.iter_fields(node):
        if name not in IGNORED_AST_FIELDS or (name == "annotation" and isinstance(node, ast.AnnAssign)):
            yield name, value


def _is_docstring(node: ast.AST, child: object) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    first = node.body[0]
    return child is first and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)

"""What code of the planner may name, by principle: only what is on a list, and no road to anything else.

A module may be used by a few names of its own and is never handed on as a value; of the built-in names, those that
compute; no attribute with two underscores, none that is called like a module or like something that acts, whatever it
is taken from; `getattr` only with a word that could stand as an attribute. What makes classes, fetches or looks up is
called in one form and is no value. Text in an annotation is code: msgspec evaluates it.
**Invariant:** what is not understood is found, not passed.
"""

import ast
import builtins
import string
import sys
from collections.abc import Callable, Iterator

from gate_types import NOTED, WORDS, Typed, Types


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# By module: what of it may be named. None of it opens, writes, starts, connects, loads or evaluates.
OUTSIDE = {
    module: _words(names)
    for module, names in {
        "base64": "b64decode b64encode",
        "binascii": "Error",
        "bisect": "bisect_left bisect_right",
        "calendar": "monthrange",
        "cel_expr_python": "cel",  # a language without effects
        "cel_expr_python.cel": "NewEnv Type",
        "collections": "Counter abc deque",
        "collections.abc": "Callable Collection Container Iterable Iterator Mapping Sequence",
        "contextlib": "suppress",
        "difflib": "get_close_matches",
        "enum": "Enum",
        "fnmatch": "fnmatchcase",
        "functools": "cache cached_property lru_cache partial",
        "hashlib": "sha256",
        "hmac": "new",
        "itertools": "groupby islice pairwise",
        "json": "JSONDecoder loads",
        "jsonschema_rs": "validator_for",  # judges.problems gives it a retriever that refuses
        "math": "inf isfinite",
        "msgspec": "DecodeError Meta MsgspecError NODEFAULT Raw Struct ValidationError convert field json structs to_builtins",
        "msgspec.json": "Decoder Encoder decode encode schema schema_components",
        "msgspec.structs": "FieldInfo asdict fields replace",
        "re": "ASCII DOTALL IGNORECASE Match Pattern VERBOSE compile escape findall fullmatch match search split sub",
        "rfc8785": "dumps",
        "tomllib": "TOMLDecodeError loads",
        "types": "MappingProxyType",
        "typing": "Annotated Any ClassVar Literal NamedTuple TYPE_CHECKING TypeVar cast get_args",
        "unicodedata": "category normalize",
        "xml": "parsers",
        "xml.parsers": "expat",
        "xml.parsers.expat": "ExpatError ParserCreate XMLParserType",  # resolves nothing unless it is told how
    }.items()
}
# Of the built-in names those that compute; every other one that Python has is found.
BUILT_IN = _words(
    "AttributeError Ellipsis Exception False ImportError None NotImplemented RecursionError True UnicodeDecodeError "
    "UnicodeEncodeError UnicodeError ValueError abs all any ascii bool bytearray bytes chr dict divmod enumerate filter "
    "float frozenset getattr id int isinstance iter len list map max min next object ord property range reversed round "
    "set sorted str sum super tuple type zip"
)
PYTHONS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
MODULES = sys.stdlib_module_names | {name.partition(".")[0] for name in OUTSIDE}
# Attributes that act on the world, or lead from a value to the interpreter behind it, whatever they are taken from.
ACTS = _words(
    "Popen _getframe _os _sys addaudithook ag_frame attrgetter bind builtins check_call check_output chmod chown connect "
    "cr_frame create_server dlopen environ exec_module execl execle execlp execv execve execvp f_back f_builtins f_code "
    "f_globals f_locals file_digest find_spec fork forkpty fromfile getoutput gi_code gi_frame import_module kill killpg "
    "listen load_module loader make_dataclass makedirs methodcaller mkdir mro namedtuple open open_connection popen "
    "putenv read_bytes read_text recv redirect_stdout rename rmdir rmtree run sendall sendto settrace spawn spawnl spawnv "
    "startfile stderr stdin stdout symlink system tb_frame tofile touch truncate unlink urlopen urlretrieve write "
    "write_bytes write_text writelines get_type_hints"
)
FIELDS = frozenset({"profile", "types", "string"})  # of our own values: called like modules, and none
# What is no value and has no other name: whether it may be called; what may not is written as a base or in annotations.
CALLED = {
    "builtins.getattr": True,
    "builtins.type": True,
    "enum.Enum": False,
    "jsonschema_rs.validator_for": True,
    "msgspec.Struct": False,
    "typing.NamedTuple": False,
    "typing.TypeVar": True,
}
TEXTS = frozenset({"typing.TypeVar", "typing.cast"})  # called with types, which may be text
MAKING = _words("__class_getitem__ __mro_entries__ __prepare__ __new__ __get__ __annotations__ __annotate__")
LOOKS_UP = frozenset({"format", "format_map"})  # a template of theirs can read attributes

Found = tuple[str, int]
Inside = Callable[[str, str], bool]  # whether a module of ours has this name by itself; "" is the module


def found_in(
    source: str,
    inside: Inside = lambda _module, name: bool(name),
    typed: Typed = lambda _module, name: name[:1].isupper(),
) -> list[Found]:
    """Everything in a module that is not on the lists, with its line."""
    look = _Look(ast.parse(source), inside, typed)
    return sorted(look.found(), key=lambda each: each[1])


def types_in(source: str, inside: Inside, typed: Typed) -> Callable[[str], bool]:
    """Whether a name is a type in a module."""
    look = _Look(ast.parse(source), inside, typed)
    for node in look.nodes:
        list(look.imported(node))
    return look.types.is_type


class _Look:
    """One module, and what its names stand for."""

    def __init__(self, tree: ast.AST, inside: Inside, typed: Typed) -> None:
        self.inside = inside
        self.nodes = list(ast.walk(tree))
        self.modules: dict[str, str] = {}  # by name here: the module that it stands for
        self.origins: dict[str, str] = {}  # by name here: what it is from outside, by module and name
        self.types = Types(tree, self.origin, typed)
        self.bases = {id(n.value) for n in self.nodes if isinstance(n, ast.Attribute)}
        self.called = {id(n.func) for n in self.nodes if isinstance(n, ast.Call)}
        self.parents = {id(b) for n in self.nodes if isinstance(n, ast.ClassDef) for b in n.bases}
        self.noted = {id(n) for each in self.nodes for type_ in _annotations(each) for n in ast.walk(type_)}
        self.refusing = {n.name for n in self.nodes if isinstance(n, ast.FunctionDef) and _refuses(n)}
        self.told = {id(n) for each in self.nodes for n in _where_a_class_is_told(each)}

    def found(self) -> Iterator[Found]:
        for looked in (
            self.imported,
            self.named,
            self.reached,
            self.kept,
            self.asked,
            self.made,
            self.written,
        ):
            for node in self.nodes:
                yield from ((word, node.lineno) for word in looked(node))  # type: ignore[attr-defined]

    def imported(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Import(names=names):
                for each in names:
                    top = each.name.partition(".")[0]
                    self.modules[each.asname or top] = each.name if each.asname else top
                    if each.name not in OUTSIDE:
                        yield f"import {each.name}"
                    if self.types.bound.again(each.asname or top):
                        yield f"{each.asname or top} bound again"
            case ast.ImportFrom(module=module, names=names, level=level):
                for each in names:
                    yield from self._from(module or "", each.name, each.asname or each.name, far=bool(level))

    def _from(self, module: str, name: str, here: str, *, far: bool) -> Iterator[str]:
        ours = module.partition(".")[0] == "steersman"
        known = self._has(module, name) if ours else name in OUTSIDE.get(module, ())
        if far or not known or name.startswith("__"):
            yield f"from {module} import {name}"
        if not ours:
            self.origins[here] = f"{module}.{name}"
            if here != name and f"{module}.{name}" in CALLED:
                yield f"{module}.{name} under another name"
            if self.types.bound.again(here):
                yield f"{here} bound again"
        if f"{module}.{name}" in OUTSIDE or (ours and self.inside(f"{module}.{name}", "")):
            self.modules[here] = f"{module}.{name}"

    def _has(self, module: str, name: str) -> bool:
        return self.inside(module, name) or self.inside(f"{module}.{name}", "")

    def named(self, node: ast.AST) -> Iterator[str]:
        """Names: Python's own that do more than compute, and modules as values."""
        if not isinstance(node, ast.Name):
            return
        if node.id.startswith("__") and node.id != "__all__":
            yield node.id
        elif node.id in PYTHONS - BUILT_IN:
            yield f"built-in {node.id}"
        elif node.id in self.modules and id(node) not in self.bases:
            yield f"module {node.id} as a value"

    def reached(self, node: ast.AST) -> Iterator[str]:
        """Attributes: of a module what its list has, of anything else what is not called like a way out."""
        match node:
            case ast.Attribute(value=value, attr=name):
                module = self._module(value)
                if module is None:
                    yield from _way_out(name)
                elif not (name in OUTSIDE[module] if module in OUTSIDE else self._has(module, name)):
                    yield f"{module}.{name}"
                elif module in OUTSIDE and f"{module}.{name}" in OUTSIDE and id(node) not in self.bases:
                    yield f"module {module}.{name} as a value"
            case ast.MatchClass(kwd_attrs=names):
                yield from (word for name in names for word in _looked_up(name))

    def _module(self, value: ast.AST) -> str | None:
        """The module that an expression stands for."""
        match value:
            case ast.Name(id=name):
                return self.modules.get(name)
            case ast.Attribute(value=inner, attr=name):
                module = self._module(inner)
                whole = f"{module}.{name}"
                return whole if module and (whole in OUTSIDE or self.inside(whole, "")) else None
        return None

    def origin(self, node: ast.AST) -> str | None:
        """What an expression stands for, by module and name."""
        match node:
            case ast.Name(id=name) if name in self.origins:
                return self.origins[name]
            case ast.Name(id=name) if name in PYTHONS:
                return f"builtins.{name}"
            case ast.Attribute(value=value, attr=name):
                module = self._module(value)
                return f"{module}.{name}" if module else None
        return None

    def kept(self, node: ast.AST) -> Iterator[str]:
        """What makes, fetches or looks up stands where it is called, or where it is a base; never as a value."""
        if isinstance(node, ast.Attribute) and node.attr in LOOKS_UP and id(node) not in self.called:
            yield f"{node.attr} as a value"
        if not isinstance(node, ast.Name | ast.Attribute) or isinstance(node.ctx, ast.Store):
            return
        name = self.origin(node)
        if name in CALLED and id(node) not in self.noted | (self.called if CALLED[name] else self.parents):
            yield f"{name} as a value"

    def asked(self, node: ast.AST) -> Iterator[str]:
        """Calls that depend on what they are given."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield from _looked_up(name)
            case ast.Call(func=ast.Name(id="getattr")):
                yield "getattr of a computed name"
            case ast.Call(func=ast.Name(id="type"), args=args) if len(args) != 1:
                yield "type with a body"
            case ast.Call(func=ast.Attribute(attr=name, value=template)) if name in LOOKS_UP:
                if not (isinstance(template, ast.Constant) and _names_only(template.value)):
                    yield f"{name} that could look up"
            case ast.Call(func=func, keywords=given) if self.origin(func) == "jsonschema_rs.validator_for":
                retrievers = [each.value for each in given if each.arg == "retriever"]
                if not any(
                    isinstance(r, ast.Name) and r.id in self.refusing and len(self.types.bound.how[r.id]) == 1
                    for r in retrievers
                ):
                    yield "validator_for that could fetch"
            case ast.Call(func=ast.Name(id="type")) if id(node) not in self.told:
                yield "a class as a value"

    def made(self, node: ast.AST) -> Iterator[str]:
        """Classes that are something else than they are written as."""
        match node:
            case ast.ClassDef(keywords=given) if {"metaclass", None} & {each.arg for each in given}:
                yield "a metaclass"
            case ast.FunctionDef(name=name) if name in MAKING:
                yield f"a class with {name}"
        if getattr(node, "type_params", ()):
            yield "parameters of a type"

    def written(self, node: ast.AST) -> Iterator[str]:
        """Types as text are evaluated by whoever reads them: they are looked at like code."""
        for type_ in _annotations(node):
            yield from self.types.wrong(type_)
            yield from self._text(type_)
        match node:
            case ast.Subscript(value=value, slice=inner) if self.origin(value) not in (WORDS, NOTED):
                yield from (w for w in self._text(inner) if w == "a type as text that calls")
            case ast.Call(func=func, args=[first, *more]) if self.origin(func) in TEXTS:
                types = (
                    [*more, *(k.value for k in node.keywords)]
                    if self.origin(func) == "typing.TypeVar"
                    else [first]
                )
                for each in types:
                    yield from self.types.wrong(each)
                    yield from self._text(each)

    def _text(self, type_: ast.AST) -> Iterator[str]:
        match type_:
            case ast.Subscript(value=value) if self.origin(value) == WORDS:
                return
            case ast.Subscript(value=value, slice=ast.Tuple(elts=[first, *_])) if self.origin(value) == NOTED:
                yield from self._text(first)
                return
            case ast.Constant(value=str(text)):
                yield from self._evaluated(text)
        for each in ast.iter_child_nodes(type_):
            yield from self._text(each)

    def _evaluated(self, text: str) -> Iterator[str]:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError:
            return
        if any(isinstance(n, ast.Call | ast.Lambda) for n in ast.walk(tree)):
            yield "a type as text that calls"
        inner = _Look(tree, self.inside, self.types.typed)
        inner.modules, inner.origins, inner.types = self.modules, self.origins, self.types
        inner.noted = {id(n) for n in inner.nodes}
        yield from (word for word, _ in inner.found())


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.AnnAssign(annotation=type_) | ast.arg(annotation=ast.AST() as type_):
            yield type_
        case ast.FunctionDef(returns=ast.AST() as type_) | ast.AsyncFunctionDef(returns=ast.AST() as type_):
            yield type_
        case ast.Call(func=ast.Name(id="TypeVar"), args=[_, *more], keywords=given):
            yield from (*more, *(each.value for each in given))


def _refuses(function: ast.FunctionDef) -> bool:
    """Whether a function does nothing but raise."""
    match function.body:
        case [ast.Raise()] | [ast.Expr(value=ast.Constant()), ast.Raise()]:
            return not function.decorator_list
    return False


def _where_a_class_is_told(node: ast.AST) -> Iterator[ast.AST]:
    """Places in which `type(x)` is looked at and goes no further: an attribute of it, a key, a comparison."""
    match node:
        case ast.Attribute(value=value) | ast.Subscript(slice=value):
            yield value
        case ast.Compare(left=left, comparators=others):
            yield from (left, *others)


def _names_only(template: object) -> bool:
    """Whether a template takes what it is given as it is."""
    if not isinstance(template, str):
        return False
    fields = [(name or "", spec or "") for _, name, spec, _ in string.Formatter().parse(template)]
    return all(not {".", "["} & {*name} and (not spec or _names_only(spec)) for name, spec in fields)


def _way_out(name: str) -> Iterator[str]:
    if name.startswith("__") or name in ACTS or (name in MODULES and name not in FIELDS):
        yield f"attribute {name}"


def _looked_up(name: str) -> Iterator[str]:
    """The same where an attribute is taken by its name: then nobody sees how it is called."""
    yield from _way_out(name)
    if name in LOOKS_UP:
        yield f"{name} as a value"

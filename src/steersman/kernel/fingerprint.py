"""Fingerprints of everything a machine declares: a version that somebody raises, and a hash that nobody can forget.

Each function is hashed with every function and constant it reaches in the given texts (see `reach`). What is data
(namings, computed events, caps, jobs) is hashed as data.
**Invariant:** pure: source texts come in as a mapping from module name to text.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import structs

from steersman.errors import DefinitionError
from steersman.kernel.canonical import digest_of
from steersman.kernel.decides import KERNEL_VERSION
from steersman.kernel.definition import Cap, Do, EventDef, Guard, Pairs
from steersman.kernel.machine import Machine, guards
from steersman.kernel.reach import Module, Texts

Part = dict[str, Any]  # version, hash; for an event also its fields


def fingerprint(m: Machine, texts: Mapping[str, str]) -> dict[str, Any]:
    """The machine's entry in the lock: digest, kernel version, and version and hash of every part by name."""
    return {"definition": m.digest, "kernel": KERNEL_VERSION, "parts": dict(sorted(_parts(m, Texts(texts))))}


def _parts(m: Machine, texts: Texts) -> Iterator[tuple[str, Part]]:
    for g in guards(m):
        yield f"guard {g.name}", _guard(texts, g)
    for f in m.folds.values():
        yield f"fold {f.on.name}", _part(f.version, _function(texts, f.do, ("fold", f.on.name), "do", 1))
    for name, d in _work(m):
        yield f"work {name}", _do(texts, d)
    for job in m.jobs.values():
        told = [job.kind, job.does, job.outlives, job.edits, _shape(job.returns)]
        yield f"job {job.name}", _part(job.version, told)
    for n in m.namings.values():
        yield f"naming {n.subject.name}", _part(n.version, _pairs(n.pairs))
    for c in m.computed.values():
        yield f"computed {c.state.name}", _part(c.version, _pairs(c.pairs))
    for cap in m.caps.values():
        yield f"cap {cap.name}", _cap(texts, cap)
    for e in m.events.values():
        yield f"event {e.name}", _event(texts, e)
    yield "context", _context(m, texts)
    if m.begin is not None:
        yield "begin", _part(m.begin_version, _function(texts, m.begin, ("machine", m.name), "begin"))


def _part(version: int, *told: Any) -> Part:
    return {"version": version, "hash": digest_of(told)[:16]}


def _guard(texts: Texts, g: Guard) -> Part:
    cap = g.cap.name if g.cap else None
    return _part(g.version, list(g.reads), cap, _function(texts, g.test, ("Guard", g.name), "test", 2))


def _work(m: Machine) -> Iterator[tuple[str, Do]]:
    """The lines of work by name; a job that one state asks for twice is numbered."""
    for s in m.states.values():
        seen: Counter[str] = Counter()
        for d in s.work:
            seen[d.job.name] += 1
            again = f" {seen[d.job.name]}" if seen[d.job.name] > 1 else ""
            yield f"{s.name}/{d.job.name}{again}", d


def _do(texts: Texts, d: Do) -> Part:
    key = ("do", d.job.name)
    if d.each is not None:
        return _part(d.version, d.when.name, _function(texts, d.each, key, "each"))
    return _part(d.version, d.when.name, _function(texts, d.give, key, "give", 1))


def _pairs(pairs: Pairs) -> list[list[str]]:
    return [[g.name, e.name] for g, e in pairs]


def _cap(texts: Texts, cap: Cap) -> Part:
    per = _function(texts, cap.per, ("Cap", cap.name), "per", 2) if cap.per is not None else None
    return _part(cap.version, cap.limit, [e.name for e in cap.resets], per)


def _event(texts: Texts, e: EventDef) -> Part:
    """An event may get a further field that has a default; whatever else changes in what it carries needs a version."""
    ups = [[v, _function(texts, up, ("event", e.name), "upcasts")] for v, up in sorted(e.upcasts.items())]
    return {**_part(e.version, e.origin.value, ups), "fields": _fields(e.carries)}


def _context(m: Machine, texts: Texts) -> Part:
    ups = [[v, _function(texts, up, ("machine", m.name), "upcasts")] for v, up in sorted(m.upcasts.items())]
    return _part(m.context_version, _fields(m.context), ups)


def _fields(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {f.name: f"{_shape(f.type)} = {_default(f)}" for f in structs.fields(kind)}


def _shape(kind: Any) -> str:
    """How values of a type are stored; what a class is called, and where it is, is not stored."""
    if inner := get_args(kind):
        parts = map(repr, inner) if get_origin(kind) is Literal else map(_shape, inner)
        return f"{_shape(get_origin(kind))}[{', '.join(parts)}]"
    if not isinstance(kind, type):
        return str(kind)
    if issubclass(kind, msgspec.Struct):
        required = [f.encode_name for f in structs.fields(kind) if f.required]
        return f"{{{', '.join((*required, '...'))}}}"
    return kind.__name__


def _default(f: structs.FieldInfo) -> str:
    if f.default_factory is not msgspec.NODEFAULT:
        return _stored(f.default_factory())
    return "" if f.default is msgspec.NODEFAULT else _stored(f.default)


def _stored(value: object) -> str:
    return repr(msgspec.to_builtins(value, order="sorted"))


# ── finding a function in the texts ─────────────────────────────────────────────────────────────────────────────────


def _function(
    texts: Texts,
    function: Callable[..., Any],
    call: tuple[str, str],
    keyword: str,
    position: int | None = None,
) -> str:
    """The hash of a function with all it reaches; of a function outside the texts, its name.

    A lambda has no name: it is the argument, by keyword or position, of the call that declares this key.
    """
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not name:
        raise DefinitionError(f"{call[0]} {call[1]}: {function!r} has no source of its own: write a def")
    if module not in texts:
        return f"{module}.{name}"
    here = texts.module(module)
    outer = name.partition(".<locals>")[0]
    if "<lambda>" not in outer:
        return texts.hashed(module, *here.nodes[outer.partition(".")[0]])
    found = [n for c in here.calls if _declares(here, c, call) for n in _argument(c, keyword, position)]
    if not found:
        raise DefinitionError(f"{call[0]} {call[1]}: its lambda is not found in {module}: write a def")
    return texts.hashed(module, *found)


def _declares(here: Module, node: ast.Call, call: tuple[str, str]) -> bool:
    """Whether this call is the one that declares a key, by its first argument or by what it is assigned to."""
    kind, key = call
    if getattr(node.func, "id", getattr(node.func, "attr", "")) != kind:
        return False
    match node.args[:1]:
        case [ast.Constant(value=str(told))] if kind != "event":
            return told == key
        case [ast.Attribute(attr=told)]:  # fold(E.name, …)
            return told == key
        case [ast.Name(id=told)] if told in here.nodes:  # do(JOB, …), where JOB = effect("name", …)
            return any(
                isinstance(n, ast.Constant) and n.value == key for d in here.nodes[told] for n in ast.walk(d)
            )
        case _:
            return kind == "event" and here.assigned.get(id(node)) == key


def _argument(node: ast.Call, keyword: str, position: int | None) -> list[ast.AST]:
    named: list[ast.AST] = [k.value for k in node.keywords if k.arg == keyword]
    return named or ([node.args[position]] if position is not None and len(node.args) > position else [])

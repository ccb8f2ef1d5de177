"""Fingerprints of everything that a machine declares: its version, which people raise, and its hash, which is computed.

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
from steersman.kernel.definition import Cap, EventDef, Guard, NamingPairs, StateWork
from steersman.kernel.machine import KERNEL_VERSION, Machine, machine_guards
from steersman.kernel.reach import SourceModule, SourceTexts

FingerprintPart = dict[str, Any]  # version, hash; for an event also its fields


def machine_fingerprint(machine: Machine, texts: Mapping[str, str]) -> dict[str, Any]:
    """The machine's entry in the lock: digest, kernel version, and version and hash of every part by name."""
    return {
        "definition": machine.digest,
        "kernel": KERNEL_VERSION,
        "parts": dict(sorted(_fingerprint_parts(machine, SourceTexts(texts)))),
    }


def _fingerprint_parts(machine: Machine, texts: SourceTexts) -> Iterator[tuple[str, FingerprintPart]]:
    for guard in machine_guards(machine):
        yield f"guard {guard.name}", _fingerprint_guard(texts, guard)
    for fold in machine.folds.values():
        yield (
            f"fold {fold.on.name}",
            _build_fingerprint_part(
                fold.version, _hash_function(texts, fold.do, ("fold", fold.on.name), "do", 1)
            ),
        )
    for name, state_work in _numbered_state_work(machine):
        yield f"work {name}", _fingerprint_work(texts, state_work)
    for job in machine.jobs.values():
        job_data = [job.kind, job.does, job.outlives, job.edits, _stored_type_shape(job.returns)]
        yield f"job {job.name}", _build_fingerprint_part(job.version, job_data)
    for n in machine.namings.values():
        yield f"naming {n.subject.name}", _build_fingerprint_part(n.version, _guard_event_names(n.pairs))
    for naming in machine.computed.values():
        yield (
            f"computed {naming.state.name}",
            _build_fingerprint_part(naming.version, _guard_event_names(naming.pairs)),
        )
    for cap in machine.caps.values():
        yield f"cap {cap.name}", _fingerprint_cap(texts, cap)
    for event in machine.events.values():
        yield f"event {event.name}", _fingerprint_event(texts, event)
    yield "context", _fingerprint_context(machine, texts)
    if machine.begin is not None:
        yield (
            "begin",
            _build_fingerprint_part(
                machine.begin_version,
                _hash_function(texts, machine.begin, ("machine", machine.name), "begin"),
            ),
        )


def _build_fingerprint_part(version: int, *contents: Any) -> FingerprintPart:
    return {"version": version, "hash": digest_of(contents)[:16]}


def _fingerprint_guard(texts: SourceTexts, guard: Guard) -> FingerprintPart:
    cap = guard.cap.name if guard.cap else None
    return _build_fingerprint_part(
        guard.version,
        list(guard.reads),
        cap,
        _hash_function(texts, guard.test, ("Guard", guard.name), "test", 2),
    )


def _numbered_state_work(machine: Machine) -> Iterator[tuple[str, StateWork]]:
    """The lines of work by name; a job that one state asks for twice is numbered."""
    for state in machine.states.values():
        job_counts: Counter[str] = Counter()
        for state_work in state.work:
            job_counts[state_work.job.name] += 1
            suffix = f" {job_counts[state_work.job.name]}" if job_counts[state_work.job.name] > 1 else ""
            yield f"{state.name}/{state_work.job.name}{suffix}", state_work


def _fingerprint_work(texts: SourceTexts, state_work: StateWork) -> FingerprintPart:
    key = ("do", state_work.job.name)
    if state_work.each is not None:
        return _build_fingerprint_part(
            state_work.version, state_work.when.name, _hash_function(texts, state_work.each, key, "each")
        )
    return _build_fingerprint_part(
        state_work.version, state_work.when.name, _hash_function(texts, state_work.give, key, "give", 1)
    )


def _guard_event_names(pairs: NamingPairs) -> list[list[str]]:
    return [[g.name, e.name] for g, e in pairs]


def _fingerprint_cap(texts: SourceTexts, cap: Cap) -> FingerprintPart:
    per = _hash_function(texts, cap.per, ("Cap", cap.name), "per", 2) if cap.per is not None else None
    return _build_fingerprint_part(cap.version, cap.limit, [e.name for e in cap.resets], per)


def _fingerprint_event(texts: SourceTexts, event: EventDef) -> FingerprintPart:
    """The fields that the event carries. A new field with a default needs no new version; every other change does."""
    ups = [
        [v, _hash_function(texts, up, ("event", event.name), "upcasts")]
        for v, up in sorted(event.upcasts.items())
    ]
    return {
        **_build_fingerprint_part(event.version, event.origin.value, ups),
        "fields": _struct_field_shapes(event.carries),
    }


def _fingerprint_context(machine: Machine, texts: SourceTexts) -> FingerprintPart:
    ups = [
        [v, _hash_function(texts, up, ("machine", machine.name), "upcasts")]
        for v, up in sorted(machine.upcasts.items())
    ]
    return _build_fingerprint_part(machine.context_version, _struct_field_shapes(machine.context), ups)


def _struct_field_shapes(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {
        f.name: f"{_stored_type_shape(f.type)} = {_stored_field_default(f)}" for f in structs.fields(kind)
    }


def _stored_type_shape(kind: Any) -> str:
    """How values of a type are stored; what a class is called, and where it is, is not stored."""
    if inner := get_args(kind):
        parts = map(repr, inner) if get_origin(kind) is Literal else map(_stored_type_shape, inner)
        return f"{_stored_type_shape(get_origin(kind))}[{', '.join(parts)}]"
    if not isinstance(kind, type):
        return str(kind)
    if issubclass(kind, msgspec.Struct):
        required = [f.encode_name for f in structs.fields(kind) if f.required]
        return f"{{{', '.join((*required, '...'))}}}"
    return kind.__name__


def _stored_field_default(field: structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return _stored_value_repr(field.default_factory())
    return "" if field.default is msgspec.NODEFAULT else _stored_value_repr(field.default)


def _stored_value_repr(value: object) -> str:
    return repr(msgspec.to_builtins(value, order="sorted"))


# ── finding a function in the texts ─────────────────────────────────────────────────────────────────────────────────


def _hash_function(
    texts: SourceTexts,
    function: Callable[..., Any],
    call: tuple[str, str],
    keyword: str,
    position: int | None = None,
) -> str:
    """The hash of a function with everything that it reaches. A function outside the texts is hashed by its name.

    A lambda has no name: it is the argument, by keyword or position, of the call that declares this key.
    """
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not name:
        raise DefinitionError(f"{call[0]} {call[1]}: {function!r} has no source of its own: write a def")
    if module not in texts:
        return f"{module}.{name}"
    source_module = texts.module(module)
    outer = name.partition(".<locals>")[0]
    if "<lambda>" not in outer:
        return texts.hashed(module, *source_module.nodes[outer.partition(".")[0]])
    lambdas = [
        n
        for c in source_module.calls
        if _is_declaring_call(source_module, c, call)
        for n in _find_call_argument(c, keyword, position)
    ]
    if not lambdas:
        raise DefinitionError(f"{call[0]} {call[1]}: its lambda is not found in {module}: write a def")
    return texts.hashed(module, *lambdas)


def _is_declaring_call(source_module: SourceModule, node: ast.Call, call: tuple[str, str]) -> bool:
    """Whether this call is the one that declares a key, by its first argument or by what it is assigned to."""
    kind, key = call
    if getattr(node.func, "id", getattr(node.func, "attr", "")) != kind:
        return False
    match node.args[:1]:
        case [ast.Constant(value=str(declared_name))] if kind != "event":
            return declared_name == key
        case [ast.Attribute(attr=declared_name)]:  # fold(E.name, …)
            return declared_name == key
        case [ast.Name(id=declared_name)] if (
            declared_name in source_module.nodes
        ):  # do(JOB, …), where JOB = effect("name", …)
            return any(
                isinstance(n, ast.Constant) and n.value == key
                for d in source_module.nodes[declared_name]
                for n in ast.walk(d)
            )
        case _:
            return kind == "event" and source_module.assigned.get(id(node)) == key


def _find_call_argument(node: ast.Call, keyword: str, position: int | None) -> list[ast.AST]:
    values: list[ast.AST] = [k.value for k in node.keywords if k.arg == keyword]
    return values or ([node.args[position]] if position is not None and len(node.args) > position else [])

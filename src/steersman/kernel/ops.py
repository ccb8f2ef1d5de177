"""Ops: the only way in which a context changes. Each is recorded and applied.

    ("set", field, value)          ("put", field, key, value)     ("drop", field, key)
    ("take", field, name)          the value is what the event carries under this name: not written twice
    ("add", field, number)         ("append", field, item)        a log: counted and digested, never rewritten
    ("count", cap, n)              ("clear", cap)                 cap counters, kept apart from the context

**Invariant:** the same ops applied to the same value give the same value.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from steersman.errors import DefinitionError
from steersman.kernel.canonical import canonical_bytes

Op = Sequence[Any]


class Log(msgspec.Struct, frozen=True, gc=False):
    """A list that only grows, known by its length and rolling digest; its items are in the entries' ops."""

    count: int = 0
    digest: str = ""

    def after(self, item: Any) -> "Log":
        """The log with one more item."""
        rolled = hashlib.sha256(self.digest.encode() + canonical_bytes(item)).hexdigest()
        return Log(self.count + 1, rolled)


def apply_ops(context: Any, ops: Iterable[Op], data: Any = None) -> Any:
    """A copy of a typed context with the ops applied; the given one is left alone."""
    new = context.__copy__()
    for op in ops:
        name = op[1]
        if op[0] == "set":
            setattr(new, name, op[2])
        elif op[0] == "take":
            setattr(new, name, _read_carried_value(data, op[2]))
        else:
            setattr(new, name, _apply_op(getattr(new, name), op))
    return new


def _read_carried_value(data: Any, name: str) -> Any:
    """A value that the entry's own data holds: a default that the data leaves out cannot be read back from it."""
    value = getattr(data, name)
    if data.__struct_config__.omit_defaults and value == _struct_defaults(data.__class__).get(
        name, msgspec.NODEFAULT
    ):
        raise DefinitionError(
            f"a fold takes {name} from a {type(data).__name__} that leaves it out: set it instead"
        )
    return value


@cache
def _struct_defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    field_defaults = ((f.name, f.default, f.default_factory) for f in msgspec.structs.fields(kind))
    return {name: value if make is msgspec.NODEFAULT else make() for name, value, make in field_defaults}


def apply_ops_to_plain(context: dict[str, Any], ops: Iterable[Op], data: Any = None) -> dict[str, Any]:
    """The same for a context of any machine that was read back from the tape."""
    new = dict(context)
    for op in ops:
        name = op[1]
        value = new.get(name)
        if op[0] == "append":
            new[name] = msgspec.to_builtins(_apply_op(Log(**value) if value else Log(), op))
        elif op[0] == "take":
            new[name] = data[op[2]]
        else:
            new[name] = _apply_op(value, op)
    return new


def _apply_op(old: Any, op: Op) -> Any:
    match op[0]:
        case "set":
            return op[2]
        case "add":
            return (old or 0) + op[2]
        case "append":
            return old.after(op[2])
        case "put":
            return {**(old or {}), op[2]: op[3]}
        case "drop":
            return {k: v for k, v in (old or {}).items() if k != op[2]}
        case other:
            raise ValueError(f"unknown op {other!r}: this tape was written by a newer steersman")


def apply_count_ops(counts: dict[str, int], ops: Iterable[Op]) -> dict[str, int]:
    """Cap counters after their ops."""
    new = counts.copy()
    for op in ops:
        if op[0] == "count":
            new[op[1]] = new.get(op[1], 0) + op[2]
        else:
            new = {k: n for k, n in new.items() if k != op[1] and not k.startswith(op[1] + ":")}
    return new

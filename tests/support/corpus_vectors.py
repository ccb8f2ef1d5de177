"""The vectors in tests/corpus: what has to be refused, what has to be accepted, and what may be either.

`{"$gen": …}` stands for a generated input: repeat, list, nest, keys, hex, join.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

CORPUS_FOLDER = Path(__file__).parents[1] / "corpus"


class CorpusVector(NamedTuple):
    """One input and what is expected of whoever judges it."""

    id: str
    input: Any
    expected: str
    why: str


def read_vectors(name: str) -> list[CorpusVector]:
    """The vectors of one file, inputs still unexpanded."""
    found = json.loads((CORPUS_FOLDER / f"{name}.json").read_text(encoding="utf-8"))["vectors"]
    return [CorpusVector(v["id"], v["input"], v["expected"], v["why"]) for v in found]


def expand_input(value: Any) -> Any:
    """The input itself; a `hex` one is bytes."""
    if not isinstance(value, dict) or set(value) != {"$gen"}:
        return value
    g = value["$gen"]
    match g["kind"]:
        case "repeat":
            return g.get("prefix", "") + g["unit"] * g["count"] + g.get("suffix", "")
        case "list":
            return [g["item"]] * g["count"]
        case "nest":
            return g["open"] * g["depth"] + g["core"] + g["close"] * g["depth"]
        case "keys":
            return "{" + ",".join(f'"k{n}":1' for n in range(g["count"])) + g.get("tail", "") + "}"
        case "hex":
            return bytes.fromhex(g["hex"])
        case "join":
            return "".join(map(expand_input, g["parts"]))
        case kind:
            raise AssertionError(f"a kind nobody knows: {kind}")


def vector_line(vector: CorpusVector) -> bytes:
    """A vector as a line of JSON; bytes that are no text stay what they are, inside the string."""
    value = expand_input(vector.input)
    if isinstance(value, bytes):
        text = json.dumps(value.decode("latin-1"), ensure_ascii=False).encode("latin-1")
        return b'{"id":%b,"input":%b}\n' % (json.dumps(vector.id).encode(), text)
    return json.dumps({"id": vector.id, "input": value}).encode() + b"\n"

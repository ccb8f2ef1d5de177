"""Tests that change the product they test, and leave it so: in JavaScript, Go, Ruby and Elixir.

A stub that its runner takes back, and a store beside which the old value is put back, are ordinary.
**Invariant:** pure; linear in the text but for a bounded number of names.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from steersman.contracts.workspace import Text
from steersman.judges.blocks import Block, around
from steersman.judges.infrastructure import is_test_file

ALL = "changes it for everybody"
_NAMES = 200
_MOST = 1_000
_STORE = r"\s*(?:[-+*/%&|^]|<<|>>|&&|\|\||\?\?|\*\*)?=(?![=>])"
_PATH = r"(?:\s*\??\.\s*\w+|\[[^\]\n]{1,80}\])"

# ── JavaScript ──────────────────────────────────────────────────────────────────────────────────────────────────────

_WHOLE = re.compile(
    r"^[ \t]*(?:const|let|var)\s+(?P<a>\w+)\s*=\s*(?:await\s+import|require)\s*\(\s*['\"`](?P<x>[^'\"`\n]{1,200})"
    r"|^import\s+(?:\*\s+as\s+)?(?P<b>\w+)[^'\"`;]{0,300}['\"`](?P<y>[^'\"`\n]{1,200})",
    re.MULTILINE,
)
_PARTS = re.compile(
    r"^(?:[ \t]*(?:const|let|var)\s*\{(?P<a>[^{}]{1,1000})\}\s*=\s*(?:await\s+import|require)\s*\(\s*"
    r"|import\s+(?:\w+\s*,\s*)?\{(?P<b>[^{}]{1,1000})\}\s*from\s*)['\"`]\.",
    re.MULTILINE,
)
_PART = re.compile(r"\w+\s*(?::|\bas\b)\s*(?P<name>\w+)|(?P<plain>\w+)")
_REQUIRED = re.compile(rf"\brequire\s*\(\s*['\"`][^'\"`\n]{{1,200}}['\"`]\s*\){_PATH}{{1,8}}{_STORE}")
_STUB = re.compile(r"\s*(?:jest|vi)\s*\.\s*(?:fn|spyOn)\s*\(")
_GIVEN = re.compile(r"\s*(\w+)\b")
# Such a file runs in a world of its own: its runner loads the product again for each.
_ALONE = re.compile(
    r"^import\b[^'\"`]{0,300}['\"`](?:vitest|@jest/globals)['\"`]|^jest\.\w+\s*\(", re.MULTILINE
)
_SUITE = re.compile(r"\b(?:describe|context|suite|it|test|specify)(?:\.\w+)*\s*\(")


def script_stores(text: str) -> list[tuple[int, str]]:
    """Stores of a JavaScript test into what it imports."""
    found = [m.end() for m in islice(_REQUIRED.finditer(text), _MOST)]
    if _ALONE.search(text):
        return [(at, ALL) for at in found]
    whole = {
        m["a"] or m["b"]: (m["x"] or m["y"]).startswith(".") for m in islice(_WHOLE.finditer(text), _NAMES)
    }
    own = {name for name, mine in whole.items() if mine} | set(islice(_parts(text), _NAMES))
    found += _top(text, set(whole) - own)
    found += _anywhere(text, own)
    return [(at, ALL) for at in found]


def _parts(text: str) -> Iterator[str]:
    for m in _PARTS.finditer(text):
        yield from (part["name"] or part["plain"] for part in _PART.finditer(m["a"] or m["b"]))


def _top(text: str, names: set[str]) -> list[int]:
    """Into another's package: only in the first column, since an adjusted setting inside a test is ordinary."""
    if not names:
        return []
    stores = re.compile(rf"^(?:{_any(names)})(?:\.default)?{_PATH}{_STORE}", re.MULTILINE)
    return [m.end() for m in islice(stores.finditer(text), _MOST) if not _STUB.match(text, m.end())]


def _anywhere(text: str, names: set[str]) -> list[int]:
    """Into the product: wherever it is, unless it is put back in the same suite."""
    if not names:
        return []
    words = _any(names)
    given = (
        rf"\bObject\.(?:assign|defineProperty|defineProperties|setPrototypeOf)\s*\(\s*(?:{words})\b(?!\s*\()"
    )
    stub = rf"(?P<stub>\b(?:sinon|sandbox)\.(?:stub|replace)\s*\(\s*(?:{words})\b)"
    stores = re.compile(
        rf"(?<![\w.$'\"`])(?P<what>(?:{words}){_PATH}{{1,8}}){_STORE}|{given}|{stub}|\bdelete\s+(?:{words}){_PATH}"
    )
    found = [m for m in islice(stores.finditer(text), _MOST) if not _STUB.match(text, m.end())]
    blocks = around(text, "js", [m.start() for m in found]) if found else {}
    restored = _restored(text, words, found)
    stubs = re.search(r"\brestore\b", text) is not None
    return [
        m.end()
        for m in found
        if not (stubs if m["stub"] else m["what"] in restored)
        or not any(_SUITE.search(b.head) for b in blocks[m.start()])
    ]


def _restored(text: str, words: str, stores: list[re.Match[str]]) -> set[str]:
    """What is kept under a name and put back from it."""
    keeps = re.finditer(rf"\b(\w+)\s*=\s*((?:{words}){_PATH}{{1,8}})\s*(?:[;,}}\n]|$)", text)
    kept = {(m[2], m[1]) for m in keeps}
    return {
        m["what"] for m in stores if (given := _GIVEN.match(text, m.end())) and (m["what"], given[1]) in kept
    }


def _any(names: set[str]) -> str:
    return "|".join(sorted(map(re.escape, names))[:_NAMES])


# ── Go ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_GO_VARS = re.compile(
    r"^var\s+(?P<names>\w+(?:\s*,\s*\w+)*)|^var\s*\((?P<group>.*?)^\)", re.MULTILINE | re.DOTALL
)
_GO_NAMES = re.compile(r"^[ \t]*(?P<names>\w+(?:\s*,\s*\w+)*)(?=\s|=|$)", re.MULTILINE)
_GO_IMPORT = re.compile(r"^(?:import\s+|[ \t]+)(?P<alias>\w+\s+)?\"(?P<path>[\w./~-]+)\"", re.MULTILINE)
_BODY = 32 << 10  # characters of a function in which a restore is looked for
_GO_OPEN = frozenset({"os.Args", "flag.CommandLine"})


def go_stores(path: str, text: str, texts: Mapping[str, Text]) -> list[tuple[int, str]]:
    """Stores of a Go test into variables of the package, or of another, that are not put back when it ends."""
    names = {n for p, t in texts.items() if _same_package(path, p) for n in _go_variables(t.content)}
    words = _any(names) or r"(?!)"
    others = {
        m["path"].rpartition("/")[2] if not m["alias"] else m["alias"].strip()
        for m in _GO_IMPORT.finditer(text)
    }
    outside = rf"(?:{_any(others) or '(?!)'})\.[A-Z]\w*"
    stores = re.compile(
        rf"(?:^|[;{{,])[ \t]*(?P<what>(?:{words})\b|{outside}\b)(?:\.\w+|\[[^\]\n]{{1,80}}\])*"
        rf"(?:(?:\s*,\s*[\w.]+){{0,8}}{_STORE}|\+\+|--)",
        re.MULTILINE,
    )
    found = [m for m in islice(stores.finditer(text), _MOST) if m["what"] not in _GO_OPEN]
    blocks = around(text, "go", [m.start("what") for m in found]) if found else {}
    heads: dict[tuple[Block | None, str], set[str]] = {}
    for m in found:
        within = blocks[m.start("what")]
        heads.setdefault((within[0] if within else None, m["what"]), set()).update(b.head for b in within)
    left = {key for key, around_it in heads.items() if not _put_back(text, *key, around_it)}
    return [
        (m.end(), f"changes {m['what']} for everybody")
        for m in found
        if (next(iter(blocks[m.start("what")]), None), m["what"]) in left
    ]


def _same_package(test: str, path: str) -> bool:
    return (
        path.endswith(".go") and path.rpartition("/")[0] == test.rpartition("/")[0] and not is_test_file(path)
    )


def _go_variables(text: str) -> Iterator[str]:
    for m in _GO_VARS.finditer(text):
        groups = [m["names"]] if m["names"] else [g["names"] for g in _GO_NAMES.finditer(m["group"])]
        yield from (name for group in groups for name in re.findall(r"\w+", group) if name != "_")


def _put_back(text: str, function: Block | None, what: str, heads: set[str]) -> bool:
    """In its function the name is another's, or something that runs at its end sets it again."""
    if function is None:
        return False
    body = text[function.begin : min(function.end, function.begin + _BODY)]
    word, root = re.escape(what), re.escape(what.partition(".")[0])
    local = rf"(?<![\w.]){root}\b[^\n=;:]*:=|\bvar\s+{root}\b"
    given = rf"\bfunc\b.*[(,]\s*{root}\b(?:\s*,\s*\w+)*\s+[\w*\[]"
    if re.search(local, body) or any(re.search(given, head) for head in heads):
        return True
    later = r"(?:\bdefer\s+func|\.Cleanup\s*\(\s*func|\breturn\s+func)\b"
    return re.search(rf"{later}[^}}]{{0,1000}}(?<![\w.]){word}\b[^\n=]*=", body) is not None


# ── Ruby and Elixir ─────────────────────────────────────────────────────────────────────────────────────────────────

_RUBY = re.compile(
    r"^(?P<depth>[ \t]*)(?:class|module)\s+(?:::)?(?:\w+::){0,8}(?P<name>[A-Z]\w*)[ \t]*(?:;|\n\s*?(?=[ \t]*\S))"
    r"(?=(?P<body>[^\n]*))",
    re.MULTILINE,
)
_RUBY_OWN = re.compile(r"\s*(?:def|define_method|alias|alias_method|attr_\w+|prepend|include|class\s*<<)\b")
_ELIXIR = re.compile(r"^[ \t]*defmodule\s+(?:\w+\.){0,8}(?P<name>[A-Z]\w*)\s+do\b(?P<body>)", re.MULTILINE)
_REOPENED = {"ruby": (_RUBY, ".rb"), "beam": (_ELIXIR, ".ex")}


def reopened(language: str, text: str, base: frozenset[str]) -> list[tuple[int, str]]:
    """Classes that a test opens again, and not only to stand in their namespace, and that the product has in a file
    of their name."""
    pattern, ending = _REOPENED[language]
    opened = [
        m for m in islice(pattern.finditer(text), _MOST) if language == "beam" or _RUBY_OWN.match(m["body"])
    ]
    wanted = {_file(m["name"]) + ending: m for m in opened}
    there = {name for p in base if (name := p.rpartition("/")[2]) in wanted and not is_test_file(p)}
    return [(m.end("name"), f"opens {m['name']} again") for name, m in wanted.items() if name in there]


def _file(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

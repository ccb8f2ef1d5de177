"""Where a program ends its own process, perhaps as a success, in languages that write blocks with braces.

A program may end itself: in `main`, in a handler of a signal, after a redirect. What counts is an end that comes while
tests run: when a file is loaded, always; in any other function where no check has a report that misses its end.
**Invariant:** pure; an exit code that is no plain number but zero may be zero.
"""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from steersman.judges.blocks import Block, around

END = "ends the process as a success"
_AT_LOAD = f"{END} when it is loaded"
_MOST = 1_000
_BAD = r"(?!-?\s*(?:0x0*)?[1-9]\w*\s*\)|EXIT_FAILURE\b)"  # a number that says failure
# fmt: off
EXITS = {
    "js": rf"\bprocess\s*(?:\??\.\s*exit|(?:\?\.)?\[\s*['\"`]exit['\"`]\s*\])\s*(?:\?\.)?\(\s*{_BAD}|\bDeno\.exit\s*\(\s*{_BAD}",
    "go": rf"\bos\.Exit\s*\(\s*(?!\w+\.Run\(\)){_BAD}",
    "rust": rf"\b(?:process|libc)::_?exit\s*\(\s*{_BAD}|(?<![\w.:])_?exit\s*\(\s*0(?:_?i32)?\s*\)",
    "jvm": rf"\bSystem\.exit\s*\(\s*{_BAD}|\bexitProcess\s*\(\s*{_BAD}|\bsys\.exit\s*\(\s*{_BAD}",
    "net": rf"\bEnvironment\.Exit\s*\(\s*{_BAD}",
    "php": r"\b(?:exit|die)\s*(?:\(\s*(?:0|\$\w+)?\s*\))?\s*;",
    "c": r"\b(?:_?exit|_Exit|quick_exit|ExitProcess)\s*\(\s*(?:0|EXIT_SUCCESS)\s*\)",
    "swift": r"\b_?exit\s*\(\s*(?:0|EXIT_SUCCESS)\s*\)",
    "dart": r"\bexit\s*\(\s*0\s*\)",
}
# An exit that was given another name, or its own without its module's.
_LOANS = {
    "js": re.compile(
        r"(?:\bconst|\blet|\bvar|\bimport)\s*\{(?P<names>[^{}]{0,300})\}\s*(?:=|\bfrom\b)\s*(?:process\b|(?:require\s*\(\s*)?['\"`](?:node:)?process['\"`])"
    ),
    "rust": re.compile(r"\buse\s+std::process::\{?(?P<names>[^;{}]{0,300})"),
}
# fmt: on
_LOAN = re.compile(r"\bexit\b(?:\s*(?::|\bas\b)\s*(?P<name>\w+))?")
_NAMED = re.compile(
    r"\bfunction\b\s*\*?\s*(?P<a>\w+)|(?P<b>\w+)\s*[:=]\s*(?:async\b\s*)?(?:function\b|\([^()]*\)\s*=>|\w+\s*=>)"
    r"|\b(?:fn|func|fun|def)\s+(?:\([^()]*\)\s*)?(?P<c>\w+)"
)
_NAMELESS = re.compile(r"\bfunction\b|=>\s*$")
_METHOD = re.compile(r"(?P<name>\w+)\s*(?:<[^<>]*>\s*)?\([^{}]*$")
_CONTROL = frozenset(
    {"if", "for", "while", "switch", "catch", "with", "elseif", "using", "lock", "match", "foreach"}
)
_FUNCTION = re.compile(r"=>\s*$|\bfunction\b|\)\s*(?::\s*[\w<>\[\]| ]{1,80})?\s*$")
_AT_ONCE = re.compile(r"^\s*;?\s*(?:await\s+|void\s+|[!+~]\s*)?\(+\s*(?:async\b\s*)?(?:function\b|\()")
_LOADED = re.compile(r"^\s*(?:static|init)\s*$|^\s*static\s+\w+\s*\(\s*\)\s*$|^func\s+init\b|^var\b")
_AT_THE_TOP = {
    "js": re.compile(
        r"^(?:export\s+default\s+|(?:const|let|var)\s+\w+\s*=\s*|(?:module\.)?exports(?:\.\w+)?\s*=\s*)?"
        r"(?:await\s+|void\s+)?\w+\s*\(",
        re.MULTILINE,
    ),
    "go": re.compile(r"^var\b[^\n]*|^func\s+init\s*\(\s*\)\s*\{[^}]*", re.MULTILINE),
}
_CALLED = re.compile(r"\b(\w+)\s*\(")
_ENTRY = re.compile(
    r"_?(?:main|\w+_main|main_\w+|cli|run|entry_?point|\w*usage|\w*shutdown|cmd_\w+|\w*(?:help|version))",
    re.IGNORECASE,
)
_SIGNAL = re.compile(r"(?:\.(?:on|once|addListener)|\baddSignalListener)\s*\(\s*['\"`]SIG")
_REDIRECT = re.compile(r"\b(?:header|http_response_code|wp_redirect|wp_safe_redirect)\s*\([^;]{0,200};\s*$")
_PROGRAMS = re.compile(r"(?:^|/)(?:s?bin/|(?:cli|server|main|start|www)\.\w+$)")


class _Exit(NamedTuple):
    at: int
    line: str  # up to the exit
    blocks: tuple[Block, ...]


def endings(path: str, text: str, language: str, *, test: bool, noticed: bool) -> list[tuple[int, str]]:
    """The places that may end the process as a success while tests run; `noticed`: every check misses its end."""
    found = [m for p in _patterns(text, language) for m in islice(re.finditer(p, text), _MOST)]
    blocks = around(text, language, [m.start() for m in found]) if found else {}
    file = _File(path, text, language, test=test, noticed=noticed)
    told = [
        (m.end(), file.what(_Exit(m.start(), _before(text, m.start()), blocks[m.start()]))) for m in found
    ]
    return [(at, what) for at, what in told if what]


def _patterns(text: str, language: str) -> Iterator[str]:
    if language not in EXITS or not re.search("exit|die", text, re.IGNORECASE):
        return
    yield EXITS[language]
    loans = _LOANS[language].finditer(text) if language in _LOANS else ()
    names = {one["name"] or "exit" for loan in loans for one in _LOAN.finditer(loan["names"])}
    if names:
        yield rf"(?<![\w.:])(?:{'|'.join(sorted(names)[:20])})\s*\(\s*{_BAD}"


def _before(text: str, at: int) -> str:
    return text[max(0, at - 300) : at].rpartition("\n")[2]


class _File:
    """One file, and what may end in it."""

    def __init__(self, path: str, text: str, language: str, *, test: bool, noticed: bool) -> None:
        self._test, self._noticed = test, noticed
        self._path, self._text, self._language = path, text, language

    def what(self, one: _Exit) -> str:
        """What an end means: when the file is loaded always something, else where nobody would miss the rest."""
        if not self._test and self._ordinary(one):
            return ""
        name = self._function(one)
        if name is None or name in self._called_at_load:
            return "" if self._program() and not self._test else _AT_LOAD
        ordinary = self._noticed or (not self._test and self._entry(name, one))
        return "" if ordinary else END

    def _ordinary(self, one: _Exit) -> bool:
        if self._language == "php":
            return bool(_REDIRECT.search(self._text[max(0, one.at - 300) : one.at]))
        return any(_SIGNAL.search(words) for words in (one.line, *(b.head for b in one.blocks)))

    def _function(self, one: _Exit) -> str | None:
        """The function that it stands in, outermost first; None where it runs when the file is loaded."""
        heads = [b.head for b in one.blocks]
        if any(_LOADED.search(head) for head in heads):
            return None
        if self._language == "js":
            return self._script(one)
        names = [name for head in heads if (name := _named(head))]
        return names[0] if names else None

    def _script(self, one: _Exit) -> str | None:
        # What begins in the first column is inside nothing but what its own line opens.
        near = len(one.line)
        blocks = [b for b in one.blocks if one.line[:1].isspace() or b.begin >= one.at - near]
        heads = [b.head for b in blocks if _FUNCTION.search(b.head) and not _AT_ONCE.search(b.head)]
        names = [name for head in heads if (name := _named(head)) is not None]
        if names or "=>" in one.line:
            return names[0] if names else ""
        return None

    @cached_property
    def _called_at_load(self) -> frozenset[str]:
        """The functions that run when the file is loaded."""
        lines = _AT_THE_TOP.get(self._language)
        spoken = lines.finditer(self._text) if lines else ()
        return frozenset(name for m in spoken for name in _CALLED.findall(m[0]))

    def _program(self) -> bool:
        """A file that is started and not loaded."""
        return self._language == "js" and _PROGRAMS.search(self._path) is not None

    def _entry(self, name: str, one: _Exit) -> bool:
        if self._language == "go":
            # Nobody can import such a package, and go's own tests of it do not let themselves be ended.
            return re.search(r"^package\s+main\b", self._text, re.MULTILINE) is not None
        outermost = bool(one.blocks) and _named(one.blocks[0].head) == name
        plain = _ENTRY.fullmatch(name) is not None
        return self._program() or (plain and (outermost or name.casefold() == "main"))


@lru_cache(maxsize=2048)
def _named(head: str) -> str | None:
    """The function that a head opens: nothing for one without a name, None where it opens none."""
    if found := _NAMED.search(head):
        return found["a"] or found["b"] or found["c"]
    if _NAMELESS.search(head):
        return ""
    method = _METHOD.search(head)
    return method["name"] if method and method["name"] not in _CONTROL else None

"""Memories: what is kept of a text, the words it is found by, and what a plan is given of them.

Words are taken apart here and nowhere else, so that every store finds the same. Text in Chinese, Japanese or Korean has
no spaces: it is found by pairs of characters.
**Invariant:** pure; what is kept holds no secret, and its id is its content.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

import msgspec

from steersman.contracts.planning.context import Memory, MemoryPack, Recalled
from steersman.contracts.planning.words import Scope
from steersman.errors import UserError
from steersman.judges.patterns import later
from steersman.judges.planning.hidden import hidden
from steersman.judges.text import well_formed
from steersman.kernel.canonical import digest_of

SCOPES: tuple[Scope, ...] = ("project", "repo", "task", "agent")
EVERYWHERE: tuple[Scope, ...] = ("project", "repo")  # of these a plan is told even where no word fits
MOST_TERMS = 64
MOST_PACKED = 20
LONGEST_WORD = 64  # characters that are compared
SHORTEST_START = 4  # characters of a word that also finds longer ones
_WORD = re.compile(r"[^\W_]+")
_PAIRED = later(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def remembered(
    text: str,
    *,
    scope: str = "project",
    subject: str = "",
    tags: Iterable[str] = (),
    source: str = "",
    created_at: str,
    known: tuple[str, ...] = (),
) -> Memory:
    """A memory as it is kept: without secrets, named by its scope, subject and text; UserError where it is none."""

    def clean(words: str) -> str:
        return well_formed(hidden(words, known)).strip()

    body, about = clean(text), clean(subject)
    if scope in ("task", "agent") and not about:
        raise UserError(f"a memory of scope {scope} is about one {scope}: name it with --subject NAME")
    raw = {
        "id": f"mem_{digest_of([scope, about, body])[:12]}",
        "scope": scope,
        "subject": about,
        "text": body,
        "tags": sorted({tag for given in tags if (tag := clean(given))}),
        "source": clean(source),
        "created_at": created_at,
    }
    try:
        return msgspec.convert(raw, Memory)
    except msgspec.ValidationError as error:
        raise UserError(f"this cannot be kept as a memory: {error}; change that and try again") from None


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in their order, as they are compared: without case, without forms of width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(piece[:LONGEST_WORD] for run in _WORD.findall(folded) for piece in _pieces(run))


def _pieces(run: str) -> Iterator[str]:
    """A word as it is; where it is written without spaces each pair of characters, and its last one."""
    at = 0
    for found in _runs(run):
        if found.start() > at:
            yield run[at : found.start()]
        paired, at = found[0], found.end()
        yield from (paired[n : n + 2] for n in range(len(paired)))
    if at < len(run):
        yield run[at:]


def _runs(text: str) -> Iterator[re.Match[str]]:
    """What of a text is written without spaces."""
    return iter(()) if text.isascii() else _PAIRED.finditer(text)


class Term(msgspec.Struct, frozen=True):
    """A word that is looked for; `begins`: whatever begins with it is found too."""

    word: str
    begins: bool


def terms_of(query: str) -> tuple[Term, ...]:
    """What a question looks for, each word once. A pair is looked for as it is, a lone character by its pairs."""
    found = dict.fromkeys(words_of(query))
    for run in _runs(unicodedata.normalize("NFKC", query).casefold()):
        if len(run[0]) > 1:
            found.pop(run[0][-1], None)  # a longer run's last character is in its last pair
    return tuple(Term(word, begins=_starts(word)) for word in list(found)[:MOST_TERMS])


def _starts(word: str) -> bool:
    paired = not word.isascii() and _PAIRED.fullmatch(word)
    return len(word) == 1 if paired else len(word) >= SHORTEST_START


def order(rank: int, memory: Memory) -> tuple[int, tuple[int, ...], str]:
    """Where a memory stands among others: by how well it fits, then the younger first, then by name."""
    return rank, tuple(-ord(char) for char in memory.created_at), memory.id


def packed(
    query: str,
    project_id: str,
    scopes: tuple[Scope, ...],
    threshold: int,
    fitting: Iterable[Memory],
    rest: Iterable[Memory],
) -> MemoryPack:
    """What a plan is given: those that fit, then others that hold everywhere, as far as there is room."""
    wider = (memory for memory in rest if memory.scope in EVERYWHERE)
    chosen = {memory.id: memory for memory in (*fitting, *wider)}
    return MemoryPack(
        project_id=project_id,
        query=well_formed(query)[:4000],
        scopes=scopes,
        threshold=threshold,
        memories=tuple(sorted(map(_recalled, [*chosen.values()][:MOST_PACKED]), key=lambda m: m.id)),
    )


def _recalled(memory: Memory) -> Recalled:
    return Recalled(
        id=memory.id, scope=memory.scope, subject=memory.subject, text=memory.text, tags=memory.tags
    )

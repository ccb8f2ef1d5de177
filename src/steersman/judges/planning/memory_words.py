"""Memories: the text that is kept, the words that find it, and the memories that a plan receives.

Only this module splits texts into words, so every store finds the same memories. Chinese, Japanese and Korean texts have
no spaces, so pairs of characters find them.
**Invariant:** pure. A kept text holds no secret, and its id depends only on its content.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

import msgspec

from steersman.contracts.planning.context import MemoryPack, MemoryRecord, RecalledMemory
from steersman.contracts.planning.words import MemoryScope
from steersman.errors import UserError
from steersman.judges.redaction.redact import mask_secrets
from steersman.judges.text import escape_surrogates, lazy_pattern
from steersman.kernel.canonical import digest_of

MEMORY_SCOPES: tuple[MemoryScope, ...] = ("project", "repo", "task", "agent")
# A plan receives these even if no word fits.
PROJECT_WIDE_SCOPES: tuple[MemoryScope, ...] = ("project", "repo")
MAX_SEARCH_TERMS = 64
MAX_PACKED_MEMORIES = 20
MAX_WORD_LENGTH = 64  # characters that are compared
MIN_PREFIX_LENGTH = 4  # characters of a word that also finds longer ones
_WORD_RUN = re.compile(r"[^\W_]+")
_UNSPACED_SCRIPT = lazy_pattern(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def build_memory_record(
    text: str,
    *,
    scope: str = "project",
    subject: str = "",
    tags: Iterable[str] = (),
    source: str = "",
    created_at: str,
    known: tuple[str, ...] = (),
) -> MemoryRecord:
    """A memory as it is kept: without secrets, named by its scope, subject and text; UserError where it is none."""

    def clean_text(words: str) -> str:
        return escape_surrogates(mask_secrets(words, known)).strip()

    body, cleaned_subject = clean_text(text), clean_text(subject)
    if scope in ("task", "agent") and not cleaned_subject:
        raise UserError(f"a memory of scope {scope} is about one {scope}: name it with --subject NAME")
    raw = {
        "id": f"mem_{digest_of([scope, cleaned_subject, body])[:12]}",
        "scope": scope,
        "subject": cleaned_subject,
        "text": body,
        "tags": sorted({tag for raw_tag in tags if (tag := clean_text(raw_tag))}),
        "source": clean_text(source),
        "created_at": created_at,
    }
    try:
        return msgspec.convert(raw, MemoryRecord)
    except msgspec.ValidationError as error:
        raise UserError(f"this cannot be kept as a memory: {error}; change that and try again") from None


def split_memory_words(text: str) -> tuple[str, ...]:
    """The words of a text in their order, as they are compared: without case, without forms of width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(
        piece[:MAX_WORD_LENGTH] for run in _WORD_RUN.findall(folded) for piece in _split_word_run(run)
    )


def _split_word_run(run: str) -> Iterator[str]:
    """A word as it is; where it is written without spaces each pair of characters, and its last one."""
    position = 0
    for match in _find_unspaced_runs(run):
        if match.start() > position:
            yield run[position : match.start()]
        paired, position = match[0], match.end()
        yield from (paired[n : n + 2] for n in range(len(paired)))
    if position < len(run):
        yield run[position:]


def _find_unspaced_runs(text: str) -> Iterator[re.Match[str]]:
    """What of a text is written without spaces."""
    return iter(()) if text.isascii() else _UNSPACED_SCRIPT.finditer(text)


class SearchTerm(msgspec.Struct, frozen=True):
    """A word that is looked for; `begins`: whatever begins with it is found too."""

    word: str
    begins: bool


def build_search_terms(query: str) -> tuple[SearchTerm, ...]:
    """What a question looks for, each word once. A pair is looked for as it is, a lone character by its pairs."""
    words = dict.fromkeys(split_memory_words(query))
    for run in _find_unspaced_runs(unicodedata.normalize("NFKC", query).casefold()):
        if len(run[0]) > 1:
            words.pop(run[0][-1], None)  # a longer run's last character is in its last pair
    return tuple(SearchTerm(word, begins=_is_prefix_term(word)) for word in list(words)[:MAX_SEARCH_TERMS])


def _is_prefix_term(word: str) -> bool:
    is_unspaced = not word.isascii() and _UNSPACED_SCRIPT.fullmatch(word)
    return len(word) == 1 if is_unspaced else len(word) >= MIN_PREFIX_LENGTH


def memory_sort_key(rank: int, memory: MemoryRecord) -> tuple[int, tuple[int, ...], str]:
    """Where a memory stands among others: by how well it fits, then the younger first, then by name."""
    return rank, tuple(-ord(char) for char in memory.created_at), memory.id


def build_memory_pack(
    query: str,
    project_id: str,
    scopes: tuple[MemoryScope, ...],
    threshold: int,
    fitting: Iterable[MemoryRecord],
    rest: Iterable[MemoryRecord],
) -> MemoryPack:
    """What a plan is given: those that fit, then others that hold everywhere, as far as there is room."""
    project_wide = (memory for memory in rest if memory.scope in PROJECT_WIDE_SCOPES)
    chosen = {memory.id: memory for memory in (*fitting, *project_wide)}
    return MemoryPack(
        project_id=project_id,
        query=escape_surrogates(query)[:4000],
        scopes=scopes,
        threshold=threshold,
        memories=tuple(
            sorted(map(_recall_memory, [*chosen.values()][:MAX_PACKED_MEMORIES]), key=lambda m: m.id)
        ),
    )


def _recall_memory(memory: MemoryRecord) -> RecalledMemory:
    return RecalledMemory(
        id=memory.id, scope=memory.scope, subject=memory.subject, text=memory.text, tags=memory.tags
    )

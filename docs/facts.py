"""The page on which files the scanner reads: from the readers' own tables."""

from collections.abc import Iterable, Iterator

from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.generic import UNREAD_MANIFEST_READER
from steersman.judges.facts.choice import EXCLUDED_DIRECTORIES, LANGUAGE_BY_ENDING, LOCK_FILE_READER
from steersman.judges.facts.finding import FactReader


def facts_page(notice: str) -> str:
    """Every ecosystem with its readers, the languages, and what is left out."""
    parts = [f"{notice}\n\n# Files that the scanner reads", *_ecosystems(), *_languages()]
    left = ", ".join(f"`{name}`" for name in sorted(EXCLUDED_DIRECTORIES))
    parts.append(f"## Left out\n\nFolders of these names, at any depth: {left}.")
    return "\n\n".join(parts) + "\n"


def _ecosystems() -> Iterator[str]:
    yield "Names are compared without case; `*` is any part. Some files count only in the places where their tool looks."
    rows = [
        _row(each.name, [reader for reader in each.fact_readers if reader is not UNREAD_MANIFEST_READER])
        for each in ECOSYSTEMS
    ]
    rows.append(_row("lock files", [LOCK_FILE_READER]))
    rows.append(_row("named, but not read", [UNREAD_MANIFEST_READER]))
    yield "| ecosystem | files |\n|---|---|\n" + "\n".join(rows)


def _row(about: str, readers: Iterable[FactReader]) -> str:
    names = dict.fromkeys(name for reader in readers for name in reader.names.split())
    return f"| {about} | {' '.join(f'`{name}`' for name in names)} |"


def _languages() -> Iterator[str]:
    by: dict[str, list[str]] = {}
    for ending, language in LANGUAGE_BY_ENDING.items():
        by.setdefault(language, []).append(f"`.{ending}`")
    rows = "\n".join(f"| {language} | {' '.join(endings)} |" for language, endings in sorted(by.items()))
    yield f"## Languages\n\n| language | endings |\n|---|---|\n{rows}"

"""The page on which files the scanner reads: from the readers' own tables."""

import importlib
import pkgutil
from collections.abc import Iterator

from steersman.judges import facts
from steersman.judges.facts.choice import EXCLUDED_DIRECTORIES
from steersman.judges.facts.languages import LANGUAGE_BY_ENDING


def facts_page(notice: str) -> str:
    """Every module with its readers, the languages, and what is left out."""
    parts = [f"{notice}\n\n# Files that the scanner reads", *_modules(), *_languages()]
    left = ", ".join(f"`{name}`" for name in sorted(EXCLUDED_DIRECTORIES))
    parts.append(f"## Left out\n\nFolders of these names, at any depth: {left}.")
    return "\n\n".join(parts) + "\n"


def _modules() -> Iterator[str]:
    yield "Names are compared without case; `*` is any part. Some files count only in the places where their tool looks."
    yield "| kind of project | files |\n|---|---|\n" + "\n".join(_rows())


def _rows() -> Iterator[str]:
    for found in pkgutil.iter_modules(facts.__path__):
        module = importlib.import_module(f"{facts.__name__}.{found.name}")
        readers = next((value for key, value in vars(module).items() if key.endswith("_READERS")), ())
        if readers and found.name != "choice":
            about = (module.__doc__ or "").strip().partition(":")[0].partition("\n")[0].rstrip(".")
            names = dict.fromkeys(name for reader in readers for name in reader.names.split())
            yield f"| {about} | {' '.join(f'`{name}`' for name in names)} |"


def _languages() -> Iterator[str]:
    by: dict[str, list[str]] = {}
    for ending, language in LANGUAGE_BY_ENDING.items():
        by.setdefault(language, []).append(f"`.{ending}`")
    rows = "\n".join(f"| {language} | {' '.join(endings)} |" for language, endings in sorted(by.items()))
    yield f"## Languages\n\n| language | endings |\n|---|---|\n{rows}"

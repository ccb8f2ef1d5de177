"""The machine of the page `docs/how-to/write-a-machine.md`, installed from its code blocks and from nothing else."""

import importlib
import re
import sys
import tomllib
from pathlib import Path

from steersman.kernel.machine import Machine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-a-machine.md"
_FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read_page_files() -> dict[str, str]:
    """The files of the page by their paths."""
    return dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))


def install_letter_machine(place: Path) -> Path:
    """Writes the files of the page and the entry points of its pyproject.toml, as an installer does; the folder is for
    PYTHONPATH."""
    files = read_page_files()
    for name, text in {**files, "letter/__init__.py": ""}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = place / f"letter_machine-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
        for group, names in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    return place


def load_letter_machine(place: Path, change: tuple[str, str] = ("", "")) -> Machine:
    """The machine itself, with one text of its table replaced by another."""
    install_letter_machine(place)
    table, (old, new) = place / "letter" / "table.py", change
    text = table.read_text(encoding="utf-8")
    assert old in text
    table.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    sys.path.insert(0, str(place))
    try:
        machine: Machine = importlib.import_module("letter.table").MACHINE
    finally:
        sys.path.remove(str(place))
        for name in [name for name in sys.modules if name.partition(".")[0] == "letter"]:
            del sys.modules[name]
    return machine

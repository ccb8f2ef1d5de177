"""Reads the tables of each document, wording by wording, in the shape of its transcription.

Each reader returns the tables by their names in the transcription. `name` turns a wording into its identifier.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

Name = Callable[[str], str]
Tables = dict[str, Any]
MUST = re.compile(r"\bmust\b|\bnever\b|prohibited", re.IGNORECASE)


def read_roundtable(text: str, name: Name) -> Tables:
    """Specification 000."""
    parts = _split_sections(text, "## ")
    rows = [[cell.replace("`", "") for cell in cells] for cells in _read_rows(parts[2], "| `")]
    added = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\d\. EN.*", parts[4], re.MULTILINE)))
    return {
        "SECTIONS": _read_titles(text, "## ", name),
        "STATES": tuple(re.findall(r"^- `(\w+)`$", parts[1], re.MULTILINE)),
        "TRANSITIONS": tuple(
            (None if source == "null" else source, event, name(guard), name(action), to)
            for source, event, guard, action, to in rows
        ),
        "OUTCOMES": tuple(re.findall(r"^- `(\w+)`:", parts[3], re.MULTILINE)),
        "LEGACY": tuple(re.findall(r"^- `(\w+)`: EN legacy", parts[3], re.MULTILINE)),
        "ADDITIONS": tuple(word for word in added if not word.startswith("retry_")),
        "RETRY": tuple(word for word in added if word.startswith("retry_")),
    }


def read_coordinator(text: str, name: Name) -> Tables:
    """Specification 001."""
    heads = re.findall(r"^### (\d+)\. (\w+)(?: \((\w+).*\))?$", text, re.MULTILINE)
    parts = _split_sections(text, "### ")
    drawn = _read_arrows(_cut(text, "stateDiagram-v2", "```"))
    table = _cut(text, "| Transition | Guard Conditions | Failure Action |", "\n\n")
    loop = re.findall(r"\*\*(\w+) ↔ (\w+)\*\*: Max (\d+)", text)
    red = re.findall(
        r"^### RED LINE #(\d): (.*)\n- \*\*Enforced at\*\*: (\w+).*\n- \*\*Action\*\*: (.*)",
        text,
        re.MULTILINE,
    )
    states = [state for _, state, _ in heads]
    return {
        "SECTIONS": tuple((int(n), state) for n, state, _ in heads),
        "STATES": tuple(states),
        "FINAL": tuple(s for s in states if (s, "", None) in drawn),
        "CONDITIONAL": tuple(state for _, state, kind in heads if kind == "Conditional"),
        "FAILURES": tuple(state for _, state, kind in heads if kind == "Failure"),
        "DIAGRAM": tuple((s, label and name(label), to) for s, label, to in drawn if to),
        "GUARDS": tuple(_read_requirement(cells, name) for cells in _read_rows(table, "| ") if cells[0][0] != "-"),
        "STATE_GUARDS": tuple(
            (state, asked)
            for n, state in enumerate(states, start=1)
            if (asked := tuple(map(name, re.findall(r"^- ✅ (.*)$", parts[n], re.MULTILINE))))
        ),
        "BRANCHES": tuple(
            (state, name(condition), tuple(re.findall(r"\*\*([A-Z_]+)\*\*", then)))
            for n, state in enumerate(states, start=1)
            for condition, then in _read_branches(parts[n])
        ),
        "RED_LINES": tuple(
            (int(n), name(title), state, "".join(re.findall(r"→ (\w+)", action))) for n, title, state, action in red
        ),
        "LOOP": next((source, to, int(most)) for source, to, most in loop),
        "MUSTS": tuple((section, name(line)) for section, line in _name_lines(text) if MUST.search(line)),
    }  # fmt: skip


def _read_requirement(cells: list[str], name: Name) -> tuple[Any, ...]:
    transition, conditions, failure = cells
    source, to = transition.split(" → ")
    joined = "any" if " OR " in conditions else "all"
    asked = tuple(name(words.lower()) for words in re.split(r", | OR ", conditions))
    targets = tuple(re.findall(r"→ (\w+)", failure))
    return source, to, joined, asked, targets or (() if failure.startswith("N/A") else (name(failure),))


def _read_branches(part: str) -> list[tuple[str, str]]:
    found = re.search(r"\*\*Failure Branch\*\*:((?:.*\n)(?:- .*\n)*)", part)
    return re.findall(r"(If .*?) → (.*)", found[1]) if found else []


def _name_lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line of specification 001 with the section that it stands in, as tests name it."""
    here = ""
    for line in text.splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ").strip()
            number, red = re.match(r"(\d+)\.", title), re.match(r"RED LINE #(\d)", title)
            here = f"§{number[1]}" if number else f"§Red Line #{red[1]}" if red else f"§{title}"
        yield here, line


def read_task(text: str, name: Name) -> Tables:
    """Specification 002."""
    drawn = _read_arrows(_cut(text, "stateDiagram-v2", "This diagram"))
    states = tuple(_cut(text, "**top-level phases**:", "`done`").split())
    titles = re.findall(r"^(3\.\d+) (\w+) → (.+)$", text, re.MULTILINE)
    moves = tuple((section, source, tuple(to.split(" / "))) for section, source, to in titles)
    regressions = _cut(text, "6. Allowed regressions", "7. Human override")
    following = tuple(itertools.pairwise(states))
    return {
        "SECTIONS": _read_numbers(text, name),
        "STATES": states,
        "TERMINAL": tuple(re.findall(r"^`(\w+)` is a terminal state", text, re.MULTILINE)),
        "DIAGRAM": tuple((s, label and name(label), to) for s, label, to in drawn),
        "TRANSITIONS": moves,
        "FORWARD": tuple(
            (source, to)
            for _, source, targets in moves
            for to in targets
            if (source, to) in following and "accept" not in states[: states.index(to)]
        ),
        "RULES": tuple((section, name(words)) for section, words in _read_rules(text)),
        "REGRESSIONS": tuple(re.findall(r"^\t•\t(\w+) → (\w+)", regressions, re.MULTILINE)),
        "COMMANDS": tuple(
            (state, "" if word == "(terminal)" else word)
            for state, word in re.findall(r"^(\w+)\t(/.*|\(terminal\))$", text, re.MULTILINE)
        ),
    }


def _read_rules(text: str) -> Iterator[tuple[str, str]]:
    """Every bullet, every number and every sentence that demands something, in sections 3 to 7, section by section."""
    part = "3. Transition rules" + _cut(text, "3. Transition rules", "8. CLI mapping")
    section = ""
    for line in part.splitlines():
        head = re.match(r"(\d(?:\.\d+)?)[. ]", line)
        section = head[1] if head else section
        demand = re.match(r"\t(?:•\t)?(.+)$", line)
        if demand:
            yield section, demand[1]
        elif line.startswith(("Always", "Terminal state", "Agents should", "/next")):
            yield section, line


def _read_numbers(text: str, name: Name) -> tuple[tuple[int, str], ...]:
    """The numbered titles of specification 002: two have the mark of a title, the others stand alone on a line."""
    titles = re.findall(r"^(?:# )?(\d)\. (\w.*)$", text, re.MULTILINE)
    return tuple((int(n), name(title)) for n, title in titles)


def read_feature(text: str, name: Name) -> Tables:
    """Specification 003."""
    parts = _split_sections(text, "## ")
    drawing = _cut(parts[2], "stateDiagram-v2", "```")
    members = dict(re.findall(r'state ".*" as (\w+) \{\s*(\w+)', drawing))
    states = [(code.strip("`"), phase) for _, code, phase, _ in _read_rows(parts[1], "| **")]
    rows = [[cell.strip("`") for cell in cells[:3]] + cells[3:] for cells in _read_rows(parts[3], "| `")]
    return {
        "SECTIONS": _read_titles(text, "## ", name),
        "STATES": tuple(
            (code, "" if phase == "-" else phase.removeprefix("Phase ").lower()) for code, phase in states
        ),
        "GATES": tuple(word.lower() for word in re.findall(r"\((\w+)/(\w+)/(\w+)\)", parts[1])[0]),
        "DIAGRAM": tuple(
            (source and members.get(source, source), label and name(label), members.get(to, to))
            for source, label, to in _read_arrows(drawing)
        ),
        "TRIGGERS": tuple((event, source, to, name(condition)) for event, source, to, condition in rows),
        "COMMANDS": tuple(
            (event, command) for event, *_, condition in rows for command in re.findall(r"`(/[\w-]+)`", condition)
        ),
        "FILE": "".join(re.findall(r"`(\w+\.md)`", parts[4])),
        "FIELDS": tuple(re.findall(r"^(\w+):", parts[4], re.MULTILINE)),
    }  # fmt: skip


def read_orchestrator(text: str, name: Name) -> Tables:
    """Specification 004."""
    parts = _split_sections(text, "## ")
    arrows = _read_arrows(parts[2])
    drawn = [("*" if source == "any_state" else source, label, to) for source, label, to in arrows]
    left = {source for source, _, _ in drawn}
    mentioned = dict.fromkeys(to for _, _, to in drawn)
    confidence = re.findall(r"`([\w/]+)`，`confidence < ([\d.]+)` 必进 `(\w+)`", parts[5])
    handed = _split_sections(parts[4], "### 4.")
    ordered = re.findall(r"`([^`]+ > [^`]+)`", parts[5])
    choices = re.findall(r"`[\w]+`（`(\w+(?:\|\w+)+)`）", handed[4])
    return {
        "SECTIONS": _read_titles(text, "## ", name),
        "STATES": tuple(mentioned),
        "FINAL": tuple(state for state in mentioned if state not in left),
        "DIAGRAM": tuple(_read_edge(source, label, to) for source, label, to in drawn),
        "ROLES": tuple(re.findall(r"^- `([\w/ ]+)`", parts[3], re.MULTILINE)),
        "REVIEWS": tuple(re.findall(r"^  - `([\w/ ]+)`", parts[3], re.MULTILINE)),
        "DELIVERABLES": tuple(
            (f"4.{n}", *part.splitlines()[0].split(" ", 1)[1].split(" -> "), _read_deliverables(part))
            for n, part in handed.items()
        ),
        "DECISIONS": tuple(choices[0].split("|")),
        "REVIEW_LEVELS": tuple(choices[1].split("|")),
        "CONFIDENCE": next((tuple(s.split("/")), float(least), to) for s, least, to in confidence),
        "RESUME_ORDER": tuple(map(name, ordered[0].split(" > "))),
        "FEEDBACK_CAP": next((s, int(n)) for s, n in re.findall(r"：`(\w+)` 同项.*最多 (\d+) 次", parts[5])),
        "EVIDENCE": re.findall(r"：`(\w+)` 中无证据 claim 一律 `(\w+)`", parts[5])[0],
    }  # fmt: skip


def _read_edge(source: str | None, label: str, to: str | None) -> tuple[Any, ...]:
    first, *guards = label.split(" && ")
    return source, tuple(first.split("|")) if first else (), tuple(guards), to


def _read_deliverables(part: str) -> tuple[tuple[str, str], ...]:
    needs = {"必需": "required", "建议": "recommended"}
    matches = re.findall(r"^- `([\w.\[\]]+)`(?:（(必需|建议))?", part, re.MULTILINE)
    return tuple((file, needs.get(need, "")) for file, need in matches)


def _cut(text: str, start: str, end: str) -> str:
    """What stands between two marks."""
    return text.partition(start)[2].partition(end)[0]


def _read_arrows(drawing: str) -> list[tuple[str | None, str, str | None]]:
    """Each arrow of a state diagram; its beginning and its end have no name."""
    matches = re.findall(r"^\s*(\S+) --> (\S+?)(?:: *(.*))?$", drawing, re.MULTILINE)
    return [(None if s == "[*]" else s, label, None if to == "[*]" else to) for s, to, label in matches]


def _read_rows(part: str, start: str) -> Iterator[list[str]]:
    """The cells of each table line that starts like this."""
    for line in part.splitlines():
        if line.startswith(start):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _split_sections(text: str, mark: str) -> dict[int, str]:
    """The parts of a document by the number in their titles."""
    parts = re.split(rf"^{re.escape(mark)}(?=\d)", text, flags=re.MULTILINE)[1:]
    return {int(re.match(r"\d+", part)[0]): part for part in parts}


def _read_titles(text: str, mark: str, name: Name) -> tuple[tuple[int, str], ...]:
    """The numbers and titles of a document's sections."""
    matches = re.findall(rf"^{re.escape(mark)}(\d+)\. (.*)$", text, re.MULTILINE)
    return tuple((int(n), name(title)) for n, title in matches)

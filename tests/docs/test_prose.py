"""What the prose says is so: promises, links, commands, files, decisions."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
from tests.support.cases import for_each_case
from tests.support.letter_package import load_letter_machine

from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.faces.cli.main import steersman_group
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.check import check_machine
from steersman.kernel.tape import read_entry, seal_entry
from steersman.ports.sandbox import NOT_ISOLATED

TOP = Path(__file__).resolve().parents[2]
LEFT_OUT = {".venv", ".git", ".steersman", "node_modules", "results", "src"}
PAGES = sorted(p for p in TOP.rglob("*.md") if not LEFT_OUT & set(p.relative_to(TOP).parts))

PROMISES = (
    "Transitions happen exactly once, in tape order. Effects happen at least once, each with an effect id; what may have run twice is shown, never hidden. Gates are answered exactly once.",
    "What is acknowledged is durable.",
    "Same tape → same state, for ever. Same planner input → byte-identical plan.",
    "Nothing is approved without evidence that steersman recorded itself for the tree as it is now, or an override by a named person with a reason, visible ever after.",
    "No answer is never an approval. An agent can never approve.",
    "One broken run never stops another from being read or run.",
)

FENCE = re.compile(r"^(`{3,})[^\n]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
OUR_PATH = re.compile(r"[a-z_]+(?:/[\w-][\w.-]*)*/?")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
REPLACES = re.compile(r"^Replaces (.+)\.$", re.MULTILINE)
REGISTRIES = (
    "pypi.org", "pythonhosted.org", "npmjs", "crates.io", "docker.io", "ghcr.io", "artifactory", "quay.io",
)  # fmt: skip
MACHINE_PATH = re.compile(r"(?<![\w.~$}>-])/(?:home|root|work|tmp|usr|Users|opt|mnt|private)/")


def test_the_readme_keeps_the_promises_word_for_word():
    """The README lists the six promises in these words and no others."""
    section = text_of(TOP / "README.md").split("## Promises\n", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(r"^(\d+)\. (.+)$", section, re.MULTILINE)
    assert listed == [(str(n), words) for n, words in enumerate(PROMISES, 1)]


@for_each_case("page", PAGES)
def test_every_relative_link_leads_somewhere(page):
    """A link to a file finds the file, and a link to a section finds its heading."""
    links = [link for link in LINK.findall(FENCE.sub("", text_of(page))) if "://" not in link]
    broken = [link for link in links if not leads(page, link)]
    assert broken == []


def leads(page, link):
    name, _, section = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists():
        return False
    return not section or section in {slug(h) for h in HEADING.findall(FENCE.sub("", text_of(target)))}


def slug(heading):
    words = re.sub(r"[^\w\- ]", "", heading.lower())
    return words.strip().replace(" ", "-")


@for_each_case("page", PAGES)
def test_every_command_and_option_exists(page):
    """`steersman …` in a page is a command of the command line, with options that it has."""
    wrong = {said: trouble for said in commands_in(page) if (trouble := unknown(said))}
    assert wrong == {}


def test_the_commands_are_found():
    """The search above finds commands: in blocks behind a prompt or not, and in running text."""
    found = commands_in(TOP / "README.md")
    assert {said.split()[1] for said in found} >= {"init", "run", "gates", "approve", "report", "demo"}
    assert all(map(unknown, ("steersman row", "steersman runs --al", "steersman audit glance")))
    assert not any(map(unknown, ("steersman --project DIR runs --all", 'steersman run "a -- b"')))


def commands_in(page):
    text = text_of(page)
    lines = [
        line.strip().removeprefix("$ ") for _, block in FENCE.findall(text) for line in block.splitlines()
    ]
    spans = SPAN.findall(FENCE.sub("", text))
    return sorted({said for said in (*lines, *spans) if re.match(r"steersman(?= [a-z\-])", said)})


def unknown(said):
    """What is wrong with a command line as it is written, or nothing."""
    words = shlex.split(said.split(" # ")[0].rstrip("…; "))[1:]
    known, command = option_names(steersman_group), steersman_group
    while words:
        word = words.pop(0)
        if word == "--":
            return ""  # what follows are words, not options
        if word.startswith("-") and len(word) > 1:
            if word.partition("=")[0] not in known:
                return f"no option {word}"
            if command is steersman_group and word == "--project":
                words = words[1:]
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None and (default := getattr(command, "default", "")):
                found = command.get_command(click.Context(command), default)
            if found is None:
                return f"no command {word}"
            command, known = found, known | option_names(found)
    return ""


def option_names(command):
    given = {
        name for p in command.params if isinstance(p, click.Option) for name in (*p.opts, *p.secondary_opts)
    }
    return given | {"-h", "--help"}


def test_every_command_has_a_page_to_find_it_on():
    """The README or a page of docs names each top command at least once."""
    prose = [p for p in PAGES if "reference" not in p.parts]
    named = {said.split()[1] for p in prose for said in commands_in(p)}
    assert set(steersman_group.list_commands(click.Context(steersman_group))) - named == set()


def test_the_architecture_names_files_that_are_there():
    """Every module in backticks in ARCHITECTURE.md and in the decisions exists, and every room is named."""
    source = TOP / "src" / "steersman"
    pages = [TOP / "ARCHITECTURE.md", *sorted((TOP / "docs" / "adr").glob("0*.md"))]
    named = {
        span for page in pages for span in SPAN.findall(FENCE.sub("", text_of(page))) if span.endswith(".py")
    }
    assert len(named) > 40
    assert sorted(name for name in named if not (source / name).is_file()) == []
    rooms = {p.name for p in source.iterdir() if (p / "__init__.py").is_file()}
    walked = text_of(TOP / "ARCHITECTURE.md")
    assert sorted(room for room in rooms if f"{room}/" not in walked) == []


def test_every_path_of_the_repository_exists():
    """A path in backticks that begins with one of our folders exists, below `src/steersman` or the top.

    Pages for users are left out: the paths in their examples are those of a user's project."""
    source = TOP / "src" / "steersman"
    folders = {p.name for top in (TOP, source) for p in top.iterdir() if p.is_dir()}
    pages = [TOP / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/glossary.md")]
    pages += [p for place in ("docs/adr", "docs/explanation") for p in sorted((TOP / place).glob("*.md"))]
    named = {
        (page, span)
        for page in pages
        for span in SPAN.findall(FENCE.sub("", text_of(page)))
        if OUR_PATH.fullmatch(span) and span.split("/")[0] in folders
    }
    assert len(named) > 100
    everywhere = {(p, s) for p in PAGES for s in SPAN.findall(text_of(p)) if s.startswith("src/steersman/")}
    missing = {
        f"{page.name}: {s}"
        for page, s in named | everywhere
        if not ((TOP / s).exists() or (source / s).exists())
    }
    assert sorted(missing) == []


def test_the_entry_in_the_architecture_is_a_real_one():
    """The example entry is a whole entry: it is read as one, and its canonical bytes have the hash the text names."""
    page = text_of(TOP / "ARCHITECTURE.md")
    (body,) = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    entry = read_entry(body.encode())
    shown, *_ = re.findall(r"own hash, `([0-9a-f]+)…`", page)
    assert seal_entry(entry).hash.startswith(shown)
    assert seal_entry(entry).body == canonical_bytes(json.loads(body))


def test_every_decision_is_kept_or_replaced():
    """Each ADR number from 0001 has its page or is named by a page that replaces it; the index lists the pages in order."""
    pages = sorted((TOP / "docs" / "adr").glob("[0-9]*.md"))
    numbers = {page.name[:4] for page in pages}
    replaced: set[str] = set()
    for page in pages:
        text = text_of(page)
        assert text.startswith(f"# {page.name[:4]} · "), page.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], (
            page.name
        )
        older = set(re.findall(r"\d{4}", "".join(REPLACES.findall(text))))
        assert all(number > page.name[:4] for number in older), page.name
        replaced |= older
    assert replaced.isdisjoint(numbers)
    assert sorted(numbers | replaced) == [f"{n:04}" for n in range(1, int(max(numbers)) + 1)]
    assert LINK.findall(text_of(TOP / "docs" / "adr" / "index.md")) == [p.name for p in pages]


def test_every_page_can_be_found_from_the_first():
    """From docs/index.md links lead to every page of docs."""
    seen, queue = set(), [TOP / "docs" / "index.md"]
    while queue:
        page = queue.pop()
        if page in seen:
            continue
        seen.add(page)
        links = (
            link.partition("#")[0] for link in LINK.findall(FENCE.sub("", text_of(page))) if "://" not in link
        )
        queue += [
            t
            for link in links
            if link and (t := (page.parent / link).resolve()).suffix == ".md" and t.is_file()
        ]
    written = {p for p in PAGES if p.is_relative_to(TOP / "docs") and "reference" not in p.parts}
    assert sorted(str(p.relative_to(TOP)) for p in written - seen) == []


@for_each_case("page", PAGES)
def test_no_registry_and_no_path_of_a_machine(page):
    """Pages name neither a package registry's host nor an absolute path of somebody's machine."""
    text = text_of(page)
    assert [host for host in REGISTRIES if host in text.lower()] == []
    assert MACHINE_PATH.findall(text) == []


def test_glossary_words_are_in_order_and_once():
    """Each topic of the glossary is sorted, no word has two rows, and every word in italics has one."""
    topics = [
        section
        for section in text_of(TOP / "docs" / "glossary.md").split("\n## ")[1:]
        if "\n| word |" in section
    ]
    tables = [
        [w for w in re.findall(r"^\| ([^|]+) \|", topic, re.MULTILINE) if w != "word"] for topic in topics
    ]
    words = [word for table in tables for word in table]
    assert len(tables) > 1
    assert tables == [sorted(table) for table in tables]
    assert sorted(words) == sorted(set(words))
    plurals = {
        form for word in words for form in (word, f"{word}s", f"{word}'s", word.replace("entry", "entries"))
    }
    italics = set(re.findall(r"\*([^*\n]+)\*", text_of(TOP / "docs" / "glossary.md")))
    assert sorted(italics - plurals - {"italics", "final"}) == []


def test_the_machine_of_the_how_to_is_sound(tmp_path):
    """The code of the page on machines builds, its check finds nothing, and without its cap a row is never taken."""
    found = check_machine(load_letter_machine(tmp_path / "as written"))
    assert found.findings == ()
    assert found.cases > 10
    without_cap = (
        "S.waiting, E.sent_back,         otherwise, S.writing, REWRITES,",
        "S.waiting, E.sent_back, otherwise, S.writing, None,",
    )
    uncapped = check_machine(load_letter_machine(tmp_path / "uncapped", without_cap))
    assert [f.kind for f in uncapped.findings] == ["row that is never taken"]


def test_the_tutorial_can_be_followed(tmp_path):
    """Typed in as it is written, the tutorial prints what it says: but for ids, times, hashes and folders."""
    page = text_of(TOP / "docs" / "tutorial" / "first-run.md")
    (written,) = set(RUN.findall(page))
    steps = list(followed(page))
    assert len(steps) > 12
    actual = spoken(typed_in(steps, written, tmp_path))
    remarks = [line for line in actual if NOT_ISOLATED in line]
    assert bool(remarks) == (not probe_sandbox().isolated)
    plain = [UNBOXED.sub("", line) for line in actual]
    assert list(filter(None, plain)) == spoken(line for step in steps for line in step[1:])


RUN = re.compile(r"\b\d{6}-[a-z0-9]{6}\b")
WRITE = re.compile(
    r"^Write `([^`]+)`:\n\n```\w+\n(.*?)^```$|^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
UNBOXED = re.compile(rf"( · |^#  |^){NOT_ISOLATED}: .*$")  # what is said on a machine without a sandbox
SHIFTING = re.compile(
    r"\b\d\d:\d\d:\d\d\b|\b[0-9a-f]{12,64}\b|\b[\d.]+ (?:ms|s|min)\b|\b\d+ of \d+ lines\b|\S*(?=/harbour/)"
)


def followed(page):
    """Every step in order: a file to write as a command, or a command with the lines it should print."""
    for name, content, console in WRITE.findall(page):
        if name:
            yield [f"cat > {shlex.quote(name)} <<'END OF FILE'\n{content}END OF FILE"]
        for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
            yield part.rstrip().splitlines()


def typed_in(steps, written, folder):
    known = f"RUN=$(steersman runs --json | {shlex.quote(sys.executable)} -c 'import json, sys; print(json.load(sys.stdin)[0][\"run\"])')"
    lines = [
        s[0].replace(written, "$RUN") + (f"\n{known}" if s[0].startswith("steersman run ") else "")
        for s in steps
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", "exec 2>&1\n" + "\n".join(lines)], cwd=folder, env=env, capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip
    return done.stdout.decode().rstrip().splitlines()


def spoken(lines):
    """Our own lines; what a check printed stands behind a bar, and another Python prints something else."""
    ours = (line for line in lines if line.strip() and not line.strip().startswith("│"))
    return [SHIFTING.sub("#", RUN.sub("RUN", line)).rstrip() for line in ours]


def text_of(page):
    return page.read_text(encoding="utf-8")

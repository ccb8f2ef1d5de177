"""Names of a run's files: relative, plain, one file on every file system, and nobody else's."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.artifact_names import (
    MAX_ARTIFACT_DEPTH,
    find_artifact_name_problem,
    find_copy_gate_reason,
    find_file_name_problem,
    find_name_collision,
    fold_file_name,
)

GOOD = [
    "a",
    "claims.json",
    "plan.files.json",
    "planning/planning.ai.json",
    "research/agent-1/summary.md",
    "code/diff.patch",
    "code/files/src/app.py",
    "code/files/src/größe.py",
    "笔记/计划.md",
    "_private/x",
    "v1.2+rc@x.txt",
    "x" * 200,
    "/".join("d" * MAX_ARTIFACT_DEPTH),
    "review/plan-review.json",
    "active_context.md",
    "evidence.json",
    "state.json.txt",
    "code/files",
    "code/files/pkg/__init__.py",
    "code/files/conftest.py",
    "code/files/package.json",
    *(
        f"code/files/{path}"
        for path in (
            ".gitignore", ".github/workflows/ci.yml", ".gitattributes", ".gitkeep", ".env.example", "_/__", "src/[id]/page.tsx",
            "app/(shop)/[...slug]/@modal/page.tsx", "src/routes/+page.svelte", "routes/$id.tsx", "{{cookiecutter.name}}/x.py",
            "my file.txt", "docs/read (1), R&D #2.md", "a=b!~x", "हिन्दी.md", "日本.md", "🚀.md", "a.git/x", "git/x", ".gits",
        )
    ),
]  # fmt: skip

BAD = {
    "is not a text": [None, 7, True, 1.5, [], ["a"], {"a": 1}, b"a"],
    "is empty": [""],
    "it is relative": ["/etc/passwd", "//x", "a//b", "a/", "/", "a/./b", ".", "..", "a/..", "../x", "a/../../x", "code/files/../x", "code/files/a/..", "code/files//x", "code/files/./x", "code/files/"],
    "a part is made of": [
        "~/x", "a~1", "C:\\x", "..\\x", "\\\\h\\s", "file:///x", "%2e%2e%2fx", "a\u2215b", "a\u2044b", "a:b", ".git/config",
        ".hidden", "...", "-rf", "--output=x", "+x", "@x", "$(x)", "`x`", "a;b", "a|b", "a&b", "a'b", 'a"b', "{0}", "a b",
        "a b", "a*", "a?", "[a]", "code/filesx/.gitignore", "Code/files/.gitignore", "files/my file.txt", "a,b", "a=b", "a!b", "a#b", "a^b", "a<b", "🚀", "__", "_", "_.x", "\u0301a", "a\ufe0f",
    ],
    "below code/files a part is made of": [
        f"code/files/{path}"
        for path in (
            "-rf", "a/-x", " a", "a ", "a /b", "~", "~/x", "~a", "git~1/x", "GIT~1", "a~2", "a\\b", "C:\\x", "a:b", "a:stream",
            ".git::$INDEX_ALLOCATION/x", "a*", "a?", 'a"b', "a<b", "a|b", "a;b", "a`b", "a'b", "a%2fb", "$(x)", "${x}", "$", "CONIN$",
            "{0.__class__}", "a^b", "a\u2215b", "a\u2044b", "\u0301a", "a\ufe0f", "a\u2800", "a\u034f", ".g\u0131t/x", ".\u0261it/config",
            "a/.gít",
        )
    ],
    "that folder is not the repository's": [
        "code/files/.git", "code/files/.GIT/config", "code/files/a/.Git/hooks/x", "code/files/.steersman/x", "code/files/.Steersman",
    ],
    "has a control or invisible character": [
        "code/files/.gi\u200ct/config", "code/files/a\u202eb", "code/files/a\nb", "code/files/a\u00a0b",
        "a\0b", "a\nb", "a\rb", "a\tb", "a\x1b]0;x\x07", "a\u202eb", "a\u200bb", "a\u2066b", "\ufeffa", "a\ud800b", "a\u00a0b",
        "a\u115fb", "a\u2028b", "a\x7fb", "a\u00adb", "a\U000e0041b", "a\ue000b", "a\u3000b",
    ],
    "look-alike or composed": ["e\u0301.md", "ａ.md", "．．／x", "ﬁle", "a²", "\u212b"],
    "ends with a dot": ["code/files/.git./x", "code/files/a.", "code/files/...", "a.", "a/b./c", "x.."],
    "is a device on Windows": ["CON", "con", "nul.txt", "a/aux.c", "COM1", "lpt9.x", "Prn.tar.gz", "code/files/con .txt", "code/files/a/NUL"],
    "is longer than": ["x/" * 600 + "x", "日" * 400],
    "has a part of more than 200 bytes": ["x" * 201, "a/" + "é" * 101],
    "has a file of a run for a folder": ["claims.json/x", "Evidence.json/a/b", "code/diff.patch/x", "planning/planning.ai.json/x"],
    "is deeper than": ["/".join("d" * (MAX_ARTIFACT_DEPTH + 1))],
    "is written by steersman alone": [
        "state.json", "State.JSON", "state.json/x", "STATE.json/a/b", "tape.jsonl/x", "steersman.toml/x", "steersman.db-wal", "tape.jsonl", "accept/decision.json", "ACCEPT/x", "accept", "steersman.toml", "keys/x",
    ],
    "would be obeyed by a tool": [
        "conftest.py", "sitecustomize.py", "x/package.json", "Makefile", "setup.py", "evil.pth", "AGENTS.md", "x/CLAUDE.md",
        "code/filesx/conftest.py", "lib.so", "node_modules/x.js",
    ],
}  # fmt: skip


@for_each_case("name", GOOD)
def test_plain_names_are_accepted(name):
    """Ordinary names, in any script, up to the limits."""
    assert find_artifact_name_problem(name) is None


@for_each_case(("words", "name"), [(words, name) for words, names in BAD.items() for name in names])
def test_other_names_are_refused_with_the_reason(words, name):
    """Everything else is refused, and the reason says which rule it breaks."""
    assert words in (find_artifact_name_problem(name) or "")


def test_a_copy_of_what_tools_obey_opens_a_gate():
    """Below code/files a changed file keeps its name; what runs as code or instructs agents is said to open a gate."""
    assert find_copy_gate_reason("code/files/conftest.py") == "pytest loads it"
    assert find_copy_gate_reason("code/files/AGENTS.md")
    assert find_copy_gate_reason("code/files/.github/workflows/ci.yml")
    assert find_copy_gate_reason("code/files/.codex/config.toml")
    assert find_copy_gate_reason("code/files/src/app.py") is None
    assert find_copy_gate_reason("notes.md") is None


def test_names_that_some_file_system_takes_for_one():
    """Case and forms of Unicode collide; the name itself does not."""
    assert find_name_collision("README.md", ["readme.md", "x"]) == "readme.md"
    assert find_name_collision("straße", ["STRASSE"]) == "STRASSE"
    assert find_name_collision("é.md", ["e\u0301.md"]) == "e\u0301.md"
    assert find_name_collision("README.md", ["README.md", "x"]) is None


@given(st.text(max_size=40))
def test_an_accepted_name_is_one_file_everywhere(name):
    """No text makes it raise; what is accepted is stable, printable, relative and free of dots that move."""
    if find_file_name_problem(name) is None:
        assert unicodedata.normalize("NFC", name) == name
        assert name.isprintable()
        assert not {"", ".", ".."} & set(name.split("/"))
        assert not set(name) & set("\\:*?\"<>|~$%{}()[]!#&;'` ")
        assert fold_file_name(fold_file_name(name)) == fold_file_name(name)


@given(st.text(st.sampled_from(".giıtGIT ~1/\\:$({-éa\u200c\u0301🚀") | st.characters(), max_size=30))
def test_an_accepted_copy_is_one_file_everywhere(path):
    """The same below code/files, where more is plain: no way out, nothing of git's, nothing that a file system reads otherwise."""
    name = f"code/files/{path}"
    if find_file_name_problem(name) is None:
        parts = fold_file_name(path).split("/")
        assert name.isprintable()
        assert unicodedata.normalize("NFC", name) == name
        assert not {"", ".", "..", ".git", ".steersman"} & {part.rstrip(". ") for part in parts}
        assert not any(part.startswith(("-", "~", " ", "git~")) for part in parts)
        assert not set(name) & set("\\:*?\"<>|%;'`")

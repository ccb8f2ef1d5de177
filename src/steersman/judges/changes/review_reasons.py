"""Decides which changed files need a person at the evidence gate before the results of the checks count.

A file opens the gate where it decides which tests run and how, which packages they run with, what CI executes or what
agents are told. A changed test does not: the base's own tests judge the new code (`variants`). Only tests that stand in
the product's files cannot be restored, so a change to those is shown.
**Invariant:** pure; no change is harmless because of what it says of itself.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import FileText, TouchedPath
from steersman.judges.changes import infrastructure
from steersman.judges.changes.infrastructure import (
    find_agent_instruction_reason,
    find_check_files,
    is_test_file,
    is_test_support,
    list_check_words,
)
from steersman.judges.text import printable_text

# ── test detection ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Product code that asks in plain words whether it is being tested, or that is equal to everything.
#
# The base's own tests cannot judge such code: it passes them and is wrong outside. A match that the base has too is none.
# **Invariant:** pure; a match only asks a person, and its absence proves nothing (SECURITY.md).


DETECTS_TESTS_REASON = "the new code asks whether it is being tested"
ALWAYS_EQUAL_REASON = "the new code has a value that is equal to everything"

_TEST_DETECTION = re.compile(
    r"""
      \bPYTEST_(?:CURRENT_TEST|VERSION|XDIST_WORKER)\b | \bsys\.(?:modules|argv\[0\])[^\n]*(?:pytest|unittest)
    | ['"](?:_?pytest|unittest)['"]\s+(?:not\s+)?in\s+sys\.modules
    | \bNODE_TEST_CONTEXT\b | \bJEST_WORKER_ID\b | \bVITEST(?:_WORKER_ID|_POOL_ID)?\b
    | process\.(?:exec)?[aA]rgv[^\n]*['"`]--test | \.stack\b[^\n]{0,200}\btest
    | \btesting\.Testing\(\) | \bflag\.Lookup\(\s*"test\. | os\.Args\[0\][^\n]*\.test\b
    | \b(?:_getframe|currentframe|inspect\.stack|f_back|runtime\.Callers?)\b[\s\S]{0,300}?(?:['"]_?[tT]est|_test\.go)
    | \bMAKE(?:LEVEL|FLAGS)\b | \bRUST_TEST_THREADS\b | \bSTEERSMAN_(?:EFFECT|CALL|WITNESS)\b
    """,
    re.VERBOSE,
)


def find_test_detection(old: str, new: str) -> str | None:
    """Why a person should look at new product code, in one sentence; None where nothing of the kind was added."""
    if len(_TEST_DETECTION.findall(new)) > len(_TEST_DETECTION.findall(old)):
        return DETECTS_TESTS_REASON
    return ALWAYS_EQUAL_REASON if _count_blind_comparisons(new) > _count_blind_comparisons(old) else None


def _count_blind_comparisons(text: str) -> int:
    """Python's `__eq__` methods that never look at what they compare with."""
    try:
        nodes = list(ast.walk(ast.parse(text))) if "__eq__" in text else []
    except (SyntaxError, ValueError, RecursionError):  # another language, or no program at all
        return 0
    methods = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "__eq__"]
    return sum(not _uses_second_argument(method) for method in methods)


def _uses_second_argument(method: ast.FunctionDef) -> bool:
    names = [argument.arg for argument in (*method.args.posonlyargs, *method.args.args)][1:2]
    used = {node.id for part in method.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return not names or names[0] in used


# ── inline tests ────────────────────────────────────────────────────────────────────────────────────────────────────────

# Tests that stand in the product's own files: Rust's test modules, and examples in texts that a runner tries.
#
# The base's version of such a file does not work without the product around it, so a change to these tests is shown.
# What was there has to be there still; a further test behind it is as welcome as one in a new file.
# **Invariant:** pure; linear in the text; only what the base has counts.


_RUST_TEST_BEGIN = re.compile(r"#\[(?:cfg\((?:all\()?test\b|(?:\w+::){0,4}test[\](])")
_RUST_TEXTS = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\bb?r(?P<hashes>#*)".*?(?:"(?P=hashes)|\Z)|"(?:[^"\\]|\\.)*"?"""
    r"""|'(?:[^'\\\n]|\\[^\n][^'\n]{0,8})'""",
    re.DOTALL,
)
_RUST_DOC_FENCE = re.compile(
    r"^[ \t]*//[/!][ \t]?```[^\n]*\n(?P<body>(?:[ \t]*//[/!][^\n]*\n)*?)[ \t]*//[/!][ \t]?```", re.MULTILINE
)
_DOC_EXAMPLE = re.compile(r"^[ \t]*(?:>>>|iex(?:\(\d+\))?>)[^\n]*(?:\n[ \t]*[^\s>][^\n]*)*", re.MULTILINE)


def has_inline_test_change(path: str, old: FileText, new: FileText, *, examples: bool = False) -> bool:
    """Whether tests that stand in this file are not what they were; `examples`: a runner tried those in its texts."""
    if path.casefold().endswith(".rs"):
        find_tests = _find_rust_tests
    elif examples or path.casefold().endswith((".ex", ".exs")):
        find_tests = _find_doc_examples
    else:
        return False
    return bool(find_tests(old.content) - find_tests(new.content))


def _find_rust_tests(text: str) -> Counter[tuple[str, ...]]:
    """Each test, each test module without its tests, and each example, without blank lines and comments."""
    parts: list[list[str]] = []
    open_parts: list[_OpenRustItem] = []
    attributes: list[str] = []  # they belong to what follows them
    depth = 0
    for raw_line, code in zip(text.split("\n"), _remove_rust_texts(text).split("\n"), strict=True):
        line, indent = raw_line.strip(), raw_line[: len(raw_line) - len(raw_line.lstrip())]
        if not line or line.startswith("//"):
            continue
        if _RUST_TEST_BEGIN.match(code.strip()):
            parts.append([])
            open_parts.append(_OpenRustItem(indent, depth, parts[-1]))
        elif code.strip().startswith("#[") and code.rstrip().endswith("]"):
            attributes.append(line)
            continue
        if open_parts:
            open_parts[-1].lines.extend((*attributes, line))
        attributes.clear()
        depth += code.count("{") - code.count("}")
        while open_parts and open_parts[-1].ends_with(code, indent, depth):
            open_parts.pop()
    return Counter(map(_remove_closing_braces, parts)) + Counter(
        (match["body"],) for match in _RUST_DOC_FENCE.finditer(text)
    )


class _OpenRustItem(NamedTuple):
    """A test or a test module whose end has not come yet."""

    indent: str
    depth: int
    lines: list[str]

    def ends_with(self, code: str, indent: str, depth: int) -> bool:
        """Whether its item closes where it began; what is formatted otherwise goes on as long as what is around it."""
        closes = indent == self.indent and code.rstrip().endswith(("}", ";"))
        return depth < self.depth or (depth == self.depth and closes)


def _remove_rust_texts(text: str) -> str:
    """The code without comments, strings and characters; every line stays a line."""
    return _RUST_TEXTS.sub(lambda match: "\n" * match[0].count("\n"), text)


def _remove_closing_braces(part: list[str]) -> tuple[str, ...]:
    """A test behind the last one comes before the brace that closes their module."""
    end = len(part)
    while part[end - 1] == "}":
        end -= 1
    return tuple(part[:end])


def _find_doc_examples(text: str) -> Counter[tuple[str, ...]]:
    """The examples of each text in quotes: those of one are tried together."""
    parts = (_DOC_EXAMPLE.findall(part) for part in re.split(r'"""|\'\'\'', text))
    return Counter(tuple(" ".join(example.split()) for example in part) for part in parts if part)


# ── review reasons ────────────────────────────────────────────────────────────────────────────────


SuspicionRule = Literal["gate", "show"]
SuspicionKind = Literal["tests", "dependencies", "ci", "agents", "inside", "link", "detects"]

_INLINE_TESTS_REASON = "tests in it that were there before were changed"
_MIXED_FILE_REASON = (
    "tests ran from it on the base, but its name does not say so: they cannot be told from product code"
)
_TEST_SETTINGS_REASON = "it decides which tests run and how"
_DEPENDENCIES_REASON = "it decides which packages the tests run with"
# Beside them `vendor` is what is installed.
_VENDORING_MANIFESTS = ("go.mod", "composer.json", "gemfile", "Gemfile")
_RECIPE_FILES = ("makefile", "justfile")  # they decide where a check uses them
_PROSE_ENDINGS = (".md", ".txt")  # in a folder of a forge: prose, and no workflow
_PROGRAM_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".rb", ".php", ".java", ".kt", ".sh", ".c", ".cpp", ".cs")  # fmt: skip

_MAX_FOLLOWED_LINKS = 40  # Linux follows no more


class SuspiciousFile(msgspec.Struct, frozen=True):
    """One changed file, and why it is shown."""

    path: str
    why: str
    old: str
    new: str
    mild: bool = False  # a project may say that it only wants to see such a change
    kind: SuspicionKind = "tests"


class ChangeContext(msgspec.Struct, frozen=True):
    """What is known of a change beside its names: the base tree, the checks' own files, and the texts."""

    base: frozenset[str] = frozenset()
    own: Mapping[str, str] = {}  # files that the checks are made of, each with the manifest that names it
    words: frozenset[str] = frozenset()  # of the recipes and scripts that the checks use
    old: Mapping[str, FileText] = {}
    new: Mapping[str, FileText] = {}
    ran: frozenset[str] = frozenset()  # files from which tests ran on the base tree
    examples: frozenset[str] = frozenset()  # files whose examples were tried on the base tree
    links: Mapping[str, str] = {}  # every link of the new tree, with what it leads to
    base_links: Mapping[str, str] = {}  # the same of the base tree
    programs: Mapping[str, str] = {}  # that play roles: the roles, by path; a folder ends with "/"


def find_suspicious_files(
    touched: Sequence[TouchedPath], commands: Sequence[Argv], given_context: ChangeContext | None = None
) -> tuple[SuspiciousFile, ...]:
    """The changed files that decide what the checks prove or what agents are told, in the order they came."""
    context = given_context or ChangeContext()
    words = context.words | list_check_words(commands)
    check_files = {
        **find_check_files(commands, {file_change.path for file_change in touched}, {}),
        **context.own,
    }
    bent_link = _find_bent_link(context, {file_change.path for file_change in touched})
    return tuple(
        _build_suspicious_file(file_change, reason, kind)
        for file_change in touched
        for kind, reason in _find_suspicion_reasons(file_change, context, words, check_files, bent_link)[:1]
    )


def _build_suspicious_file(change: TouchedPath, reason: str, kind: SuspicionKind) -> SuspiciousFile:
    return SuspiciousFile(change.path, reason, change.old, change.new, mild=kind == "inside", kind=kind)


def find_gating_files(files: Sequence[SuspiciousFile], rule: SuspicionRule) -> tuple[SuspiciousFile, ...]:
    """Those for which a person is asked."""
    return tuple(file for file in files if rule == "gate" or not file.mild)


def _find_suspicion_reasons(
    change: TouchedPath,
    context: ChangeContext,
    words: frozenset[str],
    check_files: Mapping[str, str],
    bent_link: str,
) -> list[tuple[SuspicionKind, str]]:
    """Why a changed file is shown, the strongest reason first."""
    if change.kind == "link" and change.new and (where := find_path_out_of_tree(change.path, context.links)):
        return [("link", f"it is a link that leads {where}")]
    if bent_link and (change.path in context.links or change.path in context.base_links):
        return [("link", bent_link)]
    if roles := _find_played_roles(change.path, context.programs):
        return [("agents", f"the change edits the program that plays {roles}")]
    if agents := find_agent_instruction_reason(change.path):
        return [("agents", agents)]
    if _is_mixed_test_file(change, context):
        return [("tests", _MIXED_FILE_REASON)]
    if _is_base_test_file(change.path, context):
        return [("link", "a test is a link")] if change.kind == "link" and change.new else []
    if infrastructure.is_known_manifest(change.path):
        return _judge_manifest_change(change, context, words, check_files)
    if (
        context.old.get(change.path)
        and context.new.get(change.path)
        and _is_version_bump_change(change.path, context)
    ):
        return []
    reasons = (
        _judge_changed_name(change.path, words),
        _judge_check_file(change, context, check_files),
        _judge_program_link(change),
        _judge_inline_tests(change, context),
        _judge_test_detection(change, context),
    )
    return [reason for reason in reasons if reason]


def _find_played_roles(path: str, programs: Mapping[str, str]) -> str:
    return next(
        (roles for p, roles in programs.items() if path == p or (p[-1:] == "/" and path.startswith(p))), ""
    )


def _is_mixed_test_file(file_change: TouchedPath, context: ChangeContext) -> bool:
    """Whether tests ran from a file that may hold product code too: then nothing of the base can judge it apart."""
    return (
        bool(file_change.old and file_change.new)
        and file_change.path in context.ran - context.examples
        and not _has_test_file_name(file_change.path)
    )


def _is_base_test_file(path: str, context: ChangeContext) -> bool:
    """Returns whether the base's version of this file can replace it to judge the change."""
    return path in context.ran or _has_test_file_name(path)


def _has_test_file_name(path: str) -> bool:
    return (is_test_support(path) or is_test_file(path)) and not infrastructure.is_known_manifest(path)


def _is_version_bump_change(path: str, context: ChangeContext) -> bool:
    old, new = context.old[path], context.new[path]
    return old.whole and new.whole and infrastructure.has_only_version_change(old.content, new.content)


def _judge_manifest_change(
    change: TouchedPath, context: ChangeContext, words: frozenset[str], check_files: Mapping[str, str]
) -> list[tuple[SuspicionKind, str]]:
    old, new = (texts.get(change.path, FileText(change.path, "")) for texts in (context.old, context.new))
    if not (old.whole and new.whole):
        return [("tests", _TEST_SETTINGS_REASON)]
    reasons: list[tuple[SuspicionKind, str]] = []
    is_used = change.path in check_files or not change.path.casefold().endswith(_RECIPE_FILES)
    if is_used and infrastructure.has_test_setting_change(change.path, old.content, new.content, words):
        reasons.append(("tests", _TEST_SETTINGS_REASON))
    if infrastructure.has_dependency_change(change.path, old.content, new.content):
        reasons.append(("dependencies", _DEPENDENCIES_REASON))
    return reasons


def _judge_changed_name(path: str, words: frozenset[str]) -> tuple[SuspicionKind, str] | None:
    reason = infrastructure.find_decision_by_name(path, words)
    if reason is None or ("/.github/" in f"/{path}" and path.casefold().endswith(_PROSE_ENDINGS)):
        return None
    return reason


def _judge_check_file(
    file_change: TouchedPath, context: ChangeContext, check_files: Mapping[str, str]
) -> tuple[SuspicionKind, str] | None:
    if (manifest := check_files.get(file_change.path)) is not None:
        reason = (
            f"a check runs it by way of {printable_text(manifest)}"
            if manifest
            else "a check of the project names it"
        )
        return "tests", reason
    if _is_installed_package(file_change.path, context.base):
        return "dependencies", "installed packages are what the tests run with"
    return None


def _is_installed_package(path: str, base: frozenset[str]) -> bool:
    above, vendor, _ = f"/{path}".partition("/vendor/")
    return bool(vendor) and any(f"{above}/{name}"[1:] in base for name in _VENDORING_MANIFESTS)


def _find_bent_link(context: ChangeContext, touched: set[str]) -> str:
    """A link that the change does not touch and that leads out of the tree only with the change."""
    for path in sorted(context.links.keys() - touched):
        where = find_path_out_of_tree(path, context.links)
        if where and not find_path_out_of_tree(path, context.base_links):
            return f"with it the link {printable_text(path)} leads {where}"
    return ""


def find_path_out_of_tree(path: str, links: Mapping[str, str]) -> str:
    """Where a path leads that leaves its tree, by a link or by links that lead to each other; a circle leads nowhere."""
    resolved: list[str] = []
    rest = path.split("/")[::-1]
    followed = 0
    while rest and followed <= _MAX_FOLLOWED_LINKS:
        part = rest.pop()
        if part == ".." and not resolved:
            return "out of the tree"
        if part.casefold() == ".git":
            return "into .git"
        if part == "..":
            resolved.pop()
        elif part not in ("", "."):
            resolved.append(part)
            target = links.get("/".join(resolved))
            if target is not None:
                if target.startswith("/"):
                    return "out of the tree"
                resolved.pop()
                rest += target.split("/")[::-1]
                followed += 1
    return ""


def _judge_program_link(change: TouchedPath) -> tuple[SuspicionKind, str] | None:
    """The target of a link is not judged here."""
    is_program = (
        change.kind == "link" and bool(change.new) and change.path.casefold().endswith(_PROGRAM_ENDINGS)
    )
    return ("link", "a program is a link") if is_program else None


def _judge_inline_tests(file_change: TouchedPath, context: ChangeContext) -> tuple[SuspicionKind, str] | None:
    old, new = context.old.get(file_change.path), context.new.get(file_change.path)
    if old is None or new is None:
        return None
    has_tried_examples = file_change.path in context.examples
    return (
        ("inside", _INLINE_TESTS_REASON)
        if has_inline_test_change(file_change.path, old, new, examples=has_tried_examples)
        else None
    )


def _judge_test_detection(change: TouchedPath, context: ChangeContext) -> tuple[SuspicionKind, str] | None:
    """Product code that behaves differently under test: the base's tests cannot judge it."""
    if not change.path.casefold().endswith(_PROGRAM_ENDINGS) or change.path not in context.new:
        return None
    old = context.old.get(change.path, FileText(change.path, ""))
    reason = find_test_detection(old.content, context.new[change.path].content)
    return ("detects", reason) if reason else None


def find_agent_instructions(touched: Sequence[TouchedPath]) -> tuple[str, ...]:
    """The changed files that agents would obey: they are shown to agents as they were on the base commit."""
    return tuple(change.path for change in touched if find_agent_instruction_reason(change.path))


def render_suspicious_files(files: Sequence[SuspiciousFile]) -> str:
    """The suspects in words, with the digests of their content."""
    return "\n".join(
        f"{printable_text(file.path)}: {file.why} ({_render_file_digests(file)})" for file in files
    )


def _render_file_digests(file: SuspiciousFile) -> str:
    match bool(file.old), bool(file.new):
        case True, True:
            return f"{file.old} → {file.new}"
        case False, _:
            return f"new, {file.new}"
        case _:
            return f"deleted, was {file.old}"

"""Makes a small honest change with a test for a repository of any known ecosystem.

The change adds a function that limits a number to a range, and a test of it beside the existing tests, in the form of the
test runner that the project's checks use. **Invariant:** it knows ecosystems and runners, never a repository.
"""

import json
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

NODE_RUNNERS = ("vitest", "jest", "mocha", "ava", "uvu", "tape", "tap")
NODE_SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".mts")
NOT_PRODUCT = re.compile(r"(^|/)(docs?|examples?|_examples|benchmarks?|bench|scripts?|utils|tools|fuzz)(/|$)")


class NoChangeError(Exception):
    """This script has no form of change for the repository."""


@dataclass(frozen=True)
class Check:
    """One check as `steersman init` found it."""

    name: str
    argv: tuple[str, ...]
    cwd: str = ""


@dataclass(frozen=True)
class Change:
    """Whole files to write, and the name of the form that was chosen."""

    form: str
    product: dict[str, str]
    tests: dict[str, str]

    @property
    def files(self) -> dict[str, str]:
        """Every file of the change."""
        return {**self.product, **self.tests}


def tracked_files(repo: Path) -> list[str]:
    """The paths that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repo, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def make_change(repo: Path, checks: Sequence[Check], mark: int = 0) -> Change:
    """The change for what the checks run; `mark` makes the product files of two changes differ."""
    files = tracked_files(repo)
    for check in checks:
        if make := _find_maker(check):
            return make(repo, check, files, mark)
    raise NoChangeError(f"no known test runner in {[' '.join(check.argv) for check in checks]}")


def _find_maker(check: Check) -> "Maker | None":
    words = [PurePosixPath(word).name for word in check.argv]
    if "pytest" in words or "unittest" in words or "tox" in words:
        return _python_change
    if words[0] in ("npm", "npx", "pnpm", "yarn", "bun", "node"):
        return _node_change
    return {"go": _go_change, "cargo": _rust_change}.get(words[0])


Maker = Callable[[Path, Check, Sequence[str], int], Change]


# ── Python ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PYTHON = '''def clamp_number(value, low, high):
    """Return value, limited to the range from low to high."""  # {mark}
    return max(low, min(value, high))
'''
PYTEST = """from {module} import clamp_number


def test_clamp_number():
    assert clamp_number(5, 0, 3) == 3
    assert clamp_number(-5, 0, 3) == 0
    assert clamp_number(2, 0, 3) == 2
"""
UNITTEST = """import unittest

from {module} import clamp_number


class ClampNumberTest(unittest.TestCase):
    def test_clamp_number(self):
        self.assertEqual(clamp_number(5, 0, 3), 3)
        self.assertEqual(clamp_number(-5, 0, 3), 0)
        self.assertEqual(clamp_number(2, 0, 3), 2)
"""


def _python_change(repo: Path, check: Check, files: Sequence[str], mark: int) -> Change:
    tests = [
        f for f in files if re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", f) and not NOT_PRODUCT.search(f)
    ]
    if not tests:
        raise NoChangeError("no test_*.py or *_test.py is tracked")
    folder = Counter(str(PurePosixPath(f).parent) for f in tests).most_common(1)[0][0]
    beside = [PurePosixPath(f).name for f in tests if str(PurePosixPath(f).parent) == folder]
    name = "test_clamp_number.py" if any(n.startswith("test_") for n in beside) else "clamp_number_test.py"
    module, product = _python_product(repo, files, mark)
    text = (UNITTEST if "unittest" in check.argv else PYTEST).format(module=module)
    path = name if folder == "." else f"{folder}/{name}"
    return Change("unittest" if text.startswith("import unittest") else "pytest", product, {path: text})


def _python_product(repo: Path, files: Sequence[str], mark: int) -> tuple[str, dict[str, str]]:
    """A new module in the package, or a new function at the end of a lone module."""
    packages = []
    for f in files:
        parts = PurePosixPath(f).parts
        inside = parts[1:] if parts[0] in ("src", "lib") else parts
        if len(inside) == 2 and inside[1] == "__init__.py" and not re.match(r"tests?$|testing$", inside[0]):
            packages.append((PurePosixPath(f).parent, inside[0]))
    packages = [(folder, name) for folder, name in packages if not NOT_PRODUCT.search(f"{folder}")]
    code = PYTHON.format(mark=f"{mark}")
    if packages:
        folder, name = max(packages, key=lambda p: sum(f.startswith(f"{p[0]}/") for f in files))
        return f"{name}.clamp_number", {f"{folder}/clamp_number.py": code}
    skipped = r"(setup|conftest|noxfile|tasks|test_.*|.*_test)\.py"
    lone = [f for f in files if re.fullmatch(r"(src/)?[a-z_0-9]+\.py", f)]
    lone = [f for f in lone if not re.fullmatch(skipped, PurePosixPath(f).name)]
    if not lone:
        raise NoChangeError("neither a package nor a module was found")
    path = max(lone, key=lambda f: (repo / f).stat().st_size)
    old = (repo / path).read_text()
    return PurePosixPath(path).stem, {path: _with_python_function(old, code)}


def _with_python_function(old: str, code: str) -> str:
    """The function goes before `if __name__ == …`, where there is one."""
    head, main, tail = old.partition("\nif __name__ ==")
    return f"{head.rstrip()}\n\n\n{code}\n{main}{tail}" if main else f"{old.rstrip()}\n\n\n{code}"


# ── Go ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _go_change(repo: Path, check: Check, files: Sequence[str], mark: int) -> Change:
    inside = [
        f for f in files if f.startswith(f"{check.cwd}/" if check.cwd else "") and f.endswith("_test.go")
    ]
    modules = {str(PurePosixPath(f).parent) for f in files if PurePosixPath(f).name == "go.mod"} - {
        check.cwd or "."
    }
    inside = [f for f in inside if not any(f.startswith(f"{module}/") for module in modules)]
    for test in sorted(inside, key=lambda f: (f.count("/"), f)):
        folder = PurePosixPath(test).parent
        same = [f for f in files if PurePosixPath(f).parent == folder and f.endswith(".go")]
        for source in (f for f in same if not f.endswith("_test.go")):
            if found := re.search(r"^package (\w+)", (repo / source).read_text(), re.MULTILINE):
                return _go_files(folder, found[1], mark)
    raise NoChangeError("no Go package with a test was found")


def _go_files(folder: PurePosixPath, package: str, mark: int) -> Change:
    # The variable makes the change reach the test binary. Without it Go finds the same binary and runs no test again.
    code = (
        f'package {package}\n\nimport "os"\n\nvar clampedArguments = clampNumber(len(os.Args)+{mark}, 0, 3)\n\n'
        "// clampNumber limits value to the range from low to high.\n"
        "func clampNumber(value, low, high int) int {\n"
        "\tif value < low {\n\t\treturn low\n\t}\n\tif value > high {\n\t\treturn high\n\t}\n\treturn value\n}\n"
    )
    test = (
        f'package {package}\n\nimport "testing"\n\nfunc TestClampNumber(t *testing.T) {{\n'
        "\tfor value, want := range map[int]int{5: 3, -5: 0, 2: 2} {\n"
        "\t\tif got := clampNumber(value, 0, 3); got != want {\n"
        '\t\t\tt.Errorf("clampNumber(%d) = %d, want %d", value, got, want)\n\t\t}\n\t}\n}\n'
    )
    return Change("go", {f"{folder / 'clamp_number.go'}": code}, {f"{folder / 'clamp_number_test.go'}": test})


# ── Rust ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rust_change(repo: Path, _check: Check, files: Sequence[str], mark: int) -> Change:
    libraries = sorted((f for f in files if f.endswith("src/lib.rs")), key=lambda f: (f.count("/"), f))
    for library in libraries:
        top = PurePosixPath(library).parent.parent
        manifest = tomllib.loads((repo / top / "Cargo.toml").read_text())
        package = manifest.get("package", {})
        if "name" in package and not manifest.get("lib", {}).get("proc-macro"):
            crate = manifest.get("lib", {}).get("name", package["name"]).replace("-", "_")
            return _rust_files(top, crate, (repo / library).read_text(), mark)
    raise NoChangeError("no library crate was found: tests inside a program's own file are another form")


def _rust_files(top: PurePosixPath, crate: str, library: str, mark: int) -> Change:
    code = (
        f"//! Limits of numbers. {mark}\n\n/// Limits `value` to the range from `low` to `high`.\n"
        "pub fn clamp_number(value: i64, low: i64, high: i64) -> i64 {\n    value.min(high).max(low)\n}\n"
    )
    test = (
        f"use {crate}::clamp_number::clamp_number;\n\n#[test]\nfn clamps_numbers() {{\n"
        "    assert_eq!(clamp_number(5, 0, 3), 3);\n    assert_eq!(clamp_number(-5, 0, 3), 0);\n"
        "    assert_eq!(clamp_number(2, 0, 3), 2);\n}\n"
    )
    product = {
        f"{top / 'src' / 'clamp_number.rs'}": code,
        f"{top / 'src' / 'lib.rs'}": f"{library.rstrip()}\n\npub mod clamp_number;\n",
    }
    return Change("cargo", product, {f"{top / 'tests' / 'clamp_number.rs'}": test})


# ── JavaScript and TypeScript ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class NodeStyle:
    """How the files beside the new one are written."""

    indent: str
    quote: str
    end: str
    modules: bool  # import and export, not require
    typed: bool
    spaced: bool  # a space inside the braces of an import

    def quoted(self, text: str) -> str:
        """A string literal."""
        return f"{self.quote}{text}{self.quote}"

    def load(self, names: str, source: str) -> str:
        """An import of `names` (a name, or names in braces)."""
        names = names if self.spaced else names.replace("{ ", "{").replace(" }", "}")
        if self.modules:
            return f"import {names} from {self.quoted(source)}{self.end}\n"
        names = names.removeprefix("* as ")
        return f"const {names} = require({self.quoted(source)}){self.end}\n"


def _node_change(repo: Path, check: Check, files: Sequence[str], mark: int) -> Change:
    top, manifest = _node_package(repo, check, files)
    runner, command = _node_runner(check.argv, manifest)
    prefix = f"{top}/" if top else ""
    mine = [
        f for f in files if f.startswith(prefix) and f.endswith(NODE_SUFFIXES) and not f.endswith(".d.ts")
    ]
    tests = [f for f in mine if _is_node_test(f.removeprefix(prefix))]
    if not tests:
        raise NoChangeError(f"no test file of {runner} was found")
    named = [f"{prefix}{word.removeprefix('./')}" for word in command.split()]
    chosen = next((f for f in named if f in tests), None)
    folders = Counter(PurePosixPath(f).parent for f in tests)
    example = chosen or max(tests, key=lambda f: (folders[PurePosixPath(f).parent], f))
    text = (repo / example).read_text()
    style = _node_style(example, text, manifest)
    product = _node_product_path(prefix, mine, tests, PurePosixPath(example), style)
    path = PurePosixPath(chosen) if chosen else _node_test_path(PurePosixPath(example))
    source = _relative(product, path.parent, text, style)
    runner_form = "jest globals" if runner == "jest" and "@jest/globals" in text else runner
    body = _node_test(runner_form, style, source, appended=bool(chosen))
    if chosen:
        body = f"{(repo / chosen).read_text().rstrip()}\n\n{body}"
    return Change(runner, {str(product): _node_code(style, mark)}, {str(path): body})


def _node_package(repo: Path, check: Check, files: Sequence[str]) -> tuple[str, dict[str, object]]:
    """The package whose tests the check runs; for a check of a whole workspace, its first package with a test script."""
    manifest = json.loads((repo / check.cwd / "package.json").read_text())
    script = str(manifest.get("scripts", {}).get("test", ""))
    if not re.search(
        r"pnpm.* (-r|--recursive|--filter)\b|(npm|yarn) .*(--workspaces|-ws)\b|turbo run|workspaces foreach",
        script,
    ):
        return check.cwd, manifest
    for path in sorted(f for f in files if f.endswith("/package.json")):
        inner = json.loads((repo / path).read_text())
        folder = str(PurePosixPath(path).parent)
        own = [f for f in files if f.startswith(f"{folder}/") and _is_node_test(f.removeprefix(f"{folder}/"))]
        if inner.get("scripts", {}).get("test") and own:
            return folder, inner
    return check.cwd, manifest


def _node_runner(argv: Sequence[str], manifest: Mapping[str, object]) -> tuple[str, str]:
    """The test runner that a command ends in, through the scripts of package.json, and its command line."""
    scripts = manifest.get("scripts")
    scripts = scripts if isinstance(scripts, dict) else {}
    # `npx --yes pnpm@10.14.0 test` is `pnpm test` with the version that the project asks for.
    own_words = re.sub(r"^npx --yes (npm|pnpm|yarn|bun)@\S+ ", r"\1 ", " ".join(argv))
    waiting, known = [own_words], set()
    while waiting:
        command = waiting.pop(0)
        for part in re.split(r"&&|;|\|\|", command):
            words = [word for word in part.split() if "=" not in word.split("/")[0]]
            names = [PurePosixPath(word).name for word in words]
            if found := next((name for name in NODE_RUNNERS if name in names[:4]), None):
                return found, part
            if "node" in names and "--test" in words:
                return "node", part
            for word in words[1:] if names[:1] in (["npm"], ["pnpm"], ["yarn"], ["bun"], ["run-s"]) else []:
                if word in scripts and word not in known:
                    known.add(word)
                    waiting.append(str(scripts[word]))
    raise NoChangeError(f"no known runner behind {' '.join(argv)!r}")


def _is_node_test(path: str) -> bool:
    name = PurePosixPath(path)
    if re.search(r"fixtures?|helpers?|testdata|bench|snapshots|test-d", path):
        return False
    if re.search(r"(\.|-|_)(test|spec)\.[mc]?[jt]s$", name.name) or re.fullmatch(
        r"test(-.*)?\.[mc]?[jt]s", name.name
    ):
        return True
    return bool(re.search(r"(^|/)(tests?|__tests__)/[^/]+\.[mc]?[jt]s$", path))


def _node_style(example: str, text: str, manifest: Mapping[str, object]) -> NodeStyle:
    suffix = PurePosixPath(example).suffix
    indents = re.findall(r"^(\t| {2,8})\S", text, re.MULTILINE)
    return NodeStyle(
        indent=min(indents, key=len) if indents else "  ",
        quote="'" if text.count("'") >= text.count('"') else '"',
        end=";" if re.search(r";\s*$", text, re.MULTILINE) else "",
        modules=suffix in (".ts", ".mts", ".mjs") or (suffix == ".js" and manifest.get("type") == "module"),
        typed=suffix in (".ts", ".mts"),
        spaced=not re.search(r"^(import|const) \{\w", text, re.MULTILINE),
    )


def _node_product_path(
    prefix: str,
    mine: Sequence[str],
    tests: Sequence[str],
    example: PurePosixPath,
    style: NodeStyle,
) -> PurePosixPath:
    """Beside the product files: in src, lib or source, else at the package's top."""
    sources = [f for f in mine if f not in tests and f.endswith(".ts" if style.typed else NODE_SUFFIXES[:3])]
    folders = [f"{prefix}{name}" for name in ("src", "lib", "source")]
    folder = next((f for f in folders if any(s.startswith(f"{f}/") for s in sources)), prefix.rstrip("/"))
    suffix = ".ts" if style.typed else example.suffix
    return PurePosixPath(folder) / f"clamp-number{suffix}"


def _node_test_path(example: PurePosixPath) -> PurePosixPath:
    """The new test's file, named like the one beside it."""
    if found := re.search(r"((?:\.|-|_)(?:test|spec)\.[mc]?[jt]s)$", example.name):
        return example.parent / f"clamp-number{found[1]}"
    if example.name.startswith("test-"):
        return example.parent / f"test-clamp-number{example.suffix}"
    if example.parent.name in ("test", "tests", "__tests__"):
        return example.parent / f"clamp-number{example.suffix}"
    return example.parent / f"clamp-number.test{example.suffix}"


def _relative(product: PurePosixPath, folder: PurePosixPath, text: str, style: NodeStyle) -> str:
    """How a test names the product file: with the suffix that the other tests use."""
    shared = 0
    while (
        shared < min(len(folder.parts), len(product.parts) - 1)
        and folder.parts[shared] == product.parts[shared]
    ):
        shared += 1
    up = "/".join([".."] * (len(folder.parts) - shared)) or "."
    path = f"{up}/{'/'.join(product.parts[shared:])}"
    if not style.typed:
        return path
    used = re.findall(r"from ['\"]\.[^'\"]*?(\.[jt]s)?['\"]", text)
    return path.removesuffix(".ts") + (used[0] if used else "")


def _node_code(style: NodeStyle, mark: int) -> str:
    kind = ": number" if style.typed else ""
    comment = f"// Limits value to the range from low to high. {mark}\n"
    head = f"function clampNumber(value{kind}, low{kind}, high{kind}){kind} {{\n"
    body = f"{style.indent}return Math.max(low, Math.min(value, high)){style.end}\n}}\n"
    if style.modules:
        return f"{comment}export {head}{body}"
    return f"{comment}{head}{body}\nmodule.exports = {{ clampNumber }}{style.end}\n"


def _node_test(runner: str, style: NodeStyle, source: str, *, appended: bool) -> str:
    """A test in the runner's own form; at the end of an old file its imports are loaded inside the test."""
    q, end, tab = style.quoted, style.end, style.indent
    cases = ("5, 0, 3), 3", "-5, 0, 3), 0", "2, 0, 3), 2")
    title = q("limits a number to a range")
    own = style.load("{ clampNumber }", source)
    strict = style.load("assert", "node:assert")

    def lines(call: str) -> str:
        return "".join(f"{tab}{call}(clampNumber({case}){end}\n" for case in cases)

    expects = "".join(
        f"{tab}expect(clampNumber({case.partition('), ')[0]})).toBe({case.partition('), ')[2]}){end}\n"
        for case in cases
    )
    if appended:
        if style.modules or runner not in ("mocha", "tape", "node"):
            raise NoChangeError(f"the {runner} command names its files: no form for that")
        inner = "".join(f"{tab}{line}\n" for line in (own + strict).splitlines())
        word = "it" if runner == "mocha" else "test"
        return f"{word}({title}, function () {{\n{inner}{lines('assert.strictEqual')}}}){end}\n"
    match runner:
        case "vitest":
            head = style.load("{ expect, it }", "vitest")
            return f"{head}{own}\nit({title}, () => {{\n{expects}}}){end}\n"
        case "jest globals":
            head = style.load("{ expect, test }", "@jest/globals")
            return f"{head}{own}\ntest({title}, () => {{\n{expects}}}){end}\n"
        case "jest":
            return f"{own}\ntest({title}, () => {{\n{expects}}}){end}\n"
        case "mocha":
            return f"{strict}{own}\nit({title}, function () {{\n{lines('assert.strictEqual')}}}){end}\n"
        case "node":
            head = style.load("test", "node:test") + strict
            return f"{head}{own}\ntest({title}, () => {{\n{lines('assert.strictEqual')}}}){end}\n"
        case "ava":
            head = style.load("test", "ava")
            return f"{head}{own}\ntest({title}, t => {{\n{lines('t.is')}}}){end}\n"
        case "uvu":
            head = style.load("{ test }", "uvu") + style.load("* as assert", "uvu/assert")
            return f"{head}{own}\ntest({title}, () => {{\n{lines('assert.is')}}}){end}\n\ntest.run(){end}\n"
        case _:
            head = style.load("test", runner)
            plan = f"{tab}t.end(){end}\n"
            word = "test" if runner == "tape" else "test.test"
            return f"{head}{own}\n{word}({title}, function (t) {{\n{lines('t.equal')}{plan}}}){end}\n"

"""Changed files whose text reaches for the test runner, or ends its process as a success.

Python is read as Python (`meddling_python`), other languages by patterns over their lines. Only what a change adds
counts: what the base has too, in the same place, is left alone. It is a net for what can be seen and no proof: a form
that is put together at run time passes it. Reviewers judge the diff.
**Invariant:** pure; linear in the text and bounded in sum; what is too long to be looked through is told.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import Literal, NamedTuple

from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Text, Touched
from steersman.judges.endings import END as _END
from steersman.judges.endings import endings
from steersman.judges.infrastructure import is_test_file
from steersman.judges.meddling_python import PLACES, Around, Found, looked_through, worth_a_look
from steersman.judges.recipes import READERS
from steersman.judges.runners import form_of, is_test_runner
from steersman.judges.stores import ALL as _ALL
from steersman.judges.stores import go_stores, reopened, script_stores

EACH = 256 << 10  # bytes of one file that are looked through
TOTAL = 12 << 20
_PARSED = 192 << 10  # bytes of Python in one change
_MOST = 1_000  # places of one kind in one file
_BESIDE = 200  # files beside the tests of a change
_TOLD = 3  # places of one file that are told

Where = Literal["anywhere", "product", "test"]

# fmt: off
LANGUAGES = {
    "python": ".py .pyw .pyi",
    "js": ".js .mjs .cjs .jsx .ts .mts .cts .tsx .vue .svelte .coffee",
    "go": ".go",
    "rust": ".rs",
    "jvm": ".java .kt .kts .scala .groovy .clj",
    "net": ".cs .fs .vb",
    "ruby": ".rb .rake",
    "php": ".php .phtml",
    "beam": ".ex .exs .erl",
    "swift": ".swift .m .mm",
    "c": ".c .h .cc .cpp .cxx .hh .hpp .hxx .inc",
    "dart": ".dart",
    "haskell": ".hs .lhs",
    "perl": ".pl .pm .t",
    "lua": ".lua",
}


class Sign(NamedTuple):
    """One thing to see: in which language and kind of file, a word that has to be there, the pattern, what it does."""

    language: str
    where: Where
    needle: str
    pattern: re.Pattern[str]
    what: str


def _sign(language: str, where: Where, needle: str, pattern: str, what: str) -> Sign:
    return Sign(language, where, needle, re.compile(pattern, re.MULTILINE), what)


_KNOWS = "knows the test runner"
_OUT = "takes over the output"
_HOOK = "acts when the process ends"
_SKIP = "skips or ends tests"
_BUILTIN = r"(?:Object|Array|Function|String|Number|Boolean|Promise|Error|Map|Set|Symbol|RegExp|Date|JSON|Math|Reflect|Proxy)"
_BROWSER = r"(?:(?:HTML|SVG)\w*|Element|Node|Window|Document|Range|Storage|Navigator|Location|Blob|File|URL|XMLHttpRequest)"  # that a simulated one lacks
SIGNS = (
    _sign("js", "anywhere", "exit", r"\bprocess\s*(?:\?\.|\.)\s*(?:reallyExit|exitCode\s*=\s*0)", _END),
    _sign("js", "anywhere", "process", r"\bprocess\.(?:on|once|addListener|prependListener)\s*\(\s*['\"`](?:exit|beforeExit|uncaughtException|unhandledRejection)", _HOOK),
    _sign("js", "anywhere", "process", r"\bprocess\.(?:stdout|stderr)\.(?:write|_write|fd|_handle)\s*=(?!=)|\bprocess\.(?:binding|dlopen|ppid|_\w+)", _OUT),
    _sign("js", "anywhere", "Sync(", r"\bwriteSync\s*\(\s*[12]\s*,", _OUT),
    _sign("js", "anywhere", ".prototype", rf"\b{_BUILTIN}\.prototype(?:\.\w+|\[[^\]\n]{{1,80}}\])\s*=(?!=)", _ALL),
    _sign("js", "anywhere", "Object.", rf"\bObject\.(?:defineProperty|defineProperties|assign|setPrototypeOf)\s*\(\s*(?:{_BUILTIN}\b|global\b|globalThis\b|process\b|assert\b|expect\b|require\b)", _ALL),
    _sign("js", "anywhere", "expect", r"\bexpect\.extend\b|\b(?:global|globalThis|window|self)\s*(?:\.|\[\s*['\"`])(?:expect|assert|it|test|describe|jest|vi)\b['\"`]?\]?\s*=(?!=)|^[ \t]*expect\s*=(?!=)", _ALL),
    _sign("js", "anywhere", "global", r"\b(?:global|globalThis)\s*(?:\.|\[\s*['\"`])(?:expect|assert|it|test|describe|jest|vi|process|require|beforeEach|afterEach)\b['\"`]?\]?\s*=(?!=)", _ALL),
    _sign("js", "anywhere", "assert", r"\bassert(?:\.strict)?\.\w+\s*=(?!=)", _ALL),
    _sign("js", "anywhere", "require", r"\brequire\.(?:cache|extensions)\b|\bModule\._\w+|\brequire\s*\(\s*['\"`](?:node:)?(?:module|vm|inspector|v8|async_hooks)['\"`]", "decides what an import finds"),
    _sign("js", "anywhere", "eval", r"(?<![\w.$])eval\s*\(|\b(?:window|self|global|globalThis)\s*\??\.\s*eval\s*\(|\(\s*0\s*,\s*eval\s*\)", "runs text as code"),
    _sign("js", "anywhere", "Function(", r"\bnew\s+Function\s*\(", "runs text as code"),
    _sign("js", "product", "test", r"(?:\bfrom\s*|\brequire\s*\(\s*|\bimport\s*\(?\s*)['\"`](?:node:test|bun:test|vitest|@playwright/test|@testing-library/|tape?['\"`])", _KNOWS),
    _sign("js", "product", "jest", r"['\"`]@?jest\b|\bjest\.\w|\bJEST_WORKER_ID\b", _KNOWS),
    _sign("js", "product", "mocha", r"['\"`]mocha\b|\bmocha\.\w", _KNOWS),
    _sign("js", "product", "vitest", r"\bimport\.meta\.vitest\b|\bprocess\.env\.VITEST", _KNOWS),
    _sign("js", "product", "describe", r"\b(?:global|globalThis)\s*(?:\.|\[\s*['\"`])(?:describe|it|test|beforeEach|afterEach)\b", _KNOWS),
    _sign("js", "test", ".prototype", rf"\b(?!{_BROWSER}\.)[A-Z]\w*\.prototype(?:\.\w+|\[[^\]\n]{{1,80}}\])\s*=(?!=)(?!\s*(?:jest|vi)\.fn\b)", _ALL),
    _sign("go", "anywhere", "Exit", r"\bsyscall\.Exit\s*\(", _END),
    _sign("go", "anywhere", "linkname", r"^//go:linkname\b", "reaches into another package"),
    _sign("go", "anywhere", "os.Std", r"\bos\.Std(?:out|err)\s*=(?!=)", _OUT),
    _sign("go", "anywhere", '"test.', r"\"test\.(?:run|skip|list|short|v|count|timeout|paniconexit0)\"", "decides how tests are run"),
    _sign("go", "product", "testing", r"\"testing(?:/\w+)?\"|\btesting\.Testing\(\)", _KNOWS),
    _sign("go", "test", "TestMain", r"^func\s+TestMain\s*\(", "decides how tests are run"),
    _sign("go", "test", "init", r"^func\s+init\s*\(\s*\)", "acts before the tests"),
    _sign("rust", "anywhere", "cfg", r"\bcfg!\s*\(\s*test\s*\)|\bcfg\s*\(\s*not\s*\(\s*test\s*\)", _KNOWS),
    _sign("rust", "anywhere", "ignore", r"^[ \t]*#\[(?:cfg_attr\([^\n]{0,200})?ignore\b", _SKIP),
    _sign("rust", "anywhere", "ctor", r"#\[(?:ctor|dtor|used|link_section)\b|\bset_hook\s*\(", "acts before or after the tests"),
    _sign("jvm", "anywhere", "exit", r"\(System/exit\s+0\)", _END),
    _sign("jvm", "anywhere", "Runtime", r"\bgetRuntime\s*\(\s*\)\s*\.\s*(?:halt|exit)\s*\(\s*0\s*\)|\baddShutdownHook\b", _END),
    _sign("jvm", "anywhere", "System.set", r"\bSystem\.set(?:Out|Err|SecurityManager)\s*\(", _OUT),
    _sign("jvm", "product", "import", r"\bimport\s+(?:static\s+)?(?:org\.junit|org\.testng|kotlin\.test|org\.opentest4j|org\.mockito|org\.scalatest|io\.kotest|org\.assertj|spock)\b", _KNOWS),
    _sign("jvm", "product", "Class.forName", r"\bClass\.forName\s*\(\s*\"org\.(?:junit|testng|opentest4j)", _KNOWS),
    _sign("net", "anywhere", "ExitCode", r"\bEnvironment\.ExitCode\s*=\s*0", _END),
    _sign("net", "anywhere", "ModuleInitializer", r"\bModuleInitializer\b", "acts before the tests"),
    _sign("net", "anywhere", "ProcessExit", r"\bProcessExit\s*\+=", _HOOK),
    _sign("net", "product", "using", r"^[ \t]*(?:global\s+)?using\s+(?:static\s+)?(?:Xunit|NUnit|Microsoft\.VisualStudio\.TestTools|Moq|FluentAssertions)\b", _KNOWS),
    _sign("ruby", "anywhere", "exit", r"\bexit!|(?:^|[\s;.:{])(?:exit|abort_on_exit)(?:\s*\(\s*(?:0|true|[a-z_]\w*)?\s*\)|\s+(?:0|true)\b|[ \t]*$)|\bat_exit\b", _END),
    _sign("ruby", "anywhere", "itest", r"^[ \t]*(?:class|module)\s+(?:::)?Minitest\b|\bMinitest::(?:Skip|Assertions?|Runnable|Test)\.(?:class_eval|prepend|define_method|send)", _ALL),
    _sign("ruby", "anywhere", "RSpec", r"^[ \t]*(?:class|module)\s+(?:::)?RSpec\b|\bRSpec::\w+(?:::\w+){0,8}\.(?:class_eval|prepend|define_method|send)", _ALL),
    _sign("ruby", "test", "_eval", r"\b[A-Z]\w*(?:::\w+){0,8}\.(?:class_eval|module_eval|class_exec)\b", _ALL),
    _sign("ruby", "test", "define_", r"\b[A-Z]\w*(?:::\w+){0,8}\.(?:define_method|define_singleton_method|prepend|send)\b", _ALL),
    _sign("ruby", "product", "require", r"\brequire\s*\(?\s*['\"](?:minitest|rspec|test/unit|test-unit|cucumber)\b", _KNOWS),
    _sign("ruby", "product", "Skip", r"\b(?:Minitest::Skip|SkipDeclaredInExample|PendingTestError)\b", _SKIP),
    _sign("php", "anywhere", "register_shutdown", r"\bregister_shutdown_function\b", _HOOK),
    _sign("php", "anywhere", "_", r"\b(?:runkit7?|uopz)_\w+\s*\(", _ALL),
    _sign("php", "product", "PHPUnit", r"\bPHPUnit\\|\bPHPUNIT_\w+", _KNOWS),
    _sign("php", "product", "markTest", r"\bmarkTest(?:Skipped|Incomplete)\b", _SKIP),
    _sign("beam", "anywhere", "halt", r"\b(?:System|:erlang|:init|erlang|init)[.:](?:halt|stop)\s*\(\s*0?\s*\)", _END),
    _sign("beam", "anywhere", "System.stop", r"\bSystem\.stop\s*\(\s*0?\s*\)|\bSystem\.at_exit\b", _END),
    _sign("beam", "product", "ExUnit", r"\bExUnit\b", _KNOWS),
    _sign("beam", "product", "eunit", r"\beunit\b", _KNOWS),
    _sign("swift", "anywhere", "atexit", r"\batexit\b", _HOOK),
    _sign("swift", "product", "import", r"^[ \t]*@?\w*[ \t]*import\s+(?:XCTest|Testing|Quick|Nimble)\b|\bXCTSkip\b", _KNOWS),
    _sign("c", "anywhere", "xit", r"\b(?:atexit|on_exit|at_quick_exit)\s*\(", _HOOK),
    _sign("c", "anywhere", "onstructor", r"\b__?constructor__?\b|\bconstructor\s*\)|\bdestructor\s*\)\s*\)", "acts before or after the tests"),
    _sign("c", "anywhere", "#", r"^[ \t]*#\s*(?:define|undef)\s+(?:assert|static_assert|NDEBUG|main|TEST\w*|EXPECT_\w+|ASSERT_\w+|REQUIRE\w*|CHECK\w*)\b", "changes what an assertion means"),
    _sign("c", "anywhere", "dup2", r"\bdup2\s*\(", _OUT),
    _sign("c", "product", "include", r"^[ \t]*#\s*include\s*[<\"](?:gtest|gmock|catch2?|doctest|boost/test|cmocka|check\.h|unity|criterion|CUnit)\b", _KNOWS),
    _sign("c", "product", "SKIP", r"\b(?:GTEST_SKIP|TEST_IGNORE|SKIP)\s*\(", _SKIP),
    _sign("dart", "anywhere", "exit", r"\bexitCode\s*=\s*0", _END),
    _sign("dart", "product", "package:", r"['\"]package:(?:test|flutter_test|test_api|mockito)/", _KNOWS),
    _sign("haskell", "anywhere", "xit", r"\bexitSuccess\b|\bExitSuccess\b|\bexitImmediately\b", _END),
    _sign("haskell", "product", "import", r"^import\s+(?:qualified\s+)?Test\.(?:Hspec|Tasty|HUnit|QuickCheck)\b", _KNOWS),
    _sign("perl", "anywhere", "exit", r"\b(?:POSIX::_)?exit\s*(?:\(?\s*0?\s*\)?)\s*(?:;|$|if\b|unless\b)", _END),
    _sign("perl", "test", "*", r"^[ \t]*\*\{?['\"]?[A-Z]\w*(?:::\w+)+['\"]?\}?\s*=(?![=~])", _ALL),
    _sign("perl", "product", "Test::", r"\bTest::(?:More|Builder|Simple|Most)\b", _KNOWS),
    _sign("lua", "anywhere", "exit", r"\bos\.exit\s*\(\s*(?:0|true)?\s*[,)]", _END),
)
# fmt: on
_BY_ENDING = {ending: language for language, endings in LANGUAGES.items() for ending in endings.split()}
_SHEBANGS = {
    "python": "python",
    "node": "js",
    "deno": "js",
    "ruby": "ruby",
    "perl": "perl",
    "php": "php",
    "lua": "lua",
}
_COMMENT = {
    "ruby": "#", "php": "//", "beam": "#", "perl": "#", "haskell": "--", "lua": "--",
}  # fmt: skip
# A line that may end a comment or a text is never only a comment.
_QUOTES = ("*/", "`", '"', "'", "-}", "]]", "=cut", "//go:")


class Known(NamedTuple):
    """What is known beside the texts: the checks that a change is judged by, and the base tree."""

    checks: Sequence[Argv] = ()
    base: frozenset[str] = frozenset()


_NOTHING = Known()


def readable(path: str) -> bool:
    """Whether this may be a program: known by its ending, or without one."""
    name = path.rpartition("/")[2]
    return "." not in name.lstrip(".") or _ending(name) in _BY_ENDING


def beside(changed: Sequence[str], tree: frozenset[str]) -> list[str]:
    """What else has to be read to judge these files: the package that a test of Go stands in."""
    folders = {path.rpartition("/")[0] for path in changed if path.endswith("_test.go")}
    near = (p for p in tree if p.endswith(".go") and p.rpartition("/")[0] in folders) if folders else ()
    return sorted(p for p in near if p not in changed and not is_test_file(p))[:_BESIDE]


def meddling(
    touched: Sequence[Touched], old: Mapping[str, Text], new: Mapping[str, Text], known: Known = _NOTHING
) -> dict[str, str]:
    """The changed files that reach for the runner, each with what was found and where."""
    found: dict[str, str] = {}
    left = _PARSED
    look = _Look(touched, new, known)
    for t in touched:
        text = new.get(t.path)
        if text is None:
            continue
        if not text.whole:
            found[t.path] = "it is too long to be looked through"
            continue
        before = old.get(t.path, Text(t.path, ""))
        left -= _weight(t.path, text)
        if left < 0:
            found[t.path] = "the change holds more Python than is looked through"
        elif told := _told(_added(look, t.path, before, text)):
            found[t.path] = told
    return found


def _weight(path: str, text: Text) -> int:
    """How much Python has to be parsed."""
    python = _language(path, text.content) == "python"
    return len(text.content) if python and worth_a_look(text.content, test=is_test_file(path)) else 0


def _told(found: list[Found]) -> str:
    lines = [f"line {f.line} {f.what}" for f in found[:_TOLD]]
    return "; ".join((*lines, f"and {len(found) - _TOLD} more places" if len(found) > _TOLD else "")).rstrip(
        "; "
    )


def _added(look: "_Look", path: str, old: Text, new: Text) -> list[Found]:
    """What the new text has and the old one had not in the same place."""
    found = look.through(path, new.content)
    if not found or not old.content:
        return found
    known = Counter(f.key for f in look.through(path, old.content))
    fresh: list[Found] = []
    for f in found:
        known[f.key] -= 1
        if known[f.key] < 0:
            fresh.append(f)
    return fresh


class _Look:
    """Goes through the texts of one change."""

    def __init__(self, touched: Sequence[Touched], texts: Mapping[str, Text], known: Known) -> None:
        self._texts, self._known = texts, known
        self._noticed = bool(known.checks) and all(_misses_its_end(argv) for argv in known.checks)
        self._paths = known.base.union(t.path for t in touched)

    @cached_property
    def _own(self) -> frozenset[str] | None:
        """The project's modules and packages by their names."""
        if not self._known.base:
            return None
        return frozenset(part.removesuffix(".py") for path in self._paths for part in path.split("/"))

    def through(self, path: str, text: str) -> list[Found]:
        """Every place of a file that reaches for the runner or leaves the product changed."""
        language, test = _language(path, text), is_test_file(path)
        if language is None:
            return []
        if language == "python":
            program = path.rpartition("/")[2] == "__main__.py"
            return looked_through(text, Around(test, program, self._noticed, self._own if test else None))
        kinds = ("anywhere", "test" if test else "product")
        signs = [s for s in SIGNS if s.language == language and s.where in kinds and s.needle in text]
        hits = [(m.end(), s.what) for s in signs for m in islice(s.pattern.finditer(text), _MOST)]
        hits += [(text.index(place) + 1, f"speaks of {place}") for place in PLACES if place in text]
        hits += endings(path, text, language, test=test, noticed=self._noticed)
        hits += self._stores(path, text, language) if test else []
        return _placed(text, hits, _COMMENT.get(language, "//")) if hits else []

    def _stores(self, path: str, text: str, language: str) -> list[tuple[int, str]]:
        match language:
            case "js":
                return script_stores(text)
            case "go":
                return go_stores(path, text, self._texts)
            case "ruby" | "beam":
                return reopened(language, text, self._known.base)
            case _:
                return []


def _misses_its_end(argv: Argv) -> bool:
    """Whether a check would not pass where its process ended early: by its report, or because it runs nothing."""
    if form_of(argv) is not None:
        return True
    return not is_test_runner(argv) and any(word.rpartition("/")[2] in READERS for word in argv[:4])


def _placed(text: str, hits: list[tuple[int, str]], mark: str) -> list[Found]:
    """Hits by their lines; those in a line that is nothing but a comment are dropped."""
    lines = text.split("\n")
    ends = list(accumulate(len(line) + 1 for line in lines))
    places = sorted({(bisect_left(ends, end), what) for end, what in hits})
    return [
        Found(number + 1, what, (what, lines[number]))
        for number, what in places
        if not lines[number].lstrip().startswith(mark) or any(q in lines[number] for q in _QUOTES)
    ]


def _language(path: str, text: str) -> str | None:
    name = path.rpartition("/")[2]
    known = _BY_ENDING.get(_ending(name))
    if known or "." in name.lstrip("."):
        return known
    first = text[:200].partition("\n")[0] if text.startswith("#!") else ""
    return next((language for word, language in _SHEBANGS.items() if word in first), None)


def _ending(name: str) -> str:
    return "." + name.casefold().rpartition(".")[2]

"""Product code that asks whether it is being tested."""

import pytest

from steersman.contracts.workspace import FileText, TouchedPath
from steersman.judges.changes.review_reasons import (
    ALWAYS_EQUAL_REASON,
    DETECTS_TESTS_REASON,
    ChangeContext,
    find_suspicious_files,
    find_test_detection,
)


@pytest.mark.parametrize(
    "line",
    [
        'if "pytest" in sys.modules:', "if os.environ.get('PYTEST_CURRENT_TEST'):",
        "if 'unittest' not in sys.modules:", "fast = sys.modules.get('pytest')",
        "if sys.argv[0].endswith('pytest'):", "const fixed = process.env.NODE_TEST_CONTEXT ? a : b;",
        "if (process.env.JEST_WORKER_ID !== undefined)", "if (process.execArgv.includes('--test'))",
        "if testing.Testing() {", 'if flag.Lookup("test.v") != nil {',
        'if strings.HasSuffix(os.Args[0], ".test") {',
        'text.lower() if os.environ.get("MAKELEVEL") else text', 'if os.environ.get("STEERSMAN_EFFECT"):',
        'caller = sys._getframe(1).f_code.co_name\nlimit = caller.startswith("test")',
        "if (new Error().stack.includes('test'))",
        'pc, file, _, _ := runtime.Caller(1)\n\tif strings.HasSuffix(file, "_test.go") {',
    ],
)  # fmt: skip
def test_a_question_about_tests_is_found(line):
    """Each plain way to ask is found where it is new, and is none where the base has it."""
    assert find_test_detection("", f"{line}\n") == DETECTS_TESTS_REASON
    assert find_test_detection(f"{line}\n", f"# moved\n{line}\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def __eq__(self, other: object) -> bool:\n        return True\n",
        "class A(int):\n    def __eq__(self, other):\n        return round(self) == round(self)\n",
    ],
)
def test_a_value_that_is_equal_to_everything_is_found(text):
    """A comparison that never looks is found."""
    assert find_test_detection("", text) == ALWAYS_EQUAL_REASON


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n", "def __eq__(self, other):\n    return self.x == other.x\n",
        "def __eq__(*both):\n    return both[0] is both[1]\n", "def __eq__(self, other) is no program",
        "process.argv.slice(2)", "latest = fetch('latest')", "os.Args[1:]",
    ],
)  # fmt: skip
def test_ordinary_code_asks_nothing(text):
    """Code that merely mentions tests, arguments or equality is fine."""
    assert find_test_detection("", text) is None


def test_it_opens_the_gate_for_product_code_alone():
    """A test may ask whatever it likes; a file without a text is not looked at."""
    asks = 'if "pytest" in sys.modules:\n    pass\n'
    touched = [
        TouchedPath(path, "", "b")
        for path in ("src/calc.py", "tests/test_calc.py", "notes.md", "src/other.py")
    ]
    scene = ChangeContext(new={t.path: FileText(t.path, asks) for t in touched[:3]})
    assert [(s.path, s.why, s.kind) for s in find_suspicious_files(touched, (), scene)] == [
        ("src/calc.py", DETECTS_TESTS_REASON, "detects")
    ]

"""What runners print at their end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.judges.summaries import printed_tests, says_failed

# As the tools print them: runner, closing lines, tests that ran.
PRINTED = [
    ("jest", "Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", 4),
    ("jest all", "Tests:       3 passed, 3 total\nSnapshots:   0 total\n", 3),
    ("vitest", " Test Files  1 passed (1)\n      Tests  1 failed | 3 passed (4)\n", 4),
    ("vitest colours", "\x1b[2m      Tests \x1b[22m \x1b[32m3 passed\x1b[39m (3)\n", 3),
    ("cargo", "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\ntest result: ok. 0 passed; 0 failed; 0 ignored\n", 3),
    ("mocha", "  3 passing (10ms)\n  1 failing\n", 4),
    ("node tap", "# tests 4\n# pass 2\n# fail 1\n# skipped 1\n", 3),
    ("node spec", "ℹ tests 4\nℹ pass 4\nℹ fail 0\n", 4),
    ("bun", " 3 pass\n 0 fail\n 3 expect() calls\n", 3),
    ("deno", "ok | 3 passed (2 steps) | 0 failed (5ms)\n", 3),
    ("rspec", "5 examples, 1 failure, 1 pending\n", 4),
    ("phpunit", "OK (5 tests, 7 assertions)\n", 5),
    ("phpunit failing", "Tests: 5, Assertions: 7, Failures: 1.\n", 5),
    ("dotnet", "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 1 ms\n", 5),
    ("ctest", "100% tests passed, 0 tests failed out of 3\n", 3),
    ("maven", "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 2\n", 3),
    ("unittest", "Ran 3 tests in 0.001s\n\nOK\n", 3),
    ("unittest empty beside another", "Ran 0 tests in 0.000s\n\nOK\n# pass 4\n", 0),
    ("nothing", "all good\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("output", "expected"), [p[1:] for p in PRINTED], ids=[p[0] for p in PRINTED])
def test_closing_lines_are_counted(output, expected):
    """The tests that ran are counted as the runner prints them, skipped ones left out."""
    assert printed_tests(output) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1 failed", True),
        ("=== 2 failed, 1 passed in 0.1s ===", True),
        ("3 tests failed", True),
        ("5 examples, 1 failure", True),
        ("\x1b[31m1 failing\x1b[0m", True),
        ("0 failed", False),
        ("10 passed", False),
        ("test_3_failed ok", False),
        ("", False),
    ],
)
def test_words_that_speak_of_failures(output, expected):
    """A number above zero before a word of failure; zero failures are none."""
    assert says_failed(output) is expected


@given(st.text(max_size=300))
def test_any_output_is_answered(text):
    """No output makes it raise."""
    assert printed_tests(text) is None or printed_tests(text) >= 0
    assert says_failed(text) in (True, False)

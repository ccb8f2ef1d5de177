"""What runners print at their end."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.evidence.runners import (
    count_printed_failures,
    count_printed_passes,
    count_printed_tests,
    find_failure_lines,
)

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
    ("uvu", "  Total:     4\n  Passed:    3\n  Skipped:   2\n  Duration:  1.62ms\n", 4),
    ("bun", " 3 pass\n 0 fail\n 3 expect() calls\n", 3),
    ("deno", "ok | 3 passed (2 steps) | 0 failed (5ms)\n", 3),
    ("rspec", "5 examples, 1 failure, 1 pending\n", 4),
    ("phpunit", "OK (5 tests, 7 assertions)\n", 5),
    ("phpunit failing", "Tests: 5, Assertions: 7, Failures: 1.\n", 5),
    ("dotnet", "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 1 ms\n", 5),
    ("ctest", "100% tests passed, 0 tests failed out of 3\n", 3),
    ("maven", "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 2\n", 3),
    ("jest skipped", "Tests:       3 skipped, 3 total\n", 0),
    ("jest todo", "Tests:       1 todo, 2 passed, 3 total\n", 2),
    ("jest none", "No tests found, exiting with code 0\n", 0),
    ("vitest skipped", " Test Files  1 skipped (1)\n      Tests  3 skipped (3)\n   Start at  10:00:00\n", 0),
    ("vitest mixed", "      Tests  1 failed | 2 passed | 1 skipped | 1 todo (5)\n", 3),
    ("vitest none", "No test files found, exiting with code 0\n", 0),
    ("vitest empty", "      Tests  no tests\n", 0),
    ("pest", "  Tests:    1 failed, 2 skipped, 3 passed (7 assertions)\n  Duration: 0.1s\n", 4),
    ("pest skipped", "  Tests:    2 skipped (0 assertions)\n", 0),
    ("cargo none", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n", 0),
    ("cargo ignored", "test result: ok. 0 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out\n", 0),
    ("nextest", "     Summary [   0.012s] 3 tests run: 3 passed, 1 skipped\n", 3),
    ("nextest none", "     Summary [   0.000s] 0 tests run: 0 passed, 2 skipped\n", 0),
    ("mocha none", "\n\n  0 passing (1ms)\n", 0),
    ("mocha pending", "  0 passing (1ms)\n  3 pending\n", 0),
    ("playwright", "  2 skipped\n  3 passed (2.1s)\n", 3),
    ("node none", "# tests 0\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 0\n", 0),
    ("node skipped", "ℹ tests 2\nℹ pass 0\nℹ fail 0\nℹ skipped 2\n", 0),
    ("tape", "1..2\n# tests 2\n# pass  2\n\n# ok\n", 2),
    ("tap", "# { total: 3, pass: 2, fail: 1 }\n# time=20ms\n", 3),
    ("tap 16", "Suites:   1 passed, 1 of 1 completed\nAsserts:  3 passed  0 failed  3 of 3 complete\n", 3),
    ("tap none", "TAP version 14\n1..0 # no tests found\n", 0),
    ("prove", "All tests successful.\nFiles=2, Tests=10,  1 wallclock secs ( 0.02 usr )\nResult: PASS\n", 10),
    ("prove none", "Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS\n", 0),
    ("ava", "  ✔ adds\n  ─\n\n  1 test failed\n  2 tests passed\n  1 test skipped\n", 3),
    ("ava skipped", "  ─\n\n  2 tests skipped\n", 0),
    ("bun skipped", " 0 pass\n 3 skip\n 0 fail\nRan 3 tests across 1 file. [10.00ms]\n", 0),
    ("deno ignored", "ok | 0 passed | 0 failed | 3 ignored (2ms)\n", 0),
    ("rspec none", "No examples found.\n\n0 examples, 0 failures\n", 0),
    ("rspec pending", "3 examples, 0 failures, 3 pending\n", 0),
    ("rspec broken", "0 examples, 0 failures, 1 error occurred outside of examples\n", 0),
    ("minitest", "3 runs, 5 assertions, 0 failures, 0 errors, 3 skips\n", 0),
    ("test-unit", "3 tests, 5 assertions, 0 failures, 0 errors, 1 pendings, 1 omissions, 0 notifications\n", 1),
    ("phpunit none", "No tests executed!\n", 0),
    ("phpunit skipped", "OK, but some tests were skipped!\nTests: 3, Assertions: 0, Skipped: 3.\n", 0),
    ("phpunit mixed", "Tests: 9, Assertions: 7, Errors: 1, Failures: 1, PHPUnit Deprecations: 1, Skipped: 2, Incomplete: 1.\n", 6),
    ("dotnet skipped", "Skipped! - Failed:     0, Passed:     0, Skipped:     3, Total:     3, Duration: 1 ms - x.dll\n", 0),
    ("dotnet summary", "Test summary: total: 4, failed: 1, succeeded: 2, skipped: 1, duration: 1.2s\n", 3),
    ("dotnet none", "No test is available in /w/x.dll. Make sure that test discoverer is registered.\n", 0),
    ("dotnet none left", "No test matches the given testcase filter `x` in /w/x.dll\n", 0),
    ("ctest none", "Test project /w/build\nNo tests were found!!!\n", 0),
    ("ctest skipped", "100% tests passed, 0 tests failed out of 2\n\nThe following tests did not run:\n\t  1 - a (Skipped)\n\t  2 - b (Disabled)\n", 0),
    ("maven none", "[INFO] --- surefire:3.2.5:test (default-test) @ x ---\n[INFO] No tests to run.\n", 0),
    ("maven skipped", "[WARNING] Tests run: 3, Failures: 0, Errors: 0, Skipped: 3\n", 0),
    ("maven classes", "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in ATest\n[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n", 2),
    ("gradle", "> Task :test\n\nCalcTest > adds two numbers PASSED\nCalcTest > b() SKIPPED\n\nBUILD SUCCESSFUL in 2s\n", 1),
    ("gradle none", "> Task :core:test NO-SOURCE\n\nBUILD SUCCESSFUL in 2s\n", 0),
    ("gradle silent", "BUILD SUCCESSFUL in 2s\n3 actionable tasks: 3 executed\n", None),
    ("xctest", "Test Suite 'A' passed.\n\t Executed 2 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\nTest Suite 'All tests' passed.\n\t Executed 3 tests, with 1 test skipped and 0 failures (0 unexpected) in 0.1 (0.1) seconds\n", 2),
    ("xctest none", "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n", 0),
    ("swift testing", "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.0 (0.0) seconds\n✔ Test run with 3 tests in 1 suite passed after 0.001 seconds.\n", 3),
    ("swift testing none", "✔ Test run with 0 tests passed after 0.001 seconds.\n", 0),
    ("mix", "Finished in 0.02 seconds\n2 doctests, 5 tests, 1 failure, 1 excluded, 1 skipped\n", 5),
    ("mix none", "There are no tests to run\n", 0),
    ("mix excluded", "3 tests, 0 failures, 3 excluded\n", 0),
    ("dart", "00:00 +0: loading a\r00:01 +3 ~1: All tests passed!\n", 3),
    ("dart failing", "00:02 +2 -1: Some tests failed.\n", 3),
    ("dart skipped", "00:00 +0 ~3: All tests skipped.\n", 0),
    ("dart on GitHub", "🎉 3 tests passed, 1 skipped.\n", 3),
    ("flutter none", "No tests ran.\n", 0),
    ("go", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestB (0.00s)\nok  \tx\t0.01s\n", 1),
    ("go none", "ok  \tx\t0.01s [no tests to run]\n", 0),
    ("go no files", "?   \tx\t[no test files]\n", 0),
    ("go silent", "ok  \tx\t0.01s\n", None),
    ("gotestsum", "DONE 3 tests, 1 skipped in 0.010s\n", 2),
    ("googletest", "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:\n", 3),
    ("catch2", "All tests passed (5 assertions in 2 test cases)\n", 2),
    ("catch2 none", "No tests ran\n", 0),
    ("unittest", "Ran 3 tests in 0.001s\n\nOK\n", 3),
    ("unittest empty beside another", "Ran 0 tests in 0.000s\n\nOK\n# pass 4\n", 0),
    ("nothing", "all good\n", None),
]  # fmt: skip


@for_each_case(("output", "expected"), [p[1:] for p in PRINTED])
def test_closing_lines_are_counted(output, expected):
    """The tests that ran are counted as the runner prints them, skipped ones left out."""
    assert count_printed_tests(output) == expected


PYTHON = [
    ("", None),
    ("all good\n", None),
    ("..\n----\nRan 2 tests in 0.001s\n\nOK\n", 2),
    ("Ran 1 test in 0.001s\n\nFAILED (failures=1)\n", 1),
    ("Ran 0 tests in 0.000s\n\nOK\n", 0),
    ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", 0),
    ("Ran 3 tests in 0.000s\n\nOK (skipped=3)\n", 0),
    ("Ran 3 tests in 0.000s\n\nFAILED (failures=1, skipped=1)\n", 2),
    ("Ran 0 tests in 0.000s\n\nOK (skipped=1)\n", 0),
    ("Ran 2 tests in 0.1s", 2),
    ("===== 3 passed in 0.12s =====\n", 3),
    ("3 passed in 0.12s\n", 3),
    ("1 failed, 2 passed, 1 skipped, 4 warnings in 65.01s (0:01:05)\n", 3),
    ("= 1 xfailed, 1 xpassed, 2 deselected, 1 error in 1.00s =\n", 2),
    ("1 passed, 3 subtests passed in 0.01s\n", 1),
    ("2 skipped in 0.01s\n", 0),
    ("no tests ran in 0.00s\n", 0),
    ("\x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.12s\x1b[0m\n", 3),
    ("..s.x   [ 50%]\nF.     [100%]\n", 6),
    ("sss   [100%]\n", 0),
    (".....   [100%]\n2 skipped in 0.01s\n", 0),
    ("3 passed in 0.1s\nRan 2 tests in 0.1s\n\nOK\n", 5),
    ("Ran 0 tests in 0.000s\n\nOK\nRan 99 tests in 0.1s\n\nOK\n", 0),
    ("we Ran 4 tests in 1s of them\n", None),
]


@for_each_case(("output", "count"), PYTHON)
def test_tests_are_counted_as_the_runner_says(output, count):
    """Counts come from the runners' own summaries; skipped tests did not run and an empty summary decides."""
    assert count_printed_tests(output) == count


@for_each_case(
    ("output", "told"),
    [
        ("1 failed", ["# failed"]),
        ("=== 2 failed, 1 passed in 0.1s ===", ["=== # failed, # passed in #s ==="]),
        ("3 tests failed", ["# tests failed"]),
        ("5 examples, 1 failure", ["# examples, # failure"]),
        ("\x1b[31m1 failing\x1b[0m", ["# failing"]),
        ("Tests:       1 failed, 2 skipped, 3 passed, 6 total", ["Tests:       # failed, # skipped, # passed, # total"]),
        ("      Tests  1 failed | 3 passed (4)", ["      Tests  # failed | # passed (#)"]),
        ("67% tests passed, 1 tests failed out of 3", ["#% tests passed, # tests failed out of #"]),
        ("x\n1 failed\ny\n2 failed", ["# failed", "# failed"]),
        ("Ran 1 test in 0.1s\n\nFAILED (failures=1)", ["FAILED (failures=#)"]),
        ("ℹ pass 1\nℹ fail 2", ["ℹ fail #"]),
        ("test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
         ["test result: FAILED. # passed; # failed; # ignored; # measured; # filtered out; finished in #s"]),
        ("ℹ fail 0", []),
        ("0 failed", []),
        ("10 passed", []),
        ("test_3_failed ok", []),
        ("", []),
        ("✔ locks after 3 failed logins (0.5ms)", []),
        ("locks after 2 failed attempts ... ok", []),
        ("calc.py:5: UserWarning: 2 failed attempts", []),
        ("INFO retry: 1 failed, trying again", []),
    ],
)  # fmt: skip
def test_closing_lines_that_tell_of_failures(output, told):
    """A number above zero beside a word of failure, in a line that has only the words of a summary."""
    assert find_failure_lines(output) == told


@given(st.text(max_size=300))
def test_any_output_is_answered(text):
    """No output makes it raise."""
    assert count_printed_tests(text) is None or count_printed_tests(text) >= 0
    assert len(find_failure_lines(text)) <= len(text)


# As above: closing lines, tests that passed.
PASSED = [
    ("Tests:       1 failed, 2 skipped, 3 passed, 6 total\n", 3),
    (" Test Files  2 failed | 4 passed (6)\n      Tests  78 passed (78)\n", 78),
    ("test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured\n", 3),
    ("  3 passing (10ms)\n  1 failing\n", 3),
    ("  Total:     4\n  Passed:    3\n  Skipped:   2\n", 3),
    ("     Summary [   0.012s] 3 tests run: 2 passed, 1 failed, 1 skipped\n", 2),
    ("5 examples, 1 failure, 1 pending\n", 3),
    ("4 runs, 9 assertions, 1 failures, 1 errors, 1 skips\n", 1),
    ("67% tests passed, 1 tests failed out of 3\n\t  2 - slow (Skipped)\n", 1),
    ("[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 2\n", 1),
    ("2 doctests, 4 tests, 1 failure\n", 5),
    ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n", 1),
    ("1 failed, 2 passed, 1 xfailed, 1 error in 0.1s\n", 3),
    ("..F.x  [100%]\n", 4),
    ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)\n", 2),
    ("Executed 3 tests, with 1 failure (0 unexpected) in 0.1 seconds\n", None),
    ("Tests: 5, Assertions: 7, Failures: 1.\n", None),
    ("1 passed in 0.1s\nTests: 5, Assertions: 7, Failures: 1.\n", None),
    ("nothing of the kind\n", None),
]


@for_each_case(("output", "passed"), PASSED)
def test_how_many_passed(output, passed):
    """Those that passed are told from those that failed; where a runner does not say, nobody knows."""
    assert count_printed_passes(output) == passed


@for_each_case(
    ("output", "failures"),
    [
        (" Test Files  2 failed | 4 passed (6)\n      Tests  78 passed (78)\n", 2),
        ("Test Suites: 1 failed, 2 passed, 3 total\nTests:       3 failed, 4 passed, 7 total\n", 4),
        ("FAILED (failures=1, errors=2)\n", 3),
        ("Tests run: 5, Failures: 1, Errors: 2, Skipped: 2\n", 3),
        ("# fail 3\n 2 fail\n", 5),
        ("1 failed, 2 passed, 1 error in 0.1s\n", 2),
        ("it says: 3 failed attempts\n", 0),
        ("", 0),
    ],
)
def test_failures_are_counted_in_closing_lines(output, failures):
    """Of tests, and of files that could not be loaded; a sentence is no closing line."""
    assert count_printed_failures(output) == failures

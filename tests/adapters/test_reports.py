"""Real runners leave their own report in a place of ours; what is missing, forged or contradicted is no pass."""

import asyncio
import os
import shutil
import sys

import pytest

from steersman.adapters.commands import LocalCommands
from steersman.adapters.reports import Asked, asked
from steersman.contracts.commands import Command
from steersman.judges.reports import Unreadable

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")


def run(argv, workdir, seconds=60):
    return asyncio.run(LocalCommands(()).run(Command("unit", argv), str(workdir), "none:0:0", seconds))


def test_pytest_reports_each_test_by_name(tmp_path):
    """The argv is executed as it was approved; the report came through the environment, and both are recorded."""
    (tmp_path / "test_a.py").write_text(
        "import pytest\ndef test_one(): pass\n@pytest.mark.skip\ndef test_two(): pass\n"
    )
    told = run(PYTEST, tmp_path)
    assert (told.verdict, told.tests, told.argv) == ("passed", 1, PYTEST)
    assert (told.report.passed, told.report.skipped) == (("test_a::test_one",), ("test_a::test_two",))
    assert list(told.asked) == ["PYTEST_ADDOPTS"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["test_a.py"]


FORGED = "import os, pathlib, re\nplace = re.search('--junitxml=(\\\\S+)', os.environ['PYTEST_ADDOPTS'])[1]\n"
HOSTILE = {
    "os._exit(0)": ("import os\nos._exit(0)\n", "no_tests", "left no report"),
    "sys.exit(0) at import": ("import sys\nsys.exit(0)\n", "failed", ""),
    "a summary and os._exit(0)": (
        "import os\nprint('=== 100 passed in 1.00s ===', flush=True)\nos._exit(0)\n",
        "no_tests",
        "left no report",
    ),
    "a report in the tree": (
        "import os, pathlib\npathlib.Path('junit.xml').write_text('<testsuites/>')\nos._exit(0)\n",
        "no_tests",
        "left no report",
    ),
    "a link instead of a report": (
        FORGED + "pathlib.Path('own.xml').write_text('<testsuites/>')\n"
        "os.symlink(os.path.abspath('own.xml'), place)\nos._exit(0)\n",
        "no_tests",
        "left no report",
    ),
    "an empty report of its own": (
        FORGED + "pathlib.Path(place).write_text('<testsuites/>')\nos._exit(0)\n",
        "failed",
        "without coming to its summary",
    ),
    "a report of its own and no summary": (
        FORGED
        + "pathlib.Path(place).write_text('<testsuites><testsuite><testcase name=\"a\"/></testsuite></testsuites>')\n"
        "os._exit(0)\n",
        "failed",
        "without coming to its summary",
    ),
    "a report that its summary contradicts": (
        FORGED + "for n in range(3, 20):\n"
        "    try: os.write(n, b'\\n3 passed in 0.01s\\n')\n"
        "    except OSError: pass\n"
        "pathlib.Path(place).write_text('<testsuites><testsuite><testcase name=\"a\"/></testsuite></testsuites>')\n"
        "os._exit(0)\n",
        "failed",
        "its report has 1 tests, its summary ",
    ),
    "all skipped": ("import pytest\n@pytest.mark.skip\ndef test_a(): pass\n", "no_tests", ""),
    "none left": ("def test_a(): pass\ndef pytest_nothing(): pass\n__test__ = False\n", "no_tests", ""),
}


@pytest.mark.parametrize(("content", "verdict", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_test_file_cannot_pass_by_leaving_early(tmp_path, content, verdict, why):
    """Whatever a module does instead of letting its tests run, it is not passed."""
    (tmp_path / "test_a.py").write_text(content)
    told = run(PYTEST, tmp_path)
    assert told.verdict == verdict, told.output
    assert why in told.reason


def test_a_report_that_is_not_a_file_is_none(tmp_path):
    """A pipe or a folder in its place is read as no report, without waiting."""
    for make in (os.mkfifo, os.mkdir):
        place = tmp_path / make.__name__
        place.mkdir()
        make(place / "report.xml")
        report, _ = Asked("pytest", str(place)).heard("")
        assert isinstance(report, Unreadable)


def test_every_execution_has_a_fresh_place():
    """Two executions never share a place, and it is gone afterwards."""
    with asked(PYTEST) as one, asked(PYTEST) as other:
        assert one.folder != other.folder
        assert os.path.isdir(one.folder)
    assert not os.path.exists(one.folder)
    with asked(("true",)) as nothing:
        assert (nothing.env, nothing.heard("x")) == ({}, (None, "x"))


@needs_node
def test_node_reports_each_test_by_name(tmp_path):
    """`node --test` still prints for people, and leaves a report for us."""
    (tmp_path / "a.test.js").write_text(
        "const {test, describe, it} = require('node:test');\n"
        "test('one', () => {}); test('two', {skip: true}, () => {});\n"
        "describe('group', () => { it('bad', () => { throw new Error('boom') }) });\n"
    )
    told = run(("node", "--test"), tmp_path)
    assert (told.verdict, told.tests) == ("failed", 2)
    assert (told.report.passed, told.report.failed) == (("one",), ("group::bad",))
    assert "boom" in told.output


@needs_go
def test_go_reports_each_test_by_name(tmp_path):
    """`go test` tells its events; people read the output they know."""
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.18\n")
    (tmp_path / "a_test.go").write_text(
        'package x\nimport "testing"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Skip() }\n'
    )
    told = run(("go", "test", "./..."), tmp_path, seconds=300)
    assert (told.verdict, told.tests) == ("passed", 1), told.output
    assert (told.report.passed, told.report.skipped) == (("x::TestA",), ("x::TestB",))
    assert "--- PASS: TestA" in told.output

"""Real runners tell what they run, to nobody but us; what is missing, forged or contradicted is no pass."""

import asyncio
import os
import shutil
import sys

import pytest
from tests.support.sample_project import PYTEST_CHECK

from steersman.adapters.checks.local_commands import LocalCommands
from steersman.adapters.checks.runner_reports import ReporterPipe, ReporterSocket, request_report
from steersman.adapters.sandbox.bubblewrap import OpenSandbox, probe_sandbox
from steersman.contracts.commands import Command

PYTEST = (sys.executable, *PYTEST_CHECK[1:])
UNITTEST = (sys.executable, "-m", "unittest")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
BOXES = pytest.mark.parametrize("box", [probe_sandbox(), OpenSandbox("none")], ids=["box", "open"])


def run(argv, workdir, box=None, seconds=60):
    commands = LocalCommands((), box)
    return asyncio.run(commands.run(Command("unit", argv), str(workdir), "none:0:0", seconds))


@BOXES
def test_pytest_tells_each_test_by_name(box, tmp_path):
    """The argv is executed as it was approved; what was asked came through the environment, and both are recorded."""
    (tmp_path / "test_a.py").write_text(
        "import pytest\ndef test_one(): pass\n@pytest.mark.skip\ndef test_two(): pass\n"
    )
    result = run(PYTEST, tmp_path, box)
    assert (result.verdict, result.tests, result.argv) == ("passed", 1, PYTEST)
    assert (result.report.passed, result.report.skipped) == (
        ("test_a.py::test_one",),
        ("test_a.py::test_two",),
    )
    assert list(result.asked) == ["PYTEST_ADDOPTS", "PYTHONPATH", "STEERSMAN_WITNESS"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["test_a.py"]


OTHER = "def test_a(tmp_path):\n    (tmp_path / 'test_x.py').write_text('def test_x(): assert 0')\n"
CLEAN = "    assert not {'PYTEST_ADDOPTS', 'PYTHONPATH', 'STEERSMAN_WITNESS'} & set(os.environ)\n"
STARTS = "    assert subprocess.run([sys.executable, '-m', 'pytest', str(tmp_path)]).returncode == 1\n"
INSIDE = "    assert pytest.main([str(tmp_path), '-p', 'no:cacheprovider']) == 1\n"
ORDINARY = {
    "workers": (("-p", "xdist.plugin", "-n2"), "def test_a(): pass\ndef test_b(): pass\n", 2),
    "dots alone": (("-q",), "def test_a(): pass\n", 1),
    "a report of its own": (("--junitxml=mine.xml",), "def test_a(): pass\n", 1),
    "an expected failure": (
        (),
        "import pytest\ndef test_a(): pass\n@pytest.mark.xfail\ndef test_b(): assert 0\n",
        1,
    ),
    "forks": ((), "import os\ndef test_a():\n    if os.fork() == 0: os._exit(0)\n    os.wait()\n", 1),
    "processes": (
        (),
        "import multiprocessing as m\ndef test_a():\n    p = m.Process(target=print); p.start(); p.join()\n    assert p.exitcode == 0\n",
        1,
    ),
    "a pytest of its own": ((), f"import os, subprocess, sys\n{OTHER}{CLEAN}{STARTS}", 1),
    "a session inside": ((), f"import pytest\n{OTHER}{INSIDE}", 1),
}


@pytest.mark.parametrize(("more", "content", "tests"), ORDINARY.values(), ids=ORDINARY)
def test_ordinary_projects_are_heard(more, content, tests, tmp_path):
    """Workers, forks, processes, sessions inside sessions: what the outermost session ran is what counts."""
    (tmp_path / "test_a.py").write_text(content)
    result = run((*PYTEST, *more), tmp_path, probe_sandbox())
    assert (result.verdict, result.tests) == ("passed", tests), (result.reason, result.output)


FIND = (
    "import os, pathlib, re, subprocess, sys\n"
    "said = open('/proc/self/environ').read().split('\\0')\n"
    "place = next(v for v in said if v.startswith('STEERSMAN_WITNESS=')).partition('=')[2]\n"
    'EVENTS = \'["test", "", "test_a.py::test_a", "call", "passed", false]\', \'["ended", 0, 1]\'\n'
    "LINES = ''.join(f'w {n} {e}\\n' for n, e in enumerate(EVENTS, 1))\n"
    "FORGE = f'''import socket; s = socket.socket(socket.AF_UNIX); s.connect({place!r}); w = s.recv(64).decode();\n"
    "s.sendall({LINES!r}.replace('w', w).encode())'''\n"
    "SUMMARY = b'\\n1 passed in 0.01s\\n'\n"
)
LEAVES = "for n in (1, 2):\n    os.write(n, SUMMARY)\nos._exit(0)\n"
HOSTILE = {
    "os._exit(0) in a test": ("import os\ndef test_a(): os._exit(0)\n", "no_tests", "before its tests"),
    "the wire, taken by its child": (
        FIND + f"subprocess.run([sys.executable, '-c', FORGE])\n{LEAVES}",
        "no_tests",
        "reported nothing",
    ),
    "the wire, opened anew through /proc by a child": (
        FIND + "EACH = f'''import os\nfor n in range(3, 40):\n"
        "    try: os.write(os.open(f'/proc/{os.getpid()}/fd/{{n}}', os.O_WRONLY), {LINES!r}.encode())\n"
        f"    except OSError: pass'''\nsubprocess.run([sys.executable, '-c', EACH])\n{LEAVES}",
        "no_tests",
        "reported nothing",
    ),
    "a word for every descriptor": (
        FIND + f"for n in range(3, 40):\n    try: os.write(n, LINES.encode())\n    except OSError: pass\n{LEAVES}",
        "no_tests",
        "something else than the runner",
    ),
    "leaving with 0 midway": ("import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('x', returncode=0)\ndef test_c(): assert 0\n", "no_tests", "after 1 of 3 tests"),
    "leaving with 0 at the end": ("import atexit, os\natexit.register(lambda: os._exit(0))\ndef test_a(): assert 0\n", "failed", "its exit code is 0"),
    "all skipped": ("import pytest\n@pytest.mark.skip\ndef test_a(): pass\n", "no_tests", ""),
    "none left": ("def test_a(): pass\ndef pytest_nothing(): pass\n__test__ = False\n", "no_tests", ""),
}  # fmt: skip


@pytest.mark.parametrize(("content", "verdict", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_test_file_cannot_pass_by_leaving_early(tmp_path, content, verdict, why):
    """Whatever a module does instead of letting its tests run, it is not passed."""
    (tmp_path / "test_a.py").write_text(content)
    result = run(PYTEST, tmp_path, probe_sandbox())
    assert result.verdict == verdict, (result.reason, result.output)
    assert why in result.reason


def test_without_a_box_the_wire_is_had_once_too(tmp_path):
    """A child that connects to the real place finds nobody there."""
    content, verdict, why = HOSTILE["the wire, taken by its child"]
    (tmp_path / "test_a.py").write_text(content)
    result = run(PYTEST, tmp_path)
    assert (result.verdict, why in result.reason) == (verdict, True), (result.reason, result.output)


CASE = "import os, unittest\nclass A(unittest.TestCase):\n    def test_a(self): "
SAYS = "os.write(2, b'Ran 1 test in 0.0s\\n\\nOK\\n')\n"
UNIT = {
    "one": (CASE + "pass\n", "passed", ("test_a.A.test_a",), ""),
    "a class that is skipped": (
        CASE + "pass\nclass B(unittest.TestCase):\n"
        "    def setUpClass(): raise unittest.SkipTest('x')\n    def test_b(self): pass\n",
        "passed",
        ("test_a.A.test_a",),
        "",
    ),
    "a run inside": (
        CASE + "unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(B))\n"
        "class B(unittest.TestCase):\n    def runTest(self): self.fail()\n"
        "def load_tests(loader, tests, pattern): return unittest.TestSuite([A('test_a')])\n",
        "passed",
        ("test_a.A.test_a",),
        "",
    ),
    "a part that fails": (CASE + "\n        with self.subTest(): self.fail()\n", "failed", (), ""),
    "an expected failure": (CASE.replace("def", "@unittest.expectedFailure\n    def") + "self.fail()\n", "no_tests", (), ""),
    "an unexpected success": (CASE.replace("def", "@unittest.expectedFailure\n    def") + "pass\n", "failed", (), ""),
    "an error": (CASE + "1 / 0\n", "failed", (), ""),
    "all skipped": (CASE + "self.skipTest('x')\n", "no_tests", (), ""),
    "a module that is skipped": ("import unittest\nraise unittest.SkipTest('x')\n", "no_tests", (), ""),
    "a summary and os._exit(0)": (f"import os\n{SAYS}os._exit(0)\n", "no_tests", None, "reported nothing"),
    "the same in a test": (f"{CASE}\n        {SAYS}        os._exit(0)\n", "no_tests", None, "reported nothing"),
    "the same in the second": (f"{CASE}pass\n    def test_b(self):\n        {SAYS}        os._exit(0)\n", "no_tests", None, "before its tests"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "verdict", "passed", "why"), UNIT.values(), ids=UNIT)
def test_unittest_tells_each_test_by_name(content, verdict, passed, why, tmp_path):
    """unittest has no report of its own: a reporter beside it reports what it runs, and nothing passes without its end."""
    (tmp_path / "test_a.py").write_text(content)
    result = run(UNITTEST, tmp_path, probe_sandbox())
    assert result.verdict == verdict, (result.reason, result.output)
    assert why in result.reason
    assert (result.report and result.report.passed) == passed


def test_what_was_there_at_the_start_of_an_interpreter_still_is(tmp_path):
    """A `sitecustomize` of the environment is loaded, by a launcher that is Python as by the runner itself."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import os\nos.environ['THERE'] = 'yes'\n")
    (tmp_path / "coverage").write_text(
        "import runpy, sys\nsys.argv = sys.argv[3:]\nsys.path.insert(0, '')\n"
        "runpy.run_module('unittest', run_name='__main__', alter_sys=True)\n"
    )
    (tmp_path / "test_a.py").write_text(CASE + "self.assertEqual(os.environ['THERE'], 'yes')\n")
    again = f"PYTHONPATH=$PYTHONPATH:{tmp_path}/site exec"
    for line in (
        f"{again} {sys.executable} -X dev -m unittest",
        f"{again} {sys.executable} coverage run -m unittest",
        f"{again} {sys.executable} -c \"import os; os.execvp({sys.executable!r}, ['python', '-m', 'unittest'])\"",
    ):
        result = run(("env", "sh", "-c", line, "-m", "unittest"), tmp_path)
        assert (result.verdict, result.tests) == ("passed", 1), (line, result.reason, result.output)


def test_an_interpreter_that_hears_nothing_is_counted_by_its_summary(tmp_path):
    """`-I` leaves the environment alone: nothing is told, and nothing breaks."""
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    result = run((sys.executable, "-I", *PYTEST[1:]), tmp_path)
    assert (result.verdict, result.tests, result.report) == ("passed", 1, None), result.output


def test_every_execution_has_a_fresh_place():
    """Two executions never share a place, and it is gone afterwards; who needs none has none."""

    async def both():
        with request_report(PYTEST) as one, request_report(PYTEST) as other:
            return [(told.folder, os.listdir(told.folder)) for told in (one, other)]

    (one, there), (other, _) = asyncio.run(both())
    assert one != other
    assert sorted(there) == ["steersman_integrity.py", "steersman_wire.py", "steersman_witness.py", "wire"]
    assert not os.path.exists(one)
    with request_report(()) as nothing:
        assert (nothing.env, nothing.read_report("x")) == ({}, (None, "x"))


def test_a_runner_behind_another_program_is_heard(tmp_path):
    """Where it is the only one its report counts; one that ends before its tests do has proven nothing."""
    (tmp_path / "test_a.py").write_text(CASE + "pass\n\n\nif __name__ == '__main__':\n    unittest.main()\n")
    (tmp_path / "test_b.py").write_text("def test_b(): pass\n")
    python = sys.executable
    for words in (f"{python} -m unittest test_a", f"{python} test_a.py", f"{python} -m pytest -q test_b.py"):
        result = run(("sh", "-c", words), tmp_path)
        assert (result.verdict, result.tests, result.report is not None) == ("passed", 1, True), (
            words,
            result.output,
        )
    result = run(
        ("sh", "-c", f"{python} test_a.py && {python} test_a.py && echo 'Ran 2 tests in 0.1s'"), tmp_path
    )
    assert (result.verdict, result.report) == ("passed", None)
    result = run(("sh", "-c", "echo 'Ran 1 test in 0.1s'"), tmp_path)
    assert (result.verdict, result.tests, result.report) == ("passed", 1, None)
    (tmp_path / "test_a.py").write_text(
        "import os\nprint('Ran 1 test in 0.1s\\n\\nOK', flush=True)\nos._exit(0)  # unittest.main\n"
    )
    result = run(("sh", "-c", f"{python} test_a.py"), tmp_path)
    assert (result.verdict, result.tests) == ("no_tests", None)


def test_what_is_told_is_bounded(tmp_path):
    """However much comes, the teller does not wait and not more is kept than the limit and one byte."""

    async def talk():
        wire, pipe = ReporterSocket(str(tmp_path / "w"), "word", 10), ReporterPipe(str(tmp_path / "p"), 10)
        with wire.open(), pipe.open():
            reader, writer = await asyncio.open_unix_connection(tmp_path / "w")
            assert await reader.read(4) == b"word"
            writer.write(b"x" * 1_000_000)
            await writer.drain()
            writer.close()
            await asyncio.to_thread((tmp_path / "p").write_bytes, b"y" * 1_000_000)
            with pytest.raises(OSError, match=r"[Rr]efused|No such file"):
                await asyncio.open_unix_connection(tmp_path / "w")
            assert not (tmp_path / "p").exists()
            return wire.received_text(), pipe.received_text()

    assert asyncio.run(talk()) == (b"x" * 11, b"y" * 11)


@needs_node
@BOXES
def test_node_reports_each_test_by_name(box, tmp_path):
    """`node --test` still prints for people, and reports to us; a file without tests is none."""
    (tmp_path / "a.test.js").write_text(
        "const {test, describe, it} = require('node:test');\n"
        "test('one', () => {}); test('two', {skip: true}, () => {});\n"
        "describe('group', () => { it('bad', () => { throw new Error('boom') }) });\n"
    )
    result = run(("node", "--test"), tmp_path, box)
    assert (result.verdict, result.tests) == ("failed", 2)
    assert (result.report.passed, result.report.failed) == (("one",), ("group::bad",))
    assert "boom" in result.output
    (tmp_path / "a.test.js").write_text("// nothing\n")
    result = run(("node", "--test"), tmp_path, box)
    assert (result.verdict, result.report.empty) == ("no_tests", ("a.test.js",))
    (tmp_path / "a.test.js").write_text("throw new Error('boom')\n")
    result = run(("node", "--test"), tmp_path, box)
    assert (result.verdict, result.report.broken) == ("failed", ("a.test.js",))


MEDDLES = {
    "in its place": "try { fs.unlinkSync(place) } catch {}\ntry { fs.writeFileSync(place, forged) } catch {}\n",
    "between its words": "for (let n = 3; n < 40; n++)\n"
    "    try { const at = `/proc/${process.ppid}/fd/${n}`;\n"
    "        if (fs.readlinkSync(at).includes('report.xml')) fs.writeFileSync(at, forged) } catch {}\n",
}


@needs_node
@pytest.mark.parametrize("meddle", MEDDLES.values(), ids=MEDDLES)
@BOXES
def test_node_is_not_talked_over(box, meddle, tmp_path):
    """A test file that puts a report in the real one's place, or writes into it, and leaves with 0 is no pass."""
    (tmp_path / "a.test.js").write_text(
        "const fs = require('fs');\n"
        'const place = /destination="([^"]*report.xml)"/.exec(process.env.NODE_OPTIONS)[1];\n'
        'const forged = \'<testsuites><testcase name="a" classname="test"/></testsuites>\';\n'
        f"{meddle}process.exit(0);\n"
    )
    result = run(("node", "--test"), tmp_path, box)
    assert result.verdict in ("no_tests", "failed"), (result.report, result.reason, result.output)
    assert "ℹ pass 1" in result.output


@needs_go
@pytest.mark.parametrize("more", [(), ("-json",)], ids=["asked", "by itself"])
def test_go_reports_each_test_by_name(more, tmp_path):
    """`go test` tells its events, whoever asked for them; people read the output they know, and none is no pass."""
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.18\n")
    (tmp_path / "a_test.go").write_text(
        'package x\nimport "testing"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Skip() }\n'
    )
    result = run(("go", "test", *more, "./..."), tmp_path, seconds=300)
    assert (result.verdict, result.tests) == ("passed", 1), result.output
    assert (result.report.passed, result.report.skipped) == (("x::TestA",), ("x::TestB",))
    assert "--- SKIP: TestB" in result.output
    assert "TestA" not in result.output
    (tmp_path / "a_test.go").write_text("package x\n")
    assert run(("go", "test", *more, "./..."), tmp_path, seconds=300).verdict == "no_tests"


PRINTS = 'fmt.Print("=== RUN   TestA\\n--- PASS: TestA (0.00s)\\nPASS\\n")'
GO = 'package x\n\nimport (\n\t"fmt"\n\t"os"\n\t"syscall"\n)\n\nvar _, _, _ = fmt.Print, os.Exit, syscall.Exit\n\n'
WRONG = "func Add(a, b int) int { return a - b }\n"
GO_LEAVES = {
    "at its start": (f"func init() {{ {PRINTS}; code := 0; os.Exit(code) }}\n{WRONG}", "no_tests", "before its tests"),
    "in a test": (
        f"func Add(a, b int) int {{ {PRINTS}; syscall.Exit(0); return 0 }}\n", "no_tests", "before its tests",
    ),
    "without a word": (f"func init() {{ os.Exit(0) }}\n{WRONG}", "no_tests", ""),
    "not at all": (f"func init() {{ {PRINTS} }}\n{WRONG}", "failed", ""),
}  # fmt: skip


@needs_go
@pytest.mark.parametrize(("product", "verdict", "why"), GO_LEAVES.values(), ids=GO_LEAVES)
def test_a_go_test_cannot_pass_by_leaving_early(product, verdict, why, tmp_path):
    """What a test binary prints before it leaves with 0 proves nothing: its tests had not come to their end."""
    (tmp_path / "go.mod").write_text("module x\n\ngo 1.18\n")
    (tmp_path / "a.go").write_text(GO + product)
    (tmp_path / "a_test.go").write_text(
        'package x\nimport "testing"\nfunc TestA(t *testing.T) { if Add(2, 3) != 5 { t.Fatal("no") } }\n'
    )
    result = run(("go", "test", "-vet=off", "./..."), tmp_path, seconds=300)
    assert result.verdict == verdict, (result.reason, result.output)
    assert why in result.reason


ORDINARY_GO = {
    "go.mod": "module x\n\ngo 1.18\n",
    "a_test.go": 'package x\nimport (\n\t"os"\n\t"os/exec"\n\t"testing"\n)\n'
    "func TestMain(m *testing.M) { os.Exit(m.Run()) }\n"
    'func TestA(t *testing.T) {\n\tif os.Getenv("GOFLAGS") != "" { t.Fatal("asked too") }\n'
    '\tif err := exec.Command(os.Args[0], "-test.run=None").Run(); err != nil { t.Fatal(err) }\n}\n',
    "left/a_test.go": 'package left\nimport (\n\t"os"\n\t"testing"\n)\n'
    "func TestMain(m *testing.M) { os.Exit(0) }\nfunc TestB(t *testing.T) {}\n",
    "lib/lib.go": "package lib\nconst X = 1\n",
}


@needs_go
def test_an_ordinary_go_project_is_heard(tmp_path):
    """A TestMain, a package that leaves without a test, a program that a test starts, a build that fails."""
    for name, text in ORDINARY_GO.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = run(("go", "test", "./..."), tmp_path, seconds=300)
    assert (result.verdict, result.tests, result.report.empty) == ("passed", 1, ("x/lib",)), result.output
    (tmp_path / "lib" / "lib.go").write_text("package lib\nconst X = nope\n")
    result = run(("go", "test", "./..."), tmp_path, seconds=300)
    assert (result.verdict, result.report.broken) == ("failed", ("x/lib [build failed]",)), result.output

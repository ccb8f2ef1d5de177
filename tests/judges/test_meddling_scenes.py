"""Texts that meddle, in whole trees: with what stands beside them, and with the checks they are judged by."""

import pytest
from test_evidence_scenes import NPM, PYTEST, judged

from steersman.contracts.workspace import Text, Touched
from steersman.judges.changes import Scene, suspects

GO = ("go", "test", "./...")
RATE = "package p\n\nvar rate = 3\n"
GATED = {
    "a new test that sets its package": ({"p/rate.go": RATE}, {"p/new_test.go": "package p\n\nfunc TestA(t *testing.T) {\n\trate = 5\n}\n"}, GO, "line 4 changes rate for everybody"),
    "a new test of mocha's that sets what it requires": ({"calc.js": ""}, {"test/new.test.js": "const calc = require('../calc');\nbefore(() => {\n  calc.add = f;\n});\n"}, NPM, "line 3 changes it for everybody"),
    "a library that ends its process behind a summary": ({"a.py": ""}, {"a.py": "import sys\n\n\ndef add(a, b):\n    sys.exit(a)\n"}, ("make", "test"), "line 5 ends the process as a success"),
}  # fmt: skip
OPEN = {
    "a new test that puts back what it sets": ({"p/rate.go": RATE}, {"p/new_test.go": "package p\n\nfunc TestA(t *testing.T) {\n\told := rate\n\tt.Cleanup(func() { rate = old })\n\trate = 5\n}\n"}, GO),
    "a library whose check would miss its end": ({"a.py": ""}, {"a.py": "import sys\n\n\ndef give_up(code):\n    sys.exit(code)\n"}, PYTEST),
    "a program of go": ({"main.go": "package main\n"}, {"main.go": "package main\n\nfunc main() {\n\tos.Exit(run())\n}\n"}, GO),
    "settings of an application": ({"app.py": ""}, {"tests/test_new.py": "from app import app\n\napp.testing = True\napp.config['X'] = 1\n"}, PYTEST),
}  # fmt: skip


@pytest.mark.parametrize("name", GATED)
def test_a_text_that_meddles_waits_for_a_person(name):
    """What its other files declare, and what its checks would miss, is known."""
    base, edits, check, why = GATED[name]
    assert judged(base, edits, check) == dict.fromkeys(edits, why)


@pytest.mark.parametrize("name", OPEN)
def test_ordinary_work_waits_for_nobody(name):
    """Restores, settings, programs that end themselves, checks that would notice."""
    base, edits, check = OPEN[name]
    assert judged(base, edits, check) == {}


def test_what_sets_a_tree_up_proves_nothing():
    """It has no summary that anybody could forge: only the checks are asked whether they would miss their end."""
    text = Text("a.py", "import sys\n\n\ndef give_up(code):\n    sys.exit(code)\n")
    touched = [Touched("a.py", "", "b")]
    scene = Scene(new={"a.py": text})
    setup = ("npm", "install")
    assert suspects(touched, [PYTEST, setup], scene, [PYTEST]) == ()
    assert [s.path for s in suspects(touched, [PYTEST, setup], scene)] == ["a.py"]

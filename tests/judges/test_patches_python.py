"""Patches that stay, and patches that are taken back."""

import pytest

from steersman.judges.meddling_python import Around, looked_through

LEFT = [
    ("def setup_module():\n    patcher = mock.patch('calc.add', f)\n    patcher.start()", 3),
    ("p = mock.patch('calc.add')\np.start()", 2),
    ("def test_nonstop():\n    mock.patch('calc.add', f).start()", 2),
    ("def test():\n    p = mock.patch('a')\n    p.start()\ndef test_b():\n    p = mock.patch('b')\n    p.start()\n    p.stop()", 3),
    ("def test():\n    mock.patch('calc.add', f).__enter__()", 2),
    ("def test():\n    (p := mock.patch('calc.add')).start\n    p.__enter__()\n    mock.patch.stopall()", 3),
    ("def _p():\n    p = mock.patch('calc.add', f)\n    p.start()\n_p()", 3),
    ("class T:\n    def setUp(self):\n        self.p = mock.patch.object(calc, 'add')\n        self.p.start()\n        self.q.stop()", 4),
    ("ALL = [mock.patch('a')]", 1),
    ("def setUp():\n    for p in [mock.patch('a')]:\n        p.start()", 3),
    ("mock.patch('a')", 1),
    ("def test():\n    mp = pytest.MonkeyPatch()\n    mp.setattr('calc.add', f)", 2),
    ("def test():\n    pytest.MonkeyPatch().setattr('calc.add', f)", 2),
    ("@pytest.fixture(scope='session', autouse=True)\ndef p():\n    with mock.patch('calc.add', f):\n        yield", 3),
]  # fmt: skip
TAKEN_BACK = [
    "def setUp(self):\n    p = mock.patch('calc.add')\n    p.start()\n    self.addCleanup(p.stop)",
    "def setup_module():\n    global p\n    p = mock.patch('a')\n    p.start()\ndef teardown_module():\n    p.stop()",
    "class T:\n    def setUp(self):\n        self.p = mock.patch('a')\n        self.m = self.p.start()\n    def tearDown(self):\n        self.p.stop()",
    "def setUp(self):\n    self.m = mock.patch('a').start()\n    self.addCleanup(mock.patch.stopall)",
    "def test():\n    with mock.patch('a') as m, mock.patch('b'):\n        pass\nasync def test_b():\n    async with mock.patch('a'): pass",
    "def test():\n    p = mock.patch('a')\n    with p:\n        p.start",
    "def test():\n    stack.enter_context(mock.patch('a'))\n    x.start()\n    thread().start()",
    "def setUp():\n    for p in PATCHES:\n        p.start()\ndef tearDown():\n    for p in PATCHES:\n        p.stop()\n@mock.patch('a')\ndef test(): pass",
    "def test():\n    for t in threads:\n        t.start()\n    for t in threads:\n        t.join()\n@mock.patch('a')\nclass T: pass",
    "def test():\n    for t in threads:\n        t.start()",
    "needs = mock.patch('a')\n@needs\ndef test(): pass",
    "with mock.patch.dict(os.environ, A='1'):\n    import app",
    "def test():\n    mp = pytest.MonkeyPatch()\n    mp.setattr('a', f)\n    mp.undo()",
    "@pytest.fixture(scope='module')\ndef m():\n    with pytest.MonkeyPatch.context() as mp:\n        yield mp",
    "@pytest.fixture\n@other('x', scope=name)\ndef p(mocker):\n    mocker.patch('calc.add')",
]  # fmt: skip


def lines(text):
    found = looked_through(f"from unittest import mock; import pytest\n{text}\n", Around(test=True))
    return [f.line - 1 for f in found if f.what == "patches for the whole process"]


@pytest.mark.parametrize(("text", "line"), LEFT)
def test_a_patch_that_stays_is_told(text, line):
    """Whatever stands elsewhere, this one is never stopped."""
    assert lines(text) == [line]


@pytest.mark.parametrize("text", TAKEN_BACK)
def test_a_patch_that_is_taken_back_is_ordinary(text):
    """By its own stop, by all stops, by `with`, as a decorator."""
    assert lines(text) == []

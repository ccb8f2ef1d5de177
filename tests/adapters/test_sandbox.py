"""Programs in a real box: what they can write, read, see and use."""

import asyncio
import os
import resource
import subprocess
import sys
import time

import pytest

from steersman.adapters.process.program_runner import alive, run_program
from steersman.adapters.sandbox import bubblewrap as sandboxes
from steersman.adapters.sandbox import sandbox_init
from steersman.adapters.sandbox.bubblewrap import OpenSandbox, SandboxPolicy, probe_sandbox
from steersman.errors import UserError
from steersman.ports.sandbox import BindMount

PY = sys.executable


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A home with a secret and a state directory in it, and a working tree that is in neither."""
    home = tmp_path / "home"
    state = home / "state"
    (state / "steersman" / "project-1" / "worktrees" / "r" / "1").mkdir(parents=True)
    (state / "steersman" / "project-1" / "store.db").write_text("the store")
    (home / "secret").write_text("the secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return tmp_path


@pytest.fixture
def tree(house):
    """A working tree where real ones are: below the state directory."""
    return house / "home" / "state" / "steersman" / "project-1" / "worktrees" / "r" / "1"


async def boxed(sandbox, argv, box, cwd, env=None, seconds=30.0, effect="none:0:0"):
    given = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **(env or {})}
    async with sandbox.wrap(argv, box, given, str(cwd)) as found:
        here = "/" if str(cwd).startswith("/steersman") else str(cwd)
        done = await run_program(found.argv, here, found.env, seconds, effect, doors=found.doors)
        return done, list(found.refused)


def run(sandbox, code, box, cwd, **more):
    """What a piece of Python in a box printed; it has to end well."""
    done, _ = asyncio.run(boxed(sandbox, (PY, "-c", code), box, cwd, **more))
    assert done.exit_code == 0, done.output.decode()
    return done.output.decode().strip()


def test_an_interpreter_that_was_called_by_a_relative_path(sandbox, tmp_path):
    """A box starts although the way to the interpreter leads up and down again through places it does not show."""
    way = os.path.relpath(os.path.dirname(PY), tmp_path)
    code = "import sys; from steersman.adapters.sandbox.bubblewrap import probe_sandbox; print(sys.executable, probe_sandbox('required').isolated)"
    said = subprocess.run(
        [os.path.join(way, os.path.basename(PY)), "-c", code], cwd=tmp_path, capture_output=True, check=True
    )
    executable, isolated = said.stdout.decode().split()
    assert ".." in executable
    assert isolated == "True"


TRIES = """
import os, sys
for path in sys.argv[1:]:
    try:
        if os.path.isdir(path):
            path = os.path.join(path, "planted")
        with open(path, "a") as file: file.write("x")
        print("written", path)
    except OSError as error:
        print("refused", path)
"""


def test_only_what_a_box_names_can_be_written(sandbox, house, tree):
    """The tree takes a file; the system, the store and a neighbour tree do not; in /tmp there is nothing of the user's."""
    other = tree.parent / "2"
    other.mkdir()
    user = house / "elsewhere"
    user.mkdir()
    store = tree.parents[2] / "store.db"
    argv = (PY, "-c", TRIES, str(tree), "/usr", "/etc", "/etc/passwd", "/", str(other), str(store), str(user))
    done, _ = asyncio.run(boxed(sandbox, argv, SandboxPolicy(writes=(str(tree),)), tree))
    lines = done.output.decode().splitlines()
    assert lines[0] == f"written {tree}/planted"
    assert [line.split()[0] for line in lines[1:7]] == ["refused"] * 6
    assert [path.name for path in tree.iterdir()] == ["planted"]
    assert (store.read_text(), list(other.iterdir()), list(user.iterdir())) == ("the store", [], [])


def test_a_tree_that_is_only_read_stays_as_it_is(sandbox, tree):
    """A reviewer's tree can be read and not written."""
    (tree / "a.py").write_text("a = 1\n")
    argv = (PY, "-c", TRIES + "print(open('a.py').read())", str(tree), "a.py")
    done, _ = asyncio.run(boxed(sandbox, argv, SandboxPolicy(reads=(str(tree),)), tree))
    assert done.output.decode().split() == ["refused", f"{tree}/planted", "refused", "a.py", "a", "=", "1"]
    assert [path.name for path in tree.iterdir()] == ["a.py"]


def test_the_home_is_empty_and_what_is_written_there_is_gone(sandbox, house, tree):
    """A program may use its home; it finds nothing of the user's there and leaves nothing."""
    code = (
        "import os; h = os.path.expanduser('~'); print('secret' in os.listdir(h), os.path.exists('%s'));"
        " open(h + '/mine', 'w').write('x')" % (house / "home/state/steersman/project-1/store.db")
    )
    assert run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree) == "False False"
    assert sorted(os.listdir(house / "home")) == ["secret", "state"]


def test_tmp_is_private_and_run_is_empty(sandbox, tmp_path, tree):
    """Temporary files of others are not seen, sockets of the system neither; /tmp takes files."""
    marker = tmp_path / "marker"
    marker.write_text("x")
    code = (
        f"import os, tempfile; print(os.path.exists({str(marker)!r}), os.listdir('/run'), os.listdir('/var/tmp'));"
        "print(tempfile.mkstemp()[1].startswith('/tmp/'))"
    )
    assert run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree) == "False [] []\nTrue"


def test_other_processes_are_neither_seen_nor_reached(sandbox, tree):
    """A box has its own process numbers: ours is not among them, and no signal gets to it."""
    code = (
        "import os; pids = [int(n) for n in os.listdir('/proc') if n.isdigit()]; print(len(pids) < 10)\n"
        f"try: os.kill({os.getpid()}, 0); print('reached')\nexcept ProcessLookupError: print('nobody')"
    )
    assert os.getpid() > 20
    assert run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree) == "True\nnobody"


def test_nobody_in_a_box_has_rights(sandbox, tree):
    """No capability, no further user namespace, and nothing in /proc that changes the machine can be written."""
    code = (
        "import os, subprocess\n"
        "status = dict(l.split(':\\t') for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)\n"
        "print({status[n] for n in ('CapPrm', 'CapEff', 'CapBnd', 'CapAmb')}, status['NoNewPrivs'])\n"
        "own = {'self', 'thread-self', *(n for n in os.listdir('/proc') if n.isdigit())}\n"
        "top = [n for n in os.listdir('/proc') if n not in own and os.access('/proc/' + n, os.W_OK)]\n"
        "deep = [f for d, _, fs in os.walk('/proc/sys') for f in fs if os.access(d + '/' + f, os.W_OK)]\n"
        "print(top, deep)\n"
        "print(subprocess.run(['unshare', '--user', 'true'], capture_output=True).returncode != 0)"
    )
    assert (
        run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree) == "{'0000000000000000'} 1\n[] []\nTrue"
    )


def test_limits_bind(sandbox, tree):
    """Core files, file sizes and memory are bounded, for the program and for what it starts."""
    code = (
        "import resource as r; print(*(r.getrlimit(k)[1] for k in (r.RLIMIT_CORE, r.RLIMIT_FSIZE, r.RLIMIT_DATA)))\n"
        "try: bytearray(16 << 30); print('got it')\nexcept MemoryError: print('too much')"
    )
    core, size, memory, told = run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree).split(maxsplit=3)
    assert (core, told) == ("0", "too much")
    assert int(size) == sandboxes.DEFAULT_DISK_GB << 30
    assert 0 < int(memory) <= sandboxes.DEFAULT_MEMORY_GB << 30
    assert resource.getrlimit(resource.RLIMIT_DATA)[1] == resource.RLIM_INFINITY


def test_a_project_may_set_how_much_memory_a_process_fills(sandbox, tree):
    """Less, or more; never more than three quarters of what the machine has."""
    code = "import resource as r; print(r.getrlimit(r.RLIMIT_DATA)[1])"
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    for asked in (1, 4096):
        result = run(probe_sandbox("auto", memory_gb=asked), code, SandboxPolicy(writes=(str(tree),)), tree)
        assert int(result) == min(asked << 30, machine)


def test_nothing_in_the_environment_leads_out(sandbox, tree):
    """What was given arrives; sockets of the user's session and steersman's own names do not."""
    given = {"COLOUR": "blue", "SSH_AUTH_SOCK": "/run/x", "XDG_RUNTIME_DIR": "/run/u", "STEERSMAN_TOKEN": "t"}
    code = "import os; print(sorted(os.environ))"
    seen = set(eval(run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree, env=given)))  # noqa: S307  our own list
    assert seen - {"STEERSMAN_EFFECT", "STEERSMAN_CALL", "LC_CTYPE", "PWD"} == {
        "PATH", "HOME", "TMPDIR", "COLOUR",
    }  # fmt: skip


def test_a_place_for_temporary_files_is_kept_where_it_can_be_written(sandbox, tree):
    """One inside what the box may write stays; any other becomes the box's own /tmp."""
    code, box = "import os; print(os.environ['TMPDIR'])", SandboxPolicy(writes=(str(tree),))
    (tree / "mine").mkdir()
    assert run(sandbox, code, box, tree, env={"TMPDIR": f"{tree}/mine"}) == f"{tree}/mine"
    assert run(sandbox, code, box, tree, env={"TMPDIR": f"{tree}-beside"}) == os.path.join(os.sep, "tmp")


def test_a_home_behind_a_link_is_there_by_its_name(sandbox, house, tree, monkeypatch):
    """Whichever way the home is named, it is there, empty."""
    (house / "link").symlink_to(house / "home")
    monkeypatch.setenv("HOME", str(house / "link"))
    code = "import os; print(os.listdir(os.environ['HOME']), os.path.exists(os.environ['HOME'] + '/secret'))"
    assert run(sandbox, code, SandboxPolicy(writes=(str(tree),)), tree) == "[] False"


def test_what_path_names_is_shown_and_nothing_beside_it(sandbox, house, tree, monkeypatch):
    """A toolchain in the home can be used; a PATH through the home or the state shows neither."""
    tools = house / "home" / "tools" / "bin"
    tools.mkdir(parents=True)
    (tools / "hello").write_text("#!/bin/sh\necho hello\n")
    (tools / "hello").chmod(0o755)
    state = house / "home" / "state" / "steersman" / "project-1"
    monkeypatch.setenv("PATH", f"{tools}:{house}/home:{state}:{os.environ['PATH']}")
    script = f"hello; cat {house}/home/secret || echo no secret; cat {state}/store.db || echo no store"
    done, _ = asyncio.run(boxed(sandbox, ("sh", "-c", script), SandboxPolicy(writes=(str(tree),)), tree))
    said = [line for line in done.output.decode().splitlines() if not line.startswith("cat:")]
    assert said == ["hello", "no secret", "no store"]


def test_the_end_of_a_program_is_told_as_it_was(sandbox, tree):
    """Its exit code comes through; a missing program is 127, one that may not run is 126."""
    box = SandboxPolicy(writes=(str(tree),))
    (tree / "self").write_text("#!/bin/sh\n")
    for argv, code in (
        ((PY, "-c", "raise SystemExit(7)"), 7),
        (("no-such-program",), 127),
        (("./self",), 126),
        ((PY, "-c", "import os; os.kill(os.getpid(), 9)"), 137),
    ):
        assert asyncio.run(boxed(sandbox, argv, box, tree))[0].exit_code == code


@pytest.mark.parametrize("name", ["with space", "-dash", "new\nline", "käse", "#", "a:b"])
def test_odd_names_are_names(sandbox, tree, name):
    """A tree may be called anything."""
    odd = tree.parent / name
    odd.mkdir()
    assert run(sandbox, "import os; print(os.getcwd())", SandboxPolicy(writes=(str(odd),)), odd) == str(odd)


def test_a_box_ends_with_who_started_it(sandbox, tree):
    """When steersman is killed, everything in its boxes is gone with it, whatever it had ignored."""
    effect = f"gone{os.getpid()}:1:1"
    code = (
        "import asyncio, sys, os\nfrom steersman.adapters.process.program_runner import run_program\n"
        "from steersman.adapters.sandbox.bubblewrap import SandboxPolicy, probe_sandbox\n"
        "async def go():\n"
        f" argv = ('sh', '-c', 'trap \"\" TERM HUP; setsid sleep 300 & sleep 300')\n"
        f" async with probe_sandbox('auto').wrap(argv, SandboxPolicy(writes=({str(tree)!r},)), {{'PATH': os.environ['PATH']}}, {str(tree)!r}) as b:\n"
        f"  await run_program(b.argv, {str(tree)!r}, b.env, 300, {effect!r}, doors=b.doors)\n"
        "asyncio.run(go())\n"
    )
    driver = subprocess.Popen((PY, "-c", code), stdin=subprocess.DEVNULL)
    try:
        _until(lambda: len(_sleepers(effect)) == 2)
    finally:
        driver.kill()
        driver.wait()
    _until(lambda: not alive(effect))


def _sleepers(effect):
    found = []
    for pid in alive(effect):
        try:
            with open(f"/proc/{pid}/comm") as file:
                found += [pid] if file.read() == "sleep\n" else []
        except OSError:
            continue
    return found


def _until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_place_is_shown_at_another_path(sandbox, tree):
    """A bind shows a directory elsewhere, read-only or writable, and one inside another counts more."""
    (tree / "inner").mkdir()
    other = tree.parent / "other"
    other.mkdir()
    binds = (
        BindMount(str(tree), "/steersman/project"),
        BindMount(str(other), "/steersman/project/inner", writable=True),
    )
    argv = (PY, "-c", TRIES, "/steersman/project", "/steersman/project/inner")
    done, _ = asyncio.run(
        boxed(sandbox, argv, SandboxPolicy(binds=binds, tree=str(tree)), "/steersman/project")
    )
    assert [line.split()[0] for line in done.output.decode().splitlines()] == ["refused", "written"]
    assert os.listdir(other)
    assert os.listdir(tree / "inner") == []


@pytest.mark.parametrize("what", ["home", "home/state", "home/state/steersman/project-1", "", "nowhere"])
def test_what_holds_the_state_cannot_be_named(sandbox, house, tree, what):
    """Neither the home, the state, the store nor anything around them gets into a box, readable or writable."""
    for box in (SandboxPolicy(writes=(str(house / what),)), SandboxPolicy(reads=(str(house / what),))):
        with pytest.raises(ValueError, match="cannot be in a sandbox"):
            asyncio.run(boxed(sandbox, ("true",), box, tree))


def test_the_store_itself_cannot_be_named(sandbox, tree):
    """Also by its own path, or behind a link."""
    store = tree.parents[2] / "store.db"
    (tree / "link").symlink_to(store)
    for path in (store, tree / "link"):
        with pytest.raises(ValueError, match="only working trees, homes and programs"):
            asyncio.run(boxed(sandbox, ("true",), SandboxPolicy(reads=(str(path),)), tree))


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without bubblewrap."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_bubblewrap_it_is_said(nowhere):
    """auto goes on without a box and says why; required starts nothing and says what to do."""
    sandbox = probe_sandbox("auto")
    assert not sandbox.isolated
    assert sandbox.why == "bubblewrap is not installed"
    assert "install the package `bubblewrap`" in sandbox.fix
    with pytest.raises(UserError, match='mode = "required", but bubblewrap is not installed: install'):
        probe_sandbox("required")


def test_a_bubblewrap_that_cannot_start_anything_is_none(nowhere, tmp_path):
    """What counts is a program that ran in a box, not a program called bwrap."""
    (tmp_path / "bwrap").write_text(
        "#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n"
    )
    (tmp_path / "bwrap").chmod(0o755)
    sandbox = probe_sandbox("auto")
    assert not sandbox.isolated
    assert sandbox.why == "bubblewrap cannot start a program here"
    assert "No permissions to create new namespace" in sandbox.fix


def test_a_sandbox_that_is_switched_off_says_so(tree):
    """off boxes nothing, on any machine."""
    sandbox = probe_sandbox("off")
    assert isinstance(sandbox, OpenSandbox)
    assert "switched off" in sandbox.why
    done, _ = asyncio.run(boxed(sandbox, (PY, "-c", "print(1)"), SandboxPolicy(), tree))
    assert done.output == b"1\n"


@pytest.mark.parametrize(("limits", "why"), [("cords=1", "no limit called 'cords'"), ("nofile=-5", "")])
def test_a_box_that_cannot_be_closed_runs_nothing(tmp_path, limits, why):
    """A limit that cannot be taken is told, and the program is not started without it."""
    mark = tmp_path / "mark"
    argv = [PY, "-I", "-S", sandbox_init.__file__, limits, "", "", "touch", str(mark)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == sandbox_init.EXIT_CANNOT_RUN
    assert "cannot set up the sandbox" in done.stderr
    assert why in done.stderr
    assert not mark.exists()

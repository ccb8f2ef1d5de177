"""Questions answered one by one at a real terminal."""

import os
import pty
import select
import time

import pytest
from tests.support.plan_project import PLANNED_FILE, PlanProject
from tests.support.sample_project import STEERSMAN_COMMAND


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, project, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(project.repo)
            os.execve(STEERSMAN_COMMAND[0], [*STEERSMAN_COMMAND, *words], {**project.env, "TERM": "dumb"})  # noqa: S606  the child of a pty
        self.seen = ""

    def until(self, words, seconds=60.0):
        """Reads until something is there; what was there before is passed over."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.fd], [], [], 1)[0]:
                self.seen += os.read(self.fd, 65536).decode()
        before, _, self.seen = self.seen.partition(words)
        return before

    def type(self, *lines):
        for line in lines:
            os.write(self.fd, f"{line}\n".encode())

    def code(self):
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


@pytest.mark.parametrize("bad", ["../x", "src/*.py", "src/\u202eyp.a"])
def test_each_answer_is_looked_at_when_it_is_typed(shop_project, bad):
    """§7: Enter alone ends no run; a path that cannot be taken is refused at its own question, which is asked again."""
    plans = PlanProject(shop_project)
    waits = plans.plan(plans.write(plans.intent(scoped=False)))
    on = Terminal(shop_project, "plan", "answer", waits.run)
    assert "[" not in on.until("/stop): ").rpartition("answer (")[2]
    on.type("")
    on.until("is none of")
    on.type("text", bad, "", "")
    on.until("why (may be empty)")
    told = on.until("answer (")
    assert "Name files" in told or "Type it again" in told
    on.type("text", PLANNED_FILE, "", "because")
    on.until("DONE")
    assert on.code() == 0

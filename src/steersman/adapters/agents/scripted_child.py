"""Carries out one step in a process of its own: a job as JSON on standard input, the reply on standard output.

**Invariant:** one job, one answer; it starts nothing and keeps nothing.
"""

import sys
import time

import msgspec

from steersman.adapters.agents.script_step import perform_script_job
from steersman.contracts.script import ScriptJob


def main() -> None:
    """Reads the job, waits as long as it says, carries it out and answers."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=ScriptJob)
    time.sleep(float(job.step.sleep))
    sys.stdout.buffer.write(msgspec.json.encode(perform_script_job(job)))


if __name__ == "__main__":
    main()

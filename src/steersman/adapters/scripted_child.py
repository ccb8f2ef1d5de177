"""Carries out one step in a process of its own: a job as JSON on standard input, the reply on standard output.

**Invariant:** one job, one answer; it starts nothing and keeps nothing.
"""

import sys
import time

import msgspec

from steersman.adapters.script_step import perform
from steersman.contracts.script import Job


def main() -> None:
    """Reads the job, waits as long as it says, carries it out and answers."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    time.sleep(float(job.step.sleep))
    sys.stdout.buffer.write(msgspec.json.encode(perform(job)))


if __name__ == "__main__":
    main()

"""Matches a project's `summary` pattern against the end of a check's output, in a process that can be stopped.

**Invariant:** bounded in text and in time: Python's `re` has no clock, and a pattern can take exponential time on
output that the code under test chose.
"""

import json
import subprocess
import sys

from steersman.judges.evidence.summary_patterns import SummaryCount, count_summary_matches

MAX_SUMMARY_CHARACTERS = 256 * 1024  # from the end of the output
MAX_SUMMARY_MATCHES = 10_000
SUMMARY_SECONDS = 5
_MATCH_PROGRAM = (
    "import itertools,json,re,sys;p,t,n=json.load(sys.stdin);t=re.sub('\\x1b\\\\[[0-9;]*m','',t);"
    "json.dump([m.groupdict() for m in itertools.islice(re.finditer(p,t,re.M),n)],sys.stdout)"
)


def count_summary_tests(pattern: str, output: str) -> SummaryCount:
    """How many tests the pattern counts in the output, or why it counts none."""
    text = json.dumps([pattern, output[-MAX_SUMMARY_CHARACTERS:], MAX_SUMMARY_MATCHES]).encode()
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MATCH_PROGRAM],
            input=text,
            capture_output=True,
            timeout=SUMMARY_SECONDS,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        return SummaryCount(
            problem=f"its `summary` pattern takes longer than {SUMMARY_SECONDS} seconds: simplify it"
        )
    except OSError as error:
        return SummaryCount(problem=f"its `summary` pattern could not be matched: {error.strerror}")
    if process.returncode != 0:
        return SummaryCount(problem="its `summary` pattern could not be matched")
    return count_summary_matches(json.loads(process.stdout))

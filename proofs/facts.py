"""How long the scanner takes over checked-out repositories, and how much memory: one process for each.

    python proofs/facts.py DIR…        prints one row of Markdown for each directory

**Invariant:** only reads; every directory is scanned twice, and the two packs have to be the same bytes.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steersman.adapters.scan import TreeScanner
from steersman.kernel.canonical import canonical_bytes, sha256_hex


def scanned(place: Path) -> str:
    """One row: what was found and what it took."""
    with tempfile.TemporaryDirectory() as hulls:
        begun = time.perf_counter()
        pack = TreeScanner(place, Path(hulls)).scan("repository")
        took = time.perf_counter() - begun
        again = TreeScanner(place, Path(hulls)).scan("repository")
    assert canonical_bytes(pack) == canonical_bytes(again), place
    own, git = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (own.ru_utime + own.ru_stime + git.ru_utime + git.ru_stime) / 2
    b = pack.bounds
    return (
        f"| {place.name} | {b.files_seen:,} | {b.files_read:,} | {b.skipped:,} | {len(pack.facts):,} | {took:.2f} s | {cpu:.2f} s "
        f"| {own.ru_maxrss // 1024} MB | {'yes' if b.complete else b.stopped_by} | `{sha256_hex(canonical_bytes(pack))[:12]}` |"
    )


def main() -> int:
    """Every directory in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        print(scanned(Path(sys.argv[2])))
        return 0
    for place in sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "--one", place], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Time and chance that a test decides.

**Invariant:** nothing here looks at the system's clock or its randomness; the same seed gives the same names.
"""

import hashlib

FAKE_START_MS = 1_767_225_600_000  # 2026-01-01, in milliseconds
RUN_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class FakeClock:
    """Stands still until it is moved; `step` moves it by that many milliseconds at every look."""

    def __init__(self, at: int = FAKE_START_MS, *, step: int = 0) -> None:
        self.at, self.step = at, step

    def now(self) -> int:
        self.at += self.step
        return self.at

    def ticks(self) -> int:
        return self.at * 1_000

    def forward(self, ms: int) -> None:
        """Lets time pass."""
        self.at += ms


class FakeChance:
    """Names and keys from a seed: the nth of each is always the same."""

    def __init__(self, seed: str = "0") -> None:
        self._seed = seed
        self._drawn = {"run": 0, "nonce": 0, "key": 0}

    def run_id(self) -> str:
        return "260101-" + "".join(RUN_ID_ALPHABET[b % 32] for b in self._draw("run")[:6])

    def nonce(self) -> str:
        return self._draw("nonce")[:12].hex()

    def key(self) -> bytes:
        return self._draw("key")

    def _draw(self, kind: str) -> bytes:
        self._drawn[kind] += 1
        return hashlib.sha256(f"{self._seed}/{kind}/{self._drawn[kind]}".encode()).digest()

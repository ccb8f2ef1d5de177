"""The system's clocks and its chance."""

import os
import time
from datetime import UTC, datetime

RUN_ID_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: ids are read aloud


class SystemClock:
    """Implements ports.clock.Clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks(self) -> int:
        return time.monotonic_ns() // 1_000


class SystemChance:
    """Implements ports.clock.Chance."""

    def run_id(self) -> str:
        day = datetime.now(UTC).strftime("%y%m%d")
        return f"{day}-" + "".join(RUN_ID_CHARACTERS[b % 32] for b in os.urandom(6))

    def nonce(self) -> str:
        return os.urandom(12).hex()

    def key(self) -> bytes:
        return os.urandom(32)

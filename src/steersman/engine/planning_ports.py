"""What a planner is given beside the rest of the world."""

from collections.abc import Callable
from typing import Any

import msgspec

from steersman.ports.plans import PlanDirectories
from steersman.ports.registry import Registries
from steersman.ports.scanner import FactScanner


class PlanningPorts(msgspec.Struct, frozen=True, eq=False):
    """Registries, facts, memories, the folders of frozen plans, and the key that signs them."""

    registries: Registries
    scanner: FactScanner
    memories: Any
    plans: PlanDirectories
    sign: Callable[[bytes], tuple[str, bytes]]  # bytes -> (name of the key, signature)
    maker_key: Callable[[str], str]  # the public key in a file; of no file the project's own, or nothing
    is_signed: Callable[[str, bytes, bytes], bool]  # (public key, bytes, signature)

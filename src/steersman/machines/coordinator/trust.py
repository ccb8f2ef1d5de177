"""Whether a folder of files is a plan that somebody known here has frozen: every byte, every step, and the signature.

**Invariant:** a plan without its signed statement is not trusted: whoever rewrites all files would leave it out.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from steersman.contracts.planning.decisions import Problem
from steersman.machines.coordinator.attest import ENVELOPE, envelope_problems, foreign, signers, unsigned
from steersman.machines.coordinator.verify import verify


class Trust(NamedTuple):
    """Everything that speaks against the plan, and what its signature says."""

    problems: tuple[Problem, ...]
    signature: str


class Key(NamedTuple):
    """A public key that is known here, and the check of a signature: (key, bytes, signature) -> yes or no."""

    public: str
    verifies: Callable[[str, bytes, bytes], bool]

    def holds(self, data: bytes, name: str, signature: bytes) -> bool:
        """Whether it was this key that has signed."""
        return bool(self.public) and name == self.public and self.verifies(name, data, signature)


def trusted(files: Mapping[str, bytes], key: Key) -> Trust:
    """The files of a folder, the signed statement among them, held against each other and against a key."""
    frozen = {name: data for name, data in files.items() if name != ENVELOPE}
    if problems := verify(frozen):
        return Trust(problems, "not looked at: the files differ")
    if ENVELOPE not in files:
        return Trust((unsigned(),), "missing")
    wrong = envelope_problems(files[ENVELOPE], frozen, key.holds)
    if not wrong:
        return Trust((), "holds")
    signed = signers(files[ENVELOPE])
    if signed and key.public not in signed:
        return Trust((foreign(signed),), "by a key that is not known here")
    return Trust(wrong, "does not hold")

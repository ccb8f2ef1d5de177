"""Whether a folder of files is a plan that somebody known here has frozen: every byte, every step, and the signature.

**Invariant:** a plan without its signed statement is not trusted: whoever rewrites all files would leave it out.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.judges.planning.attest import (
    ENVELOPE_FILE,
    envelope_signers,
    find_envelope_problems,
    foreign_signer_problem,
    missing_envelope_problem,
)
from steersman.judges.planning.verify import verify_frozen_plan


class PlanTrust(NamedTuple):
    """Everything that speaks against the plan, and what its signature says."""

    problems: tuple[DocumentProblem, ...]
    signature: str


class TrustedKey(NamedTuple):
    """A public key that is known here, and the check of a signature: (key, bytes, signature) -> yes or no."""

    public: str
    verifies: Callable[[str, bytes, bytes], bool]

    def holds(self, data: bytes, name: str, signature: bytes) -> bool:
        """Whether it was this key that has signed."""
        return bool(self.public) and name == self.public and self.verifies(name, data, signature)


def check_plan_trust(files: Mapping[str, bytes], key: TrustedKey) -> PlanTrust:
    """The files of a folder, the signed statement among them, held against each other and against a key."""
    frozen = {name: data for name, data in files.items() if name != ENVELOPE_FILE}
    if problems := verify_frozen_plan(frozen):
        return PlanTrust(problems, "not looked at: the files differ")
    if ENVELOPE_FILE not in files:
        return PlanTrust((missing_envelope_problem(),), "missing")
    wrong = find_envelope_problems(files[ENVELOPE_FILE], frozen, key.holds)
    if not wrong:
        return PlanTrust((), "holds")
    signed = envelope_signers(files[ENVELOPE_FILE])
    if signed and key.public not in signed:
        return PlanTrust((foreign_signer_problem(signed),), "by a key that is not known here")
    return PlanTrust(wrong, "does not hold")

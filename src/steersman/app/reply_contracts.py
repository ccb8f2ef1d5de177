"""Lists what agents have to answer with: the contracts that machines share, and each machine's own."""

from collections.abc import Mapping

from steersman.contracts.replies import ReplyContract
from steersman.engine.machine_package import MachinePackage
from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS


def list_reply_contracts(packages: Mapping[str, MachinePackage]) -> dict[str, ReplyContract]:
    """Every reply contract by the name that an effect's input gives it."""
    contracts = dict(SHARED_REPLY_CONTRACTS)
    for package in packages.values():
        contracts |= package.replies
    return contracts

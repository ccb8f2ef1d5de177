"""What there is to know about an ecosystem, declared once: detection, facts, checks and test infrastructure read it."""

from collections.abc import Callable

import msgspec

from steersman.judges.ecosystems.project import ProjectFiles, SetupProposal
from steersman.judges.facts.finding import FactReader


class Ecosystem(msgspec.Struct, frozen=True, kw_only=True):
    """One language with its tools."""

    name: str
    # Setup and checks.
    manifests: tuple[str, ...]  # a project has one of them
    proposal_inputs: tuple[str, ...] = ()  # files whose texts proposals depend on
    is_further_input: Callable[[str], bool] | None = None
    is_test: Callable[[str], bool] | None = None  # of tests some are read too, to tell their form
    propose: Callable[[ProjectFiles], SetupProposal | None]
    covers_below: bool = True  # whether what is proposed at the top covers the folders below
    # Facts.
    fact_readers: tuple[FactReader, ...]
    lock_files: str = ""
    # Of each line the first test command that is there is a check.
    preferred_runners: tuple[tuple[str, ...], ...]

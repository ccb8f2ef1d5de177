"""Reads the command grammars that ship with steersman."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from steersman.contracts.grammars import GrammarSet


@cache
def load_command_grammars() -> Mapping[str, GrammarSet]:
    """The sets by name, each with its grammars, in the form that a project's own have."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, GrammarSet])

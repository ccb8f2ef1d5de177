"""Reads the address of a model's server: one reading for the limits and for the agents that open the host.

**Invariant:** an address that programs could read differently has no host: with a user, a query, a fragment or a `\\`.
"""

import re

_DEFAULT_PORTS = {"http": "80", "https": "443"}
_PLAIN_ADDRESS = re.compile(
    r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:/[^\s?#@\\]*)?", re.ASCII
)


def find_model_host(address: str) -> str:
    """The `host:port` of a plain http or https address; nothing for any other text."""
    match = _PLAIN_ADDRESS.fullmatch(address)
    return f"{match[2].strip('[]').lower()}:{match[3] or _DEFAULT_PORTS[match[1]]}" if match else ""

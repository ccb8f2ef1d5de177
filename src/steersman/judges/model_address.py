"""Reads the address of a model's server: one reading for the limits and for the agents that open the host."""

from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_MISLEADING = frozenset("@?#\\")  # programs disagree about the host of an address that has one of these


def find_host(address: str) -> str:
    """The `host:port` of a plain http or https address; nothing for any other text."""
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:
        return ""
    if url.scheme not in _PORTS or not url.hostname or not address.isprintable() or " " in address:
        return ""
    return "" if _MISLEADING & set(address) else f"{url.hostname}:{port or _PORTS[url.scheme]}"

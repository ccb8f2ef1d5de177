"""Reads `steersman.toml`, the limits and the trust of this machine."""

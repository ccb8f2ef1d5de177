"""The line loop of `steersman chat`."""

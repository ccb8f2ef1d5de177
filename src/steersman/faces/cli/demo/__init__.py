"""The demo's project and crew, as files that people may read."""

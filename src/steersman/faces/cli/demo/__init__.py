"""The demo's project and scripted agents, as files that people may read."""

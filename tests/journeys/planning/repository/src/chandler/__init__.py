"""A small ship chandler."""

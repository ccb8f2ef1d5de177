"""Replies of agents, held against their contracts."""

"""Talks with agents beside the machines."""

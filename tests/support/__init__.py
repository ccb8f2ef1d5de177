"""Fakes, hostile programs and helpers that only our own tests use."""

"""Looks a project's files over for facts: which files there are, and what a chosen few of them hold, within bounds."""

from steersman.adapters.scan.scanner import TreeScanner

__all__ = ["TreeScanner"]

"""Runs setup steps and checks in a working tree, and reads what test runners report."""

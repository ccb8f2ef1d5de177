"""Fragments that several machines use: gates with their words, and what is shown of work on a tree."""

"""Secrets taken out of outside text."""

"""Decides whether a change needs a person before its checks count; `review_reasons` is the entry."""

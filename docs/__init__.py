"""The documentation's own tools: what can be generated is, and a check says when it is out of date."""

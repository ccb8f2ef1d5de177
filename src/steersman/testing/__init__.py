"""Public fakes of the outside world and the conformance suites that every adapter of a port passes."""

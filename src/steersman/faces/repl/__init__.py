"""The prompt of `steersman repl`."""

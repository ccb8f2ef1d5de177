"""Pure verdicts on a task: what its files say, and what follows from it."""

"""How a task is shown."""

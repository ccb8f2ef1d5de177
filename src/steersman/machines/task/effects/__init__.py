"""What only a task's jobs do: its documents on disk, the tasks before it, the branch its change goes to."""

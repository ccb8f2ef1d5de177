"""What the planner's jobs do: documents in, documents out. Nothing here starts anything."""

"""The sandbox that programs run in: what it shows, and what it lets out."""

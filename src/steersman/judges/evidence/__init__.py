"""What checks prove, and what they do not."""

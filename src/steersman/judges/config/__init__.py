"""What settings may say, and what of them needs trust."""

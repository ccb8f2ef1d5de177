"""Changes that a coder might deliver, honest and dishonest, and the small projects that they are made to."""

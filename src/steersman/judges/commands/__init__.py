"""Which commands an agent may propose."""

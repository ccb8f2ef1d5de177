"""How a planning run is shown."""

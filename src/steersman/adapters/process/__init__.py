"""Programs: started, watched and stopped, with everything that comes of them."""

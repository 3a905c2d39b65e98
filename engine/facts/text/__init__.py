"""Facts about prose: what in it can be run, and what it hides."""

"""`engine record`."""

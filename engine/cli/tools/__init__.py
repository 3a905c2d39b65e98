"""`engine tools`."""

"""`engine code`."""

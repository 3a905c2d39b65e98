"""Sandboxes for generated code: each backend runs a program within limits or refuses to run it."""

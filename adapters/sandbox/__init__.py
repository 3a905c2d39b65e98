"""Sandboxes for generated code: backends that run a program within bounds, or do not run it at all."""

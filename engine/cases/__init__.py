"""Test cases as YAML files: a request with the expected decision and record."""

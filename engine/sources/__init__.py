"""Writes `bundle.yaml` from files, their metadata, and statements of a person."""

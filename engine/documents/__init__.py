"""Bounded readers for untrusted files and JSON text, and the canonical encoding."""

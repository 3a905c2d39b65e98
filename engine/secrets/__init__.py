"""Secrets and private data in text: patterns, a fast prefilter, and redaction."""

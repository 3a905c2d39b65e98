"""Rules and values to a policy bundle: read, refused or accepted, generated, archived, kept.

Start at build.py. Nothing is imported here, so that using one part loads only what it needs.
"""

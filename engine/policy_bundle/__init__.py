"""From rules and values to a policy bundle: read, checked, generated, archived, stored.

Start at build.py. Nothing is imported here, so that using one part loads only what it needs.
"""

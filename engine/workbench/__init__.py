"""The workbench: pages for people who look after the policy, on this machine only.

It reads the record and the policy, previews edits and saves them, and builds releases. It enforces nothing; the acts
that it passes on are the decisions of a named person on approvals and releases, and activations.
"""

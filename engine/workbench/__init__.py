"""The workbench: pages for people who look after the policy, on this machine only.

It reads the record and the policy, previews edits and saves them. It enforces nothing; the only act it passes on is
the decision of a named person on an approval.
"""

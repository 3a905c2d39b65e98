"""Decisions explained to people: each finding with its place, its rule and the policy rows it read."""

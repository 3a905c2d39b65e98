"""Subagents as processes, each started, supervised and ended under a permit."""

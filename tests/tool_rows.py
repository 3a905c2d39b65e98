"""Rows of policy/tools.yaml for tools of tests."""

from __future__ import annotations

from typing import Any


def reading(**arguments: str) -> dict[str, Any]:
    """The row of a tool that reads somewhere else and takes these arguments."""
    return {
        "title": "A tool of a test",
        "side_effects": ["read"],
        "reversal": [],
        "arguments": arguments,
        "secrets": False,
        "paths_on": "elsewhere",
        "environments": [],
        "curated": [],
        "definition": "any",
    }

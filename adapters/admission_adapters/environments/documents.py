"""The tools of environments that hold documents. A change of this file needs a review and its digest in the policy.

A search is for words: nothing that a model sends is read in the query language of FTS5.
"""

from __future__ import annotations

import re
from typing import Any

from admission_adapters.environments.held import OpenEnvironment
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.registering import object_schema

_WORD = re.compile(r"\w+")
_MOST_WORDS = 32

OPERATIONS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "search": (
        "Find documents that contain all words, the best match first; at most `limit` of them.",
        ("read",),
        object_schema(
            {
                "search": {"type": "string", "minLength": 1, "maxLength": 1_000},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "search",
        ),
    ),
    "get": (
        "Read the document of an id.",
        ("read",),
        object_schema({"id": {"type": "string", "minLength": 1, "maxLength": 128}}, "id"),
    ),
}
"""Each operation: what it does, the classes of its side effects, the schema of its arguments."""


class Documents:
    """The operations on an open environment, each a tool."""

    def __init__(self, environment: OpenEnvironment) -> None:
        self._environment = environment

    def search(self, search: str, limit: int = 20) -> dict[str, Any]:
        """Documents that contain all words, with the place where they do."""
        words = _WORD.findall(search)[:_MOST_WORDS]
        if not words:
            raise ToolValidationError("no_words", "the search has no word")
        found = self._environment.read(
            "SELECT id, title, snippet(documents, 2, '[', ']', ' … ', 16) FROM documents "
            "WHERE documents MATCH ? ORDER BY rank, id LIMIT ?",
            (" ".join(f'"{word}"' for word in words), limit),
        )
        return {"documents": [{"id": id_, "title": title, "found": text} for id_, title, text in found]}

    def get(self, id: str) -> dict[str, Any]:  # noqa: A002  (the name of the argument)
        """The document of this id."""
        found = self._environment.read("SELECT id, title, text FROM documents WHERE id = ?", (id,))
        if not found:
            raise ToolValidationError("document_missing", "there is no document of this id")
        id_, title, text = found[0]
        return {"id": id_, "title": title, "text": text}

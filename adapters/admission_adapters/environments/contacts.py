"""The tools of environments that hold contacts. A change of this file needs a review and its digest in the policy.

Every statement is a constant; what a model sends is bound as a value. Nothing else than the open environment is used.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from admission_adapters.environments.held import OpenEnvironment
from admission_adapters.tools.outcome import ToolValidationError
from admission_adapters.tools.registering import object_schema

_FIELDS = ("name", "email", "city", "phone", "note", "tags")
_TEXT = {"type": "string", "maxLength": 4_000}
_ID = {"type": "string", "minLength": 1, "maxLength": 128}
_VALUES = {
    **dict.fromkeys(_FIELDS[1:-1], _TEXT),
    "name": {**_TEXT, "minLength": 1},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 100},
}


_FOUND = (
    "FROM contacts WHERE instr(lower(name || char(10) || email || char(10) || city || char(10) || phone || char(10) || "
    "note || char(10) || (SELECT coalesce(group_concat(value, char(10)), '') FROM json_each(tags))), lower(?)) > 0"
)


OPERATIONS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "search": (
        "Find contacts that contain a text in any field; at most `limit` of them.",
        ("read",),
        object_schema({"search": _TEXT, "limit": {"type": "integer", "minimum": 1, "maximum": 100}}, "search"),
    ),
    "get": ("Read the contact of an id.", ("read",), object_schema({"id": _ID}, "id")),
    "add": ("Add a contact under a new id.", ("write",), object_schema({"id": _ID, **_VALUES}, "id", "name")),
    "update": ("Change fields of a contact.", ("write",), object_schema({"id": _ID, **_VALUES}, "id")),
    "delete": ("Delete a contact.", ("write", "destructive"), object_schema({"id": _ID}, "id")),
}
"""Each operation: what it does, the classes of its side effects, the schema of its arguments."""


class Contacts:
    """The operations on an open environment, each a tool."""

    def __init__(self, environment: OpenEnvironment) -> None:
        self._environment = environment

    def search(self, search: str, limit: int = 20) -> dict[str, Any]:
        """Contacts that contain the text, by id, and how many there are."""
        ((total,),) = self._environment.read(f"SELECT count(*) {_FOUND}", (search,))
        found = self._environment.read(f"SELECT * {_FOUND} ORDER BY id LIMIT ?", (search, limit))
        return {"total": total, "contacts": [_contact(row) for row in found]}

    def get(self, id: str) -> dict[str, Any]:  # noqa: A002  (the name of the argument)
        """The contact of this id."""
        found = self._environment.read("SELECT * FROM contacts WHERE id = ?", (id,))
        if not found:
            raise _missing()
        return _contact(found[0])

    def add(self, id: str, name: str, **fields: Any) -> dict[str, Any]:  # noqa: A002
        """A new contact."""
        known = {"tags": [], **dict.fromkeys(_FIELDS[1:-1], ""), **fields, "name": name}
        values = (id, *(_stored(field, known[field]) for field in _FIELDS))

        def insert(database: sqlite3.Connection) -> None:
            try:
                database.execute("INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            except sqlite3.IntegrityError as error:
                raise ToolValidationError("contact_exists", "there is a contact of this id") from error

        self._environment.change("add", "write", id, insert)
        return self.get(id)

    def update(self, id: str, **fields: Any) -> dict[str, Any]:  # noqa: A002
        """A contact with other values."""
        current = self.get(id)
        values = [_stored(field, fields.get(field, current[field])) for field in _FIELDS]

        def change(database: sqlite3.Connection) -> None:
            done = database.execute(
                "UPDATE contacts SET name = ?, email = ?, city = ?, phone = ?, note = ?, tags = ? WHERE id = ?",
                (*values, id),
            )
            if done.rowcount != 1:
                raise _missing()

        self._environment.change("update", "write", id, change)
        return self.get(id)

    def delete(self, id: str) -> dict[str, Any]:  # noqa: A002
        """One contact less."""

        def remove(database: sqlite3.Connection) -> None:
            if database.execute("DELETE FROM contacts WHERE id = ?", (id,)).rowcount != 1:
                raise _missing()

        self._environment.change("delete", "destructive", id, remove, undoable=True)
        return {"deleted": id}


def _contact(row: tuple[Any, ...]) -> dict[str, Any]:
    return {"id": row[0], **dict(zip(_FIELDS, row[1:-1], strict=False)), "tags": json.loads(row[-1])}


def _stored(field: str, value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if field == "tags" else str(value)


def _missing() -> ToolValidationError:
    return ToolValidationError("contact_missing", "there is no contact of this id")

"""Tools of an adapter as a developer writes them: one file with a function for each, which can be curated."""

from __future__ import annotations

from admission_adapters.tools.gate import record_side_effect

CONTACTS = {"Ada": "ada at work"}


def contacts_list(search: str) -> list[str]:
    """The names that begin like that."""
    record_side_effect("read", id="contacts")
    return [name for name in CONTACTS if name.startswith(search)]


def contacts_add(name: str, email: str) -> str:
    """Add a contact."""
    record_side_effect("write", id="contacts", target=name)
    CONTACTS[name] = email
    return f"{name} is a contact now"

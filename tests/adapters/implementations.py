"""Implementations of tools as a program has them: plain functions and methods in a file that can be curated."""

from __future__ import annotations


def contacts_list(search: str) -> list[str]:
    """The names that begin like that."""
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(search)]


class Contacts:
    """The same as a method."""

    def list(self, search: str) -> list[str]:
        return contacts_list(search)

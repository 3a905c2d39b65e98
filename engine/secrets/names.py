"""New names for the keys of an object that were replaced: each its own, in linear time and length."""

from __future__ import annotations

from collections.abc import Container


class FreeNames:
    """The new names in one object; none of them is a key that it had before."""

    def __init__(self, keys: Container[str]) -> None:
        self._keys = keys
        self._given: set[str] = set()
        self._numbers: dict[str, int] = {}

    def of(self, preferred: str) -> str:
        """`preferred`, or if it is taken `preferred+`, `preferred+2`, `preferred+3`."""
        name = preferred
        while name in self._given or name in self._keys:
            number = self._numbers[preferred] = self._numbers.get(preferred, 0) + 1
            name = f"{preferred}+{number if number > 1 else ''}"
        self._given.add(name)
        return name

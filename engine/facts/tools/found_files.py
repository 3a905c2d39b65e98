"""The files that `find` names, where its tests say what their names end with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.facts.shell import ShellWord

_MOST_GROUPS = 8
"""Brackets in the words of `find` that are read."""

_NAMED = re.compile(r"[\w*][\w*.-]*\.\w+")


def found_files(words: Sequence[ShellWord], row: Mapping[str, Any], *, counted: bool) -> tuple[ShellWord, ...]:
    """The files that are found below folders by names with a known end: `src/.py` for `src -type f -name '*.py'`.

    None if these words say more than that: what is found may then be any file. Files that are only `counted` may be any
    below the folders, and links.
    """
    if any(word.value is None or word.pattern for word in words):
        return ()
    values = [word.value or "" for word in words]
    start = next((at for at, value in enumerate(values) if value.startswith(("-", "(", "!"))), len(values))
    folders, tests = values[:start] or ["."], values[start:]
    if tests[-1:] in (["-print"], ["-print0"]):
        tests.pop()
    if tests.count("(") > _MOST_GROUPS or any(folder.startswith("..") for folder in folders):
        return ()
    names, unlinked = _Tests(tests, row).any_of()
    if tests or not (unlinked or counted):
        return ()
    ends = [name.replace("*", "") for name in sorted(names or ({""} if counted else ()))]
    return tuple(ShellWord(f"{folder.rstrip('/')}/{end}") for folder in folders for end in ends)


class _Tests:
    """The tests of `find`, which are taken off the list: the names that what they find has, and whether it is no link.

    No names where these are not known. What is no test of a value is left on the list.
    """

    def __init__(self, tests: list[str], row: Mapping[str, Any]) -> None:
        self._tests, self._row = tests, row

    def any_of(self) -> tuple[set[str], bool]:
        names, unlinked = self._all_of()
        while self._tests[:1] in (["-o"], ["-or"]):
            del self._tests[0]
            others, plain = self._all_of()
            names, unlinked = names | others if names and others else set(), unlinked and plain
        return names, unlinked

    def _all_of(self) -> tuple[set[str], bool]:
        names: set[str] = set()
        unlinked = False
        while self._tests[:1] and self._tests[0] not in {"-o", "-or", ")"}:
            left = len(self._tests)
            found, plain = self._one()
            if len(self._tests) == left:
                return set(), False
            names, unlinked = names or found, unlinked or plain
        return names, unlinked

    def _one(self) -> tuple[set[str], bool]:
        first, *rest = self._tests
        if first in {"-a", "-and"}:
            del self._tests[0]
            return set(), False
        if first in {"!", "-not"} and rest and rest[0].startswith("-") and rest[0] != "-not":
            del self._tests[0]
            self._one()
            return set(), False
        if first == "(":
            del self._tests[0]
            found = self.any_of()
            closed = self._tests[:1] == [")"]
            del self._tests[: 1 if closed else 0]
            return found if closed else (set(), False)
        known = all(first in self._row.get(one, ()) for one in ("none", "valued"))
        if not rest or not known or first == "-printf":  # which may print other names
            return set(), False
        value = rest[0]
        del self._tests[:2]
        named = first in self._row.get("names", ()) and _NAMED.fullmatch(value) is not None
        return {value} if named else set(), f"{first} {value}" in self._row.get("unlinked", ())

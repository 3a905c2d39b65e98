"""One change of one condition, what became of it, and the results that need not be found again."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".mutation"
"""Where results and copies are kept; not committed."""


class Verdict(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    INVALID = "invalid"  # it does not compile, so it could not be committed either: not counted


@dataclass(frozen=True, slots=True)
class Mutant:
    """`file` (relative to the root) with the bytes from `start` to `end` replaced; `name` is stable when lines move."""

    file: str
    line: int
    start: int
    end: int
    text: str
    name: str

    def applied(self, source: bytes) -> bytes:
        """The source with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def named(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """The same mutants with a number behind each further one of a name."""
    seen: Counter[tuple[str, str]] = Counter()
    for one in mutants:
        seen[one.file, one.name] += 1
        number = seen[one.file, one.name]
        name = one.name if number == 1 else f"{one.name} ({number})"
        yield Mutant(one.file, one.line, one.start, one.end, one.text, name)


def short(text: str, most: int = 140) -> str:
    """A piece of source on one line, without backticks and no longer than this."""
    line = re.sub(r"\s+", " ", text).strip().replace("`", "'")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def digest(*parts: bytes) -> str:
    """One digest of many parts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()


class Results:
    """What is known of mutants, by what that depends on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def get(self, key: str) -> list[str] | None:
        """What was kept under this key."""
        return self._known.get(key)

    def put(self, key: str, found: list[str]) -> None:
        """Keep it, at once: a run may be stopped at any time."""
        self._known[key] = found
        self._path.parent.mkdir(exist_ok=True)
        with self._path.with_suffix(".new").open("w", encoding="utf-8") as file:
            json.dump(self._known, file)
        self._path.with_suffix(".new").replace(self._path)

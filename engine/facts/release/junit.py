"""Reports of tests and checks in the JUnit format: counts of each suite, and the security tests in it by id.

A security test has a property `security` with its id and category, such as `SEC-05 DoS`. Documents with a type
declaration, which could define entities, are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from engine.documents.files import printable, read_bytes
from engine.errors import GatherError, Location
from engine.times import seconds

_SUITE, _CASE, _PROPERTY = "testsuite", "testcase", "property"
_FAILED = frozenset({"failure", "error"})
_MOST_SUITES = 1_000


@dataclass(slots=True)
class Suite:
    """The counts of one suite; `made_at` in seconds since 1970 UTC, None unless it states a time with its offset."""

    tests: int = 0
    failed: int = 0
    skipped: int = 0
    made_at: int | None = None


@dataclass(slots=True)
class Reports:
    """What was read so far: suites by name, and whether every run of a security test, by id and category, passed."""

    suites: dict[str, Suite] = field(default_factory=dict)
    security: dict[tuple[str, str], bool] = field(default_factory=dict)

    def read(self, path: Path, most: int) -> None:
        """Add a report of at most so many bytes. Raises GatherError."""
        reader = _Reader(self, str(path))
        data = read_bytes(path, most)
        try:
            reader.parser.Parse(data, True)  # noqa: FBT003 (the parser's own argument)
        except expat.ExpatError as error:
            raise _unreadable(path, "is not XML", error.lineno) from error
        if not reader.found:
            raise _unreadable(path, "has no suite")


class _Reader:
    """Reads one report; a suite inside of another one counts by itself."""

    def __init__(self, reports: Reports, name: str) -> None:
        self.found = False
        self._reports = reports
        self._name = name
        self._suites: list[Suite] = []
        self._failed = self._skipped = False
        self._security: list[tuple[str, str]] = []
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _doctype(self, *_: object) -> None:
        raise _unreadable(Path(self._name), "has a document type declaration")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == _SUITE:
            self.found = True
            self._suites.append(self._suite(attributes))
        elif tag == _CASE:
            self._failed = self._skipped = False
            self._security = []
        elif tag in _FAILED:
            self._failed = True
        elif tag == "skipped":
            self._skipped = True
        elif tag == _PROPERTY and attributes.get("name") == "security":
            name, _, category = attributes.get("value", "").partition(" ")
            self._security.append((name, category))

    def _suite(self, attributes: dict[str, str]) -> Suite:
        suites = self._reports.suites
        if len(suites) >= _MOST_SUITES:
            raise _unreadable(Path(self._name), f"brings the reports to more than {_MOST_SUITES} suites")
        made_at = _seconds(attributes.get("timestamp"))
        known = suites.setdefault(attributes.get("name", ""), Suite(made_at=made_at))
        known.made_at = None if None in (known.made_at, made_at) else min(known.made_at or 0, made_at or 0)
        return known

    def _end(self, tag: str) -> None:
        if tag == _SUITE:
            self._suites.pop()
        elif tag == _CASE and self._suites:
            suite = self._suites[-1]
            suite.tests += 1
            suite.failed += self._failed
            suite.skipped += self._skipped and not self._failed
            passed = not (self._failed or self._skipped)
            for one in self._security:
                self._reports.security[one] = self._reports.security.get(one, True) and passed


def _seconds(stated: str | None) -> int | None:
    try:
        return seconds(stated or "")
    except ValueError:
        return None


def _unreadable(path: Path, problem: str, line: int | None = None) -> GatherError:
    return GatherError(
        f"the report {problem}",
        remedy="name reports in the JUnit format, such as those of `scripts/test --junit-xml=FILE`",
        where=Location(printable(str(path)), line),
    )

"""Point `release`: whether a version may be released.

The engine reads reports of tests and checks, asks git what changed, and counts docstrings in the code itself; whether
all of it is enough is decided by rules. Rows D55, E27 to E29.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from engine.facts.release.docstrings import docstrings_in
from engine.facts.release.git import Change
from engine.facts.release.junit import Reports
from engine.model import Limits, Line, Model, Named, Pace, Word
from engine.points import GatherContext, Gathered, Point
from engine.points.source import beneath

Version = Annotated[str, Field(min_length=1, max_length=100)]


class ReleaseRequest(Model):
    """A version of the project in the folder `path`; `features` are those that it enables.

    `reports` are files below it in the JUnit format, `since` the revision that was released before, null for the first
    release.
    """

    version: Version
    stage: Word
    features: Annotated[tuple[Word, ...], Field(strict=False, max_length=100)]
    path: Line
    since: Line | None
    reports: Annotated[tuple[Line, ...], Field(strict=False, max_length=100)]


class SuiteFacts(Model):
    """A suite of the reports; `made_at` is absent unless it states a time with its offset."""

    id: str
    tests: int
    failed: int
    skipped: int
    made_at: int | None = None


class SecurityTest(Model):
    """A security test; it passed if every run of it did, and none was skipped."""

    id: str
    category: str
    passed: bool


class Folder(Model):
    """A top folder: its modules, classes and functions, and how many of them have a docstring."""

    id: str
    total: int
    documented: int


class ReleaseInput(Model):
    """What OPA sees."""

    version: str
    stage: str
    features: tuple[Named, ...]
    suites: tuple[SuiteFacts, ...]
    security: tuple[SecurityTest, ...]
    folders: tuple[Folder, ...]
    change: Change


class ReleaseLimits(Limits):
    """Exactly this commit may be released as this version."""

    version: str
    commit: str
    stage: str
    features: tuple[str, ...]


def gather(request: ReleaseRequest, context: GatherContext) -> Gathered:
    """Read the reports and the code. Raises GatherError for what cannot be read."""
    project = beneath(request.path, context.root)
    reports = Reports()
    for done, report in enumerate(request.reports):
        context.progress("reading reports", done, len(request.reports))
        found = beneath(str(Path(request.path) / report), context.root)
        reports.read(found, context.read.document_bytes)
    context.progress("counting docstrings", 0, 0)
    folders = docstrings_in(project)
    return Gathered(
        ReleaseInput(
            version=request.version,
            stage=request.stage,
            features=tuple(Named(id=name) for name in request.features),
            suites=tuple(
                SuiteFacts(id=name, tests=one.tests, failed=one.failed, skipped=one.skipped, made_at=one.made_at)
                for name, one in sorted(reports.suites.items())
            ),
            security=tuple(
                SecurityTest(id=name, category=category, passed=passed)
                for (name, category), passed in sorted(reports.security.items())
            ),
            folders=tuple(
                Folder(id=name, total=one.total, documented=one.documented) for name, one in sorted(folders.items())
            ),
            change=context.change(project, request.since),
        ),
        f"release {request.version}",
    )


POINT = Point("release", ReleaseRequest, ReleaseInput, ReleaseLimits, gather, pace=Pace.BUNDLE)

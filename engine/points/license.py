"""Point `license`: whether content under a license label may be used for a purpose and an export.

The question of a crawler or curator before anything is bundled. The policy is the same as for
the records of a source bundle: the decision on exactly this content, and the table.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.documents.files import Stated
from engine.facts.archives.source_bundle import Timestamp
from engine.model import Limits, Line, Model, Sha256
from engine.points import GatherContext, Gathered, Point
from engine.points.source import AdmittedExport, ExportLicense, License, LicenseDecision, export_of, license_of
from engine.times import seconds

Label = Annotated[str, Field(max_length=65_536)]
"""A license as declared: an SPDX expression, which may list every license of a distribution."""


class DecisionTaken(Model):
    """An explicit license decision, for exactly the content with this SHA-256."""

    sha256: Sha256
    decision: Literal["accepted", "incompatible", "review_required", "unknown"]
    decided_at: Annotated[Timestamp, Field(max_length=64)]


class LicenseRequest(Model):
    """Ask about one label. `export_license` is null when the result will not be exported."""

    purpose: Line
    export_license: Label | None
    license: Label
    sha256: Sha256
    decisions: Annotated[tuple[DecisionTaken, ...], Field(max_length=1_000)]


class ContentDigest(Model):
    """The content that the label is about."""

    sha256: Sha256


class LicenseInput(Model):
    """What OPA sees of the request."""

    purpose: str
    exported: bool
    export_license: ExportLicense | None = None
    license: License
    content: ContentDigest


class LicenseLimits(Limits):
    """What the content may be used for."""

    purpose: str
    export: AdmittedExport


def gather(request: LicenseRequest, context: GatherContext) -> Gathered:
    """Parse the label and the export license into alternatives."""
    aliases = context.lookups.license_aliases
    decisions = tuple(
        LicenseDecision(sha256=item.sha256, decision=item.decision, decided_at=seconds(item.decided_at))
        for item in request.decisions
    )
    return Gathered(
        LicenseInput(
            purpose=request.purpose,
            license=license_of(request.license, decisions, aliases),
            content=ContentDigest(sha256=request.sha256),
            **export_of(request.export_license, aliases),
        ),
        f"license for purpose {request.purpose[:40]}",
        stated=lambda _, field: Stated(None, request.license) if field == "license" else None,
    )


POINT = Point("license", LicenseRequest, LicenseInput, LicenseLimits, gather)

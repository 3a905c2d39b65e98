"""Point `license`: whether content under a licence label may be used for a purpose and an export.

The question a crawler or curator asks before anything is bundled. The policy is the same as for
the records of a source bundle: the decision taken for exactly this content, and the table.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.facts.licenses import license_facts
from engine.facts.source_bundle import Timestamp, seconds
from engine.model import Limits, Line, Model, Sha256
from engine.points import Gathered, Input, Point, World
from engine.points.source import ExportLicense, License, LicenseDecision

Label = Annotated[str, Field(max_length=65_536)]
"""A licence as declared: an SPDX expression, which may list every licence of a distribution."""


class DecisionTaken(Model):
    """An explicit licence decision, for exactly the content with this SHA-256."""

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


class LicenseInput(Input):
    """What OPA sees of the request."""

    purpose: str
    exported: bool
    export_license: ExportLicense | None = None
    license: License
    content: ContentDigest


class ExportLimit(Model):
    """Whether the result may be given to others."""

    allowed: bool


class LicenseLimits(Limits):
    """What the content may be used for."""

    purpose: str
    export: ExportLimit


def gather(request: LicenseRequest, world: World) -> Gathered:
    """Parse the label and the export licence into alternatives."""
    exported = request.export_license is not None
    decisions = tuple(
        LicenseDecision(sha256=item.sha256, decision=item.decision, decided_at=seconds(item.decided_at))
        for item in request.decisions
    )
    return Gathered(
        LicenseInput(
            point="license",
            now=world.clock(),
            purpose=request.purpose,
            exported=exported,
            export_license=ExportLicense(alternatives=license_facts(request.export_license or "").alternatives)
            if exported
            else None,
            license=License(
                stated=bool(request.license.strip()),
                alternatives=license_facts(request.license).alternatives,
                decisions=decisions,
            ),
            content=ContentDigest(sha256=request.sha256),
        ),
        f"licence for purpose {request.purpose[:40]}",
    )


POINT = Point("license", LicenseRequest, LicenseInput, LicenseLimits, gather)

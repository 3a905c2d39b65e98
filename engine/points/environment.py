"""Point `environment`: whether an environment may be built of the material of an admitted source bundle.

The source bundle is read again, and exactly the rows that the decision is about are built. Whether point `source`
admitted it is a fact of the engine, which holds the permit; no request can state it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine.errors import GatherError
from engine.facts.material import HOLDS, Material, Reader, Row
from engine.model import AdmittedSource, Decision, Digest, Limits, Line, Model, Pace, Sha256
from engine.points import GatherContext, Gathered, Point, source
from engine.points.source import OpenedSource, SourceRecord, SourceRequest
from engine.record.source_events import Hashes, SourceEvent

if TYPE_CHECKING:
    from engine.policy_bundle.catalogue import Catalogue


class EnvironmentRequest(Model):
    """Ask about the source bundle at `path`, of which an earlier decision gave the digest."""

    path: Line
    digest: Digest


class MaterialFacts(Model):
    """What a record contains. `fits`: all of it, in the schema of the environment that the source bundle names.

    `longest` is the size of its largest text in bytes; `controls` and `formulas` are numbers of texts.
    """

    fits: bool
    rows: int
    longest: int
    controls: int
    formulas: int


class MaterialRecord(Model):
    """One record; `sha256` is of the bytes that were read as its material, which is parsed only if it was admitted.

    `kept_until` is the last second for which it may be kept, since 1970 UTC.
    """

    id: str | None = None
    kind: str | None = None
    origin_alias: str | None = None
    media_type: str | None = None
    sha256: Sha256 | None = None
    kept_until: int | None = None
    material: MaterialFacts | None = None


class EnvironmentInput(Model):
    """The facts for OPA; `admitted` is what point `source` permits to this engine, absent if nothing was."""

    environment: str | None = None
    digest: Digest | None = None
    rows: int
    records: tuple[MaterialRecord, ...]
    admitted: AdmittedSource | None = None


class BuiltRecord(Model):
    """A record that becomes rows, with its exact content."""

    id: str
    sha256: Sha256
    rows: int


class EnvironmentLimits(Limits):
    """The environment to be built: exactly these rows, with these tools. Sizes are in bytes.

    `kept_until` is the last second for which it may be used, since 1970 UTC: one of its records may be kept no longer.
    """

    environment: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    holds: Literal["contacts", "documents"]
    bundle_digest: Digest
    records: tuple[BuiltRecord, ...]
    rows: int
    kept_until: int
    tools: dict[str, str]
    text_bytes: Annotated[int, Field(ge=1)]
    database_bytes: Annotated[int, Field(ge=1)]
    checkpoints: Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class OpenedMaterial:
    """The material that was decided on, in memory, for the executor that builds from it."""

    material: Mapping[str, Material]
    opened: OpenedSource

    def rows(self, record_id: str) -> tuple[Row, ...]:
        """The rows of a record; none if it has no material."""
        found = self.material.get(record_id)
        return () if found is None else found.rows


def gather(request: EnvironmentRequest, context: GatherContext) -> Gathered:
    """Read the source bundle and its material. Raises GatherError when it cannot be read as one."""
    found = source.gather(SourceRequest(path=request.path, digest=request.digest), context)
    with ExitStack() as stack:
        stack.callback(found.close)
        facts = found.opened.facts
        records = facts.records or ()
        holds = context.lookups.environments.get(facts.environment or "")
        read = list(_read(records, found.opened, holds, context))
        stack.pop_all()
    subjects = found.subjects
    misfits = {subject: one.problem or one.first for subject, (_, one) in zip(subjects, read, strict=True) if one}
    notes = {subject: where for subject, where in misfits.items() if where}
    material = {record.id: one for record, (_, one) in zip(records, read, strict=True) if record.id and one}
    gathered = EnvironmentInput(
        environment=facts.environment,
        digest=facts.digest,
        rows=sum(len(one.rows) for _, one in read if one is not None),
        records=tuple(
            MaterialRecord(
                id=record.id,
                kind=record.kind,
                origin_alias=record.origin_alias,
                media_type=record.media_type,
                sha256=hashed,
                kept_until=None if record.retention is None else record.retention.until,
                material=None if one is None else _facts(one),
            )
            for record, (hashed, one) in zip(records, read, strict=True)
        ),
        admitted=context.admitted,
    )
    title = f"environment {facts.environment or 'not stated'} · {found.title}"
    opened = OpenedMaterial(material, found.opened)
    return replace(found, input=gathered, title=title, opened=opened, notes=notes)


def _facts(material: Material) -> MaterialFacts:
    return MaterialFacts(
        fits=material.problem is None,
        rows=len(material.rows),
        longest=material.longest,
        controls=material.controls,
        formulas=material.formulas,
    )


def _read(
    records: tuple[SourceRecord, ...], opened: OpenedSource, holds: str | None, context: GatherContext
) -> Iterator[tuple[str | None, Material | None]]:
    """The hash of each record, and its material if exactly this content was admitted: nothing else is parsed.

    All records together have at most as many bytes as one document may have.
    """
    reader = Reader(holds, context.read.nodes) if holds in HOLDS else None
    admitted = {} if context.admitted is None else context.admitted.records
    left = context.read.document_bytes
    for done, record in enumerate(records):
        context.progress("reading material", done, len(records))
        if reader is None or record.id not in admitted:
            yield None, None
            continue
        data = _content(opened, record.id, left + 1)
        left -= len(data)
        if left < 0:
            left = 0
            found = Material(problem=f"all material together is larger than {context.read.document_bytes} bytes")
            yield admitted[record.id], found
            continue
        hashed = sha256(data).hexdigest()
        yield hashed, reader.read(record.id, data) if hashed == admitted[record.id] else None


def _content(opened: OpenedSource, record_id: str, most: int) -> bytes:
    """The first bytes of a record; none of one that is gone, whose hash is then another one."""
    try:
        with opened.content(record_id) as stream:
            return stream.read(most)
    except GatherError:
        return b""


def events(gathered: Gathered, decision: Decision, _: Catalogue) -> tuple[SourceEvent, ...]:
    """One event a record: whether its material entered an environment (A41)."""
    if not isinstance(gathered.input, EnvironmentInput):
        return ()
    admitted = gathered.input.admitted
    shared = {one.code for one in decision.findings if not (one.subject or "").startswith("records/")}
    return tuple(
        SourceEvent(
            event=source.event_of(decision),
            source_id=subject.removeprefix("records/"),
            source_kind=record.kind,
            policy_outcome=decision.outcome,
            origin_alias=record.origin_alias,
            hashes=Hashes(
                declared=None if admitted is None else admitted.records.get(record.id or ""), computed=record.sha256
            ),
            license_outcome="undecided" if admitted is None else "accepted",
            rejection_causes=tuple(sorted(shared | {one.code for one in decision.findings if one.subject == subject})),
        )
        for subject, record in zip(gathered.subjects, gathered.input.records, strict=True)
    )


POINT = Point(
    "environment", EnvironmentRequest, EnvironmentInput, EnvironmentLimits, gather, pace=Pace.BUNDLE, events=events
)

"""Point `export`: whether samples may be exported, and after which treatment.

The engine searches each sample for secrets and private data, looks up the sources that its provenance names among
those that it has admitted, and compares its text with the text of all of them. Rows A89 to A92.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from engine.documents.canonical import canonical, digest
from engine.documents.files import counted
from engine.facts.text.blocks import WORDS, apart_from, content_words, windows_of
from engine.facts.text.content import has_private, has_secret, places_of, private_in, secrets_in
from engine.model import Digest, Limits, Line, Model, Object, Pace, Sha256, Word
from engine.points import GatherContext, Gathered, Point
from engine.points.source import SourceTerms
from engine.values.export import Treatment

if TYPE_CHECKING:
    from engine.state.source_records import SourceRecords

MOST = 256
"""Samples of one request."""

_MOST_SHARED = 1_000
"""Records with text of a sample that are facts."""

_MOST_PLACES = 5
"""Texts of a sample, and records that it repeats, that are named to people."""

_SHORT_DIGEST = 15


class SampleOrigin(Model):
    """A record that the sample comes from: the digest of its source bundle, and its id."""

    source: Digest
    record: Annotated[str, Field(min_length=1, max_length=1_000)]


class SampleLine(Model):
    """A sample: its kind, where it comes from, how private data in it is treated, and its content."""

    kind: Word
    provenance: Annotated[tuple[SampleOrigin, ...], Field(strict=False, max_length=100)]
    treatment: Treatment | None
    content: Object


class Sample(SampleLine):
    """A sample with an `id`, the number of its line."""

    id: Line


class ExportRequest(Model):
    """Samples that are exported together, all or none."""

    samples: Annotated[tuple[Sample, ...], Field(strict=False, min_length=1, max_length=MOST)]


class OriginFacts(Model):
    """A record of the provenance; only of one that this engine has admitted anything more is known.

    `export`: it was admitted for export. `sensitive`: it contains secrets or private data. `terms`: what it was
    admitted for and under, which has to hold still.
    """

    id: str
    source: str
    record: str
    kind: str | None = None
    sha256: Sha256 | None = None
    export: bool | None = None
    sensitive: bool | None = None
    terms: SourceTerms | None = None


class Shared(Model):
    """An admitted record with text that the sample repeats. `named`: the provenance names it; `whole`: all of it.

    `apart` are those of the `words` that no named record has.
    """

    id: str
    source: str
    record: str
    kind: str
    export: bool
    named: bool
    words: int
    apart: int
    whole: bool


class SampleFacts(Model):
    """A sample without its content. `secrets` and `private` count texts of the content.

    `occurrences`: how many samples have its id. `shared` is left out if it would not contain each record with words
    that no named record has.
    """

    id: str
    occurrences: int
    kind: str
    treatment: Treatment | None = None
    digest: Digest
    bytes: int
    secrets: int
    private: int
    provenance: tuple[OriginFacts, ...]
    shared: tuple[Shared, ...] | None = None


class ExportInput(Model):
    """What OPA sees."""

    samples: tuple[SampleFacts, ...]


class ExportedOrigin(Model):
    """A record that the sample comes from, as it is exported with it."""

    source: Digest
    record: str
    kind: str
    sha256: Sha256


class ExportedSample(Model):
    """A sample as it is exported: exactly this content, redacted if `treatment` is `redact`."""

    id: str
    kind: str
    treatment: Treatment | None
    digest: Digest
    provenance: tuple[ExportedOrigin, ...]


class ExportLimits(Limits):
    """The samples, in order."""

    samples: tuple[ExportedSample, ...]


def gather(request: ExportRequest, context: GatherContext) -> Gathered:
    """Search the samples, and compare them with the sources that were admitted. Raises StateError."""
    ids = Counter(one.id for one in request.samples)
    samples = tuple(_sample(one, ids[one.id], context) for one in request.samples)
    return Gathered(
        ExportInput(samples=samples),
        f"export of {counted(len(samples), 'sample')}",
        subjects=tuple(f"samples/{one.id}" for one in samples),
        notes={
            f"samples/{one.id}": _note(one.content, facts, context)
            for one, facts in zip(request.samples, samples, strict=True)
        },
    )


def _note(content: Any, facts: SampleFacts, context: GatherContext) -> str:
    """Where the sample has secrets, and private data without a treatment, and whose text it repeats."""
    forms = context.lookups.forms
    found = {
        "secret": places_of(content, lambda name, text: has_secret(name, text, forms)) if facts.secrets else (),
        "private data": places_of(content, lambda _, text: has_private(text))
        if facts.private and facts.treatment is None
        else (),
    }
    notes = [f"{what} in {', '.join(islice(places, _MOST_PLACES))}" for what, places in found.items() if places]
    if facts.shared is None:
        notes.append(f"text of more than {_MOST_SHARED:,} admitted records")
    repeated = [
        f"{one.words} words of {one.record} of {one.source[:_SHORT_DIGEST]}… "
        f"({'for export, not named' if one.export else 'not for export'})"
        for one in facts.shared or ()
        if not (one.export and (one.named or one.apart == 0))
    ]
    return "; ".join([*notes, *repeated[:_MOST_PLACES]])


def _sample(sample: Sample, occurrences: int, context: GatherContext) -> SampleFacts:
    data = canonical(sample.content)
    named = {(origin.source, origin.record) for origin in sample.provenance}
    return SampleFacts(
        id=sample.id,
        occurrences=occurrences,
        kind=sample.kind,
        treatment=sample.treatment,
        digest=digest(data),
        bytes=len(data),
        secrets=secrets_in(sample.content, context.lookups.forms),
        private=private_in(sample.content),
        provenance=tuple(_origin(str(at), one, context) for at, one in enumerate(sample.provenance)),
        shared=_repeated(sample.content, named, context.sources()),
    )


def _origin(position: str, origin: SampleOrigin, context: GatherContext) -> OriginFacts:
    row = context.sources().source_record(origin.source, origin.record)
    if row is None:
        return OriginFacts(id=position, source=origin.source, record=origin.record)
    return OriginFacts(
        id=position,
        source=row.source,
        record=row.record,
        kind=row.kind,
        sha256=row.sha256,
        export=row.export,
        sensitive=row.sensitive,
        terms=None if row.terms is None else SourceTerms.model_validate_json(row.terms),
    )


def _repeated(content: Any, named: set[tuple[str, str]], sources: SourceRecords) -> tuple[Shared, ...] | None:
    windows = windows_of(content_words(content))
    apart = apart_from(sources.blocks_in(named, windows), windows)
    found = sources.records_with(windows, apart, _MOST_SHARED + 1)
    if len(found) > _MOST_SHARED and (found[-1][2] > 0 or not found[-1][0].export):
        return None
    return tuple(
        Shared(
            id=str(at),
            source=row.source,
            record=row.record,
            kind=row.kind,
            export=row.export,
            named=(row.source, row.record) in named,
            words=count * WORDS,
            apart=alone * WORDS,
            whole=count >= row.blocks > 0,
        )
        for at, (row, count, alone) in enumerate(found[:_MOST_SHARED])
    )


POINT = Point("export", ExportRequest, ExportInput, ExportLimits, gather, pace=Pace.SLOW, secret=True)

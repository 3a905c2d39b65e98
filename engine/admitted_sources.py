"""What the engine remembers of a source bundle that it admits: its records, and digests of blocks of their text.

Point `export` compares samples with it. No text is kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from engine.documents.files import printable
from engine.errors import GatherError, WorkError
from engine.facts.text.blocks import blocks_of, source_texts
from engine.facts.text.quotes import words_of
from engine.model import Job, Permit, Result
from engine.points.source import AdmittedRecord, BundleFacts, OpenedSource, SourceLimits, SourceRecord, SourceTerms
from engine.secrets.patterns import find_private, is_secret, known_forms
from engine.state.rows import SourceRecordRow
from engine.work import Executor

if TYPE_CHECKING:
    from engine.state.store import Store

_CHUNK = 1 << 20

Texts = Callable[[str], Iterable[str]]
"""The texts of a record by its id, as often as it is asked."""


def source_request(path: Path, digest: str | None, into: Path) -> dict[str, Any] | GatherError:
    """The request for a source bundle from which something is written below `into`; a folder of the bundle is refused.

    No record would name what is written there, so the bundle would be denied next.
    """
    with suppress(ValueError):  # what contains a NUL cannot be opened
        if Path(os.path.realpath(into)).is_relative_to(os.path.realpath(path)):
            return GatherError(
                f"`{printable(str(into))}` is inside the source bundle",
                remedy="write into a folder outside of it",
                code="engine.request_invalid",
            )
    return {"path": str(path), "digest": digest}


def noting(store: Callable[[], Store], executor: Executor) -> Executor:
    """An executor of point `source` that first notes what is admitted. Raises StateError, and then nothing is done."""

    def note(permit: Permit, job: Job) -> Result:
        limits = permit.demand("source", job.input_digest, SourceLimits)
        records = {record.id: record for record in limits.records}
        note_source(store(), limits, job.opened.facts, lambda name: _texts(records[name], job.opened))
        return executor(permit, job)

    return note


def note_source(store: Store, limits: SourceLimits, bundle: BundleFacts, texts: Texts) -> None:
    """Note every record of these limits. Raises StateError, and what `texts` raises."""
    facts = {record.id: record for record in bundle.records or ()}
    for record in limits.records:
        known = store.source_record(limits.bundle_digest, record.id)
        row = SourceRecordRow(
            source=limits.bundle_digest,
            record=record.id,
            kind=facts[record.id].kind or "",
            sha256=record.sha256,
            export=limits.export.allowed,
            sensitive=any(map(_is_sensitive, texts(record.id))) if known is None else known.sensitive,
            terms=_terms(bundle, facts[record.id]).model_dump_json(),
        )
        words = (word for text in texts(record.id) for word in words_of(text))
        store.add_source_record(row, blocks_of(words) if known is None else ())


def _terms(bundle: BundleFacts, record: SourceRecord) -> SourceTerms:
    return SourceTerms(
        purpose=bundle.purpose,
        license=None if record.license is None else record.license.alternatives,
        export_license=None if bundle.export_license is None else bundle.export_license.alternatives,
        kept_until=None if record.retention is None else record.retention.until,
    )


def _is_sensitive(text: str) -> bool:
    return is_secret(text, known_forms()) or next(find_private(text), None) is not None


def _texts(record: AdmittedRecord, opened: OpenedSource) -> Iterator[str]:
    """The texts of exactly the admitted content. Raises WorkError, after the last one, for any other content."""
    with opened.content(record.id) as stream:
        hashed = _Hashed(stream)
        yield from source_texts(hashed)
        while hashed.read(_CHUNK):
            pass
    if hashed.sha256.hexdigest() != record.sha256:
        raise WorkError(
            f"the content of record `{record.id}` changed after the decision",
            remedy="request a decision on the current content, then leave the source bundle unchanged",
            code="engine.bundle_changed",
        )


class _Hashed:
    """A stream whose content is hashed while it is read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.sha256.update(data)
        return data

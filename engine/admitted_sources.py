"""What the engine remembers of a source bundle that it admits: its records, and digests of blocks of their text.

Point `export` compares samples with it. No text is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from engine.errors import WorkError
from engine.facts.text.blocks import blocks_of, source_texts
from engine.facts.text.quotes import words_of
from engine.model import Job, Permit, Result
from engine.points.source import AdmittedRecord, OpenedSource, SourceLimits
from engine.secrets.patterns import find_private, is_secret, known_forms
from engine.state.rows import SourceRecordRow
from engine.work import Executor

if TYPE_CHECKING:
    from engine.state.store import Store

_CHUNK = 1 << 20


def noting(store: Callable[[], Store], executor: Executor) -> Executor:
    """An executor of point `source` that first notes what is admitted. Raises StateError, and then nothing is done."""

    def note(permit: Permit, job: Job) -> Result:
        note_source(store(), permit.demand("source", job.input_digest, SourceLimits), job.opened)
        return executor(permit, job)

    return note


def note_source(store: Store, limits: SourceLimits, opened: OpenedSource) -> None:
    """Note every record of these limits. Raises StateError, or WorkError for content that is not the admitted one."""
    for record in limits.records:
        _note(store, limits, record, opened)


def _note(store: Store, limits: SourceLimits, record: AdmittedRecord, opened: OpenedSource) -> None:
    known = store.source_record(limits.bundle_digest, record.id)
    if known is None:
        with opened.content(record.id) as stream:
            sensitive = any(map(_is_sensitive, source_texts(stream)))
    row = SourceRecordRow(
        source=limits.bundle_digest,
        record=record.id,
        kind=opened.kinds.get(record.id, ""),
        sha256=record.sha256,
        export=limits.export.allowed,
        sensitive=sensitive if known is None else known.sensitive,
    )
    store.add_source_record(row, _blocks(record, opened) if known is None else ())


def _is_sensitive(text: str) -> bool:
    return is_secret(text, known_forms()) or next(find_private(text), None) is not None


def _blocks(record: AdmittedRecord, opened: OpenedSource) -> Iterator[int]:
    """The blocks of exactly the admitted content. Raises WorkError, after the last one, for any other content."""
    with opened.content(record.id) as stream:
        hashed = _Hashed(stream)
        yield from blocks_of(word for text in source_texts(hashed) for word in words_of(text))
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

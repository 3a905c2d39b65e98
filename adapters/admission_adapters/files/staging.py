"""Staging: copies all admitted records of a source bundle into one folder, or none.

A folder is filled beside the others and then renamed. Each content is measured while it is copied, so
that what is staged is what was decided on.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, runtime_checkable

from admission_adapters.files.drafts import Draft, draft_folder
from admission_adapters.files.new_files import existing, names_in, opened
from admission_adapters.grants import unenforceable
from engine.errors import EngineError, WorkError

Contents = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens the content of a record by the record's id."""

_CHUNK = 256 << 10

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_RECORD_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


class StagedRecord(Protocol):
    """One record of a permit: its id, its content's SHA-256 in hex, and its exact size in bytes."""

    id: str  # names the file
    sha256: str  # in hex
    bytes: int  # neither more nor fewer are taken


@runtime_checkable
class SourceGrant(Protocol):
    """What staging reads of the limits of point `source`."""

    bundle_digest: str  # `sha256:` and hex; names the folder
    records: Sequence[StagedRecord]  # exactly what is staged


def stage(root: int, grant: SourceGrant, contents: Contents) -> tuple[str, int]:
    """Stage the records below the descriptor `root`; returns the folder's name and the number of bytes.

    Raises OSError and the WorkErrors of `ArtifactDirectory.stage_source`.
    """
    name, records = _plan(grant)
    if name in names_in(root) or not _staged(root, name, records, contents):
        _verify(root, name, records)
    return name, sum(record.bytes for record in records)


def _plan(grant: SourceGrant) -> tuple[str, Sequence[StagedRecord]]:
    match = _DIGEST.fullmatch(grant.bundle_digest)
    ids = {record.id for record in grant.records}
    if match is None or len(ids) != len(grant.records) or not all(_RECORD_ID.fullmatch(name) for name in ids):
        raise unenforceable(
            "the permit names a folder or records that cannot be staged", "give every record a unique id"
        )
    return match[1], grant.records


def _staged(root: int, name: str, records: Sequence[StagedRecord], contents: Contents) -> bool:
    """Fill a folder and rename it; False if another process was faster."""
    with draft_folder(root) as draft:
        for record in records:
            _copy(draft, record, contents)
        try:
            draft.appear(name)
        except OSError as error:
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                return False
            raise
    return True


def _copy(draft: Draft, record: StagedRecord, contents: Contents) -> None:
    try:
        with contents(record.id) as stream:
            written = draft.create(record.id, _exactly(stream, record), record.bytes)
    except WorkError:
        raise
    except EngineError as error:
        raise _changed(record) from error
    if written != (record.bytes, record.sha256):
        raise _changed(record)


def _exactly(stream: BinaryIO, record: StagedRecord) -> Iterator[bytes]:
    left = record.bytes
    while chunk := stream.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise _changed(record)
        yield chunk


def _changed(record: StagedRecord) -> WorkError:
    return WorkError(
        f"the content of record `{record.id}` changed after the decision",
        remedy="request a decision on the current content, then leave the source bundle unchanged",
        code="engine.bundle_changed",
    )


def _verify(root: int, name: str, records: Sequence[StagedRecord]) -> None:
    """Raise WorkError unless the folder holds exactly these records."""
    try:
        with opened(name, root) as folder:
            same = set(names_in(folder)) == {record.id for record in records}
            same = same and all(_holds(folder, record) for record in records)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        same = False
    if not same:
        raise WorkError(
            f"the artifact folder `{name}` contains files that the decision does not cover",
            remedy="remove it, then repeat the request",
            code="engine.artifacts_changed",
        )


def _holds(folder: int, record: StagedRecord) -> bool:
    with existing(folder, record.id) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size != record.bytes:
            return False
        return hashlib.file_digest(file, "sha256").hexdigest() == record.sha256

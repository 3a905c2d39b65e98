"""Staging: copies all admitted records of a source bundle into one folder, or none.

A folder is filled beside the others and then renamed. Each content is measured while it is copied, so
that what is staged is what was decided on.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO, Protocol, runtime_checkable

from admission_adapters.files.new_files import FOLDER, create, existing, names_in, opened
from engine.errors import EngineError, WorkError

Contents = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens the content of a record by the record's id."""

DRAFT = ".draft-"
"""Prefix of folders that are being filled; no digest begins like this."""

_DRAFT_NAME = re.compile(re.escape(DRAFT) + r"[0-9a-f]{16}")
"""Exactly the names that we make: the folder around them may be anyone's."""

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
        raise unenforceable()
    return match[1], grant.records


def unenforceable() -> WorkError:
    """The error for a permit that names no folder, or no records with names of their own."""
    return WorkError(
        "the permit names a folder or records that cannot be staged",
        remedy="give every record a unique id",
        code="engine.limit_unenforceable",
    )


def _staged(root: int, name: str, records: Sequence[StagedRecord], contents: Contents) -> bool:
    """Fill a folder and rename it; False if another process was faster."""
    with draft_folder(root) as (draft, folder):
        for record in records:
            _copy(folder, record, contents)
        for record in records:  # once all are written: the first sync carries most of the rest
            with existing(folder, record.id) as file:
                os.fsync(file.fileno())
        os.fsync(folder)
        try:
            os.rename(draft, name, src_dir_fd=root, dst_dir_fd=root)
        except OSError as error:
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                return False
            raise
        os.fsync(root)
    return True


@contextmanager
def draft_folder(root: int) -> Iterator[tuple[str, int]]:
    """A new folder, locked while it is filled, removed at the end unless it was renamed."""
    fcntl.flock(root, fcntl.LOCK_EX)
    try:
        _sweep(root)
        draft = DRAFT + secrets.token_hex(8)
        os.mkdir(draft, 0o700, dir_fd=root)
        folder = os.open(draft, FOLDER, dir_fd=root)
        fcntl.flock(folder, fcntl.LOCK_EX)
    finally:
        fcntl.flock(root, fcntl.LOCK_UN)
    try:
        yield draft, folder
    finally:
        if draft in names_in(root):
            _remove(root, draft, folder)
        os.close(folder)


def _sweep(root: int) -> None:
    """Remove partly filled folders of killed processes: their locks are free."""
    for name in names_in(root):
        if _DRAFT_NAME.fullmatch(name):
            # What raises is in use by another process, or not one of ours: it does no harm.
            with suppress(OSError), opened(name, root) as folder:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(root, name, folder)


def _remove(root: int, name: str, folder: int) -> None:
    for entry in names_in(folder):
        os.unlink(entry, dir_fd=folder)
    os.rmdir(name, dir_fd=root)


def _copy(folder: int, record: StagedRecord, contents: Contents) -> None:
    try:
        with contents(record.id) as stream:
            written = create(folder, record.id, _exactly(stream, record), record.bytes, sync=False)
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

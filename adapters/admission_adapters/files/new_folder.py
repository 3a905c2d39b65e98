"""A new folder of fetched content: filled aside, then renamed, so that all of it appears or nothing.

Each content is written under the permit of its response, and is measured while it is written.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from admission_adapters.files.new_files import FOLDER, create
from engine.errors import GatherError, WorkError
from engine.model import Limits, Permit, Result

_MODE = 0o600
"""Only the user may read what was fetched; the document must be completed by hand."""


@runtime_checkable
class ContentGrant(Protocol):
    """What is read of the limits of point `network_response`."""

    id: str
    sha256: str  # in hex
    bytes: int


class NewFolder:
    """A folder that appears as a whole at `finish`, or not at all. A context manager."""

    def __init__(self, path: Path, content: str) -> None:
        """`content` is the folder inside it for what is kept."""
        self._path = path.absolute()
        self._content = content
        self._draft: Path | None = None

    def __enter__(self) -> Self:
        """Raises GatherError if something is there already."""
        try:
            taken = os.path.lexists(self._path) and not (self._path.is_dir() and not any(self._path.iterdir()))
        except OSError:
            taken = True
        if taken:
            raise GatherError(
                "the folder for what is fetched exists and is not an empty folder",
                remedy="name a new folder with `--into`, or remove this one",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._draft is not None:
            shutil.rmtree(self._draft, ignore_errors=True)

    def keep(self, permit: Permit, input_digest: str, limits: type[Limits], data: Sequence[int], name: str) -> Result:
        """Write one content as `name`. Raises WorkError unless it is exactly that of the permit."""
        grant = permit.demand("network_response", input_digest, limits)
        if not isinstance(grant, ContentGrant):
            raise WorkError(
                "the permit names no content",
                remedy="request a decision on what was fetched",
                code="engine.limit_unenforceable",
            )
        with _disk():
            folder = os.open(self._drafted() / self._content, FOLDER)
            try:
                written = create(folder, name, (memoryview(data),), grant.bytes)  # type: ignore[arg-type]
                os.chmod(name, _MODE, dir_fd=folder, follow_symlinks=False)
                os.fsync(folder)
            finally:
                os.close(folder)
        if written != (grant.bytes, grant.sha256):
            raise WorkError("this is not the content that was decided on", remedy="fetch it again")
        return Result("kept", {"bytes": grant.bytes, "sha256": grant.sha256})

    def finish(self, name: str, text: str) -> None:
        """Add the document `name`, and make the folder appear. Raises WorkError."""
        with _disk():
            draft = self._drafted()
            folder = os.open(draft, FOLDER)
            try:
                data = text.encode("utf-8")
                create(folder, name, (data,), len(data))
                os.chmod(name, _MODE, dir_fd=folder)
                os.fsync(folder)
            finally:
                os.close(folder)
            draft.rename(self._path)
            self._draft = None
            parent = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(parent)
            finally:
                os.close(parent)

    def _drafted(self) -> Path:
        if self._draft is None:
            parent = self._path.parent
            parent.mkdir(parents=True, exist_ok=True)
            draft = parent / f".{self._path.name[:100]}.{secrets.token_hex(8)}"
            draft.mkdir(mode=0o700)
            self._draft = draft
            (draft / self._content).mkdir(mode=0o700)
        return self._draft


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            remedy = "another program made something there meanwhile: name a new folder with `--into`"
        else:
            remedy = "free disk space, or check the permissions of the parent folder"
        reason = os.strerror(error.errno).lower() if error.errno else "it failed"
        raise WorkError(f"the folder for what is fetched cannot be written: {reason}", remedy=remedy) from error

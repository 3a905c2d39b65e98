"""A new folder of fetched content: filled aside, then renamed, so that all of it appears or nothing.

Each content is written under the permit of its response, and is measured while it is written.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from admission_adapters.files.drafts import Draft, draft_folder
from admission_adapters.files.new_files import opened, writing
from admission_adapters.grants import granted
from engine.errors import GatherError, WorkError
from engine.model import Permit, Result

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
        self._draft: Draft | None = None
        self._end = ExitStack()

    def __enter__(self) -> Self:
        """Raises GatherError if something is there already."""
        try:
            taken = os.path.lexists(self._path) and not (self._path.is_dir() and not any(self._path.iterdir()))
        except OSError:
            taken = True
        if taken:
            raise GatherError(
                "the folder for what is fetched exists and is not an empty folder; nothing was fetched",
                remedy="name a new folder with `--into`, in requests as `into`, or remove this one",
            )
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what cannot be removed now is removed by the next draft beside it
            self._end.close()

    def keep(self, permit: Permit, input_digest: str, data: bytearray, name: str) -> Result:
        """Write one content as `name`. Raises WorkError unless it is exactly that of the permit."""
        grant = granted(permit, "network_response", input_digest, ContentGrant)
        with self._writing():
            written = self._drafted().create(name, (data,), grant.bytes, mode=_MODE, within=self._content)
        if written != (grant.bytes, grant.sha256):
            raise WorkError("this is not the content that was decided on", remedy="fetch it again")
        return Result("kept", {"bytes": grant.bytes, "sha256": grant.sha256})

    def finish(self, name: str, text: str) -> None:
        """Add the document `name`, and make the folder appear, durably. Raises WorkError."""
        data = text.encode("utf-8")
        with self._writing():
            draft = self._drafted()
            draft.create(name, (data,), len(data), mode=_MODE)
            draft.appear(self._path.name)

    @staticmethod
    def _writing() -> AbstractContextManager[None]:
        taken = "another program made something there meanwhile: name a new folder as `into`"
        return writing("the folder for what is fetched", taken, "the parent folder")

    def _drafted(self) -> Draft:
        if self._draft is None:
            parent = self._path.parent
            parent.mkdir(parents=True, exist_ok=True)
            root = self._end.enter_context(opened(parent.resolve()))
            self._draft = self._end.enter_context(draft_folder(root))
        return self._draft

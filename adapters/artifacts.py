"""The artifact folder: what permitted work leaves behind, written below one folder and nowhere else.

Every path is walked from the folder's descriptor, one part at a time, through no link; a file is only
ever created, never replaced. `prove` shows on this machine that this holds.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from adapters.artifact_probe import HELD, probe
from adapters.new_files import FOLDER, create
from adapters.staging import DRAFT, Contents, SourceGrant, stage, unenforceable
from engine.errors import WorkError
from engine.model import Boundary, Limits, Permit, Result


class ArtifactDirectory:
    """Writes files below `root`, which is made when it is not there. Raises WorkError only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, relative: str, chunks: Iterable[bytes], most: int) -> int:
        """Create the file `relative` of at most `most` bytes, durable on return; its size.

        A path that is not plain, passes a link or is taken is refused; past `most`, or when `chunks`
        fails, nothing stays of the file.
        """
        with self._opened() as root, ExitStack() as stack:
            *folders, name = _parts(relative)
            folder = root
            for part in folders:
                folder = _deeper(folder, part, relative)
                stack.callback(os.close, folder)
            try:
                size, _ = create(folder, name, chunks, most)
            except FileExistsError as error:
                raise _taken(relative) from error
            os.fsync(folder)
        return size

    def stage_source(self, permit: Permit, input_digest: str, limits: type[Limits], contents: Contents) -> Result:
        """Copy the records that the permit names into `<bundle digest in hex>/<record id>`.

        `limits` is the limits type of point `source`, with the fields of SourceGrant. `contents` opens
        a record's content by its id. All records are there or none: a folder is filled beside and then
        renamed. What is staged already with equal content is left as it is.

        Raises WorkError: `engine.permit_missing`; `engine.limit_unenforceable`; `engine.bundle_changed` when
        a content is no longer what was decided on; `engine.artifacts_changed` when the folder is there and
        holds something else.
        """
        grant = permit.demand("source", input_digest, limits)
        if not isinstance(grant, SourceGrant):
            raise unenforceable()
        with self._opened() as root:
            folder, size = stage(root, grant, contents)
        return Result("staged", {"records": len(grant.records), "bytes": size, "folder": folder})

    @staticmethod
    def prove(probe_folder: Path) -> Boundary:
        """Try to get out of an artifact folder made below `probe_folder`, and report what held.

        Every attempt must fail and leave the world outside as it was, writing inside must succeed, and
        a plain `open` through the same link must escape: without that control nothing is claimed.
        """
        try:
            with tempfile.TemporaryDirectory(dir=probe_folder) as folder:
                seen = probe(Path(folder), lambda root: ArtifactDirectory(root).write)
        except OSError:
            seen = {"probe": "failed"}
        text = json.dumps(seen, sort_keys=True, separators=(",", ":"))
        return Boundary(
            backend="artifact_directory",
            boundary="artifact_subdir",
            kind="supervised",
            enforced=seen == HELD,
            evidence="sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest(),
        )

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The root's descriptor; whatever the system refuses becomes a WorkError here."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            root = os.open(self._root, FOLDER)
            try:
                yield root
            finally:
                os.close(root)
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else "it failed"
            raise WorkError(
                f"the artifact folder cannot be written: {reason}",
                remedy="make room, check its permissions, and that it is no link",
            ) from error


def _parts(relative: str) -> list[str]:
    parts = relative.split("/")
    odd = any(part in {"", ".", ".."} or part.startswith(DRAFT) for part in parts)
    if odd or "\\" in relative or not relative.isprintable():
        raise WorkError(
            "the path of an artifact leaves the artifact folder",
            remedy="give a path below it, with `/` and without `..`",
        )
    return parts


def _deeper(folder: int, part: str, relative: str) -> int:
    try:
        os.mkdir(part, 0o700, dir_fd=folder)
    except FileExistsError:
        pass
    else:
        os.fsync(folder)
    try:
        return os.open(part, FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        raise _taken(relative) from error


def _taken(relative: str) -> WorkError:
    return WorkError(
        f"the artifact `{relative[:200]}` is there already, or passes a link", remedy="choose a path that is free"
    )

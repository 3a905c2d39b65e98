"""The artifact folder: permitted work writes its files below this folder only.

Every path is walked from the folder's descriptor, one part at a time, through no link; a file is only
ever created, never replaced. `prove` shows on this machine that this holds.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from admission_adapters.digests import json_digest
from admission_adapters.files.drafts import DRAFT
from admission_adapters.files.new_files import FOLDER, create, opened
from admission_adapters.files.staging import Contents, SourceGrant, stage
from admission_adapters.grants import granted
from engine.errors import WorkError, reason_of
from engine.model import Boundary, Permit, Result


class ArtifactDirectory:
    """Writes files below `root`, which is created if it is missing. Raises WorkError only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, relative: str, chunks: Iterable[bytes], most: int) -> int:
        """Create the file `relative` of at most `most` bytes, durable on return; returns its size.

        A path that is not plain, passes a link or exists is refused; past `most`, or when `chunks`
        fails, nothing of the file remains.
        """
        with opened_folder(self._root) as root, ExitStack() as stack:
            *folders, name = _parts(relative)
            folder = root
            for part in folders:
                folder = _deeper(folder, part, relative)
                stack.callback(os.close, folder)
            try:
                size, _ = create(folder, name, chunks, most)
            except FileExistsError as error:
                raise _exists(relative) from error
            os.fsync(folder)
        return size

    def stage_source(self, permit: Permit, input_digest: str, contents: Contents) -> Result:
        """Copy the records that the permit names into `<bundle digest in hex>/<record id>`.

        `contents` opens a record's content by its id. All records are staged or none: a folder is filled aside and
        then renamed. A folder that was already staged with equal content is left unchanged.

        Raises WorkError: `engine.permit_missing`; `engine.limit_unenforceable`; `engine.bundle_changed` when
        a content is no longer what was decided on; `engine.artifacts_changed` when the folder exists and
        contains something else.
        """
        grant = granted(permit, "source", input_digest, SourceGrant)
        with opened_folder(self._root) as root:
            folder, size = stage(root, grant, contents)
        return Result("staged", {"records": len(grant.records), "bytes": size, "folder": folder})

    @staticmethod
    def prove(probe_folder: Path) -> Boundary:
        """Attempt to write outside of an artifact folder made below `probe_folder`, and report the result.

        Every attempt must fail and leave everything outside unchanged, writing inside must succeed, and
        a plain `open` through the same link must escape: without that control nothing is proven.
        """
        try:
            with tempfile.TemporaryDirectory(dir=probe_folder) as folder:
                results = probe(Path(folder), lambda root: ArtifactDirectory(root).write)
        except OSError:
            results = {"probe": "failed"}
        return Boundary(
            backend="artifact_directory",
            boundary="artifact_subdir",
            kind="supervised",
            enforced=results == HELD,
            evidence=json_digest(results),
        )


@contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """The descriptor of a folder, which is created if it is missing; errors of the system become WorkErrors."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with opened(path) as folder:
            yield folder
    except OSError as error:
        reason = reason_of(error)
        raise WorkError(
            f"the folder cannot be written: {reason}",
            remedy="free disk space, check its permissions, and make sure that it is not a link",
        ) from error


def _parts(relative: str) -> list[str]:
    parts = relative.split("/")
    odd = any(part in {"", ".", ".."} or part.startswith(DRAFT) for part in parts)
    if odd or "\\" in relative or not relative.isprintable():
        raise WorkError(
            "the path of an artifact leaves the artifact folder",
            remedy="use a path below it, with `/` and without `..`",
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
        raise _exists(relative) from error


def _exists(relative: str) -> WorkError:
    return WorkError(
        f"the artifact `{relative[:200]}` already exists, or its path passes through a link",
        remedy="choose a path that is free",
    )


Write = Callable[[str, Iterable[bytes], int], int]
"""Writes a file below an artifact folder: relative path, content, most bytes."""

_ATTEMPTS = {
    "parent": "../escaped",
    "parent_inside": "folder/../../escaped",
    "folder_link": "folder_link/escaped",
    "file_link": "file_link",
    "dangling_link": "dangling_link",
    "existing_file": "existing",
}
"""Ways out of the artifact folder that the probe tries; `absolute` and `too_large` are made up there."""

HELD = {
    **dict.fromkeys([*_ATTEMPTS, "absolute", "too_large"], "refused"),
    "inside": "written",
    "outside": "untouched",
    "control_folder_link": "escaped",
    "control_file_link": "escaped",
}
"""What the probe sees on a machine that enforces the boundary."""


def probe(folder: Path, writer: Callable[[Path], Write]) -> dict[str, str]:
    """The result of each attempt in an artifact folder made below the empty `folder`. Raises OSError."""
    inside, outside = folder / "inside", folder / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (inside / "existing").write_bytes(b"kept")
    (inside / "folder_link").symlink_to(outside)
    (inside / "file_link").symlink_to(outside / "kept")
    (inside / "dangling_link").symlink_to(outside / "escaped")
    write = writer(inside)
    attempts = {**_ATTEMPTS, "absolute": str(outside / "escaped")}
    results = {name: _attempt(write, path, most=7) for name, path in attempts.items()}
    results["too_large"] = _attempt(write, "large", most=6)
    results["inside"] = _attempt(write, "new/file", most=7)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if _is_file(path)}
    expected = {"outside/kept": b"kept", "inside/existing": b"kept", "inside/new/file": b"escaped"}
    results["outside"] = "untouched" if files == expected else "changed"
    (inside / "folder_link" / "control").write_bytes(b"escaped")
    (inside / "file_link").write_bytes(b"escaped")
    results["control_folder_link"] = "escaped" if (outside / "control").exists() else "held"
    results["control_file_link"] = "escaped" if (outside / "kept").read_bytes() == b"escaped" else "held"
    return results


def _attempt(write: Write, path: str, most: int) -> str:
    try:
        write(path, [b"escaped"], most)
    except WorkError:
        return "refused"
    return "written"


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()

"""Facts about media that are brought: whether the content can be read, how large it is, its digest and its types."""

from __future__ import annotations

import binascii
import io
import os
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from engine.canonical import digest
from engine.errors import GatherError
from engine.facts.media_types import Sniffer
from engine.facts.members import hashed
from engine.facts.walking import Found, find, open_folder
from engine.settings import ReadLimits


@dataclass(frozen=True, slots=True)
class Content:
    """A content as it is; its size in bytes, its digest and the types it has only where it can be read.

    Of a file: whether it is `inside` of the root, which it is without one, and how many `names` (hard links) it has.
    """

    readable: bool
    bytes: int | None = None
    digest: str | None = None
    types: tuple[str, ...] | None = None
    inside: bool | None = None
    names: int | None = None


_UNREADABLE = Content(readable=False)


def base64_content(text: str) -> Content:
    """The content of a base64 text in its only spelling (RFC 4648, section 4): padded, without line breaks."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return _UNREADABLE
    if b64encode(data).decode("ascii") != text:
        return _UNREADABLE
    sniffer = Sniffer(io.BytesIO(data))
    while sniffer.read(len(data) or 1):
        pass
    return Content(readable=True, bytes=len(data), digest=digest(data), types=sniffer.types())


def file_content(path: str, root: Path | None, limits: ReadLimits) -> Content:
    """The content of a regular file, below the root where there is one; no link on it leads out of the root.

    Raises GatherError, without a root for a folder that cannot be opened, and for a file beyond
    `limits.content_bytes`.
    """
    found, inside = _found(path) if root is None else _found_below(path, root)
    if found is None or found.descriptor is None:
        return Content(readable=False, inside=inside)
    with os.fdopen(found.descriptor, "rb") as file:
        sniffer = Sniffer(file)
        sha256, size = hashed(sniffer, path, path, limits)
    return Content(
        readable=True,
        bytes=size,
        digest=f"sha256:{sha256}",
        types=sniffer.types(),
        inside=True,
        names=found.names,
    )


def _found(path: str) -> tuple[Found | None, bool]:
    parent, _, name = path.rpartition("/")
    folder = open_folder(parent or ("/" if path.startswith("/") else "."), None)
    try:
        return find(folder, name) if name else None, True
    finally:
        folder.close()


def _found_below(path: str, root: Path) -> tuple[Found | None, bool]:
    if path.startswith("/") or ".." in path.split("/"):
        return None, False
    try:
        folder = open_folder(".", root)
    except GatherError:  # a server without a root: no file is inside of it
        return None, False
    try:
        found = find(folder, path)
    finally:
        folder.close()
    return found, not found.escapes

"""Facts about media that are brought: whether the content can be read, how large it is, and its digest."""

from __future__ import annotations

import binascii
import os
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from engine.canonical import digest
from engine.facts.members import hashed
from engine.facts.walking import find, open_folder
from engine.settings import ReadLimits


@dataclass(frozen=True, slots=True)
class Content:
    """A content as it is; its size in bytes and its digest only where it can be read."""

    readable: bool
    bytes: int | None = None
    digest: str | None = None


_UNREADABLE = Content(readable=False)


def base64_content(text: str) -> Content:
    """The content of a base64 text in its only spelling (RFC 4648, section 4): padded, without line breaks."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return _UNREADABLE
    if b64encode(data).decode("ascii") != text:
        return _UNREADABLE
    return Content(readable=True, bytes=len(data), digest=digest(data))


def file_content(path: str, root: Path | None, limits: ReadLimits) -> Content:
    """The content of a regular file, below the root where there is one; no link on it leads out of its folder.

    Raises GatherError for a folder that cannot be opened and for a file beyond `limits.content_bytes`.
    """
    if root is not None and (path.startswith("/") or ".." in path.split("/")):
        return _UNREADABLE
    parent, _, name = path.rpartition("/")
    folder = open_folder(parent or ("/" if path.startswith("/") else "."), root)
    try:
        descriptor = find(folder, name).descriptor if name else None
    finally:
        folder.close()
    if descriptor is None:
        return _UNREADABLE
    with os.fdopen(descriptor, "rb") as file:
        sha256, size = hashed(file, name, name, limits)
    return Content(readable=True, bytes=size, digest=f"sha256:{sha256}")

"""What a run left: each file with its name, media type, size and digest, and the download of one.

A file is what a program wrote, so it is never a page: it is sent as an attachment that no browser guesses about, and
a picture is sent so that it can be shown in a page but does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import PurePosixPath
from urllib.parse import quote

from engine.api.messages import Response
from engine.workbench.pages import HEADERS

_ANY = "application/octet-stream"
_PICTURE_BYTES = 4 << 20
"""Of a picture that a page shows."""

_PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
}
"""The media types of pictures that a page shows, and how their content begins. SVG is none: it may have scripts."""

_SANDBOXED = b"default-src 'none'; sandbox; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of a run. `size` is in bytes, None if it was not measured; `media_type` is a guess by its name.

    `picture`: whether a page may show it.
    """

    name: str
    digest: str
    size: int | None
    picture: bool = False

    @property
    def media_type(self) -> str:
        """By the end of its name."""
        return guess_type(self.name, strict=True)[0] or _ANY


def kept_file(name: str, digest: str, data: bytes | None, size: int | None) -> KeptFile:
    """A file of a run, whose content is `data`; None if it is no longer kept."""
    if data is None:
        return KeptFile(name, digest, size)
    return KeptFile(name, digest, len(data), _picture(data) is not None)


def download(name: str, data: bytes) -> Response:
    """A file as an attachment; a picture has its own media type, so that a page can show it."""
    headers = {**dict(HEADERS), b"content-security-policy": _SANDBOXED}
    named = quote(PurePosixPath(name).name.encode("utf-8", "replace"), safe="")
    headers[b"content-disposition"] = f"attachment; filename*=UTF-8''{named if named.strip('.') else 'file'}".encode()
    return Response(200, data, (_picture(data) or _ANY).encode("ascii"), tuple(headers.items()))


def _picture(data: bytes) -> str | None:
    if len(data) > _PICTURE_BYTES:
        return None
    return next((kind for kind, start in _PICTURES.items() if data.startswith(start)), None)

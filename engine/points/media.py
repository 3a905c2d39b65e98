"""Point `media`: whether a piece of media may be passed to a model, and from where it may be fetched.

Content in the request is measured here. For a URL, the host, the port and the addresses of the host are
facts; path and query may contain secrets, and only the digest covers them.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from engine.facts.media import Content, base64_content, file_content
from engine.facts.net.addresses import HostAddress, host_addresses
from engine.facts.net.urls import url_facts
from engine.model import Digest, Limits, Model, Pace, Text
from engine.points import GatherContext, Gathered, Point
from engine.points.network import RemoteUrl, remote_url

_MEDIA_TYPE = re.compile(r"[a-z0-9]+/[a-z0-9][a-z0-9.+-]*")
"""A media type without parameters; any other text is not a media type, and is not shown."""

_FIELDS = {"url": "url", "base64": "data", "file": "path"}
"""The field that has the media, by source type."""


class MediaRequest(Model):
    """One piece of media: by its URL (`url`), as base64 text (`data`), or as a file (`path`).

    `bytes` is the declared size of media by URL, if known; content in the request is measured.
    """

    kind: Annotated[str, Field(min_length=1, max_length=64)]
    source_type: Literal["url", "base64", "file"]
    url: Annotated[str, Field(max_length=8_192)] | None = None
    data: Annotated[Text, Field(min_length=1)] | None = None
    path: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None
    media_type: Annotated[str, Field(max_length=200)] | None = None
    bytes: Annotated[int, Field(ge=0, le=1 << 50)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        stated = {name for name in _FIELDS.values() if getattr(self, name) is not None}
        if stated != {_FIELDS[self.source_type]} or (self.bytes is not None and self.source_type != "url"):
            own = f"`{_FIELDS[self.source_type]}`" + (", and `bytes` if known" if self.source_type == "url" else "")
            raise ValueError(f"with `source_type: {self.source_type}`, send {own}, and no other source")
        return self


class SizeFacts(Model):
    """How large the media is: measured, or declared. Not stated for a URL without a size."""

    stated: bool
    bytes: int | None = None


class MediaFacts(Model):
    """The media. `readable`, `digest` and `types` describe content in the request, `url` a URL.

    `types` are the media types detected from the bytes; `text/*` means any text. `inside` and
    `names` describe a file: whether it is below the folder that the engine serves, and its number of hard links.
    """

    kind: str
    source: Literal["url", "base64", "file"]
    media_type: str | None = None
    size: SizeFacts
    readable: bool | None = None
    digest: Digest | None = None
    types: tuple[str, ...] | None = None
    inside: bool | None = None
    names: int | None = None
    url: RemoteUrl | None = None


class MediaInput(Model):
    """What OPA sees. `addresses` has all addresses of the host; empty if it was not looked up or not found in time."""

    media: MediaFacts
    addresses: tuple[HostAddress, ...]


class Destination(Model):
    """Where the media may be fetched: this host at one of exactly these addresses."""

    scheme: str
    host: str
    port: int
    addresses: tuple[str, ...]


class MediaLimits(Limits):
    """What may be put before a model; `destinations` is empty for content that was brought."""

    kind: str
    media_type: str
    max_bytes: int
    destinations: tuple[Destination, ...]


def gather(request: MediaRequest, context: GatherContext) -> Gathered:
    """Measure the content, or read the address and look its host up. Raises GatherError."""
    addresses: tuple[HostAddress, ...] = ()
    source: dict[str, Any]
    if request.url is not None:
        url = remote_url(request.url, url_facts(request.url))
        answers = None if url.host is None else context.addresses(url.host)
        addresses = host_addresses(answers or ())
        source, size = {"url": url}, request.bytes
    else:
        source = asdict(_content(request, context))
        size = source.pop("bytes")
    stated = request.media_type
    facts = MediaFacts(
        kind=request.kind,
        source=request.source_type,
        media_type=stated if stated is not None and _MEDIA_TYPE.fullmatch(stated) else None,
        size=SizeFacts(stated=request.url is None or size is not None, bytes=size),
        **source,
    )
    gathered = MediaInput(media=facts, addresses=addresses)
    return Gathered(gathered, f"media by {request.source_type}")


def _content(request: MediaRequest, context: GatherContext) -> Content:
    if request.path is not None:
        return file_content(request.path, context.root, context.read)
    return base64_content(request.data or "")


POINT = Point("media", MediaRequest, MediaInput, MediaLimits, gather, pace=Pace.SLOW)

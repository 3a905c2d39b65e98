"""policy/media.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Model
from engine.values.fields import Host, Items

MediaType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+/[a-z0-9][a-z0-9.+-]*$", max_length=200)]
"""Type and subtype in lower case, without parameters."""

Bytes = Annotated[StrictInt, Field(ge=0, le=1 << 40)]


class MediaKind(Model):
    """One kind of media."""

    media_types: Items[MediaType] = Field(description="Types that a piece may have.")
    max_bytes: Bytes = Field(description="Bytes that one piece may have.")


class UrlMedia(Model):
    """From where media may be fetched; incomplete, with an empty list or no bytes, it is from nowhere."""

    schemes: Items[Literal["https"]] = Field(description="Schemes of addresses.")
    hosts: Items[Host] = Field(description="Exact hosts; a subdomain is another host.")
    max_bytes: Bytes = Field(description="Bytes that one piece may have; 0: none.")


class Media(Model):
    """policy/media.yaml: images, documents and audio that are put before a model."""

    kinds: Mapping[Literal["image", "document", "audio"], MediaKind] = Field(
        description="Kinds of media that are admitted. No row: refused."
    )
    allow_url_media_sources: bool = Field(
        description="Whether media may be given by its address; without a complete `url` it may not."
    )
    max_names: Annotated[StrictInt, Field(ge=1, le=1_000)] = Field(
        description="Names (hard links) that a file may have."
    )
    url: UrlMedia = Field(description="From where media may be fetched.")

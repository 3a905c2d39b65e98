"""Point `network_response`: whether what a fetch brought may be kept.

The facts are those of the transfer as the executor saw it, and of its whole content. No header value but the status,
media type, charset and content encoding is a fact, and the body is only under its digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from engine.facts.archives.source_bundle import Id
from engine.model import Decision, Limits, Line, Mode, Model, Outcome, Sha256
from engine.points import GatherContext, Gathered, Point, stated_in
from engine.points.network import fetch_event
from engine.record.source_events import EventName, SourceEvent

if TYPE_CHECKING:
    from engine.policy_bundle.catalogue import Catalogue

Count = Annotated[int, Field(ge=0, le=1 << 62)]
Label = Annotated[str, Field(max_length=255)]


class TransferFacts(Model):
    """How far a transfer came: each fact is true once it was seen to hold.

    `connected` and `secured` (TLS on the name), `in_time` (before the deadline), `well_formed` (HTTP that has one
    reading), `within_cap` (no more bytes declared or received than permitted), `complete` (the body ended where
    its framing says).
    """

    connected: bool
    secured: bool
    in_time: bool
    well_formed: bool
    within_cap: bool
    complete: bool


class HeadFacts(Model):
    """The head of the answer; absent if none came.

    `charset` is in capital letters, `content_encoding` is `identity` where none is stated. `framing` is what delimits
    the body: a length, chunks, both, or the end of the connection.
    """

    status: Count
    media_type: Label | None = None
    charset_stated: bool
    charset: Label | None = None
    content_encoding: Label
    framing: Literal["length", "chunked", "both", "close"]
    declared_bytes: Count | None = None


class BodyFacts(Model):
    """The bytes received, and their SHA-256; absent where the body was not read."""

    bytes: Count
    sha256: Sha256


class ContentFacts(Model):
    """What the body is: the types that its bytes have, and whether it has `one_reading`; `problem` if it has not."""

    types: Annotated[tuple[Label, ...], Field(strict=False, max_length=8)]
    one_reading: bool
    problem: Label | None = None


class AskedMedia(Model):
    """Whether point `media` led to the fetch, and then the media type that it admitted."""

    stated: bool
    media_type: str | None = None


class Fetched(Model):
    """What a fetch brought; `request` is the id of the decision under which it was made."""

    request: Line
    id: Id
    alias: Id
    transfer: TransferFacts
    head: HeadFacts | None = None
    body: BodyFacts | None = None
    content: ContentFacts | None = None


class NetworkResponseRequest(Fetched):
    """Ask whether the answer may be kept.

    `media_type` is the one that point `media` admitted, where that led to the fetch.
    """

    media_type: Label | None = None


class NetworkResponseInput(Fetched):
    """What OPA sees: the request as it is."""

    media: AskedMedia


class NetworkResponseLimits(Limits):
    """What may be kept: exactly this content, under this id."""

    id: str
    sha256: Sha256
    bytes: int
    media_type: str


def gather(request: NetworkResponseRequest, _: GatherContext) -> Gathered:
    """The facts of the transfer."""
    media = AskedMedia(stated=request.media_type is not None, media_type=request.media_type)
    facts = NetworkResponseInput(**stated_in(request, Fetched), media=media)
    return Gathered(facts, f"response for {request.alias}")


def events(gathered: Gathered, decision: Decision, _: Catalogue) -> tuple[SourceEvent, ...]:
    """The end of the fetch: accepted or rejected, identified by alias and hash only (A40, A42)."""
    facts = gathered.input
    if decision.mode is Mode.CHECK or not isinstance(facts, NetworkResponseInput):
        return ()
    computed = None if facts.body is None else facts.body.sha256
    if decision.outcome is Outcome.ALLOW:
        return (fetch_event(EventName.FETCH_ACCEPTED, decision, facts.alias, (), computed=computed),)
    causes = tuple(finding.code for finding in decision.findings)
    return (fetch_event(EventName.FETCH_REJECTED, decision, facts.alias, causes, computed=computed),)


POINT = Point(
    "network_response",
    NetworkResponseRequest,
    NetworkResponseInput,
    NetworkResponseLimits,
    gather,
    act="`engine fetch`, POST /v1/fetch, or `fetch` in Python",
    events=events,
)

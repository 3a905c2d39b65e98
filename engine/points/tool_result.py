"""Point `tool_result`: whether the result of a tool may be returned to the model, and how it is shown.

The input contains no content of a result: only sizes, digests, kinds, how much was found that is not for a model, and
whether the visible part of an error looks like a secret or a stack trace or names a path. Rows A07, A99, B28 to B32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from engine.documents.canonical import digest
from engine.facts.text.disguises import names_a_path
from engine.facts.text.hidden import hidden_in
from engine.facts.text.instructions import Markers
from engine.facts.text.links import links_in
from engine.facts.text.traces import has_trace
from engine.facts.tools.result_content import ResultContent
from engine.model import Count, Digest, Limits, Model, Text, Word
from engine.points import GatherContext, Gathered, Point, stated_in
from engine.policy_bundle.lookups import Lookups
from engine.secrets.patterns import find_secrets

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
Class = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.:]{0,127}$")]
Effect = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{0,31}$")]
DecisionId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
Mode = Literal["safe", "debug"]

_PLAIN = re.compile(r"[A-Za-z0-9_]{1,64}")

MESSAGE_CHARACTERS = 4_000
"""Of the message of an error, and of each of its details: a model needs a sentence to correct itself."""


class ResultFacts(Model):
    """The result of a tool: its size as text for the model, in bytes, and its digest."""

    bytes: Count
    digest: Digest
    media: Literal["text", "json", "binary"]


class ResultText(ResultFacts):
    """The result, and its text as far as it may be shown: measured here; only its size and digest go further."""

    text: Text | None = None


class ToolError(Model):
    """What a tool raised. `message` and `details` are looked at here and go no further."""

    kind: Literal["validation", "other"]
    class_: Class = Field(alias="class")
    code: Word | None = None
    message: Annotated[str, Field(max_length=MESSAGE_CHARACTERS)] | None = None
    details: Annotated[
        Mapping[
            Annotated[str, Field(min_length=1, max_length=64)], Annotated[str, Field(max_length=MESSAGE_CHARACTERS)]
        ],
        Field(max_length=32),
    ] = Field(default_factory=dict)


class SideEffect(Model):
    """Something that a tool changed or reached; of what it was done to, the digest alone."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: Name
    class_: Effect = Field(alias="class")
    target_digest: Digest | None = None


class Returned(Model):
    """A result as a whole. `decision` is the id of the decision that allowed the call."""

    tool: Name
    decision: DecisionId | None = None
    status: Literal["ok", "error"]
    error_mode: Mode
    side_effects: Annotated[tuple[SideEffect, ...], Field(max_length=1_000)]


class ToolResultRequest(Returned):
    """Ask whether a result may be returned."""

    result: ResultText | None = None
    error: ToolError | None = None
    error_mode: Mode = "safe"

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.result is None, self.error is None) != (self.status == "error", self.status == "ok"):
            raise ValueError("status `ok` has a result, status `error` has an error, and neither has both")
        return self


class TextFacts(Model):
    """A text that may be visible: whether it looks like a secret or a stack trace, names a path, and is only words.

    `plain`: it has no hidden characters, no instructions to a model, and no image or link that carries data.
    """

    id: str
    secret: bool
    path: bool
    trace: bool
    plain: bool


class ContentFacts(Model):
    """What was found in the text of a result, in numbers. `complete`: all of it is in the facts."""

    secrets: int
    hidden: int
    instructions: int
    complete: bool


class LinkFacts(Model):
    """An image or link in a result that can carry data; see `engine.facts.text.links`."""

    id: str
    kind: Literal["image", "link", "text"]
    origin: str | None = None
    data: int
    open: bool


class ErrorFacts(Model):
    """The error of a tool."""

    kind: Literal["validation", "other"]


class ToolResultInput(Returned):
    """What OPA sees. `details` are the class, the code and the details of an error, `messages` its message."""

    result: ResultFacts | None = None
    content: ContentFacts | None = None
    links: tuple[LinkFacts, ...]
    error: ErrorFacts | None = None
    messages: tuple[TextFacts, ...]
    details: tuple[TextFacts, ...]


class ToolResultLimits(Limits):
    """How a result may be shown: maximum bytes of it and of a prompt, what is taken out, the visible part of an error.

    `redact_links` are the numbers of links whose addresses are taken out.
    """

    max_bytes: Count
    prompt_bytes: Count
    redact_secrets: bool
    redact_hidden: bool
    redact_links: tuple[str, ...]
    error_mode: Mode
    show_message: bool
    record_side_effect: Literal[True]


def gather(request: ToolResultRequest, context: GatherContext) -> Gathered:
    """Look at everything of a result or an error that may be shown."""
    error, result, lookups = request.error, request.result, context.lookups
    content = None
    if result is not None and result.text is not None:
        content = ResultContent(result.text, result.media, lookups.forms, lookups.markers)
    found = None
    if content is not None:
        found = ContentFacts(
            secrets=content.secrets,
            hidden=content.hidden,
            instructions=content.instructions,
            complete=content.complete,
        )
    return Gathered(
        ToolResultInput(
            **stated_in(request, Returned),
            result=None if result is None else _measured(result),
            content=found,
            links=() if content is None else tuple(_links(content)),
            error=None if error is None else ErrorFacts(kind=error.kind),
            messages=() if error is None or error.message is None else (_look("message", lookups, error.message),),
            details=() if error is None else tuple(_details(error, lookups)),
        ),
        f"result of {request.tool}: {request.status}",
        opened=content,
        tool=request.tool,
    )


def _measured(result: ResultText) -> ResultFacts:
    """The size and digest of its text; as stated if it has none, or only the start of a larger result."""
    data = (result.text or "").encode("utf-8", "replace")
    if result.text is None or len(data) < result.bytes:
        return ResultFacts(**result.model_dump(exclude={"text"}))
    return ResultFacts(bytes=len(data), digest=digest(data), media=result.media)


def _links(content: ResultContent) -> Iterator[LinkFacts]:
    for number, link in enumerate(content.links):
        yield LinkFacts(id=str(number), kind=link.kind, origin=link.origin, data=link.data, open=link.open)


def _look(id_: str, lookups: Lookups, *texts: str) -> TextFacts:
    return TextFacts(
        id=id_,
        secret=any(next(find_secrets(text, lookups.forms), None) is not None for text in texts),
        path=any(map(names_a_path, texts)),
        trace=any(map(has_trace, texts)),
        plain=all(_plain(text, lookups.markers) for text in texts),
    )


def _plain(text: str, markers: Markers) -> bool:
    nothing = next(hidden_in(text), None) is None and next(links_in(text), None) is None
    return nothing and markers.count(text) == 0


def _details(error: ToolError, lookups: Lookups) -> Iterator[TextFacts]:
    """Everything visible besides the message; a name with special characters is identified by its number."""
    yield _look("class", lookups, error.class_)
    if error.code is not None:
        yield _look("code", lookups, error.code)
    for number, (name, value) in enumerate(error.details.items()):
        plain = _PLAIN.fullmatch(name) and not _look("", lookups, name).secret
        place = f"details.{name}" if plain else f"details.#{number}"
        yield _look(place, lookups, f"{name}: {value}", name, value)


POINT = Point("tool_result", ToolResultRequest, ToolResultInput, ToolResultLimits, gather, secret=True)

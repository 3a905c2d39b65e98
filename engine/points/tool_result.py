"""Point `tool_result`: whether the result of a tool may be returned to the model, and how it is shown.

The input contains no content of a result: only sizes, digests, kinds, and whether the visible part of an
error looks like a secret or names a path. Rows A07, A99, B28 to B32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from engine.facts.text.disguises import names_a_path
from engine.model import Digest, Limits, Model, Word
from engine.points import GatherContext, Gathered, Point
from engine.secrets.patterns import find_secrets

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
Class = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$")]
Effect = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{0,31}$")]
DecisionId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
Size = Annotated[int, Field(ge=0)]
Mode = Literal["safe", "debug"]

_PLAIN = re.compile(r"[A-Za-z0-9_]{1,64}")

MESSAGE_CHARACTERS = 4_000
"""Of the message of an error, and of each of its details: a model needs a sentence to correct itself."""


class ResultText(Model):
    """The result of a tool: its size as text for the model, in bytes, and its digest."""

    bytes: Size
    digest: Digest
    media: Literal["text", "json", "binary"]


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


class ToolResultRequest(Model):
    """Ask whether a result may be returned. `decision` is the id of the decision that allowed the call."""

    tool: Name
    decision: DecisionId | None = None
    status: Literal["ok", "error"]
    result: ResultText | None = None
    error: ToolError | None = None
    error_mode: Mode = "safe"
    side_effects: Annotated[tuple[SideEffect, ...], Field(max_length=1_000)]

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.result is None, self.error is None) != (self.status == "error", self.status == "ok"):
            raise ValueError("status `ok` has a result, status `error` has an error, and neither has both")
        return self


class TextFacts(Model):
    """A text that may be visible: whether it looks like a secret, and whether it names a path."""

    id: str
    secret: bool
    path: bool


class ErrorFacts(Model):
    """The error of a tool."""

    kind: Literal["validation", "other"]


class ToolResultInput(Model):
    """What OPA sees. `details` are the class, the code and the details of an error, `messages` its message."""

    tool: str
    decision: str | None = None
    status: Literal["ok", "error"]
    result: ResultText | None = None
    error: ErrorFacts | None = None
    error_mode: Mode
    messages: tuple[TextFacts, ...]
    details: tuple[TextFacts, ...]
    side_effects: tuple[SideEffect, ...]


class ToolResultLimits(Limits):
    """How a result may be shown: maximum bytes of it and of a prompt, and the visible part of an error."""

    max_bytes: Size
    prompt_bytes: Size
    error_mode: Mode
    show_message: bool
    record_side_effect: Literal[True]


_Secret = Callable[[str], bool]


def gather(request: ToolResultRequest, context: GatherContext) -> Gathered:
    """Compute facts about the visible part of an error; the result itself is not read."""
    error = request.error

    def secret(text: str) -> bool:
        return next(find_secrets(text, context.lookups.forms), None) is not None

    return Gathered(
        ToolResultInput(
            tool=request.tool,
            decision=request.decision,
            status=request.status,
            result=request.result,
            error=None if error is None else ErrorFacts(kind=error.kind),
            error_mode=request.error_mode,
            messages=() if error is None or error.message is None else (_text(secret, "message", error.message),),
            details=() if error is None else tuple(_details(error, secret)),
            side_effects=request.side_effects,
        ),
        f"result of {request.tool}: {request.status}",
        tool=request.tool,
    )


def _details(error: ToolError, secret: _Secret) -> Iterator[TextFacts]:
    """Everything visible besides the message; a name with special characters is identified by its number."""
    yield _text(secret, "class", error.class_)
    if error.code is not None:
        yield _text(secret, "code", error.code)
    for number, (name, value) in enumerate(error.details.items()):
        plain = _PLAIN.fullmatch(name) and not secret(name)
        yield _text(secret, f"details.{name}" if plain else f"details.#{number}", f"{name}: {value}", name, value)


def _text(secret: _Secret, id_: str, *texts: str) -> TextFacts:
    return TextFacts(id=id_, secret=any(map(secret, texts)), path=any(map(names_a_path, texts)))


POINT = Point("tool_result", ToolResultRequest, ToolResultInput, ToolResultLimits, gather, secret=True)

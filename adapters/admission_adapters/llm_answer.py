"""The answers of OpenAI's chat completions, plain and streamed: what fits the contract, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

_STREAM_END = "[DONE]"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that the provider counted."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A whole answer that fits the contract; whether it is admitted is for the limits. Without usage, no `tokens`."""

    text: str
    model: str
    finish_reason: str
    tokens: Tokens | None


_Count = Annotated[int, Field(ge=0, le=1 << 40)]


class _Part(BaseModel, strict=True, extra="ignore"):
    """A part of an answer; providers add fields of their own."""


class _Usage(_Part):
    prompt_tokens: _Count
    completion_tokens: _Count


_NoCalls = Annotated[list[Any], Field(max_length=0)] | None
"""Nobody offered the model a tool, so an answer that calls one is none."""


class _Message(_Part):
    role: Literal["assistant"]
    content: str
    tool_calls: _NoCalls = None


class _Choice(_Part):
    message: _Message
    finish_reason: str


class _Completion(_Part):
    object: Literal["chat.completion"]
    model: str
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]
    usage: _Usage | None = None


class _Delta(_Part):
    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: _NoCalls = None


class _ChunkChoice(_Part):
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(_Part):
    object: Literal["chat.completion.chunk"]
    model: str
    choices: Annotated[list[_ChunkChoice], Field(max_length=1)]
    usage: _Usage | None = None
    error: None = None


def plain_answer(data: bytes) -> ModelAnswer:
    """A plain completion. Raises ValidationError."""
    found = _Completion.model_validate_json(data)
    (choice,) = found.choices
    return ModelAnswer(choice.message.content, found.model, choice.finish_reason, _tokens(found.usage))


def streamed_answer(data: bytes) -> ModelAnswer:
    """A streamed completion, whole to its end mark. Raises ValueError or ValidationError."""
    events = list(_events(data.decode("utf-8")))
    if not events or events.index(_STREAM_END) != len(events) - 1:
        raise ValueError("the stream has no end, or goes on after it")
    chunks = [_Chunk.model_validate_json(event) for event in events[:-1]]
    (model,) = {chunk.model for chunk in chunks}
    usage = next((chunk.usage for chunk in reversed(chunks) if chunk.usage is not None), None)
    choices = [choice for chunk in chunks for choice in chunk.choices]
    (finish,) = [choice.finish_reason for choice in choices if choice.finish_reason is not None]
    return ModelAnswer("".join(choice.delta.content or "" for choice in choices), model, finish, _tokens(usage))


def _events(text: str) -> Iterator[str]:
    """The data of each server-sent event; comments and other fields are left out. Raises ValueError for a torn one."""
    lines = re.split(r"\r\n|\n|\r", text)
    if lines[-2:] != ["", ""]:  # the blank line that ends an event
        raise ValueError("the last event has no end")
    data: list[str] = []
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            data += [value.removeprefix(" ")] if name == "data" else []
        elif data:
            yield "\n".join(data)
            data = []


def _tokens(usage: _Usage | None) -> Tokens | None:
    return None if usage is None else Tokens(usage.prompt_tokens, usage.completion_tokens)

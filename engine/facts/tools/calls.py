"""A tool call in the shapes in which agents really send it, and the one form that everything is read from.

    own          {"name", "arguments": {…}}
    OpenAI       {"id", "type": "function", "function": {"name", "arguments": "<JSON text>"}}; Ollama {…}
    Responses    {"type": "function_call", "call_id", "name", "arguments": "<JSON text>"}
    Anthropic    {"type": "tool_use", "id", "name", "input": {…}}
    MCP          {"jsonrpc": "2.0", "id", "method": "tools/call", "params": {"name", "arguments": {…}}}
    LangChain    {"type": "tool_call", "id", "name", "args": {…}}
    Gemini       {"functionCall": {"id", "name", "args": {…}}}
    Bedrock      {"toolUse": {"toolUseId", "name", "input": {…}}}

Ids of calls are no facts: the same call is the same input in every shape. Fields that SDKs add are facts by name.
Argument text that has no one reading is a fact too (`arguments` is None) and no broken request, so that it is refused
by the policy and recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from engine.documents.canonical import canonical
from engine.documents.strict_json import AmbiguousJsonError, NotJsonError, read_strict
from engine.model import Model, Object, Text

LONGEST_NAME = 128
"""Characters of a tool's name; MCP and the model providers allow no more."""

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
_READ = frozenset(
    (
        *("arguments", "function", "input", "jsonrpc", "method", "name", "params", "tool", "tool_name", "args"),
        *("functionCall", "function_call", "partialArgs", "partial_args", "toolUse", "tool_use"),
        *("parameters", "toolName"),
    )
)
_PARTS = ("partialArgs", "partial_args")
"""Pieces of arguments while a model writes them; null in a call that is whole."""

CallId = Annotated[str, Field(max_length=512)]
Arguments = Object


class OwnCall(Model):
    """A call as this engine writes it."""

    name: Name
    arguments: Arguments


_MOST_FIELDS = 64


class Vendor(Model, extra="allow", json_schema_extra={"maxProperties": _MOST_FIELDS}):
    """A part of a block in which a vendor may add fields. They are facts by their names, and nothing reads them.

    A field that is what another shape calls a tool or its arguments makes the block ambiguous.
    """

    @model_validator(mode="after")
    def _one_reading(self) -> Self:
        stated = {name for name, value in (self.model_extra or {}).items() if value is not None or name not in _PARTS}
        if _READ.intersection(stated):
            raise ValueError("a call has one tool and one set of arguments")
        if len(self.model_fields_set) > _MOST_FIELDS:
            raise ValueError(f"a call has at most {_MOST_FIELDS} fields")
        return self

    def added(self) -> tuple[str, ...]:
        """The fields that this engine does not know."""
        return tuple(sorted(self.model_extra or ()))


class OpenAiFunction(Vendor):
    """What is called; `arguments` is the JSON text that the model wrote, empty if there are none, or its object."""

    name: Name
    arguments: Text | Arguments


class OpenAiCall(Vendor):
    """A tool call of OpenAI's chat completions."""

    id: CallId | None = None
    type: Literal["function"] | None = None
    function: OpenAiFunction


class ResponsesCall(Vendor):
    """A tool call of OpenAI's responses."""

    type: Literal["function_call"]
    id: CallId | None = None
    call_id: CallId
    name: Name
    arguments: Text
    status: Literal["in_progress", "completed", "incomplete"] | None = None


class AnthropicCall(Vendor):
    """A `tool_use` block of Anthropic's messages."""

    type: Literal["tool_use"]
    id: CallId
    name: Name
    input: Arguments


class McpParams(Vendor):
    """What is called over MCP; `_meta` belongs to the transport and is no argument."""

    name: Name
    arguments: Arguments | None = None
    meta: Object | None = Field(default=None, alias="_meta")


class McpCall(Vendor):
    """A `tools/call` request of MCP."""

    jsonrpc: Literal["2.0"]
    id: CallId | int
    method: Literal["tools/call"]
    params: McpParams


class LangChainCall(Vendor):
    """A tool call of LangChain's messages."""

    type: Literal["tool_call"] | None = None
    id: CallId | None = None
    name: Name
    args: Arguments


class GeminiFunction(Vendor):
    """What is called; a function without parameters has no `args`."""

    id: CallId | None = None
    name: Name
    args: Arguments | None = None


class GeminiCall(Vendor, validate_by_name=True):
    """A part of Gemini's content. Its SDK for Python spells names in snake case, and states fields that are null."""

    function_call: GeminiFunction = Field(alias="functionCall")


class BedrockToolUse(Vendor):
    """What is called."""

    id: CallId = Field(alias="toolUseId")
    name: Name
    input: Arguments


class BedrockCall(Vendor):
    """A content block of Bedrock's Converse."""

    tool_use: BedrockToolUse = Field(alias="toolUse")


_BY_KEY = {
    "jsonrpc": "mcp",
    "method": "mcp",
    "functionCall": "gemini",
    "function_call": "gemini",
    "toolUse": "bedrock",
    "tool_use": "bedrock",
    "function": "openai",
    "args": "langchain",
}
"""Keys that no other shape has; of parts of ours, the names of their fields."""

_BY_TYPE = {"function_call": "responses", "function": "openai", "tool_call": "langchain", "None": "own"}


def _shape(value: Any) -> str:
    """Which shape was meant, by the keys that no other shape has, else by its type."""
    keys = value if isinstance(value, Mapping) else getattr(value, "model_fields_set", ())
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return next((shape for key, shape in _BY_KEY.items() if key in keys), _BY_TYPE.get(str(kind), "anthropic"))


ToolCall = Annotated[
    Annotated[OwnCall, Tag("own")]
    | Annotated[OpenAiCall, Tag("openai")]
    | Annotated[ResponsesCall, Tag("responses")]
    | Annotated[AnthropicCall, Tag("anthropic")]
    | Annotated[McpCall, Tag("mcp")]
    | Annotated[LangChainCall, Tag("langchain")]
    | Annotated[GeminiCall, Tag("gemini")]
    | Annotated[BedrockCall, Tag("bedrock")],
    Discriminator(_shape),
]
"""A call in any of the shapes."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call in its one form; `arguments` is None when they have no one reading as an object.

    `data` are the arguments as canonical JSON, or the text that has no reading. `added` are fields of a vendor.
    """

    tool: str
    arguments: Arguments | None
    data: bytes
    added: tuple[str, ...] = ()


def call_of(call: ToolCall) -> Call:
    """The one form of a call in any shape. Never raises."""
    match call:
        case OpenAiCall(function=called):
            return _parsed_call(called.name, called.arguments, (*call.added(), *called.added()))
        case ResponsesCall():
            return _parsed_call(call.name, call.arguments, call.added())
        case OwnCall():
            return _call_of(call.name, call.arguments, ())
        case AnthropicCall():
            name, arguments, added = call.name, call.input, call.added()
        case LangChainCall():
            name, arguments, added = call.name, call.args, call.added()
        case McpCall(params=called):
            name, arguments, added = called.name, called.arguments or {}, (*call.added(), *called.added())
        case GeminiCall(function_call=called):
            name, arguments, added = called.name, called.args or {}, (*call.added(), *called.added())
        case BedrockCall(tool_use=called):
            name, arguments, added = called.name, called.input, (*call.added(), *called.added())
    return _call_of(name, arguments, added)


def _parsed_call(name: str, text: str | Arguments, added: tuple[str, ...]) -> Call:
    if not isinstance(text, str):
        return _call_of(name, text, added)
    try:
        value = read_strict(text or "{}")
    except (NotJsonError, AmbiguousJsonError):
        value = None
    if isinstance(value, dict):
        return _call_of(name, value, added)
    return Call(name, None, text.encode("utf-8", "replace"), added)


def _call_of(name: str, arguments: Arguments, added: tuple[str, ...]) -> Call:
    try:
        return Call(name, arguments, canonical(arguments), added)
    except (ValueError, TypeError, RecursionError):  # a number without a JSON form, endless nesting
        return Call(name, None, b"", added)

"""The definition of a tool in the shapes in which servers and providers write it, and the one form of all.

    own, Anthropic    {"name", "description", "input_schema", …}
    MCP               {"name", "description", "inputSchema", "outputSchema", "annotations", …}
    OpenAI            {"type": "function", "function": {"name", "description", "parameters", …}}
    Responses         {"type": "function", "name", "description", "parameters", …}

The digest is over all of it, the fields that nobody here knows included: whatever changes, the definition
is another one (H14). Hints of a server are what it says of itself, and nothing is taken from their absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.canonical import canonical, digest
from engine.facts.tool_calls import LONGEST_NAME

_SCHEMAS = ("input_schema", "inputSchema", "parameters")
_OUTPUTS = ("output_schema", "outputSchema")
_KINDS = ("function", "custom")
"""Values of `type` that say only which provider's shape it is."""


class UnreadableDefinitionError(ValueError):
    """This is no definition of a tool in any of the shapes, or one that has two readings."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What a server says of its tool (MCP `annotations`); what it does not say is the worst case."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in its one form; `others` are all fields of which nothing is known here."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """All of it as JSON; absent and empty parts are left out."""
        known: dict[str, Any] = {
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
            "others": self.others,
        }
        return {"name": self.name} | {
            name: part for name, part in known.items() if part or (name.endswith("schema") and part is not None)
        }

    def digest(self) -> str:
        """`sha256:` and 64 hex digits over all of it. Raises UnreadableDefinitionError when it is no plain JSON."""
        try:
            return digest(canonical(self.document()))
        except (ValueError, TypeError, RecursionError) as error:
            raise UnreadableDefinitionError("not plain JSON") from error

    def hints(self) -> Hints:
        """The server's hints; what is not exactly true or false was not said."""
        said = self.annotations.get
        return Hints(
            read_only=said("readOnlyHint") is True,
            destructive=said("destructiveHint") is not False,
            idempotent=said("idempotentHint") is True,
            open_world=said("openWorldHint") is not False,
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of definitions; `more`: the server has further pages that are not here."""

    definitions: tuple[Definition, ...]
    more: bool = False


def definition_of(value: Any) -> Definition:
    """The one form of a definition in any shape. Raises UnreadableDefinitionError."""
    if not isinstance(value, Mapping):
        raise UnreadableDefinitionError("not an object")
    fields = dict(value)
    if fields.get("type") in _KINDS:
        del fields["type"]
    if "function" in fields:
        inner = fields.pop("function")
        if not isinstance(inner, Mapping) or fields.keys() & inner.keys():
            raise UnreadableDefinitionError("the function is no object, or has fields in two places")
        fields |= inner
    name, description = fields.pop("name", None), fields.pop("description", None)
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise UnreadableDefinitionError("has no name of 1 to 128 characters")
    if not isinstance(description, str | None):
        raise UnreadableDefinitionError("the description is no text")
    return Definition(
        name=name,
        description=description or "",
        input_schema=_object(fields, _SCHEMAS),
        output_schema=_object(fields, _OUTPUTS),
        annotations=_object(fields, ("annotations",)) or {},
        others=fields,
    )


def listing_of(value: Any) -> Listing:
    """A list of definitions: a plain one, as providers take it, or MCP's `tools/list` result, also inside JSON-RPC.

    Raises UnreadableDefinitionError, also when only one of the definitions cannot be read.
    """
    result = value.get("result", value) if isinstance(value, Mapping) else {"tools": value}
    if not isinstance(result, Mapping) or not isinstance(tools := result.get("tools"), list | tuple):
        raise UnreadableDefinitionError("no list of tools")
    return Listing(tuple(definition_of(tool) for tool in tools), more=result.get("nextCursor") is not None)


def _object(fields: dict[str, Any], spellings: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Take out the object that is written in one of these spellings."""
    written = [name for name in spellings if name in fields]
    if not written:
        return None
    found = fields.pop(written[0])
    if len(written) > 1 or not isinstance(found, Mapping | None):
        raise UnreadableDefinitionError("a schema is written twice, or is no object")
    return found

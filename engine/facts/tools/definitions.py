"""The definition of a tool in the formats of servers and providers, and its canonical form.

    own, Anthropic    {"name", "description", "input_schema", …}
    MCP               {"name", "description", "inputSchema", "outputSchema", "annotations", …}
    OpenAI            {"type": "function", "function": {"name", "description", "parameters", …}}
    Responses         {"type": "function", "name", "description", "parameters", …}

The digest covers everything, unknown fields included: after any change, the definition
is another one (H14). Hints of a server are its own claims, and nothing is concluded from their absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.documents.canonical import canonical, digest
from engine.facts.tools.calls import LONGEST_NAME
from engine.model import Model

_SCHEMAS = ("input_schema", "inputSchema", "parameters")
_OUTPUTS = ("output_schema", "outputSchema")
_HINTS = ("readOnlyHint", "destructiveHint", "openWorldHint")
_KINDS = ("function", "custom")
"""Values of `type` that only identify a provider's format."""


class UnreadableDefinitionError(ValueError):
    """This is no definition of a tool in any of the shapes, or one that has two readings."""


class Hints(Model):
    """A server's hints about its tool (MCP `annotations`); an absent hint counts as the worst case.

    `stated`: there is at least one of these three; a server that states none claims nothing.
    """

    stated: bool = False
    read_only: bool = False
    destructive: bool = True
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
        """The server's hints; a value that is not exactly true or false counts as absent."""
        hint = self.annotations.get
        return Hints(
            stated=not self.annotations.keys().isdisjoint(_HINTS),
            read_only=hint("readOnlyHint") is True,
            destructive=hint("destructiveHint") is not False,
            open_world=hint("openWorldHint") is not False,
        )


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
            raise UnreadableDefinitionError("the function is not an object, or its fields are in two places")
        fields |= inner
    name, description = fields.pop("name", None), fields.pop("description", None)
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise UnreadableDefinitionError("has no name of 1 to 128 characters")
    if not isinstance(description, str | None):
        raise UnreadableDefinitionError("the description is not text")
    return Definition(
        name=name,
        description=description or "",
        input_schema=_object(fields, _SCHEMAS),
        output_schema=_object(fields, _OUTPUTS),
        annotations=_object(fields, ("annotations",)) or {},
        others=fields,
    )


def listing_of(value: Any) -> tuple[tuple[Definition, ...], bool]:
    """A list of definitions: a plain list, as for providers, or MCP's `tools/list` result, also inside JSON-RPC.

    With it, whether the server has further pages that are not here.
    Raises UnreadableDefinitionError, also when only one of the definitions cannot be read.
    """
    result = value.get("result", value) if isinstance(value, Mapping) else {"tools": value}
    if not isinstance(result, Mapping) or not isinstance(tools := result.get("tools"), list | tuple):
        raise UnreadableDefinitionError("not a list of tools")
    return tuple(definition_of(tool) for tool in tools), result.get("nextCursor") is not None


def _object(fields: dict[str, Any], spellings: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Take out the object that is written in one of these spellings."""
    written = [name for name in spellings if name in fields]
    if not written:
        return None
    found = fields.pop(written[0])
    if len(written) > 1 or not isinstance(found, Mapping | None):
        raise UnreadableDefinitionError("a schema is given twice, or is not an object")
    return found

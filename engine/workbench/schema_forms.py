"""Forms made from a JSON Schema: the fields of an object and what is below it, and the values that a form brings back.

A field is an enumeration, a boolean, a number, a text, or a list of these with one on each line. Everything else is
edited as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.documents.files import printable
from engine.errors import GatherError

Kind = Literal["choice", "number", "text", "lines"]
Schema = Mapping[str, Any]

UNSET = object()
"""Stands for a value that is not stated."""

_WORDS = {True: "true", False: "false"}
_NUMBERS = {"integer": int, "number": float}


@dataclass(frozen=True, slots=True)
class FormField:
    """One value in a form. `text` is how it is shown; empty for one that is not stated."""

    name: str
    kind: Kind
    schema: Schema
    about: str
    text: str
    stated: bool
    required: bool

    @property
    def options(self) -> list[str]:
        """The texts of a choice."""
        return [_text(one) for one in _choices(self.schema) or ()]

    @property
    def item(self) -> Schema:
        """The schema of one line of a list, else of the value itself."""
        return self.schema["items"] if self.kind == "lines" else self.schema

    def value(self, text: str) -> Any:
        """The value that a person has entered; UNSET for none. Raises GatherError."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if self.kind == "lines":
            return [self._one(line) for line in lines] if lines or self.stated or self.required else UNSET
        if not text.strip() and (not self.required or self.kind != "text"):
            return UNSET
        return self._one(text if self.kind == "text" else text.strip())

    def _one(self, text: str) -> Any:
        choices = _choices(self.item)
        if choices is not None:
            found = next((one for one in choices if _text(one) == text), UNSET)
            if found is UNSET:
                raise self._wrong(f"is none of {', '.join(map(_text, choices))}")
            return found
        number = _NUMBERS.get(str(self.item.get("type")))
        if number is None:
            return text
        try:
            return number(text)
        except ValueError as error:
            raise self._wrong("is not a whole number" if number is int else "is not a number") from error

    def _wrong(self, problem: str) -> GatherError:
        return GatherError(f"`{printable(self.name, 80)}` {problem}", remedy="correct it in the form")


@dataclass(frozen=True, slots=True)
class Below:
    """What has a page of its own: an object, or a value that only its text can show (`plain`)."""

    name: str
    about: str
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A place in a document: its schema, and its value or UNSET."""

    schema: Schema
    root: Schema
    value: Any

    def child(self, key: str) -> Node | None:
        """The value below a key; None if the schema has no such key."""
        schema = self.schema
        found = schema.get("properties", {}).get(key)
        if found is None:
            patterns = schema.get("patternProperties", {}).items()
            found = next((one for pattern, one in patterns if re.search(pattern, key)), None)
        further = schema.get("additionalProperties")
        found = further if found is None and isinstance(further, Mapping) else found
        if found is None:
            return None
        value = self.value.get(key, UNSET) if isinstance(self.value, Mapping) else UNSET
        return Node(_resolved(found, self.root, value), self.root, value)

    @property
    def keys(self) -> list[str]:
        """The keys that are stated, and those that the schema names."""
        stated = list(self.value) if isinstance(self.value, Mapping) else []
        return [*self.schema.get("properties", {}), *(key for key in stated if key not in self.named)]

    @property
    def named(self) -> Mapping[str, Any]:
        """The keys that the schema names."""
        found: Mapping[str, Any] = self.schema.get("properties", {})
        return found

    @property
    def open(self) -> bool:
        """Whether it takes keys that the schema does not name."""
        return bool(self.schema.get("patternProperties")) or isinstance(self.schema.get("additionalProperties"), dict)

    @property
    def leaf(self) -> bool:
        """Whether it is a field of a form."""
        return _kind(self.schema, self.root) is not None

    @property
    def about(self) -> str:
        """What the schema says of it."""
        return str(self.schema.get("description", ""))


def node_of(schema: Schema, value: Any) -> Node:
    """The root of a document."""
    return Node(_resolved(schema, schema, value), schema, value)


def fields(node: Node) -> Iterator[FormField | Below]:
    """The fields of an object and what is below it, in the order of the schema."""
    required = node.schema.get("required", ())
    for key in node.keys:
        child = node.child(key)
        if child is None:
            continue
        if key in node.named and child.leaf:
            yield field_of(key, child, required=key in required)
        else:
            yield Below(key, child.about, not child.leaf and not _is_object(child))


def field_of(name: str, node: Node, *, required: bool) -> FormField:
    """The field of a leaf."""
    kind, value = _kind(node.schema, node.root), node.value
    if kind is None:
        raise GatherError(f"`{printable(name, 80)}` is not a field", remedy="edit the text of the file")
    stated = value is not UNSET and value is not None
    schema, lines = node.schema, [value]
    if kind == "lines":
        schema, lines = {**schema, "items": _resolved(schema["items"], node.root, UNSET)}, value
    text = "\n".join(map(_text, lines)) if stated else ""
    return FormField(name, kind, schema, node.about, text, stated, required)


def _is_object(node: Node) -> bool:
    return node.schema.get("type") == "object" and (node.value is UNSET or isinstance(node.value, Mapping))


def _kind(schema: Schema, root: Schema) -> Kind | None:
    if _choices(schema) is not None:
        return "choice"
    kind = schema.get("type")
    if kind in _NUMBERS:
        return "number"
    if kind == "string":
        return "text"
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return "lines" if _kind(_resolved(schema["items"], root, UNSET), {}) in {"choice", "number", "text"} else None
    return None


def _choices(schema: Schema) -> list[Any] | None:
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    return [True, False] if schema.get("type") == "boolean" else None


def _resolved(schema: Schema, root: Schema, value: Any) -> Schema:
    """A schema without references and alternatives: of these, the first that has the type of the value."""
    about = schema.get("description")
    while "$ref" in schema or "anyOf" in schema or "oneOf" in schema:
        if "$ref" in schema:
            schema = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
        else:
            ways = [_resolved(one, root, value) for one in schema.get("anyOf") or schema["oneOf"]]
            ways = [one for one in ways if one.get("type") != "null"]
            schema = next((one for one in ways if _fits(one, value)), ways[0] if ways else {})
            if len(ways) > 1:
                about = " ".join(filter(None, (about, "In another form, it is edited as text.")))
    return schema if about is None else {**schema, "description": about}


def _fits(schema: Schema, value: Any) -> bool:
    """Whether a value has the type of a schema, as far as it distinguishes alternatives."""
    if (choices := _choices(schema)) is not None:
        return value in choices
    kinds: Mapping[str, tuple[type, ...]] = {
        "object": (dict,),
        "array": (list,),
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
    }
    return isinstance(value, kinds.get(str(schema.get("type")), ()))


def _text(value: Any) -> str:
    return _WORDS[value] if isinstance(value, bool) else str(value)

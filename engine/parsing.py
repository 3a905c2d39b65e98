"""Parse the JSON text of a request at a bounded cost, whatever the text holds.

pydantic builds every error before it raises. So the text is counted before it is parsed, and validation
stops at the first invalid item of each list.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from engine.canonical import parse
from engine.errors import GatherError
from engine.files import shown
from engine.settings import ReadLimits

ModelT = TypeVar("ModelT", bound=BaseModel)

FIELDS = 20
"""Invalid fields that an error names."""

_FIELD_CHARACTERS = 200
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SEQUENCES = frozenset({"list", "tuple", "set", "frozenset"})


class FieldsError(GatherError):
    """A request that does not fit its model; `fields` are pairs of the path of a field and its problem."""

    code = "engine.request_invalid"

    def __init__(self, message: str, *, remedy: str, fields: tuple[tuple[str, str], ...]) -> None:
        super().__init__(message, remedy=remedy)
        self.fields = fields


def validate(model: type[ModelT], text: bytes, name: str, remedy: str, limits: ReadLimits) -> ModelT:
    """The request in this JSON text; `name` is what it asks, such as "point `license`".

    Raises FieldsError for a request that does not fit the model, ValueError for text that is not JSON.
    """
    if has_more_values(text, limits.request_values):
        raise _too_many(f"has more than {limits.request_values} values")
    if text.count(b":") > limits.request_keys and _most_keys(parse(text)) > limits.request_keys:
        raise _too_many(f"has an object with more than {limits.request_keys} keys")
    try:
        found: ModelT = _validator(model).validate_json(text)
    except ValidationError as error:
        fields = _first_fields(error)
        named = ", ".join(f"`{name}` {problem}" for name, problem in fields[:5])
        raise FieldsError(f"the request does not fit {name}: {named}", remedy=remedy, fields=fields) from None
    return found


def has_more_values(text: bytes, limit: int) -> bool:
    """Whether JSON text may hold more values than this: each but the outermost follows one of `[`, `{` and `,`."""
    return _separators(text) > limit and _separators(_STRING.sub(b"", text)) > limit


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _most_keys(value: Any) -> int:
    """The number of keys of the largest object; level by level, so that depth costs no stack."""
    most, level = 0, [value]
    while level:
        most = max([most, *(len(one) for one in level if type(one) is dict)])
        level = [
            child
            for one in level
            if type(one) in {dict, list}
            for child in (one.values() if type(one) is dict else one)
        ]
    return most


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    return SchemaValidator(_fail_fast(model.__pydantic_core_schema__), _use_prebuilt=False)  # else the models' own


def _fail_fast(schema: Any) -> Any:
    """The same core schema, except that each list stops at its first invalid item."""
    if isinstance(schema, list):
        return [_fail_fast(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _fail_fast(value) for key, value in schema.items()}
    kind = schema.get("type")  # a dict where the schema is one of fields, of which one is named so
    return {**copy, "fail_fast": True} if isinstance(kind, str) and kind in _SEQUENCES else copy


def _first_fields(error: ValidationError) -> tuple[tuple[str, str], ...]:
    problems = error.errors(include_url=False, include_context=False, include_input=False)[:FIELDS]
    return tuple(
        (
            shown(".".join(map(str, one["loc"])), _FIELD_CHARACTERS) or "request",
            one["type"].replace("_", " "),
        )
        for one in problems
    )


def _too_many(problem: str) -> FieldsError:
    return FieldsError(
        f"the request {problem}", remedy="split it into several requests", fields=(("request", problem),)
    )

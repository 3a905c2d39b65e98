"""Validates the JSON text of a request against its model, at a bounded cost.

pydantic builds every error before it raises one. So the values are counted before the text is parsed, and
validation stops at the first invalid item of each list.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, SchemaValidator

from engine.documents.canonical import parse
from engine.documents.files import printable, problem_of
from engine.documents.strict_json import AmbiguousJsonError, NotJsonError, has_more_values, levels_of, read_strict
from engine.errors import GatherError, Location
from engine.settings import ReadLimits

ModelT = TypeVar("ModelT", bound=BaseModel)

FIELDS = 20
"""Invalid fields that an error names."""

_FIELD_CHARACTERS = 200
_TYPES = {
    "model": "an object",
    "dict": "an object",
    "mapping": "an object",
    "string": "text",
    "int": "a whole number without a decimal point",
    "float": "a number",
    "bool": "true or false",
    "bytes": "text",
    "list": "a list",
    "tuple": "a list",
}
PROBLEMS = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_too_long": "must have {max_length} or fewer characters",
    "string_too_short": "must have {min_length} or more characters",
    "too_long": "must have {max_length} or fewer entries",
    "too_short": "must have {min_length} or more entries",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "greater_than": "must be greater than {gt}",
    "less_than": "must be less than {lt}",
    **{f"{name}_type": f"must be {what}" for name, what in _TYPES.items()},
}
"""Messages for pydantic's errors; any other error is reported by its name."""

PATTERNS = {
    "^[0-9a-f]{64}$": "64 lower-case hexadecimal digits",
    "^sha256:[0-9a-f]{64}$": "`sha256:` and 64 lower-case hexadecimal digits",
    "^[a-z][a-z0-9_]*$": "lower-case letters, digits and `_`, first a letter",
    "^[a-z][a-z0-9_]{0,63}$": "lower-case letters, digits and `_`, first a letter, at most 64 characters",
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "a day such as 2027-03-31",
    "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$": "a UUID in lower case",
    r"^[^/\\.\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*$": "the name of one file, without folders and without a leading dot",
    r"^[^/\\.\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,254}(/[^/\\.\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,254}){0,31}$": (
        "a relative path such as src/a.py, of at most 32 names, none of which begins with a dot"
    ),
    r"^[^\x00]*$": "text without NUL",
    r"^(?:[A-Za-z][A-Za-z0-9_-]{0,63}|\s{0,64})$": (
        "letters, digits, `_` and `-`, first a letter, at most 64 characters"
    ),
    "^[A-Za-z][A-Za-z0-9_-]{0,63}$": "letters, digits, `_` and `-`, first a letter, at most 64 characters",
    "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$": (
        "letters, digits, `_`, `.` and `-`, first a letter or digit, at most 64 characters"
    ),
    "^[A-Za-z0-9_-]{1,64}$": "letters, digits, `_` and `-`, at most 64 characters",
    "^[A-Za-z0-9_-]+$": "letters, digits, `_` and `-`",
    "^[A-Za-z0-9_.-]{1,128}$": "letters, digits, `_`, `.` and `-`, at most 128 characters",
    "^[A-Za-z0-9_./+-]{1,128}$": "letters, digits, `_`, `.`, `/`, `+` and `-`, at most 128 characters",
    "^[A-Za-z_][A-Za-z0-9_.:]{0,127}$": "letters, digits, `_`, `.` and `:`, first no digit, at most 128 characters",
    "^[a-z0-9][a-z0-9._-]{0,127}$": (
        "lower-case letters, digits, `.`, `_` and `-`, first a letter or digit, at most 128 characters"
    ),
    "^[a-z][a-z_]{0,31}$": "lower-case letters and `_`, first a letter, at most 32 characters",
    "^[0-9a-f]{32}$": "32 lower-case hexadecimal digits",
    "^[0-9a-f]{8,32}$": "8 to 32 lower-case hexadecimal digits",
    "^[0-9a-f]{1,64}$": "at most 64 lower-case hexadecimal digits",
    "^[!-~]{0,128}$": "visible ASCII characters without spaces, at most 128",
    "^[!-~]{1,128}$": "visible ASCII characters without spaces, at most 128",
    r"^[\x21-\x7e]{1,128}$": "visible ASCII characters without spaces, at most 128",
    "^[!-~]{1,200}$": "visible ASCII characters without spaces, at most 200",
    "^[!-~]{1,253}$": "visible ASCII characters without spaces, at most 253",
}
"""Patterns of fields in words."""

_SEQUENCES = frozenset({"list", "tuple", "set", "frozenset"})


class FieldsError(GatherError):
    """The request does not fit its model; `fields` are pairs of a field's path and its problem."""

    code = "engine.request_invalid"

    def __init__(self, message: str, *, remedy: str, fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.fields = fields


def validate(model: type[ModelT], text: bytes, name: str, remedy: str, limits: ReadLimits) -> ModelT:
    """The request in this JSON text; errors call it by `name`, such as "point `license`".

    Raises FieldsError for a request that does not fit the model, ValueError for text that is not JSON.
    """
    if has_more_values(text, limits.request_values):
        raise _too_many(f"has more than {limits.request_values} values")
    if text.count(b":") > limits.request_keys and _most_keys(parse(text)) > limits.request_keys:
        raise _too_many(f"has an object with more than {limits.request_keys} keys")
    try:
        found: ModelT = _validator(model).validate_json(text)
    except ValidationError as error:
        fields = _first_fields(error, model, text)
        first = sorted(fields, key=lambda one: "did you mean" not in one[1])[:5]
        named = ", ".join(f"`{name}` {problem}" if name else f"it {problem}" for name, problem in first)
        raise FieldsError(f"the request does not fit {name}: {named}", remedy=remedy, fields=fields) from None
    return found


def object_in(text: str | bytes, what: str, remedy: str, where: Location | None = None) -> dict[str, Any] | GatherError:
    """The one JSON object in a text, or the error, which is recorded as a deny."""
    try:
        found = read_strict(text if isinstance(text, str) else text.decode("utf-8"))
    except UnicodeDecodeError:
        return GatherError(f"the {what} is not UTF-8", remedy="write text in UTF-8", where=where)
    except NotJsonError:
        if text[:3] == BOM_UTF8:
            marked = f"the {what} begins with a byte order mark"
            return GatherError(marked, remedy="write UTF-8 without one", where=where)
        return GatherError(f"the {what} is not JSON", remedy=remedy, where=where)
    except AmbiguousJsonError as error:
        return GatherError(f"the {what} {problem_of(error)}", remedy=error.remedy, where=where)
    if not isinstance(found, dict):
        return GatherError(f"the {what} is not a JSON object", remedy=remedy, where=where)
    return found


def _most_keys(value: Any) -> int:
    """The number of keys of the largest object."""
    return max((len(item) for level in levels_of(value) for item in level if isinstance(item, dict)), default=0)


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    model.model_rebuild()  # models are built when they are first used
    return SchemaValidator(_fail_fast(model.__pydantic_core_schema__), _use_prebuilt=False)  # else the models' own


def _fail_fast(schema: Any) -> Any:
    """The same core schema, except that each list stops at its first invalid item."""
    if isinstance(schema, list):
        return [_fail_fast(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _fail_fast(value) for key, value in schema.items()}
    kind = schema.get("type")  # a dict where the model has a field `type`
    return {**copy, "fail_fast": True} if isinstance(kind, str) and kind in _SEQUENCES else copy


def _first_fields(error: ValidationError, model: type[BaseModel], text: bytes) -> tuple[tuple[str, str], ...]:
    found = error.errors(include_url=False, include_input=False)
    problems = list(without_lists_of_invalid_items(found))[:FIELDS]
    value = parse(text) if any(problem["loc"] for problem in problems) else None
    return tuple(
        (
            printable(_path(problem, value), _FIELD_CHARACTERS),
            f"{message(problem, model)}{_intended(problem, found, model)}",
        )
        for problem in problems
    )


def _intended(problem: ErrorDetails, problems: Sequence[ErrorDetails], model: type[BaseModel]) -> str:
    """The question whether an unknown field is a misspelled one of the request, or one that is missing beside it."""
    *around, name = problem["loc"] or ("",)
    if problem["type"] != "extra_forbidden":
        return ""
    inner = model_at(model, around)
    for field, known_as in () if inner is None else inner.model_fields.items():
        if name in _aliases(known_as):
            return f" beside `{field}`: both are names of one field"
    missing = [one["loc"][-1] for one in problems if one["type"] == "missing" and [*one["loc"][:-1]] == around]
    known = map(str, missing if inner is None else inner.model_fields)
    near = get_close_matches(str(name)[:_FIELD_CHARACTERS], known, 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def model_at(model: type[BaseModel], steps: Sequence[int | str]) -> type[BaseModel] | None:
    """The model of the object at these fields and indices; None if a field on the way may have several, or none."""
    for step in steps:
        if isinstance(step, str):
            fields = (one for name, one in model.model_fields.items() if step == name or step in _aliases(one))
            inner = {kind for field in fields for kind in _models(field.annotation)}
            if len(inner) != 1:
                return None
            (model,) = inner
    return model


def _aliases(field: FieldInfo) -> Sequence[Any]:
    return field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else ()


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from _models(inner)


def without_lists_of_invalid_items(problems: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """The problems, but for lists that only count as too short because pydantic does not count invalid items."""
    around = {problem["loc"][:end] for problem in problems for end in range(len(problem["loc"]))}
    return (problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in around)


def place_of(loc: Sequence[int | str], value: Any, *, missing: bool, whole: bool = True) -> tuple[int | str, ...]:
    """The part of pydantic's location that names a place in the value, without the types that fields may have.

    `missing`: the last part names a field that is not there. Unless `whole`, only up to the first type.
    """
    steps: list[int | str] = []
    for index, step in enumerate(loc):
        inside = step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int)
        if inside:
            value = value[step]
        elif not (missing and index == len(loc) - 1):
            if whole:
                continue
            break
        steps.append(step)
    return tuple(steps)


def _path(problem: ErrorDetails, value: Any) -> str:
    """The path in the request; of a key with its mark."""
    loc = problem["loc"]
    last = problem["type"] == "missing" or loc[-1:] == ("[key]",)
    return ".".join(map(str, place_of(loc, value, missing=last)))


def message(problem: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong with a field, in words that follow its name; the value is never quoted."""
    context = problem.get("ctx", {})
    if problem["type"] == "missing" and len(problem["loc"]) == 1 and _may_be_null(model, problem["loc"][0]):
        return "is missing; send null where there is none"
    if (pattern := context.get("pattern")) is not None:
        return f"must be {PATTERNS[pattern]}" if pattern in PATTERNS else f"must match the pattern `{pattern}`"
    if problem["type"] == "value_error":  # in our own words: validators of requests never quote
        stated = str(context["error"])
        return stated if stated.startswith("must ") else f"is refused: {stated}"
    known = PROBLEMS.get(problem["type"])
    return problem["type"].replace("_", " ") if known is None else known.format(**context)


def _may_be_null(model: type[BaseModel], name: str | int) -> bool:
    field = model.model_fields.get(str(name))
    return field is not None and NoneType in get_args(field.annotation)


def _too_many(problem: str) -> FieldsError:
    return FieldsError(
        f"the request {problem}", remedy="split it into several requests", fields=(("request", problem),)
    )

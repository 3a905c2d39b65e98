"""JSON Schemas of tools, judged within bounds: whether one is valid, and whether arguments fit it.

A schema comes from an untrusted server. So nothing is fetched, patterns are matched by an engine that
needs time in proportion to the text (Rust's, through pydantic), and every step of a validation is counted.
What goes past a bound is not valid and does not fit. jsonschema and referencing are imported here only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PydanticSchemaGenerationError, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from engine.documents.canonical import canonical, parse
from engine.documents.strict_json import levels_of

LONGEST = 128 << 10
"""Bytes of a schema as canonical JSON; the longest in public use have about 60 KiB."""

LARGEST = 3_000
"""Maximum number of objects, lists and values of a schema: checking that many takes about a second, once."""

DEEPEST = 48
"""Nested objects and lists of a schema, and of what is validated."""

LONGEST_PATTERN = 512
"""Characters of a pattern; what schemas of tools match are ids, dates and names."""

STEPS = 50_000
"""Keywords looked at in one validation: less than a second."""

_MATCHED = 400
"""Characters times weight of a pattern that take as long as one keyword, about 10 microseconds."""

_COMPARED = 10
"""Values that are compared with others in the time of one keyword."""

_DRAFTS = {
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
_DEFAULT = "https://json-schema.org/draft/2020-12/schema"
_ELSEWHERE = ("$dynamicRef", "$recursiveRef", "$vocabulary")
"""Keywords whose meaning is settled outside of the schema, or only while it is evaluated."""

_COUNTED = re.compile(r"([)}?])?\{([0-9]+)(,)?([0-9]*)\}")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_FLAGS = re.compile(r"\(\?(?![:<])")
"""Flags change how a pattern is read, and JSON Schema has none."""

_AHEAD = re.compile(r"\^\(\?([=!])")
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""An escape, a class of characters, or one character."""

_left: ContextVar[list[int]] = ContextVar("_left")

Keyword = Callable[[Any, Any, Any, Any], Any]


class _TooMuchError(Exception):
    """The steps of a validation are used up."""


def schema_valid(schema: Any) -> bool:
    """Whether this is a JSON Schema (2020-12, or the older draft that it names) within all bounds. Never raises."""
    return _validator(schema) is not None


def fits(schema: Any, arguments: Any) -> bool:
    """Whether arguments satisfy a valid schema, as far as that can be found out within the bounds. Never raises."""
    return misfits(schema, arguments) == ()


def misfits(schema: Any, arguments: Any) -> tuple[str, ...] | None:
    """The names of the arguments that do not satisfy a valid schema, and an empty one for all of them together.

    None if that cannot be found out within the bounds. Never raises.
    """
    if (validator := _validator(schema)) is None:
        return None
    found: dict[str, None] = {}

    def look() -> bool:
        for error in validator.iter_errors(arguments):
            found.update(dict.fromkeys(_names(error)))
        return True

    return tuple(sorted(found)) if _bounded(look) else None


def _names(error: Any) -> list[str]:
    """The arguments that an error is about."""
    if error.path:
        return [str(error.path[0])]
    missing = [name for name in error.validator_value if name not in error.instance] if _lacks(error) else []
    return missing or [""]


def _lacks(error: Any) -> bool:
    return error.validator == "required" and isinstance(error.instance, Mapping)


def _bounded(judge: Callable[[], bool]) -> bool:
    token = _left.set([STEPS])
    try:
        return judge()
    except Exception:  # noqa: BLE001  (a reference into nothing, endless recursion, a number too large: no proof)
        return False
    finally:
        _left.reset(token)


def _validator(schema: Any) -> Any:
    """A validator of the schema, or None if the schema is not valid."""
    try:
        text = canonical(schema)
    except (ValueError, TypeError, RecursionError):
        return None
    return _checked(text) if len(text) <= LONGEST else None


@lru_cache(maxsize=128)
def _checked(text: bytes) -> Any:
    from jsonschema import FormatChecker
    from referencing import Registry

    try:
        schema = parse(text)
    except ValueError:  # nested more deeply than is read; newer Pythons write it all the same
        return None
    if not isinstance(schema, Mapping) or not _admissible(schema):
        return None
    draft = str(schema.get("$schema", _DEFAULT)).removesuffix("#")
    if draft not in _DRAFTS:
        return None
    checker, validator = _classes(_DRAFTS[draft])
    own: Any = checker(checker.META_SCHEMA, format_checker=FormatChecker(()))
    if not _bounded(lambda: next(own.iter_errors(schema), None) is None):
        return None
    return validator(schema, registry=Registry())


def _admissible(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is small, refers to itself only, and has patterns that can be matched."""
    nodes, names, patterns = 0, set[str](), set[str]()
    for depth, level in enumerate(levels_of(schema)):
        nodes += len(level)
        if nodes > LARGEST or depth == DEEPEST:
            return False
        for item in level:
            if isinstance(item, dict):
                names |= item.keys()
                patterns |= _patterns(item)
                if not str(item.get("$ref", "#")).startswith("#") or (item is not schema and "$schema" in item):
                    return False
    both = {"patternProperties", "unevaluatedProperties"}  # jsonschema matches these by Python's engine
    return not (names.intersection(_ELSEWHERE) or both <= names) and all(map(_pattern, patterns))


def _patterns(item: Mapping[str, Any]) -> set[str]:
    named = item.get("patternProperties")
    single = item.get("pattern")
    return {*(named if isinstance(named, Mapping) else ()), *([single] if isinstance(single, str) else ())}


@lru_cache(maxsize=1_024)
def _pattern(pattern: str) -> tuple[tuple[TypeAdapter[str], bool], ...] | None:
    """What a text must match, and what it must not."""
    parts = _parts(pattern) if len(pattern) <= LONGEST_PATTERN else []
    if not parts or any(_FLAGS.search(_ESCAPED.sub("", part)) for part, _ in parts):
        return None
    try:
        return tuple((TypeAdapter(Annotated[str, StringConstraints(pattern=part)]), wanted) for part, wanted in parts)
    except (PydanticSchemaGenerationError, SchemaError):
        return None


def _parts(pattern: str) -> list[tuple[str, bool]]:
    """A pattern without what it looks ahead for at its start, as those for e-mail and decimals do, and each of that."""
    found, rest = [], pattern
    while (ahead := _AHEAD.match(rest)) is not None:
        depth, end = 0, 0
        for token in _TOKEN.finditer(rest, 1):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth == 0:
                end = token.end()
                break
        found.append((f"^(?:{rest[ahead.end() : end - 1]})", ahead[1] == "="))
        rest = f"^{rest[end:]}"
    depth = 0
    for token in _TOKEN.finditer(rest if found else ""):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "|" and depth == 0:
            return []  # the other way does not look ahead
    return [*found, (rest, True)]


def _matches(pattern: str, text: str) -> bool:
    parts = _pattern(pattern)
    if parts is None:
        raise _TooMuchError
    _spend(1 + len(parts) * len(text) * _weight(pattern) // _MATCHED)
    return all(_found(part, text) is wanted for part, wanted in parts)


def _found(part: TypeAdapter[str], text: str) -> bool:
    try:
        part.validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=1_024)
def _weight(pattern: str) -> int:
    """How much slower per character than plain text this can be: nested repeat counts, multiplied."""
    once, groups = 1, [1]
    for group, least, _, most in _COUNTED.findall(pattern):
        count = int(most or least) or 1
        once += 0 if group else count
        groups += [count] if group else []
    return once * math.prod(groups)


def _spend(steps: int) -> None:
    left = _left.get()
    left[0] -= steps
    if left[0] < 0:
        raise _TooMuchError


@lru_cache(maxsize=8)
def _classes(name: str) -> tuple[Any, Any]:
    """The class of a draft as jsonschema has it, and ours; every keyword of both counts its steps."""
    import jsonschema
    from jsonschema import validators

    extend: Callable[..., Any] = validators.extend
    base = getattr(jsonschema, name)
    known = base.VALIDATORS | {"uniqueItems": _on_unique}
    counted = {keyword: _counting(function) for keyword, function in known.items()}
    own = {"pattern": _on_pattern, "patternProperties": _on_names, "additionalProperties": _on_others}
    keywords = counted | {keyword: _counting(function) for keyword, function in own.items()}
    return extend(base, counted), extend(base, keywords)


def _counting(function: Keyword) -> Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _spend(1)
        yield from function(validator, value, instance, schema) or ()

    return counted


def _on_pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError as Misfit

    if isinstance(instance, str) and not _matches(pattern, instance):
        yield Misfit("does not match")


def _on_unique(_validator: Any, unique: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    """In one pass: jsonschema compares every two items."""
    from jsonschema import ValidationError as Misfit

    if unique and isinstance(instance, list):
        _spend(sum(map(len, levels_of(instance))) // _COMPARED)
        if len(set(map(_comparable, instance))) < len(instance):
            yield Misfit("has an item twice")


def _comparable(value: Any) -> Any:
    """What is equal where JSON Schema calls the values equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, dict):
        return frozenset((name, _comparable(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return frozenset((value,)) if isinstance(value, bool) else value


def _on_names(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, Mapping):
        for pattern, schema in patterns.items():
            for name, value in instance.items():
                if _matches(pattern, name):
                    yield from validator.descend(value, schema)


def _on_others(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError as Misfit

    if not isinstance(instance, Mapping):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance:
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if value is False:
            yield Misfit("is not a property", path=(name,))
        else:
            yield from validator.descend(instance[name], value)

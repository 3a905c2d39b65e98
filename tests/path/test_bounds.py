"""Every request model bounds what it takes, and no more errors are built than a person reads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from engine.code.request import CodeRunRequest
from engine.documents.strict_json import has_more_values
from engine.documents.validation import FieldsError, validate
from engine.drive import Call, Step, run_all_async, run_async
from engine.engine import AsyncEngine
from engine.flow import Context
from engine.idempotency import answer_once
from engine.model import Mode
from engine.points import GatherContext, Gathered
from engine.points.registry import POINTS
from engine.settings import ReadLimits, Settings
from tests.api.serving import ALLOWED
from tests.expect import there

MODELS: dict[str, type[BaseModel]] = {name: point.request for name, point in POINTS.items()}
MODELS["code run"] = CodeRunRequest
LIMITS = ReadLimits()


def unbounded(schema: Any, path: str, definitions: Any, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The places of a JSON Schema where a list, an object or a text may be of any length.

    A place without any type takes all JSON: it is bounded by the number of values of the whole request.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema, seen = ({} if name in seen else definitions[name]), seen | {name}
    others = schema.get("additionalProperties", True)
    missing = {
        "array": {"maxItems"} - schema.keys(),
        "object": set() if others is False else {"maxProperties"} - schema.keys(),
        "string": set() if schema.keys() & {"maxLength", "enum", "const", "pattern"} else {"maxLength"},
    }
    yield from (f"{path}: {word}" for word in missing.get(schema.get("type", ""), ()))
    for name, one in below(schema, path):
        yield from unbounded(one, name, definitions, seen)


def below(schema: Any, path: str) -> list[tuple[str, Any]]:
    """The schemas inside of one."""
    found = [(path, one) for word in ("anyOf", "oneOf") for one in schema.get(word, ())]
    found += [(f"{path}[]", one) for one in [*schema.get("prefixItems", ()), schema.get("items")]]
    found += [(f"{path}.{name}", one) for name, one in schema.get("properties", {}).items()]
    found.append((f"{path}.*", schema.get("additionalProperties")))
    return [(name, one) for name, one in found if isinstance(one, dict)]


@pytest.mark.parametrize("name", MODELS)
def test_every_list_object_and_text_of_a_request_has_a_largest_size(name: str) -> None:
    schema = MODELS[name].model_json_schema()
    assert list(unbounded(schema, name, schema.get("$defs", {}))) == []


def test_a_schema_without_bounds_is_found() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/B"}]}}},
        "additionalProperties": {"type": "string"},
    }
    found = list(unbounded(schema, "x", {"B": {"type": "array", "items": {"const": 1}}}))
    assert found == ["x: maxProperties", "x.a: maxItems", "x.a[]: maxItems", "x.*: maxLength"]


def fields_of(request: Any, limits: ReadLimits = LIMITS) -> list[tuple[str, str]]:
    with pytest.raises(FieldsError) as raised:
        validate(MODELS["runner_request"], json.dumps(request).encode(), "it", "do it", limits)
    return list(raised.value.fields)


def test_only_the_first_invalid_item_of_a_list_is_reported() -> None:
    assert fields_of({"messages": [{}] * 9_000, "tools": [{"name": 1}] * 900}) == [
        ("messages.0.role", "is missing"),
        ("messages.0.content", "is missing"),
        ("tools.0.name", "must be text"),
        ("tools.0.kind", "is missing"),
    ]


def test_only_the_first_fields_are_named() -> None:
    assert len(fields_of({f"x{number}": 0 for number in range(5_000)})) == 20


def test_a_request_of_too_many_values_or_keys_is_not_parsed() -> None:
    few = ReadLimits(request_values=10, request_keys=3)
    assert fields_of({"messages": [0] * 10}, few) == [("request", "has more than 10 values")]
    assert fields_of({"messages": [], "a": 0, "b": 0, "c": 0}, few) == [
        ("request", "has an object with more than 3 keys")
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"1", 0),
        (b"[1,2,3]", 3),
        (b'{"a":1,"b":[2]}', 3),
        (b'[",,,[[{{","\\",,,,"]', 2),
        (b'"\\\\",', 1),
        (b"[[],[]]", 4),
    ],
)
def test_values_are_counted_outside_of_texts(text: bytes, values: int) -> None:
    assert not has_more_values(text, values)
    assert values == 0 or has_more_values(text, values - 1)


def test_a_large_request_is_read_outside_of_the_event_loop_and_a_small_one_in_it(settings: Settings) -> None:
    threads: list[int] = []

    def seen(request: Any, context: GatherContext) -> Gathered:
        threads.append(threading.get_ident())
        return POINTS["license"].gather(request, context)

    async def decide() -> None:
        async with AsyncEngine(settings) as engine:
            point = replace(POINTS["license"], gather=seen)
            for purpose in ("train", "x" * 4_000):
                for label in ("MIT", "MIT OR " * 9_000 + "MIT"):
                    request = {**ALLOWED, "purpose": purpose, "license": label}
                    await run_async(answer_once(point, request, Mode.ENFORCE, there(engine.services), Context()))

    asyncio.run(decide())
    own = threading.get_ident()
    assert [one == own for one in threads] == [True, True, True, False]


def test_others_get_the_event_loop_between_the_requests_of_a_batch() -> None:
    order: list[str] = []

    def path(number: int) -> Generator[Step, Any, int]:
        order.append("begun")
        assert (yield Call(lambda: number)) == number
        order.append("ended")
        return number

    async def other() -> None:
        while len(order) < 30:
            order.append("other")
            await asyncio.sleep(0)

    async def both() -> list[int]:
        running = asyncio.get_running_loop().create_task(other())
        found = await run_all_async([path(number) for number in range(5)])
        await running
        return found

    assert asyncio.run(both()) == list(range(5))
    turns = "".join(one[0] for one in order)
    assert "bb" not in turns

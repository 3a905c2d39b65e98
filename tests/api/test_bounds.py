"""A large body costs no more than what it holds, and delays no other request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import ALLOWED, LICENSE, Serving, serving

MEMORY = 200 << 20
"""Bytes that one body of a few MiB may add to the engine's memory at most."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("large"), cache) as running:
        running.decide("license", ALLOWED)
        yield running


def most_memory(api: Serving) -> int:
    """The largest physical memory that the engine ever had, in bytes (proc(5))."""
    status = Path(f"/proc/{api.process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10


def names(count: int) -> dict[str, Any]:
    return {"policy": "p", "profile": "p", "tools": [f"tool_{number}" for number in range(count)]}


HOSTILE = {
    "invalid items": ("license", {**LICENSE, "decisions": [{}] * 490_000}),
    "unknown fields": ("license", {**LICENSE, **{f"x{number}": 0 for number in range(90_000)}}),
    "unknown fields in items": ("runner_request", {"messages": [{f"x{n}": 0 for n in range(9_000)}] * 20}),
    "items of no type": ("license", {**LICENSE, "decisions": [0] * 190_000}),
    "names": ("tool_visibility", names(190_000)),
    "objects": ("tool_visibility", {"tools": [{"n": 0}] * 90_000}),
    "empty lists": ("mcp", {"phase": "list", "servers": [[]] * 190_000}),
    "batch": ("license/batch", {"inputs": {"a": {**LICENSE, "decisions": [{}] * 240_000}}}),
    "shared": ("license/batch", {"inputs": {str(n): {} for n in range(1_000)}, "common_input": {"x": "x" * 900_000}}),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_of_many_small_items_is_refused_at_little_cost(large: Serving, name: str) -> None:
    point, body = HOSTILE[name]
    before = most_memory(large)
    reply = large.decide(point, body)
    assert reply.status in {207, 400, 413, 422}, reply.body[:500]
    assert reply.json["decision"]["outcome"] == "deny" if "decision" in reply.json else True
    assert len(reply.json["errors"]) <= 20 if "errors" in reply.json else True
    assert most_memory(large) - before < MEMORY


def tools(count: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(3)}}
    return {
        "tools": [{"name": f"t{n}", "description": "what it does " * 8, "inputSchema": schema} for n in range(count)]
    }


MUCH = {
    "one": ("tool_visibility", {**tools(2_000), "policy": "p", "profile": "p"}),
    "batch": (
        "tool_call/batch",
        {"inputs": {str(n): {"call": {"name": "t", "arguments": {"a": "words " * 2_000}}} for n in range(300)}},
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("name", MUCH)
def test_other_requests_are_answered_while_a_large_body_is_read(large: Serving, name: str) -> None:
    """The large one takes seconds of a processor; small ones get answers meanwhile, not only before and after."""
    point, body = MUCH[name]
    data = json.dumps(body).encode()
    answered = 0
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(large.decide, point, data)
        while not begun.done():
            assert large.decide("license", ALLOWED).json["outcome"] == "allow"
            answered += not begun.done()
    assert begun.result().status == 200
    assert answered >= 3, answered


def test_a_batch_of_the_maximum_size_passes(large: Serving) -> None:
    inputs = {str(number): ALLOWED for number in range(1_000)}
    reply = large.decide("license/batch", {"inputs": inputs}, "?mode=check")
    assert reply.status == 200
    assert {answer["outcome"] for answer in reply.json["responses"].values()} == {"allow"}


def test_ordinary_requests_with_many_items_pass(large: Serving) -> None:
    assert large.decide("tool_visibility", names(2_000)).status == 200
    messages = [{"role": "user", "content": "text " * 20}] * 9_000
    assert large.decide("runner_request", {"messages": messages}).status == 200

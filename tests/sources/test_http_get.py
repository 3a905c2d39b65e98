"""The tool `http_get` behind the tool gate: decided at `tool_call`, `network` and `network_response`, by one hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from admission_adapters.tools.gate import AsyncToolGate, ToolGate
from admission_adapters.tools.http_get import HttpGet
from admission_adapters.tools.registry import ToolRegistry
from engine.engine import AsyncEngine
from engine.errors import DecideError, WorkError
from engine.settings import Settings
from tests.adapters.gates import AGENT, OPTIONS
from tests.command import decisions, events
from tests.expect import refused
from tests.sources.https import BODY, HOST, Authority, response
from tests.sources.world import World, at_world, authority, resolving

__all__ = ["authority"]

LICENSE = "CC-BY-4.0"


@pytest.fixture(scope="module")
def opened(module_settings: Settings, authority: Authority) -> Iterator[World]:
    origins = [f"https://{host}:PORT" for host in (HOST, "other.example.org")]
    rule = {"id": "pages", "tools": ["http_get"], "hosts": origins}
    with at_world(module_settings, authority, f"tools.rulesets.workspace.allow={json.dumps([rule])}") as world:
        yield world


@pytest.fixture
def world(opened: World) -> World:
    opened.server.answers(response())
    return opened


def calling(world: World, path: str = "/contacts.json", host: str = HOST) -> dict[str, Any]:
    return {"name": "http_get", "arguments": {"url": world.server.url(path, host)}}


def gate(world: World, **changes: Any) -> ToolGate:
    registry = ToolRegistry()
    HttpGet(world.engine, AGENT, **{"hosts": (HOST,), "license": LICENSE, **changes}).register(registry)
    return ToolGate(world.engine, registry, AGENT, **OPTIONS)


def points(world: World, since: int) -> list[tuple[str, str, str]]:
    return [(one["point"], one["outcome"], one["principal"]) for one in decisions(world.state)[since:]]


def test_a_call_is_decided_at_each_of_its_points_and_gives_the_content(world: World) -> None:
    before, told = len(decisions(world.state)), len(events(world.state))
    result = gate(world).call(calling(world, "/contacts.json?key=canary-query"))
    assert (result.status, result.content) == ("ok", BODY.decode()), result
    assert points(world, before) == [
        (point, "allow", "agent")
        for point in ("tool_contract", "tool_call", "network", "network_response", "tool_result")
    ]
    assert [(one["event"], one["origin_alias"]) for one in events(world.state)[told:]] == [
        ("fetch_attempt", "http-get"),
        ("fetch_accepted", "http-get"),
    ]
    (request,) = world.server.requests
    assert request.startswith(b"GET /contacts.json?key=canary-query HTTP/1.1\r\n")
    written = b"".join(path.read_bytes() for path in world.state.rglob("*.jsonl"))
    assert b"canary-query" not in written


@pytest.mark.parametrize(
    ("answer", "changes", "code"),
    [
        (response(b"", status="302 Found", more=("Location: /b",)), {}, "redirect_blocked"),
        (response(type_="text/html"), {}, "unsupported_content_type"),
        (response(b"", length=17_000_000), {}, "payload_too_large"),
        (response(), {"hosts": ()}, "host_not_allowlisted"),
        (response(), {"hosts": ("other.example.org",)}, "host_not_allowlisted"),
        (response(), {"license": " "}, "license_missing"),
        (response(), {"max_requests": 0}, "request_budget_exhausted"),
    ],
)
def test_a_refused_fetch_is_an_error_with_its_code_and_no_content(
    answer: bytes, changes: dict[str, Any], code: str, world: World
) -> None:
    world.server.answers(answer)
    result = gate(world, **changes).call(calling(world))
    assert (result.status, result.code) == ("error", code), result
    assert len(world.server.requests) == int(not changes)


def test_a_host_that_only_the_rules_of_tools_and_the_agent_allow_is_not_connected_to(world: World) -> None:
    both = gate(world, hosts=(HOST, "other.example.org"))
    result = both.call(calling(world, host="other.example.org"))
    assert (result.status, result.code) == ("error", "host_not_allowlisted")
    assert both.call(calling(world, host="third.example.org")).status == "awaiting_approval"  # no rule covers it
    assert world.server.connections == 0


def test_the_budget_is_for_all_calls_of_one_tool(world: World) -> None:
    twice = gate(world, max_requests=2)
    assert [twice.call(calling(world)).code for _ in range(3)] == [None, None, "request_budget_exhausted"]
    assert len(world.server.requests) == 2


def test_it_fetches_only_within_a_call_that_a_gate_has_permitted(world: World) -> None:
    with refused(WorkError, "engine.permit_missing"):
        HttpGet(world.engine, AGENT, hosts=(HOST,), license=LICENSE).http_get(world.server.url())
    assert world.server.connections == 0


def test_a_changed_implementation_is_not_registered(world: World) -> None:
    class Changed(HttpGet):
        def http_get(self, url: str) -> str:
            return url

    with refused(WorkError, "engine.tool_not_registered"):
        Changed(world.engine, AGENT, hosts=(HOST,), license=LICENSE).register(ToolRegistry())


def test_a_failed_decision_prevents_the_registration(world: World) -> None:
    class Late:
        get_url = world.engine.get_url

        def decide(self, point: str, request: Any, executor: Any, context: Any = None) -> Any:
            late = DecideError("OPA did not answer in time", remedy="wait", code="engine.opa_timeout")
            return replace(world.engine.decide(point, request, executor, context), fault=late)

    with refused(DecideError, "engine.opa_timeout"):
        HttpGet(Late(), AGENT, hosts=(HOST,), license=LICENSE).register(ToolRegistry())


def test_an_event_loop_calls_it_alike(world: World, tmp_path: Any) -> None:
    async def called() -> str:
        settings = replace(world.engine.settings, state=tmp_path / "state")
        async with AsyncEngine(settings, values=world.values) as engine:
            resolving(engine, world)
            registry = ToolRegistry()
            tool = HttpGet(engine, AGENT, hosts=(HOST,), license=LICENSE)
            await tool.register_async(registry)
            return (await AsyncToolGate(engine, registry, AGENT, **OPTIONS).call(calling(world))).content

    assert asyncio.run(called()) == BODY.decode()

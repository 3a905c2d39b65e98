"""What a list of tools shows, over every profile and base, on a real OPA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from engine.cases.run import Runner
from engine.engine import Engine
from engine.errors import DecideError
from engine.gather import FROM_STATE
from engine.model import Outcome
from engine.points import GatherContext
from engine.points.tool_visibility import POINT, VisibilityInput, VisibilityLimits, VisibilityRequest, gather
from tests.expect import of
from tests.laws.mutations import single
from tests.values import shipped as values

WORLD = GatherContext(clock=lambda: 0, boundaries=tuple)
SHIPPED = values.SHIPPED["tools"]
TOOLS = [
    *(
        name if row["definition"] == "none" else {"name": name, "input_schema": {"type": "object"}}
        for name, row in SHIPPED["tools"].items()
    ),
    "unknown_tool",
]
"""Every tool by its name, or by a definition where one is required, and one that nobody knows."""

NARROW = {
    "profiles": {
        **SHIPPED["profiles"],
        "grouped": ["group:subagents"],
        "begun": ["files_*", "contacts_list"],
        "mixed": ["*", "shell"],
    }
}
EVERYTHING = "coding"
"""The profile that narrows nothing: what the base alone shows."""


@pytest.fixture
def engine(runner: Runner) -> Engine:
    return runner.engine({"tools": NARROW})


def visible(engine: Engine, policy: str | None, profile: str | None, tools: Any = TOOLS) -> set[str]:
    request = {"policy": policy, "profile": profile, "tools": tools}
    answer = engine.check("tool_visibility", {key: value for key, value in request.items() if value is not None})
    assert answer.decision.outcome is Outcome.ALLOW
    return set(of(VisibilityLimits, answer.decision.limits).visible)


def profiles() -> Iterator[str | None]:
    yield from NARROW["profiles"]
    yield from (None, "unknown_profile")


# covers: B01.1 B15.1 B17.1
@pytest.mark.full(after=24)
@pytest.mark.parametrize(("policy", "profile"), [*product([*SHIPPED["policies"], "unknown", None], profiles())])
def test_a_profile_only_narrows(engine: Engine, policy: str | None, profile: str | None) -> None:
    alone = visible(engine, policy, EVERYTHING)
    assert visible(engine, policy, profile) <= alone
    shows = policy in SHIPPED["policies"] and SHIPPED["policies"][policy]["base"] != "deny_all"
    assert alone == (set(SHIPPED["tools"]) if shows else set())


# covers: B06.1
def test_each_profile_shows_its_own_tools(engine: Engine) -> None:
    shown = {profile: visible(engine, "assistant", profile) for profile in NARROW["profiles"]}
    assert shown["begun"] == {"files_read", "files_write", "contacts_list"}
    assert shown["grouped"] == {tool for tool in SHIPPED["tools"] if tool.startswith("subagent_")}
    assert shown["mixed"] == shown[EVERYTHING] == set(SHIPPED["tools"])
    assert shown["nothing"] == set()


def test_a_missing_or_mistyped_fact_shows_no_more_tools(engine: Engine) -> None:
    request = VisibilityRequest(policy="assistant", profile="reading", tools=[*TOOLS[:7], TOOLS[0]])
    found = POINT.document(gather(request, WORLD), 100)
    caller = {"via": "process", "principal": "ana", "points": []}
    document = {**found, "caller": caller, **{name: [] for name in FROM_STATE}}
    shown = _shown(engine, document)
    assert shown == {"contacts_list"}
    mutants = [mutant for path, _, mutant in single(document) if path != ("point",)]
    assert len(mutants) > 50
    for mutant in mutants:
        assert _shown(engine, mutant) <= shown


def _shown(engine: Engine, document: dict[str, Any]) -> set[str]:
    try:
        decision = engine.opa.ask("decision", document).result
    except DecideError:  # a built-in that fails is a refusal
        return set()
    return set(decision["limits"]["visible"]) if decision["outcome"] == "allow" else set()


def listed(tools: Any) -> list[tuple[str, str | None, int]]:
    request = VisibilityRequest.model_validate_json(json.dumps({"tools": tools}))
    found = of(VisibilityInput, gather(request, WORLD).input)
    return [(tool.id, tool.name, tool.occurrences) for tool in found.tools]


def test_a_list_in_every_shape() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    own = [{"name": "a", "input_schema": schema}]
    mcp = {"tools": [{"name": "a", "inputSchema": schema}], "nextCursor": "2"}
    openai = [{"type": "function", "function": {"name": "a", "parameters": schema}}]
    shapes = [own, mcp, openai, {"jsonrpc": "2.0", "id": 1, "result": mcp}]
    requests = [VisibilityRequest.model_validate_json(json.dumps({"tools": shape})) for shape in shapes]
    assert len({gather(one, WORLD).input.model_dump_json() for one in requests}) == 1
    assert listed(["a"]) == listed(own) == [("a", "a", 1)]


def test_an_unnamed_tool_is_identified_by_its_position() -> None:
    assert listed(["a", "b c", {"description": "x"}, {"name": ""}, "", "ghp/x"]) == [
        ("a", "a", 1),
        *[(f"#{number}", None, 5) for number in range(1, 6)],
    ]
    assert listed([]) == []
    assert listed(["a", "b", "a"]) == [("a", "a", 2), ("b", "b", 1), ("a", "a", 2)]


@pytest.mark.parametrize("tools", [None, 1, "a", [1], [None], {"tools": ["a"]}, {"result": []}, [["a"]], ["a" * 129]])
def test_a_malformed_tool_list_is_an_invalid_request(engine: Engine, tools: Any) -> None:
    answer = engine.check("tool_visibility", {"policy": "assistant", "profile": "coding", "tools": tools})
    assert answer.decision.outcome is Outcome.DENY
    assert answer.decision.findings[0].code == "engine.request_invalid"

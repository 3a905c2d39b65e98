"""The JSON Schema of what OPA sees at a point: its own facts, and those that the engine adds to every input.

A fact that is absent is left out and never null, so no schema here has null in it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import create_model

from engine.model import Caller, Digest, Model


class Counted(Model):
    """A budget or quota: the used amount, and the amount of this request."""

    id: str
    used: int
    amount: int


class ApprovalScope(Model):
    """What an approval must apply to: this input, under this policy."""

    input_digest: str
    rules: str | None
    values: str | None


class GivenApproval(Model):
    """The approval named in a request, from the state; times in seconds since 1970 UTC."""

    id: str
    expected: ApprovalScope
    state: str | None
    input_digest: str | None
    rules: str | None
    values: str | None
    expires_at: int | None
    requester: str | None
    requester_named: bool | None
    requester_via: str | None
    approver: str | None
    codes: tuple[str, ...] | None


class RunFlow(Model):
    """What the run of this request has touched before; absent for a request without a run."""

    id: str
    touched: tuple[str, ...]


class StopInForce(Model):
    """A stop, and what it may apply to: the principal and the tool of this request, empty where it has none."""

    id: str
    scope: str
    name: str
    principal: str
    tool: str


class ProvisionedAgent(Model):
    """A provisioned agent: its tools, and what it may use of each episode."""

    id: str
    name: str
    role: str
    active: bool
    tools: tuple[str, ...]
    max_turns: int
    max_tokens: int


class EarlierAttempt(Model):
    """An earlier attempt at the same task."""

    id: str
    code_sha256: str
    state: str


class MadeCheck(Model):
    """The newest check of this name of an artifact; `at` in seconds since 1970 UTC."""

    id: str
    passed: bool
    ran_in: str
    decision_id: str
    at: int


class KnownChild(Model):
    """A subagent's conversation, by the role in which the request names it.

    `user` is the principal that started it, `asking` the one that asks; empty for callers without a name.
    """

    id: str
    role: str
    parent: str
    state: str
    user: str
    asking: str


class KnownMemory(Model):
    """An entry of an agent's memory that the request is about; `origin` is its kind."""

    id: str
    owner: str
    sensitivity: str
    origin: str
    digest: Digest


class ApprovedPrefix(Model):
    """A command prefix that a person approved; `expires_at` in seconds since 1970 UTC."""

    id: str
    tool: str
    principal: str
    cwd: str
    words: tuple[str, ...]
    approver: str
    expires_at: int
    revoked: bool


_ADDED: dict[str, Any] = {
    "point": (str, ...),
    "now": (int, ...),
    "caller": (Caller, ...),
    "budgets": (tuple[Counted, ...], ...),
    "flows": (tuple[RunFlow, ...], ...),
    "quotas": (tuple[Counted, ...], ...),
    "approvals": (tuple[GivenApproval, ...], ...),
    "stops": (tuple[StopInForce, ...], ...),
    "agents": (tuple[ProvisionedAgent, ...], ...),
    "attempts": (tuple[EarlierAttempt, ...], ...),
    "checks": (tuple[MadeCheck, ...], ...),
    "children": (tuple[KnownChild, ...], ...),
    "memories": (tuple[KnownMemory, ...], ...),
    "prefixes": (tuple[ApprovedPrefix, ...], ...),
}


@cache
def input_schema(facts: type[Model]) -> dict[str, Any]:
    """The schema of an input with these facts and all that the engine adds. Made once: do not change it."""
    model = create_model(facts.__name__, __base__=facts, __doc__=facts.__doc__, **_ADDED)
    schema: dict[str, Any] = _without_null(model.model_json_schema(mode="serialization"))
    return schema


def _without_null(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_null(one) for one in node]
    if not isinstance(node, dict):
        return node
    properties = node.get("properties")
    if isinstance(properties, dict) and "required" in node:
        node = {**node, "required": [name for name in node["required"] if not _nullable(properties[name])]}
    if _nullable(node):
        left = [one for one in node["anyOf"] if one != {"type": "null"}]
        rest = {name: value for name, value in node.items() if name not in {"anyOf", "default"}}
        node = {**rest, **left[0]} if len(left) == 1 else {**rest, "anyOf": left}
    return {name: _without_null(value) for name, value in node.items()}


def _nullable(node: Any) -> bool:
    return isinstance(node, dict) and {"type": "null"} in node.get("anyOf", ())

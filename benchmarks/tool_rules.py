"""P17: a thousand tool rules divided by ten, OPA's evaluation time of one call.

Twice: a rule for each of so many tools, and so many rules for one tool, each with a host of its own.
What is asked for stands last in both, where a search would find it last. Rules are looked up in what
the build made of them, so the two should cost the same.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.measure import Bench, NotMeasuredError, Row, ratios
from benchmarks.served import Question, Served
from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Outcome, Via
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.settings import Settings

_GOAL = 1.5
_MANY, _FEW = 1_000, 10
_TIMES = 100
_POINT, _POLICY, _PROFILE = "tool_call", "bench", "everything"
_LAST = "https://last.example.com"
_ENTRY = {
    "side_effects": ["network"],
    "reversal": [],
    "secrets": False,
    "paths_on": "elsewhere",
    "environments": ["bench"],
    "curated": [],
    "definition": "none",
}
_CALLER = Context(caller=Caller(via=Via.LOOPBACK, principal="bench"))
REQUEST = {
    "policy": _POLICY,
    "profile": _PROFILE,
    "call": {"name": "last", "arguments": {"url": f"{_LAST}/page", "note": "as it is"}},
}
"""The call that is measured; the rule that allows it stands last."""


def rows(bench: Bench) -> Iterator[Row]:
    """A rule for each tool, then all rules for one tool."""
    for name, what, make in (
        ("tools", f"{_MANY:,} tools with a rule each ÷ {_FEW}, one call", rule_each),
        ("hosts", f"{_MANY:,} rules with a host each for one tool ÷ {_FEW}, one call", host_each),
    ):
        bench.report(f"P17: building policies of {_FEW} and {_MANY:,} tool rules")
        many, few = (policy_of(bench, f"{name}-{count}", make(count)) for count in (_MANY, _FEW))
        document = document_of(bench, few, f"p17-{name}")
        with ExitStack() as stack:
            questions = []
            for count, policy in ((_MANY, many), (_FEW, few)):
                archives = [policy.rules.path, policy.values.path]
                folder = bench.folder(f"p17-{name}-{count}")
                opa = stack.enter_context(Served(bench.binary.path, archives, folder))
                opa.allow(document)
                questions.append(Question.of(opa, "admission/decision", document))
            over, under = questions
            on_round = partial(bench.report_round, f"P17 {name}")
            yield Row("P17", what, _GOAL, ratios(over.evaluation, under.evaluation, _TIMES, bench.rounds, on_round))


def rule_each(count: int) -> dict[str, Any]:
    """Values with so many tools and an allow rule for each of them."""
    names = [*(f"tool_{number:04}" for number in range(count - 1)), "last"]
    return _values(names, [{"id": f"for_{name}", "tools": [name], "hosts": [_LAST]} for name in names])


def host_each(count: int) -> dict[str, Any]:
    """Values with one tool and so many allow rules for it, each with a host of its own."""
    hosts = [*(f"https://host-{number:04}.example.com" for number in range(count - 1)), _LAST]
    rules = [{"id": f"host_{number:04}", "tools": ["last"], "hosts": [host]} for number, host in enumerate(hosts)]
    return _values(["last"], rules)


def _values(names: list[str], allow: list[dict[str, Any]]) -> dict[str, Any]:
    arguments = {"url": "url", "note": "text"}
    return {
        "tools": {name: {**_ENTRY, "title": f"Tool {name}", "arguments": arguments} for name in names},
        "groups": {},
        "profiles": {_PROFILE: ["*"]},
        "rulesets": {"bench": {"deny": [], "confirm": [], "allow": allow}},
        "policies": {_POLICY: {"base": "deny_all", "rulesets": ["bench"], "principals": "any"}},
    }


def policy_of(bench: Bench, name: str, tools: Mapping[str, Any]) -> PolicyBundle:
    """The policy as shipped with these in the place of its tools, groups, profiles, rules and policies."""
    folder = bench.scratch / f"policy-{name}"
    shutil.copytree(bench.policy.sources.policy, folder, dirs_exist_ok=True)
    shipped = bench.policy.data["tools"]
    (folder / "tools.yaml").write_text(json.dumps({**shipped, **tools}), encoding="utf-8")
    return build(replace(bench.policy.sources, policy=folder), POINTS, bench.binary, bench.cache)


def document_of(bench: Bench, policy: PolicyBundle, name: str) -> dict[str, Any]:
    """The input that the engine makes of the call. Raises NotMeasuredError where it is not allowed."""
    settings = Settings(state=bench.scratch / f"{name}-state", cache=bench.cache, policy=policy.sources.policy)
    with Engine(settings) as engine:
        answer = engine.check(_POINT, REQUEST, _CALLER)
    if answer.document is None or answer.decision.outcome is not Outcome.ALLOW:
        raise NotMeasuredError(f"the call that is to be measured is not allowed: {answer.decision.findings}")
    return answer.document

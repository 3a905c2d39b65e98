"""T1: the decision of a tool call with 200 argument values divided by that of one with a single value.

An engine in this process, its record on disk. Every value is walked and looked through, whatever the
name it stands under; once they are plain texts, once each is an address of its own that the rule has
to cover. No goal is set: 200 values are 200 times the facts, and what matters is that the ratio stays
far below that and does not grow from release to release.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.tool_rules import policy_of
from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Outcome, Via
from engine.settings import Settings

_MANY, _ONE = 200, 1
TIMES = 40
"""Decisions in a part of a round."""
_CALLER = Context(caller=Caller(via=Via.LOOPBACK, principal="bench"))
_KINDS = {"plain texts": "line {}", "addresses": "https://host.example.com/page/{}"}


def rows(bench: Bench) -> Iterator[Row]:
    """Wall time: one caller, one decision after the other."""
    rule = {"id": "own_host", "tools": ["collect"], "hosts": ["https://host.example.com"]}
    policy = policy_of(bench, "arguments", policy_values({"collect": {"items": "data"}}, [rule]))
    settings = Settings(state=bench.folder("t1") / "state", cache=bench.cache, policy=policy.sources.policy)
    with Engine(settings) as engine:
        for kind, text in _KINDS.items():
            parts = [partial(taken, engine, request(text, count)) for count in (_MANY, _ONE)]
            found = interleaved(parts, bench.rounds, partial(bench.report_round, f"T1 {kind}"))
            what = f"one call with {_MANY} argument values ÷ {_ONE}, {kind}"
            yield Row("T1", what, None, tuple(many / one for many, one in found))
            one = tuple(seconds / TIMES * 1e6 for _, seconds in found)
            yield Row("T1", f"  the call with {_ONE}, microseconds", None, one, "µs")


def request(text: str, count: int) -> dict[str, Any]:
    """A call whose argument holds so many values."""
    return {
        "policy": "bench",
        "profile": "everything",
        "call": {"name": "collect", "arguments": {"items": [text.format(number) for number in range(count)]}},
    }


def policy_values(arguments: dict[str, dict[str, str]], allow: list[dict[str, Any]]) -> dict[str, Any]:
    """policy/tools.yaml with tools that have these arguments, and these allow rules."""
    tools = {
        name: {
            "title": name,
            "side_effects": ["network", "execute"],
            "reversal": [],
            "arguments": types,
            "secrets": False,
            "paths_on": "elsewhere",
            "environments": ["bench"],
            "curated": [],
            "definition": "none",
        }
        for name, types in arguments.items()
    }
    return {
        "tools": tools,
        "groups": {},
        "profiles": {"everything": ["*"]},
        "rulesets": {"bench": {"deny": [], "confirm": [], "allow": allow}},
        "policies": {"bench": {"base": "deny_all", "rulesets": ["bench"], "principals": "any"}},
    }


def taken(engine: Engine, asked: dict[str, Any], point: str = "tool_call") -> float:
    """The seconds of so many decisions. Raises NotMeasuredError when one is no allow."""
    started = time.perf_counter()
    answers = [engine.decide(point, asked, context=_CALLER) for _ in range(TIMES)]
    seconds = time.perf_counter() - started
    if refused := [one.decision for one in answers if one.decision.outcome is not Outcome.ALLOW]:
        raise NotMeasuredError(f"a refusal is measured: {refused[0].findings}")
    return seconds

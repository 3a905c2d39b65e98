"""T2: the decision of a tool call with a command divided by that of one with a plain text.

An engine in this process, its record on disk. A command is parsed by a process of its own, and each simple command in
it has to be covered by a rule. No goal is set: the ratio must not grow from release to release.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.measure import Bench, Row, interleaved
from benchmarks.tool_arguments import TIMES, policy_values, taken
from benchmarks.tool_rules import policy_of
from engine.engine import Engine
from engine.settings import Settings

_COMMANDS = {
    "one command": "git status --short",
    "three commands": "git log --oneline -n 20 | head -5 && git diff HEAD~1 -- src/app.py",
}


def rows(bench: Bench) -> Iterator[Row]:
    """Wall time: one caller, one decision after the other."""
    rule = {
        "id": "programs",
        "tools": ["run"],
        "commands": [["git", "log"], ["git", "diff"], ["git", "status"], ["head"]],
    }
    plain = {"id": "notes", "tools": ["note"]}
    tools = {"run": {"command": "command"}, "note": {"text": "text"}}
    policy = policy_of(bench, "commands", policy_values(tools, [rule, plain]))
    settings = Settings(state=bench.folder("t2") / "state", cache=bench.cache, policy=policy.sources.policy)
    with Engine(settings) as engine:
        for kind, text in _COMMANDS.items():
            calls = (("run", {"command": text}), ("note", {"text": text}))
            parts = [partial(taken, engine, _request(*call)) for call in calls]
            found = interleaved(parts, bench.rounds, partial(bench.report_round, f"T2 {kind}"))
            yield Row("T2", f"one call with {kind} ÷ with a text", None, tuple(many / one for many, one in found))
            parsed = tuple(seconds / TIMES * 1e6 for seconds, _ in found)
            yield Row("T2", f"  the call with {kind}, microseconds", None, parsed, "µs")


def _request(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"name": tool, "arguments": arguments}
    return {"policy": "bench", "profile": "everything", "cwd": "/srv/project", "call": call}

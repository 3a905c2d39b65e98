"""What the decisions of a record used: one pass over its lines, memory by what differs and not by how many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import Location
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, entries

_MOST_UNREADABLE = 100


@dataclass(slots=True)
class Asked:
    """One origin that calls asked for: by which tools, how often, when last."""

    tools: set[str] = field(default_factory=set)
    calls: int = 0
    last: str = ""


@dataclass(slots=True)
class Usage:
    """What was used. `codes` are the codes of findings by point, `rules` those that allowed a call."""

    decisions: int = 0
    first: str | None = None
    last: str | None = None
    codes: dict[str, set[str]] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)
    profiles: set[str] = field(default_factory=set)
    origins: dict[str, Asked] = field(default_factory=dict)
    unreadable: list[Location] = field(default_factory=list)


def usage(state: Path, wanted: Filter, told: Callable[[int], None]) -> Usage:
    """What the decisions that fit `wanted` used; `told` hears how many were read. Raises RecordError."""
    found = Usage()
    for entry in entries(state, wanted):
        if isinstance(entry, Location):
            if len(found.unreadable) < _MOST_UNREADABLE:
                found.unreadable.append(entry)
        elif entry.body.kind == "decision":
            _count(found, entry.body)
            told(found.decisions)
    return found


def _count(found: Usage, body: DecisionRecord) -> None:
    found.decisions += 1
    found.first = found.first or body.time
    found.last = body.time
    found.codes.setdefault(body.point, set()).update(finding.code for finding in body.findings)
    if isinstance(rule := (body.limits or {}).get("rule"), str):
        found.rules.add(rule)
    document = body.input or {}
    asked = document.get("asked")
    if isinstance(asked, dict):
        found.policies.update(_texts([asked.get("policy")]))
        found.profiles.update(_texts([asked.get("profile")]))
    _origins(found, document, body.time)


def _origins(found: Usage, document: dict[str, Any], time: str) -> None:
    call = document.get("call")
    tool = call.get("tool") if isinstance(call, dict) else None
    destinations = document.get("destinations")
    if not isinstance(tool, str) or not isinstance(destinations, list):
        return
    for origin in {one for item in destinations if isinstance(item, dict) for one in _texts([item.get("origin")])}:
        asked = found.origins.setdefault(origin, Asked())
        asked.tools.add(tool)
        asked.calls += 1
        asked.last = time


def _texts(values: list[Any]) -> Iterator[str]:
    yield from (value for value in values if isinstance(value, str))

"""What must hold of a fleet, whatever happened to it: judged by its records and by what callers were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from tests.fleet.simulation import KEY_SECONDS, SKEW, WINDOW, Evidence

_SWITCH = 12
"""Decisions that may be in progress in a replica while it activates a policy: they end with the earlier one."""


def decisions(evidence: Evidence) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every recorded decision at the point that callers asked at, with its replica."""
    for number, lines in evidence.records.items():
        for line in lines.values():
            if line["kind"] == "decision" and line["point"] == "license":
                yield number, line


def lost(evidence: Evidence) -> list[str]:
    """Acknowledged decisions that no record has as they were told, or that one has twice."""
    found: dict[str, list[dict[str, Any]]] = {}
    for _, line in decisions(evidence):
        found.setdefault(line["decision_id"], []).append(line)
    broken = [f"{id_} is recorded {len(lines)} times" for id_, lines in found.items() if len(lines) != 1]
    for told in evidence.told:
        line = found.get(told.answer["id"], [{}])[0]
        if "engine.record_unavailable" in told.answer["codes"]:
            continue  # a refusal that says so itself
        codes = [finding["code"] for finding in line.get("findings", ())]
        if (line.get("outcome"), codes) != (told.answer["outcome"], told.answer["codes"]):
            broken.append(f"{told.answer} was told, but recorded as {line.get('outcome')} {codes}")
    return broken


def gaps(evidence: Evidence) -> list[str]:
    """Records with a line missing."""
    return [
        f"replica {number} lacks {missing[:3]}"
        for number, lines in evidence.records.items()
        if (missing := sorted({*range(1, max(lines) + 1)} - lines.keys()))
    ]


def overrun(evidence: Evidence) -> list[str]:
    """Windows with more allows than their budget, and counters that do not fit what was allowed."""
    broken, allowed, most = [], Counter[int](), Counter[int]()
    for _, line in decisions(evidence):
        if line["outcome"] != "allow":
            continue
        window, (counted,) = line["input"]["now"] // WINDOW, line["input"]["budgets"]
        limit = evidence.limits.get(_pair(line), 0)
        allowed[window] += 1
        most[window] = max(most[window], limit)
        if counted["used"] >= limit:
            broken.append(f"{line['decision_id']} was allowed after {counted['used']} of {limit}")
    for window, used in evidence.used.items():
        if allowed[window] > most[window]:
            broken.append(f"window {window} has {allowed[window]} allows of {most[window]}")
        if not allowed[window] <= used <= allowed[window] + evidence.lost[window]:
            broken.append(f"window {window} counts {used} for {allowed[window]} allows, {evidence.lost[window]} lost")
    return broken + [f"window {window} was not looked at" for window in allowed.keys() - evidence.used.keys()]


def mixed(evidence: Evidence) -> list[str]:
    """Decisions with rules and values that are not of one revision, or of one that was not active there."""
    broken = []
    for number, lines in evidence.records.items():
        now: tuple[str, str] | None = None
        before, since = now, 0
        for _, line in sorted(lines.items()):
            if line["kind"] == "policy" and line["outcome"] in {"started", "activated"}:
                before, since = (None if line["outcome"] == "started" else now), 0
                now = line["revisions"]["rules"], line["revisions"]["values"]
            elif line["kind"] == "decision" and line["point"] == "license" and line["policy"] is not None:
                since += 1
                codes = {finding["code"] for finding in line["findings"]}
                active = {now} | ({before} if since <= _SWITCH else set())
                if _pair(line) not in active or _pair(line) not in evidence.limits or "mixed_revisions" in codes:
                    broken.append(f"{line['decision_id']} of replica {number} was taken with {_pair(line)}")
    return broken


def twice(evidence: Evidence) -> list[str]:
    """Approvals that were used twice, ungranted or too late, and keys with two answers within their time.

    The time of a key begins with its decision. The first caller that was told may have got a replay of it, because the
    replica that decided had crashed.
    """
    broken, uses, decided = [], Counter[str](), dict[str, int]()
    for _, line in decisions(evidence):
        if line["outcome"] == "allow":
            decided[line["decision_id"]] = line["input"]["now"]
        if line["outcome"] != "allow" or not line["input"]["approvals"]:
            continue
        (given,) = line["input"]["approvals"]
        uses[given["id"]] += 1
        granted, expires = evidence.granted.get(given["id"], (1 << 60, 0))
        if not granted - 2 * SKEW <= line["input"]["now"] < expires:
            broken.append(f"approval {given['id']} was used at {line['input']['now']}")
    broken += [f"approval {id_} was used {count} times" for id_, count in uses.items() if count > 1]
    taken: dict[str, dict[str, int]] = {}
    for told in evidence.told:
        if told.key is not None and told.answer["outcome"] == "allow":
            taken.setdefault(told.key, {})[told.answer["id"]] = decided.get(told.answer["id"], told.now)
    for key, answers in taken.items():
        times = sorted(answers.values())
        if any(later - earlier < KEY_SECONDS - 2 * SKEW for earlier, later in pairwise(times)):
            broken.append(f"key {key} has answers at {times}")
    return broken


CHECKS: dict[str, Callable[[Evidence], list[str]]] = {
    check.__name__: check for check in (lost, gaps, overrun, mixed, twice)
}


def violated(evidence: Evidence) -> dict[str, list[str]]:
    """What does not hold, by check."""
    return {name: found for name, check in CHECKS.items() if (found := check(evidence))}


def _pair(line: dict[str, Any]) -> tuple[str, str]:
    return line["policy"]["rules"], line["policy"]["values"]

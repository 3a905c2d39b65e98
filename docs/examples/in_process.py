"""Decide inside a program: once blocking, then many at once on an event loop.

Run it with `.venv/bin/python docs/examples/in_process.py`; records go to the usual state folder.
"""

from __future__ import annotations

import asyncio
from typing import Any

from engine import AsyncEngine, Caller, Context, Engine, Settings, Via

CONTENT = "9f2c5e0a4a1d4b5a8a6f4f6f0f0f7d3e6c1b2a3948576655443322110099aabb"


def request(license_: str) -> dict[str, Any]:
    """Ask whether a model may be trained on content with this license; the request has a license decision."""
    taken = {"sha256": CONTENT, "decision": "accepted", "decided_at": "2026-11-02T10:00:00Z"}
    return {
        "purpose": "train",
        "export_license": None,
        "license": license_,
        "sha256": CONTENT,
        "decisions": [taken],
    }


def blocking(context: Context) -> None:
    """One request, one decision; the limits state what may be done, the remedies what to fix."""
    with Engine(Settings()) as engine:
        answer = engine.decide("license", request("CC-BY-NC-4.0"), context=context)
    for finding in answer.decision.findings:
        print(f"{answer.decision.outcome}: {finding.code}: {finding.remedy}")


async def side_by_side(context: Context) -> None:
    """Many requests: one question to OPA, a record for each, made durable together."""
    licenses = ["CC0-1.0", "CC-BY-4.0", "Nobody-1.0"]
    async with AsyncEngine(Settings()) as engine:
        answers = await engine.decide_many("license", [request(one) for one in licenses], context)
    for name, answer in zip(licenses, answers, strict=True):
        print(f"{name}: {answer.decision.outcome} {answer.decision.decision_id}")


def main() -> None:
    """Run both as the pipeline `curation`, run 7."""
    context = Context(caller=Caller(via=Via.PROCESS, principal="curation"), run="run-7")
    blocking(context)
    asyncio.run(side_by_side(context))


if __name__ == "__main__":
    main()

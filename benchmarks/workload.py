"""The one request of all rows under load, about 0.9 KB as OPA gets it, and that input itself.

A license question with a history: the label is asked about again after other content was decided.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.measure import Bench, NotMeasuredError
from engine.documents.canonical import canonical
from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Outcome, Via
from engine.settings import OpaLimits, Settings

POINT = "license"
LICENSES = ("CC-BY-4.0", "MIT")
"""Those that the request offers; it is exported under the first."""
_CORPUS = (
    *("0BSD", "AFL-3.0", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-3.0"),
    *("CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0", "CC-BY-SA-4.0", "CC0-1.0", "EPL-2.0", "GPL-2.0-only"),
    *("GPL-3.0-only", "ISC", "LGPL-3.0-only", "MIT", "MIT OR Apache-2.0", "MPL-2.0", "ODbL-1.0", "PDDL-1.0"),
    *("Python-2.0", "Unlicense"),
)
_PURPOSES = ("train", "eval", "tool", "environment")
_HISTORY = 4
"""Decisions besides the one that counts: they bring the input to the size that is measured."""
_ON_LOOPBACK = Context(caller=Caller(via=Via.LOOPBACK))


@dataclass(frozen=True, slots=True)
class Workload:
    """The same question to the engine (`request`) and to a bare OPA (`document`)."""

    request: dict[str, Any]
    document: dict[str, Any]

    @property
    def request_body(self) -> bytes:
        """As a client sends it to the engine."""
        return json.dumps(self.request).encode()

    @property
    def input_body(self) -> bytes:
        """As the engine sends it to OPA."""
        return b'{"input":%b}' % canonical(self.document)


def request(number: int = 0) -> dict[str, Any]:
    """A request that is allowed; each number asks about other content."""
    contents = [hashlib.sha256(f"content {number} {index}".encode()).hexdigest() for index in range(_HISTORY + 1)]
    return {
        "purpose": "train",
        "export_license": LICENSES[0],
        "license": " OR ".join(LICENSES),
        "sha256": contents[0],
        "decisions": [
            {"sha256": sha256, "decision": "accepted", "decided_at": f"2026-11-0{day}T10:00:00Z"}
            for day, sha256 in enumerate(contents, start=1)
        ],
    }


def as_it_comes(count: int) -> Iterator[dict[str, Any]]:
    """Requests of a corpus: 300 combinations of a license and a purpose, few of them frequent; every content is new.

    Combinations follow Zipf's law with exponent 1; a content has at most two decisions.
    """
    numbers = random.Random(19)  # noqa: S311  (no secret)
    kinds = [*product(_CORPUS, _PURPOSES, range(3))]
    numbers.shuffle(kinds)
    weights = [1 / rank for rank in range(1, len(kinds) + 1)]
    for number, (license_, purpose, decisions) in enumerate(numbers.choices(kinds, weights, k=count)):
        one = request(-1 - number)
        days = [numbers.randint(1, 20) for _ in range(decisions)]
        taken = [{**one["decisions"][0], "decided_at": f"2026-11-{day:02}T10:00:00Z"} for day in days]
        yield {**one, "license": license_, "purpose": purpose, "decisions": taken}


@contextmanager
def engine(bench: Bench, state: Path, shared_answers: int = 0) -> Iterator[Engine]:
    """An engine in this process with a record of its own; without shared answers, OPA is asked about every request."""
    settings = Settings(state=state, cache=bench.cache, opa=OpaLimits(shared_answers=shared_answers))
    with Engine(settings) as running:
        yield running


def workload(bench: Bench) -> Workload:
    """The request, and the input that the engine makes of it. Raises NotMeasuredError."""
    asked = request()
    with engine(bench, bench.scratch / "workload") as running:
        answer = running.check(POINT, asked, _ON_LOOPBACK)
    if answer.document is None or answer.decision.outcome is not Outcome.ALLOW:
        found = [f"{finding.code}: {finding.requirement}" for finding in answer.decision.findings]
        raise NotMeasuredError(f"the request that is to be measured is not allowed: {found}")
    return Workload(asked, answer.document)

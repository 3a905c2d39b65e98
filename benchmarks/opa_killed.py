"""P15: OPA is killed under load; how soon callers are denied, and how long any of them has to wait.

The peer is a caller that asks OPA itself through opa-python-client, as it comes.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import requests
from opa_client.opa import OpaClient

from benchmarks.bare import with_settings_of_the_engine
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.served_engine import ServedEngine, await_allowed, engine_served
from benchmarks.timed_load import Answer, asking
from benchmarks.workload import Workload, workload

_CONNECTIONS = 8
_GOAL = 50.0
_ALLOW, _CLOSED = "allow", {"policy_unavailable"}
_STEADY_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Killed:
    """One round, in seconds from the kill: of the engine's callers the first and the last, and of the client."""

    first: float
    longest: float
    client: float


def rows(bench: Bench) -> Iterator[Row]:
    """Milliseconds until the first fail-closed answer and until the last caller has one; then against the peer."""
    work = workload(bench)
    folder = bench.folder("p15")
    (folder / "request.json").write_bytes(work.request_body)
    numbers = iter(range(bench.rounds + 1))
    with engine_served(bench, "p15/engine", work) as served:

        def kill() -> Killed:
            first, longest = _engine(bench, served, work)
            return Killed(first, longest, _client(bench, f"p15/opa-{next(numbers)}", work.document))

        found = [one for (one,) in interleaved((kill,), bench.rounds, partial(bench.report_round, "P15"))]
    yield Row("P15", "OPA killed → first fail-closed answer", _GOAL, tuple(one.first * 1000 for one in found), "ms")
    longest = tuple(one.longest * 1000 for one in found)
    yield Row("P15", f"OPA killed → longest wait of {_CONNECTIONS} callers", _GOAL, longest, "ms")
    peer = tuple(one.longest / one.client for one in found)
    yield Row("P15", "  the same ÷ opa-python-client until it raises", None, peer)


def _engine(bench: Bench, served: ServedEngine, work: Workload) -> tuple[float, float]:
    """Seconds from the kill to the first deny, and the longest wait of a request while OPA was down."""
    with asking(bench, served.url, bench.scratch / "p15" / "request.json", _CONNECTIONS) as load:
        time.sleep(_STEADY_SECONDS)
        opa = served.opa
        killed = time.monotonic()
        os.kill(opa, signal.SIGKILL)
        await_allowed(served, work)
        time.sleep(_STEADY_SECONDS)
        answers = load.stop()
    return first_and_longest(answers, killed)


def first_and_longest(answers: list[Answer], killed: float) -> tuple[float, float]:
    """Both from the moment of the kill. Raises NotMeasuredError where anything but a reserved deny was given."""
    denied = [one for one in answers if one.outcome != _ALLOW]
    if strange := [one for one in denied if one.outcome != "deny" or set(one.codes) != _CLOSED]:
        raise NotMeasuredError(f"{len(strange)} answers are no denies with {_CLOSED}, such as {strange[0]}")
    if not denied or denied[0].received < killed:
        raise NotMeasuredError("no caller was denied while OPA was away")
    last = max(one.received for one in denied)
    away = [one for one in answers if one.received >= killed and one.sent <= last]
    return denied[0].received - killed, max(one.received - max(one.sent, killed) for one in away)


def _client(bench: Bench, name: str, document: dict[str, Any]) -> float:
    """Seconds from the kill of a bare OPA until the client, asking once it is gone, gives up with its own settings."""
    with with_settings_of_the_engine(bench, name) as bare:
        client = OpaClient(host="127.0.0.1", port=bare.port)
        client.query_rule(input_data=document, package_path="admission", rule_name="decision")
        os.kill(bare.pid, signal.SIGKILL)
        killed = time.monotonic()
        os.waitid(os.P_PID, bare.pid, os.WEXITED | os.WNOWAIT)  # else it may still be hung up on, which ends at once
        try:
            client.query_rule(input_data=document, package_path="admission", rule_name="decision")
        except requests.RequestException:
            return time.monotonic() - killed
        finally:
            client.close_connection()
    raise NotMeasuredError("a killed OPA answers")

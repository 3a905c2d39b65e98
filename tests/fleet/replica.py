"""One replica in a process of its own: an engine that does what it is told, at the moment it is told.

It leases an OPA that serves the policy of its folder, so that a start takes milliseconds. Everything else is its own.
"""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any

from engine.binaries import Binary
from engine.engine import Engine
from engine.errors import EngineError, StateError
from engine.flow import Context
from engine.model import Caller, Via
from engine.opa.server import Served, Server
from engine.record.layout import segment_file
from engine.record.reader import segments
from engine.settings import OpaLimits, Settings
from tests.shared_opa import Lease, _key

SIDE_BY_SIDE = 3
"""Requests that a replica decides at the same time."""


def lend(opas: Path) -> None:
    """Start no OPA for a policy that one in this list serves."""
    start_own = Server.start

    def start(binary: Binary, served: Served, limits: OpaLimits, on_exit: Callable[[], None] = lambda: None) -> Server:
        folder = json.loads(opas.read_text()).get(_key(binary, replace(served, points=None), limits))
        if folder is None:
            return start_own(binary, served, limits, on_exit)
        there = Served(Path(folder) / "rules.tar.gz", Path(folder) / "values.tar.gz", served.revisions)
        return Lease(Path(folder), there, limits, lambda: None)

    Server.start = start  # type: ignore[method-assign]


def main(end: Connection, settings: Settings, opas: Path) -> None:
    """The process: performs each request of (number, moment, name, arguments) and says (number, result)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lend(opas)
    moment, says = [0], Lock()

    def now() -> datetime:
        return datetime.fromtimestamp(moment[0], UTC)

    def perform(number: int, name: str, arguments: dict[str, Any]) -> None:
        try:
            result = _ACTS[name](engine, **arguments)
        except BaseException as error:  # noqa: BLE001  (reported to the caller)
            result = {"failed": repr(error)}
        with says:
            end.send((number, result))

    number, moment[0], _, _ = end.recv()
    with Engine(settings, now=now, control=False) as engine, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        engine.services = replace(engine.opened, clock=now)
        engine.record_start(Context())
        end.send((number, {}))
        while (asked := end.recv()) is not None:
            number, moment[0], name, arguments = asked
            pool.submit(perform, number, name, arguments)


def _decide(
    engine: Engine, request: dict[str, Any], principal: str, key: str | None, approval: str | None
) -> dict[str, Any]:
    caller = Caller(via=Via.TOKEN, principal=principal, points=("license",))
    given = engine.decide("license", request, context=Context(caller, approval=approval, idempotency_key=key)).decision
    return {
        "id": given.decision_id,
        "outcome": given.outcome.value,
        "codes": [finding.code for finding in given.findings],
        "policy": None if given.policy is None else (given.policy.rules, given.policy.values),
        "approval": None if given.approval is None else given.approval.id,
    }


def _activate(engine: Engine) -> dict[str, Any]:
    try:
        done = engine.activate()
    except EngineError as error:
        return {"refused": error.code}
    return {"policy": (done.revisions.rules, done.revisions.values)}


def _retain(engine: Engine, days: int) -> dict[str, Any]:
    done = engine.retain(days)
    assert done.fault is None, done.fault.one_line()
    removed = [] if done.result is None else done.result.facts["removed"]  # denied under a policy that is new to it
    return {"removed": sum(one["lines"] for one in removed)}


def _fill(engine: Engine, left: int | None) -> dict[str, Any]:
    """No file of this process may have more than `left` bytes more than the record has; None for no limit."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    soft = hard
    if left is not None:
        folder = engine.settings.state
        soft = (folder / segment_file(segments(folder)[-1])).stat().st_size + left
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return {}


def _settled(engine: Engine) -> dict[str, Any]:
    """Whether this replica works, and has given back what it could not give back before."""
    try:
        store = engine.store()
        engine._heads()  # in the state folder, whose disk may have been full
    except StateError:  # not opened yet
        return {"settled": False}
    database, works = store._database, store.writable() and engine._log.usable
    return {"settled": works and not database._failed and not database._lost}  # type: ignore[attr-defined]


_ACTS: dict[str, Callable[..., dict[str, Any]]] = {
    "decide": _decide,
    "activate": _activate,
    "retain": _retain,
    "fill": _fill,
    "settled": _settled,
}

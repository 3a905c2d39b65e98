"""Ask an engine in another process, over HTTP or its unix socket: a decision comes back, whatever happens.

    with Client("http://127.0.0.1:8642") as client:
        decision = client.decide("license", {...})
        decisions = client.decide_many("license", [{...}, {...}])

A refused connection, a late, broken or foreign answer is a deny with the code `engine.unreachable`: a
caller that only looks at `decision.outcome` fails closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, Self

import httpx

from engine.decide import parsed
from engine.documents.canonical import canonical
from engine.errors import EngineError
from engine.model import Decision, Finding, Level, Mode, Outcome, is_reserved
from engine.points.registry import find

_ANSWER_BYTES = 64 << 20
_JSON = {"content-type": "application/json"}
_CODE = "engine.unreachable"
_RETRY = "check that the engine is running and reachable, then retry"
_GRACE_SECONDS = 0.25  # so that the loop reports the timeout itself

_SILENT = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, TypeError, RecursionError, RuntimeError)
"""No answer: `RuntimeError` is a client that was closed, or no more threads."""

_STATUSES = {str(code.value) for code in httpx.codes}

_Answer = tuple[int, Any] | str
"""Status and content of an answer, or the kind of error in place of one."""


class Client:
    """A connection that blocks; threads may share it. `address` is `http(s)://host:port` or `unix:/path`."""

    def __init__(self, address: str, *, token: str | None = None, seconds: float = 2.0, verify: Any = True) -> None:
        """`seconds` is the deadline of a whole call; `verify` is an `ssl.SSLContext` for a private authority."""
        self._make = partial(AsyncClient, address, token=token, seconds=seconds, verify=verify)
        self._seconds = seconds
        self._owner, self._client = os.getpid(), self._make()

    def __getstate__(self) -> NoReturn:
        raise TypeError("a client is not copied or pickled; make one in each process")

    def decide(self, point: str, request: Any, **meta: str) -> Decision:
        """The decision on one request; never raises for what the server does.

        `meta`: `approval`, `run`, `idempotency_key`, `request_id`, `traceparent`.
        """
        return _decision(point, meta, self._answer(point, request, meta))

    def decide_many(self, point: str, requests: Iterable[Any], **meta: str) -> list[Decision]:
        """The decision on each of up to 1,000 requests, in their order, with one call; `meta` is that of all.

        Never raises for what the server does: a request without a decision is denied.
        """
        batch = _batch(requests)
        return _decisions(point, meta, self._answer(f"{point}/batch", batch, meta), len(batch["inputs"]))

    def _answer(self, path: str, document: Any, meta: Mapping[str, str]) -> _Answer:
        headers = _meta(meta)
        try:
            content = canonical(document)
            if self._owner != os.getpid():  # a fork that shared connections could receive answers for others
                self._owner, self._client = os.getpid(), self._make()
            future = asyncio.run_coroutine_threadsafe(self._client.ask(path, content, headers), _loop())
            try:
                return _read(*future.result(self._seconds + _GRACE_SECONDS))
            finally:
                future.cancel()
        except _SILENT as error:
            return type(error).__name__

    def close(self) -> None:
        """Close the connection."""
        if self._owner == os.getpid():
            with suppress(*_SILENT):
                asyncio.run_coroutine_threadsafe(self._client.close(), _loop()).result(self._seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """`Client` for an event loop."""

    def __init__(self, address: str, *, token: str | None = None, seconds: float = 2.0, verify: Any = True) -> None:
        """As `Client`."""
        socket = address.removeprefix("unix:") if address.startswith("unix:") else None
        base = address if socket is None else "http://localhost"
        headers = _JSON if token is None else {**_JSON, "authorization": f"Bearer {token}"}
        self._seconds = seconds
        transport = httpx.AsyncHTTPTransport(uds=socket, verify=verify, trust_env=False)
        self._http = httpx.AsyncClient(base_url=base, headers=headers, transport=transport, trust_env=False)

    async def decide(self, point: str, request: Any, **meta: str) -> Decision:
        """`Client.decide`."""
        return _decision(point, meta, await self._answer(point, request, meta))

    async def decide_many(self, point: str, requests: Iterable[Any], **meta: str) -> list[Decision]:
        """`Client.decide_many`."""
        batch = _batch(requests)
        return _decisions(point, meta, await self._answer(f"{point}/batch", batch, meta), len(batch["inputs"]))

    async def _answer(self, path: str, document: Any, meta: Mapping[str, str]) -> _Answer:
        headers = _meta(meta)
        try:
            return _read(*await self.ask(path, canonical(document), headers))
        except _SILENT as error:
            return type(error).__name__

    async def ask(self, path: str, content: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and body of what the server answers within the deadline; raises what HTTP does."""
        async with (
            asyncio.timeout(self._seconds),
            self._http.stream(
                "POST", f"/v1/decide/{path}", content=content, headers=headers, timeout=self._seconds
            ) as response,
        ):
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _ANSWER_BYTES:
                    raise ValueError("the answer is too large")
            return response.status_code, bytes(data)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_loops: dict[int, asyncio.AbstractEventLoop] = {}
_starting = threading.Lock()
os.register_at_fork(after_in_child=lambda: _starting.release() if _starting.locked() else None)


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process on which clients that block have a whole call end in time."""
    with _starting:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = asyncio.new_event_loop()
            try:
                threading.Thread(target=loop.run_forever, name="engine-client", daemon=True).start()
            except RuntimeError:
                loop.close()
                raise
            _loops[os.getpid()] = loop
        return loop


_NAMES = {
    "approval": "x-approval",
    "run": "x-run-id",
    "idempotency_key": "idempotency-key",
    "request_id": "x-request-id",
    "traceparent": "traceparent",
}


def _meta(meta: Mapping[str, str]) -> dict[str, str]:
    unknown = meta.keys() - _NAMES.keys()
    if unknown:
        raise TypeError(f"no such argument: {min(unknown)}")
    return {_NAMES[name]: value for name, value in meta.items()}


def _batch(requests: Iterable[Any]) -> dict[str, Any]:
    return {"inputs": {str(number): request for number, request in enumerate(requests)}}


def _read(status: int, data: bytes) -> tuple[int, Any]:
    return status, json.loads(data, object_pairs_hook=_object)


def _decisions(point: str, meta: Mapping[str, str], answer: _Answer, requests: int) -> list[Decision]:
    """The decision on each request of a batch; one that the answer leaves out is a deny."""
    if isinstance(answer, str):
        return [_decision(point, meta, answer)] * requests
    status, body = answer
    items = body.get("responses") if isinstance(body, dict) else None
    if not isinstance(items, dict):
        return [_decision(point, meta, (status, None if status == httpx.codes.OK else body))] * requests
    return [_decision(point, meta, _item(items.get(str(number)), status)) for number in range(requests)]


def _item(item: Any, status: int) -> tuple[int, Any]:
    """An item of a batch as the answer to one request; it may have a status of its own."""
    if not isinstance(item, dict):
        return status, None
    own = item.get("http_status_code", str(status))
    fields = {name: value for name, value in item.items() if name != "http_status_code"}
    return int(own) if isinstance(own, str) and own in _STATUSES else httpx.codes.INTERNAL_SERVER_ERROR, fields


def _decision(point: str, meta: Mapping[str, str], answer: _Answer) -> Decision:
    """The decision in an answer; anything but an answer to exactly this question is a deny."""
    if isinstance(answer, str):
        return _deny(point, f"the engine gave no answer ({answer})")
    status, fields = answer
    if status != httpx.codes.OK:
        document = fields if isinstance(fields, dict) else {}
        fields = document.get("decision")
        if not isinstance(fields, dict):
            stated = {name: document[name] for name in ("code", "remedy") if isinstance(document.get(name), str)}
            return _deny(point, f"the engine answered {status}", **stated)
    try:
        found = parsed(find(point), fields)
    except (EngineError, KeyError, TypeError, ValueError, RecursionError):
        return _deny(point, "the answer is not a valid decision")
    if found.point != point or found.mode is not Mode.ENFORCE:
        return _deny(point, "the answer belongs to another request")
    if found.outcome is Outcome.ALLOW and not (status == httpx.codes.OK and _is_whole(found, meta.get("approval"))):
        return _deny(point, "the answer is an incomplete allow")
    return found


def _is_whole(found: Decision, approval: str | None) -> bool:
    """Whether an allow is complete and not contradicted by its other fields."""
    levels = {finding.level for finding in found.findings}
    used = found.approval is not None and (found.approval.id, found.approval.state) == (approval, "used")
    return (
        all((found.decision_id, found.limits, found.policy, found.input_digest))
        and Level.DENY not in levels
        and used == (Level.CONFIRM in levels)
        and used == (found.approval is not None)
        and not any(is_reserved(finding.code) for finding in found.findings)
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _deny(point: str, message: str, *, code: str = _CODE, remedy: str = _RETRY) -> Decision:
    return Decision(
        decision_id="",
        point=point,
        mode=Mode.ENFORCE,
        outcome=Outcome.DENY,
        findings=(Finding(code=code, level=Level.DENY, requirement=message, subject=None, remedy=remedy),),
        limits=None,
        policy=None,
        input_digest=None,
    )

"""The executor of a run: sends exactly the admitted request to exactly the admitted runner, once.

Headers are made here and none comes from a caller (D20). No redirect is followed, no proxy of the
environment and no cookie is used, nothing is sent twice. The request is neither stored nor logged.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import httpx

from admission_adapters.runner.answer import RunAnswer, RunnerError, not_an_answer, read_answer
from admission_adapters.runner.events import EventLines, Follow
from engine.errors import WorkError
from engine.model import Limits, Permit, Result, StopSignal

_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "admission-engine",
}
_MOVED = range(300, 400)
_NDJSON, _EVENTS = "application/x-ndjson", "text/event-stream"


@dataclass(frozen=True, slots=True)
class ForwardLimits:
    """The timeout of a runner, and the size limit of its answer."""

    seconds: float = 600.0  # from connecting to the last byte of the answer; agents work for minutes
    connect_seconds: float = 5.0  # of them for the connection, TLS included
    answer_bytes: int = 8 << 20  # a transcript with the results of its tools


@runtime_checkable
class UriGrant(Protocol):
    """What is read of the limits of point `runner_uri`."""

    uri: str  # the address of the runner; the run is posted to `run` below it
    encrypted: bool  # whether it has to be reached over TLS


@dataclass(frozen=True, slots=True)
class Grant:
    """A permit, and the request that it must be sealed for."""

    permit: Permit
    input_digest: str
    limits: type[Limits]

    def demand(self, point: str) -> Limits:
        """The limits of the permit. Raises WorkError `engine.permit_missing`."""
        return self.permit.demand(point, self.input_digest, self.limits)


class Runner:
    """Sends runs to runners; threads may share it."""

    def __init__(self, limits: ForwardLimits = ForwardLimits()) -> None:
        self._limits = limits

    def forward(
        self,
        run: Grant,
        address: Grant,
        body: bytes,
        follow: Follow | None = None,
        stop: StopSignal | None = None,
    ) -> tuple[Result, RunAnswer]:
        """Post `body`, the JSON of the run that was decided on, to the runner; blocks until it has answered.

        With `follow`, the runner may answer in parts (NDJSON or server-sent events), and each event but the last,
        which is the result, is passed to it. `stop` closes the connection. The result has facts without content.
        Raises WorkError: `engine.permit_missing`; `engine.limit_unenforceable` for an address with another scheme
        than the permit's; `engine.runner_unreachable`, `engine.runner_late`, `engine.runner_answer`,
        `engine.runner_stopped`.
        """
        run.demand("runner_request")
        granted = address.demand("runner_uri")
        if not isinstance(granted, UriGrant):
            raise _unenforceable()
        posted = self._stoppable(_target(granted), body, follow, stop or StopSignal())
        status, data, size = asyncio.run(posted)
        answer = read_answer(status, data, body)
        went_well = answer.error is None
        facts = {"http_status": status, "bytes": size, "ok": went_well}
        return Result("forwarded" if went_well else "run_failed", facts), answer

    async def _stoppable(
        self, url: httpx.URL, body: bytes, follow: Follow | None, stop: StopSignal
    ) -> tuple[int, bytes, int]:
        loop, post = asyncio.get_running_loop(), asyncio.ensure_future(self._post(url, body, follow))

        def cancel() -> None:
            loop.call_soon_threadsafe(post.cancel)

        stop.then(cancel)
        try:
            return await post
        except asyncio.CancelledError as error:
            if not stop.is_set():
                raise
            raise RunnerError(
                "the run was stopped", remedy="see `engine stop list`", code="engine.runner_stopped"
            ) from error
        finally:
            stop.forget(cancel)

    async def _post(self, url: httpx.URL, body: bytes, follow: Follow | None) -> tuple[int, bytes, int]:
        """Status, the JSON of the result, and the size of the whole answer."""
        limits, size = self._limits, 0
        headers = _HEADERS if follow is None else {**_HEADERS, "accept": f"{_NDJSON}, {_EVENTS}, application/json"}
        timeout = httpx.Timeout(limits.seconds, connect=min(limits.connect_seconds, limits.seconds))
        try:
            async with (
                asyncio.timeout(limits.seconds),
                httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False) as client,
                client.stream("POST", url, content=body, headers=headers) as response,
            ):
                if response.status_code in _MOVED:
                    raise not_an_answer("it points elsewhere")
                if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
                    raise not_an_answer("it is packed")
                media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                parts = None if follow is None or media not in {_NDJSON, _EVENTS} else EventLines(follow, body)
                data = bytearray()
                async for chunk in response.aiter_raw():
                    size += len(chunk)
                    if size > limits.answer_bytes:
                        raise not_an_answer(f"it is larger than {limits.answer_bytes} bytes")
                    if parts is None:
                        data += chunk
                    else:
                        await asyncio.to_thread(parts.feed, chunk)  # a client that does not read holds it up
                return response.status_code, bytes(data) if parts is None else parts.result(), size
        except (TimeoutError, httpx.TimeoutException) as error:
            raise RunnerError(
                "the runner did not answer in time", remedy="check the run on the runner", code="engine.runner_late"
            ) from error
        except (httpx.HTTPError, OSError) as error:
            raise RunnerError(
                "the runner cannot be reached, or closed the connection",
                remedy="check that it is running and listening at that address",
            ) from error


def _target(granted: UriGrant) -> httpx.URL:
    """The address to post to; TLS unless the permit allows http."""
    try:
        url = httpx.URL(granted.uri)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise _unenforceable() from error
    scheme = "https" if granted.encrypted else "http"
    if url.scheme != scheme or not url.host or url.userinfo or url.query or url.fragment:
        raise _unenforceable()
    return url.copy_with(raw_path=url.raw_path.rstrip(b"/") + b"/run")


def _unenforceable() -> WorkError:
    return WorkError(
        "use an https address, or an http address that the permit allows",
        remedy="set such an address of the runner in policy/runners.yaml",
        code="engine.limit_unenforceable",
    )

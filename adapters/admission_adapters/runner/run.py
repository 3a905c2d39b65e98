"""The executor of a run: sends exactly the admitted request to exactly the admitted runner, once.

Headers are made here and none comes from a caller (D20). No redirect is followed, no proxy of the
environment and no cookie is used, nothing is sent twice. The request is neither stored nor logged, and neither are
the credentials of the gate, which only a runner gets that the permit names for them.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import httpx

from admission_adapters.grants import GrantT, granted, unenforceable
from admission_adapters.runner.access import Credentials, RunnerAccess
from admission_adapters.runner.answer import (
    CREDENTIAL_TOLD,
    RunAnswer,
    RunnerError,
    not_an_answer,
    read_answer,
    secrets_of,
)
from admission_adapters.runner.events import EventLines, Follow
from admission_adapters.stoppable import WasStoppedError, run_until
from engine.errors import WorkError
from engine.model import Limits, Permit, Result, StopSignal

_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "admission-engine",
}
_MOVED, _REFUSED = range(300, 400), {401, 403}
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
    credentials: bool  # whether it gets the token and the client certificate of the gate


@dataclass(frozen=True, slots=True)
class Grant:
    """A permit, and the request that it must be sealed for."""

    permit: Permit
    input_digest: str

    def demand(self, point: str, grant: type[GrantT]) -> GrantT:
        """`granted`, of this permit. Raises WorkError as that does."""
        return granted(self.permit, point, self.input_digest, grant)


class Runner:
    """Sends runs to runners; threads may share it."""

    def __init__(self, limits: ForwardLimits = ForwardLimits(), access: RunnerAccess | None = None) -> None:
        self._limits, self._access = limits, access or RunnerAccess()

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
        than the permit's; `engine.runner_credentials`, `engine.runner_unauthorized`, `engine.runner_tls`,
        `engine.runner_hung_up`, `engine.runner_unreachable`, `engine.runner_late`, `engine.runner_answer`,
        `engine.runner_stopped`.
        """
        run.demand("runner_request", Limits)
        grant = address.demand("runner_uri", UriGrant)
        url, presented = _target(grant), self._access.credentials_of_run(credentials=grant.credentials)
        secrets = (*secrets_of(body), *filter(None, (presented.token,)))
        try:
            status, data, size = run_until(stop or StopSignal(), self._post(url, body, presented, secrets, follow))
        except WasStoppedError as error:
            raise RunnerError(
                "the run was stopped", remedy="see `engine stop list`", code="engine.runner_stopped"
            ) from error
        if status in _REFUSED:
            raise RunnerError(
                f"the runner refused the credentials of this gate: it answered {status}",
                remedy="renew the token of --runner-token-file, and list the runner under `uri.credentials` in "
                "policy/runners.yaml",
                code="engine.runner_unauthorized",
            )
        answer = read_answer(status, data, secrets)
        if presented.token and presented.token.encode("ascii") in answer.data:
            raise not_an_answer(CREDENTIAL_TOLD)
        went_well = answer.error is None
        facts = {"http_status": status, "bytes": size, "ok": went_well}
        return Result("forwarded" if went_well else "run_failed", facts), answer

    async def _post(
        self, url: httpx.URL, body: bytes, presented: Credentials, secrets: tuple[str, ...], follow: Follow | None
    ) -> tuple[int, bytes, int]:
        """Status, the JSON of the result, and the size of the whole answer."""
        limits, size, answering = self._limits, 0, False
        headers = _HEADERS if follow is None else {**_HEADERS, "accept": f"{_NDJSON}, {_EVENTS}, application/json"}
        headers = {**headers, "authorization": f"Bearer {presented.token}"} if presented.token else headers
        timeout = httpx.Timeout(limits.seconds, connect=min(limits.connect_seconds, limits.seconds))
        try:
            async with (
                asyncio.timeout(limits.seconds),
                httpx.AsyncClient(
                    verify=presented.context, timeout=timeout, trust_env=False, follow_redirects=False
                ) as client,
                client.stream("POST", url, content=body, headers=headers) as response,
            ):
                answering = True
                if response.status_code in _MOVED:
                    raise not_an_answer("it points elsewhere")
                if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
                    raise not_an_answer("it is packed")
                media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                parts = (
                    None
                    if follow is None or media not in {_NDJSON, _EVENTS}
                    else EventLines(follow, secrets, presented.token)
                )
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
            raise _failed(error, answering=answering, encrypted=url.scheme == "https") from error


def _failed(error: BaseException, *, answering: bool, encrypted: bool) -> RunnerError:
    """Why there is no answer. A runner that does not accept a client certificate ends the connection, often unsaid."""
    at: BaseException | None = error
    while at is not None and not isinstance(at, ssl.SSLError):
        at = at.__cause__ or at.__context__
    if isinstance(at, ssl.SSLCertVerificationError):
        return RunnerError(
            f"the certificate of the runner is not trusted: {at.verify_message}",
            remedy="name its authority with --ca-file, or renew the certificate of the runner",
            code="engine.runner_tls",
        )
    if at is not None and at.reason == "WRONG_VERSION_NUMBER":
        return RunnerError(
            "the runner answers without TLS",
            remedy="start it with --tls-cert and --tls-key, or use an http address if the policy permits one",
            code="engine.runner_tls",
        )
    if encrypted and not answering and (at is not None or not isinstance(error, httpx.ConnectError)):
        reason = "" if at is None or not at.reason else f": {at.reason.lower().replace('_', ' ')}"
        return RunnerError(
            f"the runner ended the TLS connection before it answered{reason}",
            remedy="see whether it ended during the run; if not, name a client certificate that it accepts, and that "
            "has not expired, with --runner-cert and --runner-key",
            code="engine.runner_hung_up",
        )
    return RunnerError(
        "the runner cannot be reached, or closed the connection",
        remedy="check that it is running and listening at that address",
    )


def _target(grant: UriGrant) -> httpx.URL:
    """The address to post to; TLS unless the permit allows http."""
    try:
        url = httpx.URL(grant.uri)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise _no_address() from error
    scheme = "https" if grant.encrypted else "http"
    if url.scheme != scheme or not url.host or url.userinfo or url.query or url.fragment:
        raise _no_address()
    return url.copy_with(raw_path=url.raw_path.rstrip(b"/") + b"/run")


def _no_address() -> WorkError:
    return unenforceable(
        "use an https address, or an http address that the permit allows",
        "set such an address of the runner in policy/runners.yaml",
    )

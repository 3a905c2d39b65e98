"""The executor of tool calls that a runner passes on: one POST to the callback of the run, and its JSON answer.

Nothing is followed, retried or read from the environment; the token of the run goes to its own callback only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import httpx

from admission_adapters.runner.answer import plain_object
from admission_adapters.runner.exchange import Bounds, NoAnswerError, exchange
from admission_adapters.runner.run import Grant
from admission_adapters.runner.sealed import Opener, Secret
from engine.errors import PermitMissingError, WorkError
from engine.model import StopSignal

_OK = 200


@runtime_checkable
class CallbackGrant(Protocol):
    """What is read of the limits of point `runner_request`."""

    endpoints: tuple[str, ...]  # origins that the run may post to


class CallbackError(Exception):
    """The callback cannot be reached, or gave no answer that can be passed on."""


@dataclass(frozen=True, slots=True)
class Callback:
    """Where the tools of a run are called, or its trace is posted. `run` is its permit.

    A sealed `authorization` is opened for each call; `place` is where the run has it. `stop` ends calls in progress,
    `ca_file` has the trusted authorities (PEM).
    """

    run: Grant
    run_id: str
    place: str
    endpoint: str
    authorization: Secret
    opener: Opener
    stop: StopSignal
    ca_file: Path | None = None
    seconds: float = 30.0
    answer_bytes: int = 1 << 20

    def tool(self, name: str, kind: str) -> Callable[..., Any]:
        """The function that makes a call of this tool, for a registry of tools."""

        def call(**arguments: Any) -> Any:
            return self.post({"run_id": self.run_id, "kind": kind, "name": name, "arguments": arguments})

        return call

    def post(self, document: dict[str, Any]) -> Any:
        """The answer to a document. Raises CallbackError, or WorkError without a permit for it."""
        url = self._target()
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if token := self.opener.open(self.authorization, self.place):
            headers["authorization"] = token
        try:
            bounds = Bounds(self.seconds, self.answer_bytes, self.ca_file)
            status, data = exchange(bounds, "POST", url, document, headers, self.stop)
        except NoAnswerError as error:
            raise CallbackError(str(error)) from error
        if status != _OK:
            raise CallbackError(f"it answered {status}")
        try:
            answer = plain_object(data)
        except ValueError as error:
            raise CallbackError("its answer is not a plain JSON object") from error
        return answer.get("result", answer)

    def _target(self) -> httpx.URL:
        """The address, if the permit of the run has its origin."""
        granted = self.run.demand("runner_request", CallbackGrant)
        try:
            url = httpx.URL(self.endpoint)
        except (httpx.InvalidURL, ValueError) as error:
            raise _not_granted() from error
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if url.userinfo or origin not in granted.endpoints:
            raise _not_granted()
        return url


def _not_granted() -> WorkError:
    return PermitMissingError("the run may not post to this callback", remedy="request a decision on exactly this run")

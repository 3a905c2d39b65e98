"""The executor of tool calls that a runner passes on: one POST to the callback of the run, and its JSON answer.

Nothing is followed, retried or read from the environment; the token of the run goes to its own callback only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import httpx

from admission_adapters.runner.answer import plain_object
from admission_adapters.runner.run import Grant
from engine.errors import WorkError

_OK = 200


@runtime_checkable
class CallbackGrant(Protocol):
    """What is read of the limits of point `runner_request`."""

    endpoints: tuple[str, ...]  # origins that the run may post to


class CallbackError(Exception):
    """The callback cannot be reached, or gave no answer that can be passed on."""


@dataclass(frozen=True, slots=True)
class Callback:
    """Where the tools of a run are called. `run` is its permit."""

    run: Grant
    run_id: str
    endpoint: str
    authorization: str
    seconds: float = 30.0
    answer_bytes: int = 1 << 20

    def tool(self, name: str, kind: str) -> Callable[..., Any]:
        """The function that makes a call of this tool, for a registry of tools."""

        def call(**arguments: Any) -> Any:
            return self._post({"run_id": self.run_id, "kind": kind, "name": name, "arguments": arguments})

        return call

    def report(self, document: dict[str, Any]) -> None:
        """Post a document; the answer does not matter. Raises CallbackError, or WorkError without a permit for it."""
        self._post(document)

    def _post(self, call: dict[str, Any]) -> Any:
        url = self._target()
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if self.authorization:
            headers["authorization"] = self.authorization
        data = bytearray()
        try:
            with (
                httpx.Client(timeout=self.seconds, trust_env=False, follow_redirects=False) as client,
                client.stream("POST", url, json=call, headers=headers) as response,
            ):
                for chunk in response.iter_raw():
                    data += chunk
                    if len(data) > self.answer_bytes:
                        raise CallbackError(f"its answer is larger than {self.answer_bytes} bytes")
        except (httpx.HTTPError, OSError) as error:
            raise CallbackError("it cannot be reached, or closed the connection") from error
        if response.status_code != _OK:
            raise CallbackError(f"it answered {response.status_code}")
        try:
            answer = plain_object(bytes(data))
        except ValueError as error:
            raise CallbackError("its answer is not a plain JSON object") from error
        return answer.get("result", answer)

    def _target(self) -> httpx.URL:
        """The address, if the permit of the run has its origin."""
        granted = self.run.demand("runner_request")
        try:
            url = httpx.URL(self.endpoint)
        except (httpx.InvalidURL, ValueError) as error:
            raise _not_granted() from error
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if not isinstance(granted, CallbackGrant) or url.userinfo or origin not in granted.endpoints:
            raise _not_granted()
        return url


def _not_granted() -> WorkError:
    return WorkError(
        "the run may not post to this callback",
        remedy="request a decision on exactly this run",
        code="engine.permit_missing",
    )

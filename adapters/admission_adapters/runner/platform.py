"""A remote platform: makes a sandbox for one run, states what it applied, runs one program there, removes it.

    POST   {platform}/sandboxes           {"run", "nonce", "network", "filesystem"}
           ──> {"id", "run", "nonce", "applied": {"network": "restricted"}}
    POST   {platform}/sandboxes/{id}/run  {"command": […], "stdin"} ──> {"exit_code", "stdout"}
    DELETE {platform}/sandboxes/{id}

What it applied is evidence for the run that it names, and for no other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission_adapters.digests import json_digest
from admission_adapters.runner.answer import plain_object
from admission_adapters.runner.exchange import Bounds, NoAnswerError, exchange
from admission_adapters.runner.run import Grant
from engine.errors import WorkError
from engine.model import Limits, StopSignal

KEY_VARIABLE = "ENGINE_PLATFORM_KEY"
"""The environment variable with the platform's key, sent as a bearer token; none is sent without it."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_DONE = range(200, 300)


@dataclass(frozen=True, slots=True)
class RemoteSandbox:
    """A sandbox of a platform: the run that it was made for by the platform's own words, and what was applied.

    `evidence` is the digest of what was applied.
    """

    id: str
    run: str
    applied: Mapping[str, Any]
    evidence: str


class PlatformError(WorkError):
    """The platform cannot be reached, or its answer is not one."""

    code = "engine.platform_failed"


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform. `ca_file` has the authorities it is trusted by (PEM). Each method raises PlatformError."""

    address: str
    ca_file: Path | None = None
    seconds: float = 60.0
    answer_bytes: int = 1 << 20

    def create(self, run: str, nonce: str, network: str, filesystem: str) -> RemoteSandbox:
        """Have a sandbox made for this run; `nonce` is repeated by an answer to exactly this request."""
        body = {"run": run, "nonce": nonce, "network": network, "filesystem": filesystem}
        found = self._ask("POST", "/sandboxes", body)
        made, applied = found.get("id"), found.get("applied")
        valid = isinstance(made, str) and _ID.fullmatch(made) is not None and isinstance(applied, dict)
        if not valid or found.get("nonce") != nonce:
            raise _wrong("it did not answer this request")
        return RemoteSandbox(str(made), str(found.get("run", "")), dict(applied or {}), json_digest(applied))

    def run(
        self, grant: Grant, sandbox: RemoteSandbox, command: tuple[str, ...], stdin: bytes, stop: StopSignal
    ) -> bytes:
        """The standard output of a program that ran in the sandbox, under the permit of its run, until `stop`."""
        grant.demand("runner_request", Limits)
        body = {"command": list(command), "stdin": stdin.decode("utf-8")}
        found = self._ask("POST", f"/sandboxes/{sandbox.id}/run", body, stop)
        stdout = found.get("stdout")
        if not isinstance(stdout, str):
            raise _wrong("it returned no output")
        return stdout.encode("utf-8", "replace")

    def remove(self, sandbox: RemoteSandbox) -> None:
        """Remove the sandbox, if that is possible: it ends by itself otherwise."""
        with suppress(PlatformError):
            self._ask("DELETE", f"/sandboxes/{sandbox.id}", None)

    def _ask(self, method: str, path: str, body: Any, stop: StopSignal | None = None) -> dict[str, Any]:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {key}"} if key else {})
        url, bounds = self.address.rstrip("/") + path, Bounds(self.seconds, self.answer_bytes, self.ca_file)
        try:
            status, data = exchange(bounds, method, url, body, headers, stop or StopSignal())
        except NoAnswerError as error:
            raise PlatformError(
                f"the platform gave no answer: {error}", remedy="check its address and its log"
            ) from error
        if status not in _DONE:
            raise _wrong(f"it answered {status}")
        try:
            return plain_object(data or b"{}")
        except ValueError as error:
            raise _wrong("its answer is not a plain JSON object") from error


def _wrong(what: str) -> PlatformError:
    return PlatformError(f"the platform made no sandbox that can be used: {what}", remedy="see the log of the platform")

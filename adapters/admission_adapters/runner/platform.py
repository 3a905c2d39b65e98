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
from typing import Any

import httpx

from admission_adapters.digests import json_digest
from admission_adapters.runner.answer import plain_object
from admission_adapters.runner.run import Grant
from engine.errors import WorkError

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
    """One platform. Each method raises PlatformError."""

    address: str
    seconds: float = 60.0
    answer_bytes: int = 1 << 20

    def create(self, run: str, nonce: str, network: str, filesystem: str) -> RemoteSandbox:
        """Have a sandbox made for this run; `nonce` is repeated by an answer to exactly this request."""
        asked = {"run": run, "nonce": nonce, "network": network, "filesystem": filesystem}
        found = self._ask("POST", "/sandboxes", asked)
        made, applied = found.get("id"), found.get("applied")
        valid = isinstance(made, str) and _ID.fullmatch(made) is not None and isinstance(applied, dict)
        if not valid or found.get("nonce") != nonce:
            raise _wrong("it did not answer this request")
        return RemoteSandbox(str(made), str(found.get("run", "")), dict(applied or {}), json_digest(applied))

    def run(self, grant: Grant, sandbox: RemoteSandbox, command: tuple[str, ...], stdin: bytes) -> bytes:
        """The standard output of a program that ran in the sandbox, under the permit of its run."""
        grant.demand("runner_request")
        asked = {"command": list(command), "stdin": stdin.decode("utf-8")}
        found = self._ask("POST", f"/sandboxes/{sandbox.id}/run", asked)
        stdout = found.get("stdout")
        if not isinstance(stdout, str):
            raise _wrong("it returned no output")
        return stdout.encode("utf-8", "replace")

    def remove(self, sandbox: RemoteSandbox) -> None:
        """Remove the sandbox, if that is possible: it ends by itself otherwise."""
        with suppress(PlatformError):
            self._ask("DELETE", f"/sandboxes/{sandbox.id}", None)

    def _ask(self, method: str, path: str, body: Any) -> dict[str, Any]:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {key}"} if key else {})
        data = bytearray()
        try:
            with (
                httpx.Client(timeout=self.seconds, trust_env=False, follow_redirects=False) as client,
                client.stream(method, self.address.rstrip("/") + path, json=body, headers=headers) as response,
            ):
                for chunk in response.iter_raw():
                    data += chunk
                    if len(data) > self.answer_bytes:
                        raise _wrong(f"its answer is larger than {self.answer_bytes} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise PlatformError(
                "the platform cannot be reached, or closed the connection", remedy="check its address and its log"
            ) from error
        if response.status_code not in _DONE:
            raise _wrong(f"it answered {response.status_code}")
        try:
            return plain_object(bytes(data) or b"{}")
        except ValueError as error:
            raise _wrong("its answer is not a plain JSON object") from error


def _wrong(what: str) -> PlatformError:
    return PlatformError(f"the platform made no sandbox that can be used: {what}", remedy="see the log of the platform")

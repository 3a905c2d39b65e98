"""The relay of a run: tools for a harness that takes them over MCP only, in a sandbox without network.

    harness ──stdio──> shim ──<name>.request──> runner: decides on the call, makes it
                            <──<name>.response──

The shim runs inside the sandbox, with public definitions and a folder; no secret gets there. A request is a call like
any other: what a program writes into the folder by itself is decided on in the same way.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from admission_adapters.runner.answer import plain_object
from admission_adapters.runner.run import Grant
from admission_adapters.sandbox.bubblewrap.arguments import PYTHON
from admission_adapters.sandbox.launcher.launch import RELAY
from engine.errors import PermitMissingError, WorkError

NAME = "relay"
_SHIM, _TOOLS = f"{RELAY}/shim.py", f"{RELAY}/tools.json"


@runtime_checkable
class RelayGrant(Protocol):
    """What is read of the limits of point `mcp`."""

    relay: str  # the profile of the sandbox that the relay runs in; empty: none


class Relay:
    """Answers the requests of one shim; the relay of a program in the sandbox. `called` is a listener's."""

    def __init__(
        self,
        grant: Grant,
        profile: str,
        tools: Sequence[Mapping[str, Any]],
        called: Callable[[Any, Any], tuple[str, bool]],
    ) -> None:
        """`grant` is a permit of point `mcp` for a relay in the sandbox of this profile.

        Raises WorkError: `engine.permit_missing` for a permit without it, `engine.relay_failed` if the shim is missing.
        """
        if not profile or grant.demand("mcp", RelayGrant).relay != profile:
            raise PermitMissingError(
                "the permit has no relay in this sandbox",
                remedy="request a decision on the relay with the profile of its sandbox",
            )
        try:
            shim = Path(__file__).with_name("shim.py").read_bytes()
        except OSError as error:
            raise WorkError(
                "the relay cannot be uploaded: its shim cannot be read",
                remedy="install the engine again",
                code="engine.relay_failed",
            ) from error
        self.files = {_SHIM: shim, _TOOLS: json.dumps([*tools]).encode("utf-8")}
        self._called = called
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    @staticmethod
    def entry() -> dict[str, Any]:
        """The entry for the harness's list of MCP servers; it has no secret."""
        return {"name": NAME, "command": PYTHON, "args": ["-I", "-S", "-B", _SHIM, RELAY], "env": {}}

    def begin(self, write: Callable[[bytes], None]) -> None:
        """Answer from a thread of its own: a call may wait for a person."""
        self._write = write
        self._thread = threading.Thread(target=self._answer, name="engine-relay", daemon=True)
        self._thread.start()

    def hear(self, data: bytes) -> None:
        """The next request."""
        self._requests.put(data)

    def end(self) -> None:
        """The program is dead. Returns when the last call is recorded."""
        self._requests.put(None)
        self._thread.join()

    def _answer(self) -> None:
        try:
            while (request := self._requests.get()) is not None:
                name, _, content = request.partition(b" ")
                text, failed = self._result(content)
                answer = {"content": [{"type": "text", "text": text}], "isError": failed}
                self._write(name + b" " + json.dumps(answer).encode("utf-8") + b"\n")
        except OSError:  # it died
            pass

    def _result(self, content: bytes) -> tuple[str, bool]:
        """The result of the call in a request; whatever fails is an error for the model, and ends no other call."""
        try:
            params = plain_object(content).get("params")
            call = params if isinstance(params, dict) else {}
            return self._called(call.get("name"), call.get("arguments", {}))
        except (ValueError, WorkError):
            return "refused: the request is not a call that can be made", True
        except Exception:  # noqa: BLE001  (such as a state that cannot be read while a person is waited for)
            return "failed: a fault of the engine ended the call", True

"""A harness: an agent program in a sandbox, with which a runner talks in lines of JSON-RPC on standard streams.

    runner ──> initialize {"protocol": 1}
           <── result {"capabilities": {"mcpTools": false, "toolCalls": true}}
           ──> run {"messages": […], "tools": […], "model": "…", "harness_kwargs": {…}}
           <── advertised {"tools": ["search"]}                    the tools that its model sees
           <── tools/call {"name": "search", "arguments": {…}}     decided on and made by the runner
           ──> result {"content": [{"type": "text", "text": "…"}], "isError": false}
           <── update {…}                                          for callers that follow the run
           <── result {"outputs": {"invoke": "…", "messages": []}, "usage": {…}}

It has no network and no secret: everything that needs one is a call. What it says is untrusted.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from admission_adapters.lines import Lines
from admission_adapters.runner.answer import clean, plain_object
from engine.errors import WorkError

PROTOCOL = 1
LINE_BYTES = 1 << 18
"""The longest line: a call with its arguments, or the answer of an agent."""

_NO_METHOD = -32601


class Listener(Protocol):
    """What a runner does about what a harness says. Each method may raise WorkError, which ends the run."""

    def started(self, reported: dict[str, Any]) -> None:
        """It is there; `reported` is what it says about itself."""

    def advertised(self, tools: Any) -> None:
        """It shows these tools to its model."""

    def called(self, name: Any, arguments: Any) -> tuple[str, bool]:
        """It calls a tool: the text for the model, and whether that is an error."""

    def updated(self, update: dict[str, Any]) -> None:
        """It reports what it is doing."""


class HarnessError(WorkError):
    """The harness failed, or did not keep to the protocol."""

    code = "engine.harness_failed"


class Harness:
    """The exchange with one harness, for one run. `over` is set when it has nothing more to say, and can be ended.

    `result` is what it returned, `problem` why it has not.
    """

    def __init__(self, task: Mapping[str, Any], listener: Listener, secrets: tuple[str, ...] = ()) -> None:
        """`secrets` are removed from what it reports as an error."""
        self._task, self._listener, self._secrets = task, listener, secrets
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._heard = Lines()
        self.over = threading.Event()
        self.result: dict[str, Any] | None = None
        self.problem: WorkError | None = None

    def script(self) -> bytes:
        """All that it is asked, for a harness that hears everything before it says anything."""
        return _line(self._initialize()) + _line(self._run())

    def begin(self, write: Callable[[bytes], None]) -> None:
        """Talk from a thread of its own: a call may wait for a person, and limits are enforced meanwhile."""
        self._write = write
        self._thread = threading.Thread(target=self._talk, name="engine-harness", daemon=True)
        self._thread.start()

    def hear(self, data: bytes) -> None:
        """The next piece of its output."""
        for line in self._heard.feed(data):
            self._lines.put(line)
        if len(self._heard.open) > LINE_BYTES:
            self._lines.put(bytes(self._heard.open))
            self._heard = Lines()

    def end(self) -> None:
        """It is dead. Returns when the last call is recorded."""
        self.over.set()
        self._lines.put(None)
        self._thread.join()

    def _talk(self) -> None:
        try:
            self._converse()
        except WorkError as error:
            self.problem = error
        except OSError:  # it died
            pass
        except Exception as error:  # noqa: BLE001  (what a listener raises ends the run, not the runner)
            self.problem = HarnessError(
                f"the exchange with the harness failed: {type(error).__name__}", remedy="see the log of the runner"
            )
        finally:
            self.over.set()

    def _converse(self) -> None:
        self._send(**self._initialize())
        if (first := self._next()) is None:
            return
        self._listener.started(self._result(first, "initialize"))
        self._send(**self._run())
        while (message := self._next()) is not None:
            match message.get("method"):
                case None:
                    self.result = self._result(message, "run")
                    return
                case "tools/call":
                    self._call(message.get("id"), _object(message, "params"))
                case "advertised":
                    self._listener.advertised(_object(message, "params").get("tools"))
                case "update":
                    self._listener.updated(_object(message, "params"))
                case _:
                    if "id" in message:
                        self._send(id=message["id"], error={"code": _NO_METHOD, "message": "there is no such method"})

    def _initialize(self) -> dict[str, Any]:
        return {"id": "initialize", "method": "initialize", "params": {"protocol": PROTOCOL}}

    def _run(self) -> dict[str, Any]:
        return {"id": "run", "method": "run", "params": dict(self._task)}

    def _call(self, id_: Any, params: dict[str, Any]) -> None:
        if not isinstance(id_, str | int) or isinstance(id_, bool):
            raise broken("a call has no id")
        text, failed = self._listener.called(params.get("name"), params.get("arguments", {}))
        self._send(id=id_, result={"content": [{"type": "text", "text": text}], "isError": failed})

    def _result(self, message: dict[str, Any], id_: str) -> dict[str, Any]:
        if message.get("id") != id_ or "method" in message:
            raise broken(f"`{id_}` was not answered first")
        if "error" in message:
            stated = message["error"]
            error = stated.get("message") if isinstance(stated, dict) else None
            text = clean(error, self._secrets) if isinstance(error, str) else "it gave no reason"
            raise HarnessError(text, remedy="see what the harness reports")
        return _object(message, "result")

    def _next(self) -> dict[str, Any] | None:
        """The next message; None once it is dead."""
        while (line := self._lines.get()) is not None:
            if len(line) > LINE_BYTES:
                raise broken(f"a line is longer than {LINE_BYTES} bytes")
            if line.strip():
                try:
                    return plain_object(line)
                except ValueError as error:
                    raise broken("a line is not a plain JSON object") from error
        return None

    def _send(self, **message: Any) -> None:
        self._write(_line(message))


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def broken(what: str) -> HarnessError:
    """The error for a harness that does not keep to the protocol."""
    return HarnessError(
        f"the harness broke the protocol: {what}", remedy="use a harness that keeps to the protocol of docs/runner.md"
    )


def _object(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = message.get(name)
    if not isinstance(found, dict):
        raise broken(f"`{name}` is not an object")
    return found

"""An MCP server that is started in a sandbox: its files, and the messages exchanged with it, lines of JSON-RPC.

It has no network, no secret and no file but its own, and what it says is untrusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from admission_adapters.lines import Lines
from admission_adapters.runner.answer import plain_object
from engine.errors import WorkError

LINE_BYTES = 1 << 20
"""The longest line of a server: an answer for a model."""

_VERSION = "2025-06-18"
_NO_METHOD = -32601
_PACKAGE_BYTES, _PACKAGE_FILES = 96 << 20, 20_000
_AT_ONCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # whatever another process made of it by now
_MADE_AGAIN = "__pycache__"  # holds times of this machine; an interpreter makes its own


class McpServerError(WorkError):
    """A server that cannot be started, or that failed."""

    code = "engine.mcp_server_failed"


def package_files(root: Path, digest: str) -> dict[str, bytes]:
    """The files of a server by their paths, read once. Raises WorkError for files with another `package_digest`."""
    files, left = dict[str, bytes](), _PACKAGE_BYTES
    try:
        for folder, folders, names in os.walk(root, onerror=_raise):
            folders[:] = sorted(name for name in folders if name != _MADE_AGAIN)
            for name in sorted(names):
                path = Path(folder, name)
                if not path.is_file() or path.is_symlink():
                    raise _unusable(f"`{path.relative_to(root)}` is not a regular file")
                with os.fdopen(os.open(path, _AT_ONCE), "rb") as file:
                    content = file.read(left + 1)
                left -= len(content)
                files[path.relative_to(root).as_posix()] = content
                if left < 0 or len(files) > _PACKAGE_FILES:
                    raise _unusable(f"there are more than {_PACKAGE_FILES} files or {_PACKAGE_BYTES} bytes in it")
    except OSError as error:
        raise _unusable(f"it cannot be read: {os.strerror(error.errno or 0).lower()}") from error
    found = package_digest(files)
    if found != digest:
        raise WorkError(
            f"the files of the MCP server have the digest {found}, which policy/mcp.yaml does not list",
            remedy="review the files, then write their digest to policy/mcp.yaml",
            code="engine.mcp_server_changed",
        )
    return files


def package_digest(files: dict[str, bytes]) -> str:
    """`sha256:` and hex over all paths and contents."""
    lines = sorted(f"{hashlib.sha256(content).hexdigest()} {json.dumps(path)}\n" for path, content in files.items())
    return "sha256:" + hashlib.sha256("".join(lines).encode("ascii")).hexdigest()


def _raise(error: OSError) -> None:
    raise error


def _unusable(why: str) -> McpServerError:
    return McpServerError(
        f"the folder of the MCP server cannot be used: {why}", remedy="make it with `pip install --target`"
    )


class ServerLines:
    """The lines of one server, as the dialogue of its program. Set `over` to end the server."""

    def __init__(self, on_line: Callable[[bytes | None], object]) -> None:
        """`on_line` receives each line, and None once there are no more."""
        self._on_line = on_line
        self._heard = Lines()
        self.begun = threading.Event()
        self.over = threading.Event()

    def begin(self, write: Callable[[bytes], None]) -> None:
        """It runs."""
        self._write = write
        self.begun.set()

    def hear(self, data: bytes) -> None:
        """The next piece of its output."""
        for line in self._heard.feed(data):
            self._on_line(line)
        if len(self._heard.open) > LINE_BYTES:
            self.over.set()

    def end(self) -> None:
        """It is dead, or never ran."""
        self.over.set()
        self._on_line(None)
        self.begun.set()


class McpServerTalk(ServerLines):
    """The exchange with one server; threads may share it."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        super().__init__(self._lines.put)
        self._lock = threading.Lock()
        self._requests = 0

    def listing(self) -> dict[str, Any]:
        """Begin the talk; its answer to `tools/list`. Raises McpServerError."""
        client = {"name": "admission-engine", "version": "1"}
        self.ask("initialize", protocolVersion=_VERSION, capabilities={}, clientInfo=client)
        self._send(method="notifications/initialized")
        return self.ask("tools/list")

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Its answer to a call, as text or as what it returned. Raises McpServerError."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        blocks = result.get("content")
        texts = [one["text"] for one in blocks if _is_text(one)] if isinstance(blocks, list) else []
        if result.get("isError") is True:
            raise McpServerError("\n".join(texts) or "it gave no reason", remedy="see the arguments of the call")
        return "\n".join(texts) if texts else result

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One request and its result. Raises McpServerError, also once it is dead."""
        self.begun.wait()
        with self._lock:
            self._requests += 1
            number = self._requests
            self._send(id=number, method=method, params=params)
            while (line := self._lines.get()) is not None:
                try:
                    message = plain_object(line)
                except ValueError:  # a stray print
                    continue
                if "method" in message:
                    if "id" in message:
                        error = {"code": _NO_METHOD, "message": "there is no such method"}
                        self._send(id=message["id"], error=error)
                elif message.get("id") == number:
                    if isinstance(result := message.get("result"), dict):
                        return result
                    raise McpServerError(f"it refused `{method}`", remedy="see what the server supports")
            self._lines.put(None)
        raise _dead()

    def _send(self, **message: Any) -> None:
        if self.over.is_set():
            raise _dead()
        try:
            self._write(json.dumps({"jsonrpc": "2.0", **message}).encode("utf-8") + b"\n")
        except OSError as error:
            raise _dead() from error


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)


def _dead() -> McpServerError:
    return McpServerError("the MCP server has ended", remedy="see the limits of its sandbox and its package")

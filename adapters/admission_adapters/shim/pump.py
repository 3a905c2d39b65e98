"""The messages between an MCP client and one server, pumped through a gate: nothing is negotiated, so both eras pass.

    client ──> methods of the policy, `tools/call` through the gate ──> server
           <── methods of the policy, `tools/list` as it was audited  <──

What a message has besides the fields that are read here stays in it, except a server's instructions to the model, which
nobody has reviewed. A request that the policy does not name is answered with an error, a notification is dropped.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from admission_adapters.extras import not_installed
from admission_adapters.lines import Lines
from admission_adapters.shim.server import APPROVAL
from admission_adapters.tools.result import NOT_APPROVED, ToolResult
from engine.errors import WorkError

try:
    import anyio
    import mcp_types as types
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage
except ImportError as missing:
    raise not_installed("the MCP proxy needs packages that are", "mcp", "engine.mcp_unavailable") from missing

LIST, CALL, START = "tools/list", "tools/call", "initialize"
_CHANGED, _CANCELLED, _ELICIT = (
    "notifications/tools/list_changed",
    "notifications/cancelled",
    "elicitation/create",
)
_INSTRUCTIONS = "instructions"
"""What a server writes into the prompt of a model when a session begins; nothing pins it."""

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_STATE = "admission-engine/approval:"
"""How the state of a request begins by which this proxy asks for an approval."""

_AT_ONCE = 8
_PAGES = 100
_TRIES = 5
_WAITING = 256
_PREVIEW = 600
_PIECE = 65_536
"""Calls at once; pages of a list, and readings of one that changes meanwhile; calls that wait for a person; characters
of what that person is shown; bytes of standard input that are read at once."""

_YES = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Approve this one call"}},
    "required": ["approve"],
}


_Questions = dict[Any, asyncio.Future[dict[str, Any]]]
"""Questions of ours to one side, by their ids."""


class Audit(Protocol):
    """What a server lists, as it was decided on."""

    @property
    def visible_tools(self) -> tuple[str, ...]:
        """The names of the tools that the client may see and call."""

    @property
    def refused(self) -> Mapping[str, tuple[str, ...]]:
        """Why each of the others may not be called."""


class ServerGate(Protocol):
    """The decisions on one server. Every method blocks, and threads may share it."""

    @property
    def methods(self) -> tuple[frozenset[str], frozenset[str]]:
        """The methods that a client and a server may use."""

    @property
    def asks(self) -> bool:
        """Whether the person at the client may approve."""

    def audit(self, definitions: list[Any]) -> Audit:
        """Decide on what the server lists."""

    def call(self, name: str, arguments: Any, send: Callable[[], Any], approval: str | None) -> ToolResult:
        """Decide on a call, make it with `send`, decide on its result."""

    def grant(self, approval: str) -> bool:
        """Grant an approval as the person at the client."""

    def waiting(self, approval: str) -> str:
        """The result that waits for this approval, for the person; empty if it is a call that waits."""


class ServerFailedError(WorkError):
    """The server answered with an error, or ended."""

    code = "engine.mcp_server_failed"


class _ErrorAnswerError(ServerFailedError):
    """The server answered with an error, whose words are `said`."""

    said = ""


class Pump:
    """One client and one server. `down` and `up` are streams of messages, each as reading and writing end."""

    def __init__(self, gate: ServerGate, down: Any, up: Any, log: Callable[[str], None]) -> None:
        self._gate, self._log = gate, log
        (self._client, self._to_client), (self._server, self._to_server) = down, up
        self._open: set[Any] = set()
        self._passed: set[Any] = set()
        self._of_server: set[Any] = set()
        self._pending_at_client: _Questions = {}
        self._pending_at_server: _Questions = {}
        self._capabilities: Any = {}
        self._audit: Audit | None = None
        self._changes = 0
        self._first: dict[str, Any] = {}
        self._definitions: list[Any] = []
        self._listing = anyio.Lock()
        self._threads = anyio.CapacityLimiter(_AT_ONCE)
        self._waiting: dict[str, str] = {}
        self._over = False

    async def run(self) -> None:
        """Pump until one of both has ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._down, tasks)
            tasks.start_soon(self._up, tasks)

    async def _down(self, tasks: Any) -> None:
        async for item in self._client:
            message = getattr(item, "message", None)  # an exception for a line that is none
            if isinstance(message, types.JSONRPCRequest):
                await self._on_client_request(message, tasks)
            elif isinstance(message, types.JSONRPCNotification):
                await self._on_client_notification(message)
            elif isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                await self._answered(message, self._pending_at_client, self._of_server, self._to_server)
        self._end(tasks)

    async def _up(self, tasks: Any) -> None:
        async for item in self._server:
            message = getattr(item, "message", None)
            if isinstance(message, types.JSONRPCRequest):
                if message.method in self._gate.methods[1] and message.id not in self._of_server:
                    self._of_server.add(message.id)
                    await self._to_client.send(SessionMessage(message))
                else:
                    await self._refuse(message, self._to_server)
            elif isinstance(message, types.JSONRPCNotification):
                if message.method == _CHANGED:
                    self._audit, self._changes = None, self._changes + 1
                if message.method in self._gate.methods[1]:
                    await self._to_client.send(SessionMessage(message))
            elif isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                await self._answered(message, self._pending_at_server, self._passed, self._to_client)
        self._log("the MCP server has ended; see the limits of its profile in policy/sandbox.yaml, and its package")
        self._end(tasks)

    def _end(self, tasks: Any) -> None:
        self._over = True
        for one in (*self._pending_at_client.values(), *self._pending_at_server.values()):
            if not one.done():
                one.set_exception(_failed("the MCP client or server has ended"))
        tasks.cancel_scope.cancel()

    async def _answered(self, message: Any, pending: _Questions, passed: set[Any], to: Any) -> None:
        """An answer: to a question of ours to this side, or to one that was passed on; any other is dropped."""
        future = pending.get(message.id)
        if future is not None:
            if future.done():
                return
            if isinstance(message, types.JSONRPCResponse):
                future.set_result(message.result)
            else:
                refused = _ErrorAnswerError("the MCP server refused the request", remedy="see the log of the server")
                refused.said = message.error.message
                future.set_exception(refused)
        elif message.id in passed:
            passed.discard(message.id)
            self._open.discard(message.id)
            if isinstance(message, types.JSONRPCResponse) and message.result.pop(_INSTRUCTIONS, None) is not None:
                self._log("the instructions of the MCP server are left out")
            await to.send(SessionMessage(message))

    async def _on_client_request(self, request: types.JSONRPCRequest, tasks: Any) -> None:
        if request.id in self._open or request.id in {*self._pending_at_client, *self._pending_at_server}:
            await self._refuse(request, self._to_client, "this id is in use")
        elif request.method not in self._gate.methods[0]:
            await self._refuse(request, self._to_client)
        elif request.method in {LIST, CALL}:
            self._open.add(request.id)
            tasks.start_soon(self._list if request.method == LIST else self._call, request)
        else:
            if request.method == START:
                self._capabilities = (request.params or {}).get("capabilities")
            self._open.add(request.id)
            self._passed.add(request.id)
            await self._to_server.send(SessionMessage(request))

    async def _on_client_notification(self, message: types.JSONRPCNotification) -> None:
        if message.method not in self._gate.methods[0]:
            return
        cancelled = (message.params or {}).get("requestId") if message.method == _CANCELLED else None
        future = self._pending_at_server.get(cancelled) if isinstance(cancelled, str | int) else None
        await self._to_server.send(SessionMessage(message))
        if future is not None and not future.done():
            future.set_exception(_failed("the call was cancelled"))

    async def _refuse(self, request: types.JSONRPCRequest, to: Any, why: str = "") -> None:
        reason = why or "policy/mcp.yaml does not list this method under `methods`"
        error = types.ErrorData(code=types.INVALID_REQUEST if why else types.METHOD_NOT_FOUND, message=reason)
        await to.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request.id, error=error)))

    async def _ask(self, to: Any, id_: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A question of ours, under an id that the other side has no other question with. Raises WorkError."""
        if self._over:  # a call that was being decided on meanwhile
            raise _failed("the MCP client or server has ended")
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        pending = self._pending_at_client if to is self._to_client else self._pending_at_server
        pending[id_] = future
        try:
            request = types.JSONRPCRequest(jsonrpc="2.0", id=id_, method=method, params=params)
            await to.send(SessionMessage(request))
            return await future
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise _failed("the MCP server has ended") from error
        finally:
            del pending[id_]

    async def _list(self, request: types.JSONRPCRequest) -> None:
        params = dict(request.params or {})
        if params.pop("cursor", None) is not None:
            self._open.discard(request.id)
            return await self._refuse(request, self._to_client, "there is one page")
        try:
            audit = await self._audited(params, again=True)
            tools = [one for one in self._definitions if _name(one) in audit.visible_tools]
            result = {name: value for name, value in self._first.items() if name != "nextCursor"} | {"tools": tools}
            await self._reply(request, result)
        except Exception as error:  # noqa: BLE001  (an empty list would look like the answer)
            reason = error.message if isinstance(error, WorkError) else "the list of tools is refused"
            await self._refuse(request, self._to_client, reason)
            self._open.discard(request.id)

    async def _audited(self, params: Mapping[str, Any], *, again: bool = False) -> Audit:
        """What the server lists now, decided on; once more if the list changes meanwhile. Raises WorkError."""
        async with self._listing:
            if self._audit is not None and not again:
                return self._audit
            for _ in range(_TRIES):
                changes = self._changes
                pages = await self._pages({name: value for name, value in params.items() if name == "_meta"})
                listed = [page.get("tools") for page in pages]
                definitions = [one for page in listed if isinstance(page, list) for one in page]
                audit: Audit = await self._thread(self._gate.audit, definitions)
                if changes == self._changes:
                    break
            else:
                raise _failed("the MCP server changes its tools all the time")
            for name, codes in audit.refused.items():
                self._log(f"the tool `{name}` is left out: {', '.join(codes)}")
            self._first, self._definitions, self._audit = pages[0], definitions, audit
            return audit

    async def _pages(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """All pages of the server's list. Raises WorkError."""
        pages: list[dict[str, Any]] = []
        while len(pages) < _PAGES:
            cursor = {} if not pages else {"cursor": pages[-1]["nextCursor"]}
            pages.append(await self._ask(self._to_server, _new_id(), LIST, {**params, **cursor}))
            if pages[-1].get("nextCursor") is None:
                return pages
        raise _failed(f"the MCP server lists more than {_PAGES} pages")

    async def _call(self, request: types.JSONRPCRequest) -> None:
        try:
            result = await self._called(request)
        except Exception:  # noqa: BLE001  (what fails here is refused, and says nothing of itself)
            result = _error("refused: engine.internal")
        if _VERSION in _meta(request.params):
            result = {"resultType": "complete"} | result
        await self._reply(request, result)

    async def _called(self, request: types.JSONRPCRequest) -> dict[str, Any]:
        params = dict(request.params or {})
        meta, name = _meta(params), params.get("name")
        arguments = {} if params.get("arguments") is None else params["arguments"]
        audit = await self._audited(params)
        if not isinstance(name, str) or name not in audit.visible_tools:
            codes = audit.refused.get(name, ()) if isinstance(name, str) else ()
            return _error(f"this call is refused: {', '.join(codes or ('engine.tool_missing',))}")
        key = json.dumps([name, arguments], sort_keys=True)
        stated, approval = meta.get(APPROVAL), self._waiting.get(key)
        if str(params.get("requestState", "")).startswith(_STATE):
            state, responses = params.pop("requestState"), params.pop("inputResponses", None)
            granted_at_client = responses.get("approval") if isinstance(responses, dict) else None
            if approval is None or state != _STATE + approval or not await self._granted(granted_at_client, approval):
                return _error(NOT_APPROVED)
        params["_meta"] = {one: value for one, value in meta.items() if one != APPROVAL}
        if not params["_meta"]:
            del params["_meta"]
        make = partial(self._made, name, arguments, request.id, params)
        result = await make(stated if isinstance(stated, str) else approval)
        if result.status == "refused" and approval is not None and stated is None:  # it was not granted in time
            self._waiting.pop(key, None)
            result = await make(None)
        if result.approval is not None:
            self._waiting[key] = result.approval
            while len(self._waiting) > _WAITING:
                del self._waiting[next(iter(self._waiting))]
        if result.approval is None or not self._gate.asks or not self._elicits(meta):
            return self._visible_result(result)
        form = {"message": self._question(name, arguments, result), "requestedSchema": _YES}
        return await self._ask_person(form, result.approval, make, modern=_VERSION in meta)

    async def _ask_person(
        self, form: dict[str, Any], approval: str, make: Callable[[str], Awaitable[ToolResult]], *, modern: bool
    ) -> dict[str, Any]:
        """Ask at the client: within the call, or by a result after which the client repeats the call."""
        if modern:
            ask = {"approval": {"method": _ELICIT, "params": {"mode": "form", **form}}}
            return {"resultType": "input_required", "inputRequests": ask, "requestState": _STATE + approval}
        answer = await self._ask(self._to_client, _new_id(), _ELICIT, form)
        if not await self._granted(answer, approval):
            return _error(NOT_APPROVED)
        return self._visible_result(await make(approval))

    async def _granted(self, answer: Any, approval: str) -> bool:
        """Whether the person said yes, and the policy lets that person."""
        content = answer.get("content") if isinstance(answer, dict) else None
        yes = isinstance(content, dict) and answer.get("action") == "accept" and content.get("approve") is True
        return yes and bool(await self._thread(self._gate.grant, approval))

    async def _made(
        self, name: str, arguments: Any, id_: Any, params: dict[str, Any], approval: str | None
    ) -> ToolResult:
        loop = asyncio.get_running_loop()

        def send() -> Any:
            response = self._ask(self._to_server, id_, CALL, params)
            try:
                return asyncio.run_coroutine_threadsafe(response, loop).result()
            except _ErrorAnswerError as refused:  # such as wrong arguments: the model can correct itself
                return _error(refused.said)

        result: ToolResult = await self._thread(self._gate.call, name, arguments, send, approval)
        return result

    async def _thread(self, do: Callable[..., Any], *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(partial(do, *arguments), limiter=self._threads)

    def _elicits(self, meta: Mapping[str, Any]) -> bool:
        stated = meta.get(_CAPABILITIES) if _VERSION in meta else self._capabilities
        return isinstance(stated, dict) and isinstance(stated.get("elicitation"), dict)

    def _question(self, name: str, arguments: Any, result: ToolResult) -> str:
        """What a person is asked, in ASCII: what looks like something else is seen."""
        held = self._gate.waiting(result.approval or "")
        about = f"arguments {json.dumps(arguments)[:_PREVIEW]}" if not held else f"result {json.dumps(held)[:_PREVIEW]}"
        verb = "Show the result of the tool to the model" if held else "Approve one call of the tool"
        return f"{verb}: {name}. Reason: {', '.join(result.metadata.get('codes', ()))}. {about}"

    def _visible_result(self, result: ToolResult) -> dict[str, Any]:
        """The server's own result as it may be shown, or why there is none."""
        if result.status == "ok":
            try:
                found = json.loads(result.content)
            except ValueError:
                return _error(f"the result is too long and was cut: {result.content}")
            requests = found.get("inputRequests") if isinstance(found, dict) else None
            methods = [one.get("method") for one in requests.values()] if isinstance(requests, dict) else []
            if isinstance(found, dict) and set(methods) <= self._gate.methods[1]:
                return found
            return _error("the result is withheld: the server asks for what policy/mcp.yaml does not list")
        return _error(result.model_text)

    async def _reply(self, request: types.JSONRPCRequest, result: dict[str, Any]) -> None:
        self._open.discard(request.id)
        await self._to_client.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)))


def _new_id() -> str:
    """An id that cannot be guessed: neither side asks under it first, or answers what the other side was asked."""
    return f"gate-{secrets.token_hex(16)}"


def _meta(params: Mapping[str, Any] | None) -> dict[str, Any]:
    found = (params or {}).get("_meta")
    return found if isinstance(found, dict) else {}


def _name(definition: Any) -> Any:
    return definition.get("name") if isinstance(definition, dict) else None


def _error(text: str) -> dict[str, Any]:
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def _failed(message: str) -> ServerFailedError:
    return ServerFailedError(message, remedy="see the log of the proxy and the limits of the server's sandbox")


class _Input:
    """Standard input by lines. The thread that reads it is left behind where the client keeps it open."""

    def __init__(self) -> None:
        self._to, self._lines = anyio.create_memory_object_stream[str](0)
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        heard = Lines()
        try:
            while data := os.read(0, _PIECE):  # not by `sys.stdin`, whose lock would be held when Python ends
                for line in heard.feed(data):
                    self._deliver(loop, line)
            if heard.open:
                self._deliver(loop, bytes(heard.open))
            loop.call_soon_threadsafe(self.close)
        except (RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody listens any more
            return

    def _deliver(self, loop: asyncio.AbstractEventLoop, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        asyncio.run_coroutine_threadsafe(self._to.send(text), loop).result()

    def close(self) -> None:
        """There are no more lines."""
        self._to.close()

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            yield line


async def pumped(gate: ServerGate, up: Any, log: Callable[[str], None]) -> None:
    """Serve one client on standard input and output, until the client or the server has ended."""
    lines: Any = _Input()
    async with stdio_server(lines) as (reading, writing), writing:
        await Pump(gate, (reading, writing), up, log).run()
        lines.close()
        async for _ in reading:  # what the client has sent meanwhile
            pass

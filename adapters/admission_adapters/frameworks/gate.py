"""The gate in front of the tools of an agent framework: the framework makes each call, within our decisions.

    gate = AgentGate(engine, context, policy="assistant", profile="coding")
    told = gate.call({"name": "search", "arguments": {"query": "soup"}}, make, definition=definition)

tool_call ─> `make(arguments)`, which runs the tool as the framework does ─> tool_result ─> Told

The modules beside this one put it into one framework each.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from admission_adapters.digests import digest
from admission_adapters.interfaces import Answer, Decides
from admission_adapters.tools.executor import ToolPlaces
from admission_adapters.tools.gate import Gate
from admission_adapters.tools.path import ToolPath
from admission_adapters.tools.registry import ToolRegistry, UncuratedToolRegistry
from admission_adapters.tools.request import call_parts, tool_name
from admission_adapters.tools.result import ToolResult
from engine.errors import WorkError
from engine.model import Caller, Outcome, Via
from engine.steps import own_thread, run

_LOGGER = logging.getLogger(__name__)

_WAITING = 256
"""Calls that wait for a person; the oldest is asked for again."""


class Engine(Decides[Answer], Protocol):
    """What is used of an `Engine`."""

    def check(self, point: str, request: Any, context: Any = ...) -> Answer:
        """Decide in a dry run."""

    def administer(self, request: Any, by: Any) -> Any:
        """Perform an administrative act."""


@dataclass(frozen=True, slots=True)
class GateReply:
    """The answer that a model gets to a call.

    `value` is the tool's own result if nothing of it was taken out, else what is left of it, or why there is none.
    `waits`: the person of the framework may approve the call.
    """

    value: Any
    result: ToolResult
    waits: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tool was called and its result may be shown."""
        return self.result.status == "ok"


class AgentGate(Gate[Answer]):
    """The gate for one framework; threads may share it, and conversations by their `run`. Blocking."""

    _engine: Engine

    def __init__(  # noqa: PLR0913  (each is optional and named)
        self,
        engine: Engine,
        context: Any,
        *,
        policy: str | None = None,
        profile: str | None = None,
        cwd: str | None = None,
        home: str | None = None,
        environment: Mapping[str, Any] | None = None,
        approver: str | None = None,
    ) -> None:
        """`context`, `policy`, `profile`, `cwd`, `home` and `environment` are those of a `ToolGate`.

        `approver` is the principal of the person who answers in the framework; None if no person there may approve.
        """
        super().__init__(
            engine, ToolRegistry(), context, policy=policy, profile=profile, cwd=cwd, home=home, environment=environment
        )
        self.approver = approver
        self._lock = threading.Lock()
        self._waiting: dict[str, ToolResult] = {}
        self._unlisted: tuple[str, ...] = ()

    def visible_tools(self, definitions: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        """The names of the tools that a prompt may show; none, and a warning, if no decision can be made."""
        registry = UncuratedToolRegistry()
        names = Counter(map(tool_name, definitions))
        for one in definitions:
            with suppress(WorkError):  # a name that no tool may have, or one that is in use
                registry.add(tool_name(one) or "", _nothing, dict(one))
        listed = run(replace(self._path, registry=registry).listed(), self._decide)
        if listed.codes and listed.codes != self._unlisted:
            _LOGGER.warning("the agent is offered no tools: %s", listed.fault or ", ".join(listed.codes))
        self._unlisted = listed.codes
        return frozenset(name for one in listed.definitions if (name := tool_name(one)) and names[name] == 1)

    def asks(
        self, call: Mapping[str, Any], definition: Mapping[str, Any] | None = None, run: str | None = None
    ) -> bool:
        """Whether the person of the framework has to approve this call; a dry run, before the call is made."""
        if self.approver is None:
            return False
        path = self._path_of(call, _nothing, definition, run, None)
        try:
            answer = self._engine.check("tool_call", path.request(call)[0], path.context)
        except Exception:  # noqa: BLE001  (the call itself is decided on again, and refused)
            return False
        return answer.fault is None and answer.decision.outcome is Outcome.CONFIRM

    def call(
        self,
        call: Mapping[str, Any],
        make: Callable[[dict[str, Any]], Any],
        definition: Mapping[str, Any] | None = None,
        run: str | None = None,
        *,
        approved: bool = False,
        passing: tuple[type[Exception], ...] = (),
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> GateReply:
        """Decide on a call in any format, make it, decide on its result. Raises only what is `passing`.

        `make` gets the arguments that were decided on; what it returns on `loop` is awaited there. `definition` is what
        the model was told of the tool, `run` the conversation. `approved`: the person said yes to exactly this call.
        """
        made: list[Any] = []
        passed: list[Exception] = []

        def kept(value: Any) -> Any:
            made.append(value)
            return value

        def tool(**arguments: Any) -> Any:
            try:
                value = make(arguments)
            except passing as error:
                passed.append(error)
                raise
            return awaited(value) if inspect.isawaitable(value) else kept(value)

        async def awaited(value: Awaitable[Any]) -> Any:
            try:
                return kept(await value)
            except passing as error:
                passed.append(error)
                raise

        path = self._path_of(call, tool, definition, run, loop)
        result = self._called(path, call, approved=approved)
        if passed:
            raise passed[0]
        whole = made and result.status == "ok" and not _changed(result)
        if whole and not isinstance(made[0], Iterator | AsyncIterator):  # which has been read to its end
            return GateReply(made[0], result)
        waits = self.approver is not None and result.approval is not None and result.approval not in path.held
        return GateReply(_left(result), result, waits)

    async def call_async(
        self, call: Mapping[str, Any], make: Callable[[dict[str, Any]], Any], **more: Any
    ) -> GateReply:
        """`call` from an event loop, on which `make` is awaited."""
        loop = asyncio.get_running_loop()
        return await own_thread(partial(self.call, call, make, loop=loop, **more))

    async def visible_tools_async(self, definitions: Sequence[Mapping[str, Any]]) -> frozenset[str]:
        """`visible_tools` from an event loop."""
        return await own_thread(partial(self.visible_tools, definitions))

    async def asks_async(self, call: Mapping[str, Any], **more: Any) -> bool:
        """`asks` from an event loop."""
        return await own_thread(partial(self.asks, call, **more))

    def _path_of(
        self,
        call: Mapping[str, Any],
        tool: Callable[..., Any],
        definition: Mapping[str, Any] | None,
        run: str | None,
        loop: asyncio.AbstractEventLoop | None,
    ) -> ToolPath:
        """The path of one call: its registry has this tool alone."""
        registry, name = UncuratedToolRegistry(), tool_name(call) or ""
        with suppress(WorkError):  # then there is no such tool, and the call is refused
            registry.add(name, tool, dict(definition or {}))
        context = self._path.context if run is None else replace(self._path.context, run=run)
        return replace(
            self._path, registry=registry, context=context, places=ToolPlaces(on_loop=frozenset({name}), loop=loop)
        )

    def _called(self, path: ToolPath, call: Mapping[str, Any], *, approved: bool) -> ToolResult:
        """Make the call, under its approval if it waits for one."""
        key = digest(repr((path.context.run, call_parts(call))).encode("utf-8", "backslashreplace"))
        with self._lock:
            waiting = self._waiting.pop(key, None)
        if waiting is not None and approved:
            self._grant(path, waiting)
        result = run(path.call(call, None if waiting is None else waiting.approval), self._decide)
        if waiting is not None and "approval_pending" in result.metadata.get("codes", ()):
            result = waiting
        elif waiting is not None and result.status == "refused":  # it was not granted in time
            result = run(path.call(call, None), self._decide)
        person_knew = waiting is None or _codes(result) <= _codes(waiting)  # the person knew what has to be approved
        if approved and person_knew and result.approval is not None and self._grant(path, result):
            result = run(path.call(call, result.approval), self._decide)
        if result.approval is not None:
            with self._lock:
                self._waiting[key] = result
                while len(self._waiting) > _WAITING:
                    del self._waiting[next(iter(self._waiting))]
        return result

    def _grant(self, path: ToolPath, waiting: ToolResult) -> bool:
        """Grant the approval of a call as the person in the framework; that person has not seen a result that waits."""
        if self.approver is None or waiting.approval is None or waiting.approval in path.held:
            return False
        request = {"act": "grant_approval", "id": waiting.approval, "reason": "approved in the framework of the agent"}
        by = replace(path.context, caller=Caller(via=Via.PROCESS, principal=self.approver), run=None)
        try:
            return self._engine.administer(request, by).done is not None
        except Exception:  # noqa: BLE001  (not granted)
            return False


def _codes(result: ToolResult) -> set[str]:
    return set(result.metadata.get("codes", ()))


def _changed(result: ToolResult) -> bool:
    """Whether something of the result was taken out or cut."""
    return bool(result.metadata.get("redacted")) or result.metadata.get("truncated") is not False


def _left(result: ToolResult) -> Any:
    """What is left of a result, in the form that the tool gave it; else the words for the model."""
    if result.metadata.get("media") == "json":
        with suppress(ValueError):
            return json.loads(result.content)
    return result.model_text


def _nothing(*_: Any, **__: Any) -> None:
    """What a tool does on a path that only asks."""

"""One driver for each framework: a scripted model that calls tools one after the other, behind the gate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from engine.engine import Engine
from engine.flow import Context
from engine.model import Caller, Via
from tests.frameworks.office import SCHEMA, Tool, VisibleText

PERSON = "user:ana"


class Driver(Protocol):
    """Runs a conversation: `calls` are names of tools, `answers` the words of the person, if there is one."""

    def __call__(
        self, engine: Engine, tools: Sequence[Tool], calls: Sequence[str], run: str, answers: Sequence[bool] = ()
    ) -> VisibleText: ...


def gate_of(engine: Engine, answers: Sequence[bool]) -> Any:
    from admission_adapters.frameworks.gate import AgentGate

    context = Context(caller=Caller(via=Via.PROCESS, principal="agent"))
    approver = PERSON if answers else None
    return AgentGate(engine, context, policy="assistant", profile="coding", cwd="/work", approver=approver)


def openai_agents(
    engine: Engine, tools: Sequence[Tool], calls: Sequence[str], run: str, answers: Sequence[bool] = ()
) -> VisibleText:
    from agents import Agent, FunctionTool, RunConfig, Runner, RunState
    from agents.exceptions import ModelBehaviorError
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from admission_adapters.frameworks.openai_agents import gated

    offered: list[frozenset[str]] = []

    class Scripted(Model):
        def __init__(self) -> None:
            self.left = [*calls]

        async def get_response(self, *_: Any, **given: Any) -> Any:
            offered.append(frozenset(tool.name for tool in given["tools"]))
            output: Any
            if self.left:
                name = self.left.pop(0)
                text = json.dumps({"text": name})
                output = ResponseFunctionToolCall(
                    type="function_call", call_id=f"{run}-{len(self.left)}", name=name, arguments=text
                )
            else:
                words = ResponseOutputText(type="output_text", text="done", annotations=[])
                output = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[words]
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    def made(tool: Tool) -> FunctionTool:
        async def invoke(_: Any, text: str) -> str:
            return tool.run(**json.loads(text))

        return FunctionTool(tool.name, tool.description, SCHEMA, invoke)

    agent = Agent(name="agent", model=Scripted(), tools=gated(gate_of(engine, answers), [*map(made, tools)]))
    config = RunConfig(group_id=run, tracing_disabled=True)

    async def conversation() -> list[str]:
        result: Any = await Runner.run(agent, "go", run_config=config)
        for answer in answers:
            state = await RunState.from_string(agent, result.to_state().to_string())
            (one,) = state.get_interruptions()
            state.approve(one) if answer else state.reject(one)
            result = await Runner.run(agent, state, run_config=config)
        return [str(item.output) for item in result.new_items if item.type == "tool_call_output_item"]

    try:
        told = asyncio.run(conversation())
    except ModelBehaviorError as error:  # a tool that was not offered
        told = [str(error)]
    return VisibleText(offered[0], tuple(told))


def langgraph(
    engine: Engine,
    tools: Sequence[Tool],
    calls: Sequence[str],
    run: str,
    answers: Sequence[bool] = (),
    *,
    blocking: bool = False,
) -> VisibleText:
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from admission_adapters.frameworks.langgraph import GateMiddleware

    offered: list[frozenset[str]] = []

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            offered.append(frozenset(tool.name for tool in tools))
            return self

    def script() -> Iterator[AIMessage]:
        for number, name in enumerate(calls):
            yield AIMessage("", tool_calls=[{"name": name, "args": {"text": name}, "id": f"{run}-{number}"}])
        yield AIMessage("done")

    def made(tool: Tool) -> Any:
        async def later(text: str) -> str:
            return tool.run(text)

        return StructuredTool(
            name=tool.name, description=tool.description, args_schema=SCHEMA, func=tool.run, coroutine=later
        )

    agent = create_agent(
        Scripted(messages=script()),
        [*map(made, tools)],
        middleware=[GateMiddleware(gate_of(engine, answers))],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": run}}

    def invoke(given: Any) -> Any:
        return agent.invoke(given, config) if blocking else asyncio.run(agent.ainvoke(given, config))

    result = invoke({"messages": [("user", "go")]})
    for answer in answers:
        assert result["__interrupt__"][0].value["codes"]
        result = invoke(Command(resume="approve" if answer else "no"))
    told = [str(one.content) for one in result["messages"] if isinstance(one, ToolMessage)]
    return VisibleText(offered[0] if offered else frozenset(), tuple(told))


def pydantic_ai(
    engine: Engine, tools: Sequence[Tool], calls: Sequence[str], run: str, answers: Sequence[bool] = ()
) -> VisibleText:
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
    from pydantic_ai import Tool as Made
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.toolsets import FunctionToolset

    from admission_adapters.frameworks.pydantic_ai import GatedToolset

    offered: list[frozenset[str]] = []
    left = [*calls]

    def model(_: Any, info: Any) -> ModelResponse:
        offered.append(frozenset(tool.name for tool in info.function_tools))
        if not left:
            return ModelResponse(parts=[TextPart("done")])
        name = left.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, {"text": name}, tool_call_id=f"{run}-{len(left)}")])

    made = [Made.from_schema(tool.run, tool.name, tool.description, SCHEMA) for tool in tools]
    toolset = GatedToolset(FunctionToolset(made), gate_of(engine, answers))
    agent = Agent(FunctionModel(model), toolsets=[toolset], output_type=[str, DeferredToolRequests])

    async def conversation() -> Any:
        result: Any = await agent.run("go", conversation_id=run)
        for answer in answers:
            (asked,) = result.output.approvals
            word = DeferredToolResults(approvals={asked.tool_call_id: answer})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=word)
        return result

    result = asyncio.run(conversation())
    parts = [part for message in result.all_messages() for part in message.parts]
    told = [str(part.content) for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]
    return VisibleText(offered[0], tuple(told))


class _FakeCli:
    """What the command line of Claude's SDK says on the wire, with a scripted model behind it."""

    def __init__(self, calls: Sequence[str], run: str) -> None:
        self._calls, self._run = calls, run
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._replies: dict[str, asyncio.Future[Any]] = {}
        self._hooks: dict[str, list[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.offered: frozenset[str] = frozenset()
        self.told: list[str] = []

    async def connect(self) -> None:
        """It is here already."""

    async def write(self, data: str) -> None:
        said = json.loads(data)
        if said["type"] == "control_request":
            hooks = said["request"].get("hooks") or {}
            self._hooks = {event: matchers[0]["hookCallbackIds"] for event, matchers in hooks.items()}
            reply = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            await self._out.put({"type": "control_response", "response": reply})
        elif said["type"] == "control_response":
            self._replies.pop(said["response"]["request_id"]).set_result(said["response"])
        elif said["type"] == "user":
            self._tasks.add(asyncio.ensure_future(self._conversation()))

    async def read_messages(self) -> Any:
        while (message := await self._out.get()) is not None:
            yield message

    async def close(self) -> None:
        await self._out.put(None)
        await asyncio.gather(*self._tasks)  # what failed in a conversation fails the test

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        """It goes on until it is closed."""

    async def _ask(self, **request: Any) -> dict[str, Any]:
        id_ = f"r-{len(self._replies)}-{len(self.told)}-{request['subtype']}-{id(request)}"
        self._replies[id_] = asyncio.get_running_loop().create_future()
        await self._out.put({"type": "control_request", "request_id": id_, "request": request})
        reply = await self._replies[id_]
        assert reply["subtype"] == "success", reply
        found: dict[str, Any] = reply["response"]
        return found

    async def _mcp(self, method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = (await self._ask(subtype="mcp_message", server_name="office", message=message))["mcp_response"]
        assert "result" in reply, reply
        return reply["result"]

    async def _hook(self, event: str, **given: Any) -> dict[str, Any]:
        (id_,) = self._hooks[event]
        given = {"hook_event_name": event, "session_id": self._run, "transcript_path": "", "cwd": "/work", **given}
        found: dict[str, Any] = await self._ask(
            subtype="hook_callback", callback_id=id_, tool_use_id=given["tool_use_id"], input=given
        )
        specific: dict[str, Any] = found.get("hookSpecificOutput", {})
        return specific

    async def _conversation(self) -> None:
        try:
            await self._turns()
        finally:
            result = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 1}
            await self._out.put({"type": "result", "session_id": self._run, "result": "done", **result})

    async def _turns(self) -> None:
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "cli", "version": "1"}}
        await self._mcp("initialize", **client)
        listed = await self._mcp("tools/list")
        self.offered = frozenset(tool["name"] for tool in listed["tools"])
        for number, name in enumerate(self._calls):
            self.told.append(await self._called(name, f"{self._run}-{number}"))

    async def _called(self, name: str, use: str) -> str:
        about = {"tool_name": f"mcp__office__{name}", "tool_input": {"text": name}, "tool_use_id": use}
        decided = await self._hook("PreToolUse", **about)
        word, reason = decided["permissionDecision"], decided["permissionDecisionReason"]
        if word == "ask":
            permission = await self._ask(
                subtype="can_use_tool", tool_name=about["tool_name"], input=about["tool_input"], tool_use_id=use
            )
            word, reason = permission["behavior"], permission.get("message", "")
        if word != "allow":
            return str(reason)
        done = await self._mcp("tools/call", name=name, arguments=about["tool_input"])
        shown = (await self._hook("PostToolUse", **about, tool_response=done["content"])).get(
            "updatedToolOutput", done["content"]
        )
        return "".join(block["text"] for block in shown)


def claude_agent(
    engine: Engine, tools: Sequence[Tool], calls: Sequence[str], run: str, answers: Sequence[bool] = ()
) -> VisibleText:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, SdkMcpTool

    from admission_adapters.frameworks.claude_agent import ClaudeGate

    cli = _FakeCli(calls, run)
    left = [*answers]

    async def person(*_: Any) -> bool:
        return left.pop(0)

    def made(tool: Tool) -> SdkMcpTool[Any]:
        async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": tool.run(**arguments)}]}

        return SdkMcpTool(tool.name, tool.description, SCHEMA, handler)

    async def conversation() -> None:
        claude = ClaudeGate(gate_of(engine, answers))
        server = await claude.server("office", [*map(made, tools)])
        options = ClaudeAgentOptions(
            hooks=claude.hooks, mcp_servers={"office": server}, can_use_tool=claude.can_use_tool(person)
        )
        async with ClaudeSDKClient(options, transport=cli) as client:  # type: ignore[arg-type]
            await client.query("go", session_id=run)
            async for _ in client.receive_response():
                pass

    asyncio.run(conversation())
    return VisibleText(cli.offered, tuple(cli.told))


def mcp_proxy(
    engine: Engine, tools: Sequence[Tool], calls: Sequence[str], run: str, answers: Sequence[bool] = ()
) -> VisibleText:
    import mcp_types as types

    from tests.adapters.proxied import Scripted, gate_of_server, proxied, text_of

    named = {tool.name: tool for tool in tools}
    server = Scripted(
        [{"name": one.name, "description": one.description, "inputSchema": SCHEMA} for one in tools],
        {name: tool.run for name, tool in named.items()},
    )
    left = [*answers]

    async def person(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"approve": left.pop(0)})

    async def do(client: Any) -> VisibleText:
        listed = await client.list_tools()
        told = [text_of(await client.call_tool(name, {"text": name})) for name in calls]
        return VisibleText(frozenset(tool.name for tool in listed.tools), tuple(told))

    gate = gate_of_server(engine, "office", PERSON if answers else None, run=run)
    more: dict[str, Any] = {"elicitation_callback": person} if answers else {}
    seen, _ = proxied(gate, server, do, "legacy", **more)
    found: VisibleText = seen
    return found


DRIVERS: dict[str, tuple[str, Driver]] = {
    "pydantic_ai": ("pydantic_ai", pydantic_ai),
    "mcp_proxy": ("mcp", mcp_proxy),
    "openai_agents": ("agents", openai_agents),
    "langgraph": ("langchain", langgraph),
    "langgraph_blocking": ("langchain", partial(langgraph, blocking=True)),
    "claude_agent": ("claude_agent_sdk", claude_agent),
}
"""The package that each driver needs, and the driver."""

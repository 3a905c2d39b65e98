"""The run request of an agent runner: its closed wire model, and its normalized form.

Fields may be spelled in snake case or camel case, never in both. The keys that older callers send at
the top level (`harness`, `permission_policy`) belong to `agent`, whose own keys win. `sandbox` is not part of
the agent that a person writes: the service that sends the run states it at the top level.
Secrets are secret types from the start, so that no text made from a request can show them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel, to_snake

from engine.documents.canonical import canonical, digest
from engine.facts.net.urls import LONGEST
from engine.model import Model, Object, Word

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
"""The name of a tool or MCP server, safe in messages and records."""

Text = Annotated[str, Field(max_length=1 << 20)]
Label = Annotated[str, Field(pattern=r"^[!-~]{0,128}$")]
"""A word of another system, such as the id of a model."""

Url = Annotated[str, Field(max_length=LONGEST)]
Secret = Annotated[SecretStr, Field(max_length=65_536)]
Secrets = Annotated[dict[Annotated[str, Field(max_length=128)], Secret], Field(max_length=256)]

MOST_MESSAGES, MOST_TOOLS, MOST_SERVERS = 10_000, 1_000, 100
"""Items of one run; a request is one run and no archive."""


def _all_spellings(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """The published schema knows every spelling of a field, never two at once, and no default that stands for none."""
    fields = schema.get("properties", {})
    for field in fields.values():
        if field.get("default") == "":
            del field["default"]
    pairs = [
        (name, str(other))
        for name, field in model.model_fields.items()
        if isinstance(field.validation_alias, AliasChoices)
        for other in field.validation_alias.choices[1:]
    ]
    fields.update({other: {**fields[name], "title": f"Alias {other}"} for name, other in pairs})
    if pairs:
        schema["allOf"] = [{"not": {"required": list(pair)}} for pair in pairs]


class Wire(Model):
    """Base of what comes over the wire: a field in either spelling, anything else refused."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(
            validation_alias=lambda name: AliasChoices(*dict.fromkeys((name, to_camel(name))))
        ),
        validate_by_name=True,
        json_schema_extra=_all_spellings,
    )


class TextBlock(Wire):
    """A piece of text in a message."""

    type: Literal["text"]
    text: Text


class Message(Wire):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Text | Annotated[tuple[TextBlock, ...], Field(max_length=1_000)]


class SandboxPermission(Wire):
    """The boundaries that are declared for a run; one that is left out is not declared.

    `strict` is the enforcement that is meant when none is stated.
    """

    network: Literal["restricted", "unrestricted"] = "unrestricted"
    filesystem: Annotated[str, Field(pattern=r"^[!-~]{1,128}$")] = ""
    enforcement: Literal["strict", "best_effort"] = "strict"


class McpServer(Wire):
    """An MCP server that the run may use. `env` are secrets, by name."""

    name: Name
    transport: Literal["stdio", "http"]
    command: Text = ""
    url: Url = ""
    env: Secrets = Field(default_factory=dict)


class Tool(Wire):
    """A custom tool: where its calls go is its kind. `input_schema` is a JSON Schema of its arguments."""

    name: Name
    kind: Literal["gateway", "callback", "client", "code"]
    description: Text = ""
    input_schema: Object = Field(default_factory=dict)
    code: Text = ""


class Endpoint(Wire):
    """Where the runner posts to during a run, and the secret it shows there."""

    endpoint: Url
    authorization: Secret = SecretStr("")


class Selection(Wire):
    """Which harness runs, and who permits its tool calls. A blank harness is none."""

    harness: Annotated[str, Field(pattern=r"^(?:[A-Za-z][A-Za-z0-9_-]{0,63}|\s{0,64})$")] = ""
    permission_policy: Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_-]{0,63}$")] = ""


_LEGACY = frozenset(spelled(name) for name in Selection.model_fields for spelled in (to_snake, to_camel))
"""Keys that older callers send beside the agent, in both spellings."""


class Legacy(Selection):
    """Keys at the top level, where older callers send the selection too. `backend` is an older name of `sandbox`."""

    sandbox: Word = Field(default="", validation_alias=AliasChoices("sandbox", "backend"))


class ModelRef(Wire):
    """The model that an agent is to use: its id, who provides it, and the connection that reaches it."""

    model: Label
    provider: Label = ""
    mode: Label = ""
    slug: Label = ""


class Agent(Selection):
    """The configuration of an agent. `harness_kwargs` are passed to the harness; null or a blank `uri` clears one."""

    uri: Url | None = None
    model: ModelRef | None = None
    harness_kwargs: Annotated[dict[Name, Any], Field(max_length=32)] = Field(default_factory=dict)


class PlacedAgent(Agent):
    """An agent, and the sandbox that it runs in."""

    sandbox: str = ""


class WireRunRequest(Legacy):
    """A request to start one run. Headers are not a part of it: the runner builds them itself."""

    messages: Annotated[tuple[Message, ...], Field(max_length=MOST_MESSAGES)]
    agent: Agent = Field(default_factory=Agent)
    sandbox_permission: SandboxPermission = Field(default_factory=SandboxPermission)
    mcp_servers: Annotated[tuple[McpServer, ...], Field(max_length=MOST_SERVERS)] = ()
    tools: Annotated[tuple[Tool, ...], Field(max_length=MOST_TOOLS)] = ()
    secrets: Secrets = Field(default_factory=dict)
    tool_callback: Endpoint | None = None
    trace: Endpoint | None = None


def agent_of(request: WireRunRequest) -> tuple[PlacedAgent, str]:
    """The agent of a request, with legacy keys moved into it (its own keys win); and the digest of the whole request.

    The harness is in lower case and without blanks. The digest covers everything but the values of secrets,
    whatever spelling or shape was sent.
    """
    legacy = request.model_dump(mode="json", include={*Legacy.model_fields}, exclude_unset=True)
    moved = legacy | request.agent.model_dump(mode="json", exclude_unset=True)
    if "harness" in moved:
        moved["harness"] = moved["harness"].strip().lower()
    rest = request.model_dump(mode="json", exclude={"agent", *Legacy.model_fields}, exclude_unset=True)
    return PlacedAgent.model_validate(moved), digest(canonical({**rest, "agent": moved}))


def in_one_shape(run: dict[str, Any]) -> dict[str, Any]:
    """A valid request. Beside an agent, legacy keys are moved into it, where its own keys win."""
    agent, legacy = run.get("agent"), run.keys() & _LEGACY
    if agent is None or not legacy:
        return run
    own = {to_snake(name) for name in agent}
    moved = {name: run[name] for name in legacy if to_snake(name) not in own}
    return {name: value for name, value in run.items() if name not in legacy} | {"agent": agent | moved}


def callback_of(request: WireRunRequest, callbacks: str | None) -> Endpoint | None:
    """Where the tools of a run are called: as it states, else at this origin, if it has tools that are called."""
    if request.tool_callback is not None or callbacks is None or all(tool.kind == "client" for tool in request.tools):
        return request.tool_callback
    return Endpoint(endpoint=f"{callbacks}/tools/call")

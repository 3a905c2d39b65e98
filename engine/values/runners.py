"""policy/runners.yaml and policy/mcp.yaml: where agent runs take place, and the MCP servers that they may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from engine.model import Digest, Model
from engine.values.fields import Items, Word

Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=1 << 16)]
ModelId = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,128}$")]

Held = Items[Literal["kernel", "supervised", "bounded"]]
"""Mechanisms that may enforce a boundary."""

Origin = Annotated[str, StringConstraints(pattern=r"^https?://[a-z0-9.:\[\]-]+$", max_length=300)]
"""Scheme and host, and the port unless it is the default; no path."""


Kwarg = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class Backend(Model):
    """A place where runs are executed."""

    host: Literal["runner", "remote"] = Field(
        description="Where the backend runs: `runner`, on the runner's own machine, which cannot restrict the "
        "network of a single run; `remote`, in a sandbox elsewhere."
    )
    profile: Word | None = Field(
        default=None, description="Profile of policy/sandbox.yaml in which `engine runner serve` runs harnesses here."
    )
    platform: Annotated[str, StringConstraints(pattern=r"^https?://[^?#@\s]+$", max_length=2_048)] | None = Field(
        default=None, description="Address of the platform that makes the sandboxes of a `remote` backend."
    )


class Harness(Model):
    """An agent program that runs are made with."""

    custom_tools: Literal["native", "mcp"] = Field(description="How the harness receives custom tools.")
    kwargs: Items[Kwarg] = Field(description="Names in harness_kwargs that a run may pass to the harness.")
    command: Items[Argument] = Field(
        description="How `engine runner serve` starts it: the name of a program of policy/sandbox.yaml, and its "
        "arguments. Empty: it cannot be started."
    )
    assumed: Mapping[Literal["mcpTools", "toolCalls"], bool] = Field(
        description="What it is assumed to be able to do where its probe fails. Empty: nothing."
    )
    models: Mapping[Word, Items[ModelId]] = Field(
        description="Models that it may use, by provider. A model without an entry is refused."
    )
    connection_modes: Items[Word] = Field(description="Ways in which it may be connected to a model.")


class CallPolicy(Model):
    """What decides on the tool calls of a run."""

    policy: Word = Field(description="Tool policy of policy/tools.yaml.")
    profile: Word = Field(description="Profile of policy/tools.yaml.")


class ProvenBoundary(Model):
    """The proof that a declared boundary needs."""

    boundary: Word = Field(description="Name of the boundary in the backend's proof.")
    enforced_by: Held = Field(description="Mechanisms that may enforce it.")


class ToolKind(Model):
    """Tools whose calls run in the same place."""

    runs_on: Literal["runner", "sandbox", "client"] = Field(description="Where calls of these tools run.")


class Listeners(Model):
    """Where a listener may be bound, and which guard it needs."""

    addresses: Items[Literal["loopback", "unspecified", "private", "shared", "link_local", "name", "global"]] = Field(
        description="Classes of addresses that a listener may bind to. `name`: any host name."
    )
    unguarded: Items[Literal["loopback"]] = Field(description="Classes of addresses that need no guard.")
    guards: Items[Literal["shared_token", "tokens", "mutual_tls"]] = Field(
        description="Guards that are accepted for all other addresses."
    )


class RunnerUri(Model):
    """Which runners may be used."""

    default: Annotated[str, StringConstraints(pattern=r"^https?://[^?#@\s]+$", max_length=2_048)] = Field(
        description="URL of the runner for requests that name none."
    )
    unencrypted: Items[Literal["loopback"]] = Field(description="Classes of addresses to which plain HTTP is allowed.")
    allowlist: Items[Origin] = Field(description="Origins of runners that a request may name.")
    credentials: Items[Origin] = Field(
        description="Origins of runners that get the token and the client certificate of the gate "
        "(`engine serve --runner-token-file`, `--runner-cert`)."
    )


class Runners(Model):
    """policy/runners.yaml: where agent runs may take place, what they may use, and how runners are reached."""

    backends: Mapping[Word, Backend] = Field(
        description="Backends that may be used. A backend without a row is refused."
    )
    default_backend: Word = Field(description="Backend of runs that name none.")
    harnesses: Mapping[Word, Harness] = Field(
        description="Harnesses that may be used. A harness without a row is refused."
    )
    default_harness: Word = Field(description="Harness of runs that name none.")
    tool_delivery: Items[Literal["native", "mcp"]] = Field(
        description="Ways in which the runner passes custom tools to a harness."
    )
    mcp_transports: Items[Literal["http"]] = Field(
        description="Admitted transports of MCP servers. None of them starts a command."
    )
    tools: Mapping[Literal["gateway", "callback", "client"], ToolKind] = Field(
        description="Admitted kinds of custom tools. A kind without a row is refused. Code tools cannot have a row."
    )
    enforcements: Items[Literal["strict", "best_effort"]] = Field(
        description="Enforcement modes that a run may declare. A mode does not replace a proof."
    )
    runner_host_tools: Items[Literal["best_effort", "undeclared"]] = Field(
        description="Enforcement modes under which a run on a remote backend may use tools on the runner's machine."
    )
    permission_policies: Items[Word] = Field(
        description="Permission policies that a run may request for its tool calls."
    )
    default_permission_policy: Word = Field(
        description="Permission policy of runs that state none. Such runs may have no tools."
    )
    calls: Mapping[Word, CallPolicy] = Field(
        description="Tool policy and profile of the tool calls of a run, by its permission policy. A permission policy "
        "without a row cannot have calls, so no run may use it."
    )
    boundaries: Mapping[Literal["network", "filesystem"], ProvenBoundary] = Field(
        description="Proof that a backend needs before a run may declare the boundary."
    )
    payload_secrets: Items[Literal["plain", "sealed"]] = Field(
        description="Admitted forms of secrets in a run: `plain`, or `sealed` to the public key of the runner."
    )
    endpoints: Items[Origin] = Field(
        description="Origins to which a runner may post during a run, with the run's tokens."
    )
    uri: RunnerUri = Field(description="Runners that a request may name.")
    listeners: Listeners = Field(description="Addresses that a runner may listen on.")


ServerId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9-]|_[A-Za-z0-9-]){0,63}$")]
RemoteName = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,128}$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]


Method = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z_/]{0,63}$")]


class McpTool(Model):
    """A tool of a server."""

    definition: Digest = Field(
        description="Digest of the reviewed definition. With any other definition the tool is refused."
    )


class McpServer(Model):
    """A server that may be used."""

    transport: Literal["http"] = Field(
        description="Transport of the server. A server started by a command would run outside every sandbox."
    )
    origin: Origin = Field(description="Scheme, host, and port unless it is the default port.")
    secrets: Items[SecretName] = Field(description="Names of secrets that may be sent to the server as headers.")
    tools: Mapping[RemoteName, McpTool] = Field(
        description="Tools by their names on the server. Each also needs a row `mcp_<server>__<tool>` in "
        "policy/tools.yaml."
    )


class Package(Model):
    """The files of a server that is started."""

    folder: Annotated[str, StringConstraints(pattern=r"^/[!-~]+$", max_length=4_096)] = Field(
        description="Folder of the runner's machine; everything in it is copied into the sandbox, where the server "
        "is started in it."
    )
    digest: Digest = Field(description="Digest of everything in the folder. With any other content nothing is started.")


class StartedServer(Model):
    """A server that is started in a sandbox and called through the relay."""

    command: Annotated[Items[Argument], Field(min_length=1)] = Field(
        description="Name of a program of policy/sandbox.yaml, and its arguments."
    )
    package: Package = Field(description="Its files.")
    tools: Mapping[RemoteName, McpTool] = Field(description="Tools by their names on the server, as under `servers`.")


class McpMethods(Model):
    """The methods of MCP that a proxy lets through."""

    client: Items[Method] = Field(description="Methods and notifications of clients.")
    server: Items[Method] = Field(description="Methods and notifications of servers.")


class Mcp(Model):
    """policy/mcp.yaml: the MCP servers that runs may use."""

    servers: Mapping[ServerId, McpServer] = Field(description="MCP servers by id. A server without a row is refused.")
    started: Mapping[ServerId, StartedServer] = Field(
        description="Servers with transport `stdio`, by id. An id may not be under `servers`, too."
    )
    sandboxes: Items[Word] = Field(
        description="Profiles of policy/sandbox.yaml in which the relay may run, and servers may be started."
    )
    methods: McpMethods = Field(
        description="Methods that `engine mcp proxy` lets through. Any other request is answered with an error."
    )

    @model_validator(mode="after")
    def _one_row(self) -> Self:
        if both := sorted(self.servers.keys() & self.started.keys()):
            raise ValueError(f"`{both[0]}` is under `servers` and under `started`")
        return self

"""policy/mcp.yaml: the MCP servers that runs may use, and the definitions of their tools that were admitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from engine.model import Digest, Model
from engine.values.fields import Items
from engine.values.runners import Origin

ServerId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9-]|_[A-Za-z0-9-]){0,63}$")]
RemoteName = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,128}$")]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]


class McpTool(Model):
    """A tool of a server."""

    definition: Digest = Field(description="The digest of its definition when somebody looked at it and admitted it.")


class McpServer(Model):
    """A server that may be used."""

    transport: Literal["http"] = Field(
        description="How it is reached. A server that is started by a command would run outside of every sandbox."
    )
    origin: Origin = Field(description="Scheme and host, and the port where it is not the usual one.")
    secrets: Items[SecretName] = Field(description="Names of the secrets that it may be given as headers.")
    tools: Mapping[RemoteName, McpTool] = Field(
        description="Its tools by their own names. Each has a row as `mcp_<server>__<tool>` in policy/tools.yaml too."
    )


class Mcp(Model):
    """policy/mcp.yaml: the MCP servers that runs may use."""

    servers: Mapping[ServerId, McpServer] = Field(description="Servers by their ids. No row: refused.")

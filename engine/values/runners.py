"""policy/runners.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from engine.model import Model
from engine.values.fields import Items, Word

Held = Items[Literal["kernel", "supervised", "bounded"]]
"""Who may hold a boundary."""

Origin = Annotated[str, StringConstraints(pattern=r"^https?://[a-z0-9.:\[\]-]+$", max_length=300)]
"""Scheme and host, and the port where it is not the usual one; no path."""


class Backend(Model):
    """A place where runs take place."""

    host: Literal["runner", "remote"] = Field(
        description="`runner`: on the machine of the runner itself, which has no network control of one run alone."
    )


class Harness(Model):
    """An agent program that runs are made with."""

    custom_tools: Literal["native", "mcp"] = Field(description="How the tools of a run get to it.")


class ProvenBoundary(Model):
    """What has to be shown before a declared boundary counts."""

    boundary: Word = Field(description="The boundary as a backend's proof names it.")
    held_by: Held = Field(description="Who may hold it.")


class ToolKind(Model):
    """Tools whose calls all go the same way."""

    runs_on: Literal["runner", "sandbox", "client"] = Field(description="Where calls of these tools are carried out.")


class Listeners(Model):
    """Where a listener may be bound, and what has to guard it."""

    addresses: Items[Literal["loopback", "unspecified", "private", "shared", "link_local", "name", "global"]] = Field(
        description="Addresses that may be bound at all, by who can reach them; `name` is any host name."
    )
    unguarded: Items[Literal["loopback"]] = Field(description="Addresses that may be bound without any guard.")
    guards: Items[Literal["shared_token", "tokens", "mutual_tls"]] = Field(
        description="What counts as a guard of the other addresses."
    )


class RunnerUri(Model):
    """Which runners may be used."""

    default: Annotated[str, StringConstraints(pattern=r"^https?://[^?#@\s]+$", max_length=2_048)] = Field(
        description="The address of the runner that is used when no other one is asked for."
    )
    unencrypted: Items[Literal["loopback"]] = Field(description="Where a run may go over plain HTTP.")
    allowlist: Items[Origin] = Field(description="Origins of the runners that may be asked for.")


class Runners(Model):
    """policy/runners.yaml: where agent runs may take place, with what, and how runners are reached."""

    backends: Mapping[Word, Backend] = Field(description="Places where runs may take place. No row: refused.")
    default_backend: Word = Field(description="The backend of a run that names none.")
    harnesses: Mapping[Word, Harness] = Field(description="Harnesses that runs may be made with. No row: refused.")
    tool_delivery: Items[Literal["native", "mcp"]] = Field(
        description="Ways by which the runner can get custom tools to a harness."
    )
    mcp_transports: Items[Literal["http"]] = Field(
        description="Transports of MCP servers that may be used; none starts a command."
    )
    tools: Mapping[Literal["gateway", "callback", "client"], ToolKind] = Field(
        description="Kinds of custom tools that may be used. No row: refused. Code tools cannot have one."
    )
    enforcements: Items[Literal["strict", "best_effort"]] = Field(
        description="How boundaries may be declared to be held. Neither word stands in for a proof."
    )
    runner_host_tools: Items[Literal["best_effort", "undeclared"]] = Field(
        description="Enforcement under which a run on a remote backend may have tools on the runner's own machine."
    )
    permission_policies: Items[Word] = Field(description="Ways of permitting tool calls that a run may ask for.")
    default_permission_policy: Word = Field(description="The way of a run that states none; it may carry no tools.")
    boundaries: Mapping[Literal["network", "filesystem"], ProvenBoundary] = Field(
        description="What has to be shown of a backend before a run may declare the boundary."
    )
    endpoints: Items[Origin] = Field(description="Origins that a runner may post to during a run, with its tokens.")
    uri: RunnerUri = Field(description="Addresses of runners.")
    listeners: Listeners = Field(description="Listeners of a runner.")

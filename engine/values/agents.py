"""What agents may see, read and start: media.yaml, proposals.yaml, provisioning.yaml, skills.yaml, subagents.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Digest, Model, ToolName
from engine.values.fields import Items, MediaType, Text, Word
from engine.values.hosts import HostOrDomain

Bytes = Annotated[StrictInt, Field(ge=0, le=1 << 40)]


class MediaKind(Model):
    """One kind of media."""

    media_types: Items[MediaType] = Field(description="Media types admitted for this kind.")
    max_bytes: Bytes = Field(description="Maximum size of one item, in bytes. A larger item is refused.")


class UrlMedia(Model):
    """Where media may be fetched from; if incomplete, with an empty list or 0 bytes, from nowhere."""

    schemes: Items[Literal["https"]] = Field(description="URL schemes that media may be fetched over.")
    hosts: Items[HostOrDomain] = Field(
        description="Hosts that media may be fetched from, such as media.example.org or *.example.org."
    )
    max_bytes: Bytes = Field(description="Maximum size of one item, in bytes. A larger item is refused; 0 refuses all.")


class Media(Model):
    """policy/media.yaml: images, documents and audio that are passed to a model."""

    kinds: Mapping[Literal["image", "document", "audio"], MediaKind] = Field(
        description="Admitted kinds of media. A kind without a row is refused."
    )
    allow_url_media_sources: bool = Field(
        description="Whether media may be passed by URL. Has no effect unless `url` is complete."
    )
    max_names: Annotated[StrictInt, Field(ge=1, le=1_000)] = Field(
        description="Maximum number of hard links to a file. A file with more is refused."
    )
    url: UrlMedia = Field(description="Where media passed by URL may be fetched from.")


Detected = Literal["python_code", "shell_command", "package_name", "executable_handler", "migration"]


class Proposals(Model):
    """policy/proposals.yaml: who may propose tools, and what a proposal may contain."""

    roles: Items[Word] = Field(description="Roles that may propose tools. Proposals of other roles are refused.")
    admitted: Mapping[Detected, Items[Literal["inline", "line"]]] = Field(
        description="Forms in which a detected kind of content is tolerated: `inline`, part of a sentence; `line`, "
        "a line of its own. A kind without a row is refused in every form. Fields and fenced blocks are "
        "always refused."
    )


FolderName = Annotated[str, StringConstraints(pattern=r"^(\.|\*|[A-Za-z0-9_][A-Za-z0-9_.-]*)$", max_length=100)]
"""The name of one folder, `.` or `*`; no path."""


class Skills(Model):
    """policy/skills.yaml: what an agent may read of a skill."""

    folders: Items[FolderName] = Field(
        description="Folders of a skill from which files may be read; `.` is its top, `*` any that is not hidden."
    )
    depth: Annotated[StrictInt, Field(ge=1, le=16)] = Field(
        description="Maximum folder depth of a file; 1 means directly in one of the folders. A deeper file is refused."
    )
    max_bytes: Annotated[StrictInt, Field(ge=0, le=1 << 30)] = Field(
        description="Maximum size of one file, in bytes. A larger file is refused."
    )
    max_names: Annotated[StrictInt, Field(ge=1)] = Field(
        description="Maximum number of hard links to a file. A file with more is refused."
    )


Seconds = Annotated[StrictInt, Field(ge=1, le=604_800)]


class Operation(Model):
    """One operation of a conversation on a subagent."""

    tool: ToolName = Field(
        description="Name of the tool that performs the operation, as used in tool policies and profiles."
    )
    timeout_seconds: Seconds = Field(description="Timeout of the operation, in seconds. A request may shorten it.")


class Subagents(Model):
    """policy/subagents.yaml: what conversations may do with subagents, for how long, and what they may read."""

    operations: Mapping[Literal["spawn", "run", "poll", "cancel", "kill"], Operation] = Field(
        description="Available operations. An operation without a row is refused."
    )
    lifetime_seconds: Seconds = Field(
        description="Maximum lifetime of a subagent, in seconds. A subagent that reaches it is killed."
    )
    turns: Annotated[StrictInt, Field(ge=1, le=50)] = Field(
        description="Maximum number of transcript turns returned at once. A request may ask for fewer."
    )
    line_bytes: Annotated[StrictInt, Field(ge=1, le=65_536)] = Field(
        description="Maximum length of each transcript line, in bytes. A longer line is cut."
    )


Most = Annotated[StrictInt, Field(ge=1, le=1 << 40)]


class AgentConstraints(Model):
    """The most that the constraints of a new agent may state."""

    max_turns: Most = Field(description="Maximum number of turns of the agent in one episode.")
    max_tokens: Most = Field(description="Maximum number of tokens of the agent in one episode.")


class Provisioning(Model):
    """policy/provisioning.yaml: which agents may be created from a specification."""

    max_agents: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        description="Maximum number of active agents. One more is refused."
    )
    roles: Items[Text] = Field(description="Roles that a new agent may have.")
    tools: Items[ToolName] = Field(description="Tools that a new agent may have.")
    constraints: AgentConstraints = Field(description="Maximum constraints of a new agent.")
    prompt_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 18)] = Field(
        description="Maximum size of a system prompt, in bytes."
    )
    code_markers: Items[Text] = Field(
        description="Texts in lower case that are reported as code where a system prompt contains them."
    )
    approved: Items[Digest] = Field(description="Digests of specifications that need no further approval.")

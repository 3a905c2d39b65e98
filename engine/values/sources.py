"""policy/sources.yaml, policy/sandbox.yaml and policy/networks.yaml: what a source bundle may be and ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.fields import Items, Word

Purpose = Literal["train", "eval", "tool", "environment"]


class Sandbox(Model):
    """policy/sandbox.yaml: the sandbox that a source bundle must at least ask for."""

    generated_code: Items[Literal["disabled", "sandboxed"]] = Field(
        description="What a source bundle may say about running generated code."
    )
    filesystem: Mapping[Word, Items[Literal["kernel", "supervised", "bounded"]]] = Field(
        description="File system boundaries that are admitted, and who must be shown to hold each on this machine."
    )
    redaction: Literal[True] = Field(description="Secret redaction; it cannot be switched off.")
    network: Items[Word] = Field(description="Networks that the sandbox of a source bundle may have.")


class Sources(Model):
    """policy/sources.yaml: what a source bundle and its records may be."""

    purposes: Items[Purpose] = Field(description="Uses for which source bundles are admitted.")
    kinds: Items[Literal["fixture", "external", "synthetic", "transformed"]] = Field(
        description="Kinds of records that are admitted."
    )
    retention_bases: Items[Word] = Field(description="Grounds on which a record may be kept.")


class Networks(Model):
    """policy/networks.yaml: how an address on the network must look."""

    schemes: Items[Word] = Field(description="URL schemes from which material may come.")
    ports: Items[Annotated[StrictInt, Field(ge=1, le=65535)]] = Field(description="Ports that may be asked.")

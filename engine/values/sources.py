"""policy/sources.yaml and policy/networks.yaml: what a source bundle may be and where its material may come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Model
from engine.values.fields import Host, Items, Word

Purpose = Literal["train", "eval", "tool", "environment"]


Member = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/?$", max_length=200)]
"""A path below the folder of `bundle.yaml`."""


class Sources(Model):
    """policy/sources.yaml: what a source bundle and its records may be."""

    purposes: Items[Purpose] = Field(description="Uses for which source bundles are admitted.")
    kinds: Items[Literal["fixture", "external", "synthetic", "transformed"]] = Field(
        description="Kinds of records that are admitted."
    )
    kind_without_origin: Literal["fixture", "external", "synthetic", "transformed"] = Field(
        description="The kind of a record that states neither kind nor origin."
    )
    retention_bases: Items[Word] = Field(description="Grounds on which a record may be kept.")
    beside_content: Items[Member] = Field(
        description="Files, and folders with a `/` at the end, that a source bundle may hold without a record."
    )


class Networks(Model):
    """policy/networks.yaml: how an address on the network must look."""

    hosts: Items[Host] = Field(description="Exact hosts from which material may come; a subdomain is another host.")
    schemes: Items[Word] = Field(description="URL schemes from which material may come.")
    ports: Items[Annotated[StrictInt, Field(ge=1, le=65535)]] = Field(description="Ports that may be asked.")

"""policy/sources.yaml and policy/networks.yaml: what a source bundle may be and where its material may come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.model import Model
from engine.values.fields import Items, Word

Purpose = Literal["train", "eval", "tool", "environment"]


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

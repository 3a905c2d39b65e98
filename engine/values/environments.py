"""policy/environments.yaml: the environments that are built from admitted source bundles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from engine.facts.archives.source_bundle import RecordKind
from engine.model import Model, ToolName
from engine.values.fields import Items, MediaType, Positive, Text, Word


class EnvironmentCeilings(Model):
    """How large an environment may be."""

    rows: Positive = Field(description="Maximum number of rows that it is built from.")
    text_bytes: Positive = Field(description="Maximum size of one text of a row, in bytes.")
    database_bytes: Positive = Field(description="Maximum size of its database, also while it is used, in bytes.")
    checkpoints: Annotated[StrictInt, Field(ge=1, le=1_000)] = Field(
        description="Maximum number of checkpoints that are held. The oldest is removed."
    )


class Environment(Model):
    """One environment. A source bundle names it in its field `environment`."""

    title: Text = Field(description="Purpose of the environment.")
    holds: Literal["contacts", "documents"] = Field(
        description="Schema of its rows. `contacts`: JSON lists of contacts. `documents`: one text for each record."
    )
    kinds: Items[RecordKind] = Field(description="Kinds of records that it may be built from.")
    media_types: Items[MediaType] = Field(description="Media types of records that it may be built from.")
    tools: Mapping[ToolName, Literal["search", "get", "add", "update", "delete"]] = Field(
        description="Its tools, each with its operation. Each also needs an entry in policy/tools.yaml."
    )
    acts: Items[Literal["checkpoint", "restore", "reset"]] = Field(
        description="What may be done with its state: keep it, go back to a kept one, go back to what was built."
    )
    limits: EnvironmentCeilings = Field(description="Maximum sizes.")


class Environments(Model):
    """policy/environments.yaml: the environments that are built from admitted source bundles."""

    environments: Mapping[Word, Environment] = Field(
        description="Environments by name. A source bundle that names another one builds nothing."
    )

"""A file with options: YAML, checked against the options of its command before any of them counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.documents.files import read_bytes
from engine.errors import Problem
from engine.settings import ReadLimits

if TYPE_CHECKING:
    from pydantic import BaseModel


def read(ctx: typer.Context, file: Path | None) -> None:
    """Give the command the options of the file, where neither the command line nor a variable states them."""
    if file is None:
        return
    from engine.policy_bundle import explain

    found: list[Problem] = []
    empty = "write an option into it, such as `port: 8642`, or leave out the file"
    document = explain.read(read_bytes(file, ReadLimits().document_bytes), str(file), found, empty)
    options = explain.validated(model(ctx.command.params), document, found)
    if options is None:
        text = "\n".join(map(str, found))
        raise typer.BadParameter(f"it cannot be used\n{text}", param_hint="--config")
    ctx.default_map = options.model_dump(mode="json", exclude_none=True)


def model(parameters: Any) -> type[BaseModel]:
    """A closed model of these options: a field for each, named like it with `_`, of its type and range."""
    from pydantic import ConfigDict, Field, create_model

    fields: Any = {
        one.name: (Annotated[one.type_descriptor.annotation, Field(ge=one.min, le=one.max)] | None, None)
        for one in parameters
        if one.envvar and one.name != _NAME
    }
    closed = ConfigDict(extra="forbid", strict=True)
    made: type[BaseModel] = create_model("OptionsFile", __config__=closed, **fields)
    return made


_NAME = "_config"
Config = Annotated[
    Path | None,
    options.file(
        "--config",
        envvar="ENGINE_CONFIG",
        help="YAML file with options, such as `port: 8642`; options and variables outrank it.",
        is_eager=True,
        expose_value=False,
        callback=read,
    ),
]
"""An option of commands whose other options have variables."""

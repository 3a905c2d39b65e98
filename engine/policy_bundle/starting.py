"""A folder of one's own policy outside a checkout: copied from `starter/`, with schemas for editors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.documents.files import printable
from engine.errors import GatherError, reason_of
from engine.policy_bundle.sources import NAME, RECIPE, SCHEMAS, VALUES
from engine.settings import bundled

_STARTER = Path(__file__).parent / "starter"


def start(folder: Path, schemas: Mapping[str, Any], recipe: str | None = None) -> tuple[Path, ...]:
    """Write a policy folder, or only the schemas of one that exists; returns the files written, below the folder.

    `schemas` are JSON Schemas by path below `schemas/`, without suffix. `recipe` is the name of a shipped recipe to
    copy in place of the example. Raises GatherError for a folder that has other content, a name that no recipe has or
    may have, and what cannot be written.
    """
    name = Path(os.path.abspath(folder)).name  # noqa: PTH100  (`..` leads to a name, links are kept)
    if not NAME.match(name):
        raise GatherError(f"`{printable(name)}` is not a valid name of a policy", remedy="use a-z, 0-9, `-`, `_`")
    try:
        copied = _STARTER if recipe is None else _shipped(recipe)
        exists = (folder / RECIPE).exists()
        if not exists:
            if folder.exists() and any(not one.name.startswith(".") for one in folder.iterdir()):
                message = f"`{printable(str(folder))}` is neither empty nor a policy folder"
                raise GatherError(message, remedy="name a new folder")
            files = (one for one in copied.rglob("*") if one.is_file() and one.suffix != ".pyc")
            for source in sorted(files, key=lambda one: one.name == RECIPE):  # last: without it the folder is none yet
                copy = folder / source.relative_to(copied)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(source.read_bytes())
        for path, schema in schemas.items():
            file = folder / SCHEMAS / f"{path}.schema.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written = (folder / SCHEMAS if exists else folder).rglob("*")
        return tuple(sorted(path.relative_to(folder) for path in written if path.is_file()))
    except OSError as error:
        raise GatherError(
            f"cannot write `{printable(str(error.filename or folder))}`: {reason_of(error)}",
            remedy="check the folder and its permissions",
        ) from error


def _shipped(recipe: str) -> Path:
    folders = {one.name: one for one in sorted(bundled("bundles").iterdir()) if (one / VALUES).is_dir()}
    if recipe not in folders:
        message = f"there is no shipped recipe `{printable(recipe)}`"
        raise GatherError(message, remedy=f"use one of: {', '.join(folders)}")
    return folders[recipe]


def partial(schema: Any) -> Any:
    """The schema of a file that is laid over a document: nothing is required, and null removes what was there."""
    if isinstance(schema, list):
        return [partial(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            changed[key] = {name: _or_null(partial(one)) for name, one in value.items()}
        elif key == "additionalProperties" and isinstance(value, dict):
            changed[key] = _or_null(partial(value))
        elif key == "$defs":
            changed[key] = {name: partial(one) for name, one in value.items()}
        elif key not in {"required", "minProperties"}:
            changed[key] = partial(value)
    return changed


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {key: schema[key] for key in ("title", "description") if key in schema}
    return {**words, "anyOf": [schema, {"type": "null"}]}

"""Brings the hashes in a `bundle.yaml` up to date; every other character of it stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.documents.files import load, printable, read_bytes
from engine.errors import GatherError, Location
from engine.facts.archives.source_bundle import DOCUMENT
from engine.settings import ReadLimits
from engine.sources.start import file_hash

_HASH = re.compile(r"(sha256[\"']?[ \t]*:[ \t]*[\"']?)[0-9a-zA-Z]*")


@dataclass(frozen=True, slots=True)
class Updated:
    """The new text, the ids of the records whose hash changed, and those whose license decision is outdated by it."""

    text: str
    changed: tuple[str, ...]
    outdated: tuple[str, ...]


def updated(folder: Path, limits: ReadLimits, progress: Callable[[int, int], None]) -> Updated:
    """Recompute the hashes of a source bundle's records; nothing is written.

    Raises GatherError when the document or a file cannot be read, or a record has no `sha256` on its own line.
    """
    name = str(folder / DOCUMENT)
    if not (folder / DOCUMENT).exists():
        raise GatherError(f"the folder has no `{DOCUMENT}`", remedy="start one with `engine source init`")
    text = read_bytes(folder / DOCUMENT, limits.document_bytes, name).decode("utf-8", "surrogateescape")
    document = load(text.encode("utf-8", "surrogateescape"), name, limits)
    if not isinstance(document.value, dict):
        raise GatherError(
            "the document is not a mapping",
            remedy="write it as docs/source-bundles.md shows",
            where=document.where(),
        )
    stated = document.value.get("records")
    records = stated if isinstance(stated, list) else []
    lines = text.splitlines(keepends=True)
    changed, found = [], {}
    for index, record in enumerate(records):
        where = document.where(("records", index, "sha256"))
        if not isinstance(record, dict) or not isinstance(record.get("path"), str):
            raise GatherError("the record has no path", remedy="add it", where=document.where(("records", index)))
        progress(index, len(records))
        computed = file_hash(folder, record["path"])
        identity = str(record.get("id", index))
        found[identity] = computed
        if record.get("sha256") == computed:
            continue
        if "sha256" not in record or where.line is None:
            raise GatherError(
                f"the record `{printable(identity)}` has no sha256", remedy=f"add `sha256: {computed}`", where=where
            )
        lines[where.line - 1], count = _HASH.subn(rf"\g<1>{computed}", lines[where.line - 1], count=1)
        record["sha256"] = computed
        changed.append(identity)
        if count == 0:
            raise _refused(computed, where)
    new = "".join(lines)
    with suppress(GatherError):  # it was YAML before
        if load(new.encode("utf-8", "surrogateescape"), name, limits).value == document.value:
            return Updated(new, tuple(changed), _outdated(document.value, found))
    raise _refused("HASH", document.where(("records",)))


def _refused(computed: str, where: Location) -> GatherError:
    return GatherError(
        "the hash cannot be replaced without changing other text",
        remedy=f"write `sha256: {computed}` on a line of its own",
        where=where,
    )


def _outdated(root: dict[str, object], found: dict[str, str]) -> tuple[str, ...]:
    decisions = root.get("license_decisions")
    named = [one for one in decisions if isinstance(one, dict)] if isinstance(decisions, list) else []
    return tuple(
        dict.fromkeys(
            str(one.get("record"))
            for one in named
            if str(one.get("record")) in found and one.get("sha256") != found[str(one.get("record"))]
        )
    )

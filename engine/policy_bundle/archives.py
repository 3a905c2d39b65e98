"""Files to a policy bundle archive: the same files always give the same bytes and the same revision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.canonical import canonical
from engine.opa.packed import MANIFEST, pack, sealed, unpacked

RULES_ROOT, VALUES_ROOT = "admission", "policy"
GENERATED = "# Generated: a finding for every requirement above that is not proven.\n"
"""The line in a served file of requirements after which nothing is its author's."""

WORDS = "catalogue"
"""In the manifest of rules: the digest of the words beside them, so that one revision covers both."""
VALUES_DATA = f"{VALUES_ROOT}/data.json"


def rules_archive(files: Mapping[str, bytes], metadata: Mapping[str, str]) -> tuple[bytes, str]:
    """The archive of rules and its revision; `files` by their path below `admission/`."""
    return _archive(files, RULES_ROOT, metadata)


def values_archive(values: Mapping[str, Any]) -> tuple[bytes, str]:
    """The archive of values and its revision; `values` is what `data.policy` will be."""
    return _archive({VALUES_DATA: canonical(values)}, VALUES_ROOT, {})


def manifest(files: Mapping[str, bytes], root: str, metadata: Mapping[str, str]) -> tuple[bytes, str]:
    """`.manifest` and the revision in it: the digest of everything else in the archive."""
    content: dict[str, Any] = {"roots": [root], "rego_version": 2}
    if metadata:
        content["metadata"] = dict(metadata)
    return sealed(files, content)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of one of our own archives below a folder; the manifest of the last one stays."""
    for name, data in read(archive).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read(archive: Path) -> dict[str, bytes]:
    """The files of one of our own archives by name, the manifest among them. Raises GatherError, OSError."""
    return unpacked(archive.read_bytes(), archive.name)


def _archive(files: Mapping[str, bytes], root: str, metadata: Mapping[str, str]) -> tuple[bytes, str]:
    written, revision = manifest(files, root, metadata)
    return pack({**files, MANIFEST: written}), revision

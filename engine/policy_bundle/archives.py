"""Files to a policy bundle archive: the same files always give the same bytes and the same revision."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.canonical import canonical, digest

RULES_ROOT, VALUES_ROOT = "admission", "policy"
GENERATED = "# Generated: a finding for every requirement above that is not proven.\n"
"""The line in a served file of requirements after which nothing is its author's."""

MANIFEST = ".manifest"
_DATA = f"{VALUES_ROOT}/data.json"


def rules_archive(files: Mapping[str, bytes], metadata: Mapping[str, str]) -> tuple[bytes, str]:
    """The archive of rules and its revision; `files` by their path below `admission/`."""
    return _archive(files, RULES_ROOT, metadata)


def values_archive(values: Mapping[str, Any]) -> tuple[bytes, str]:
    """The archive of values and its revision; `values` is what `data.policy` will be."""
    return _archive({_DATA: canonical(values)}, VALUES_ROOT, {})


def manifest(files: Mapping[str, bytes], root: str, metadata: Mapping[str, str]) -> tuple[bytes, str]:
    """`.manifest` and the revision in it: the digest of everything else in the archive."""
    content: dict[str, Any] = {"roots": [root], "rego_version": 2}
    if metadata:
        content["metadata"] = dict(metadata)
    names = {name: digest(data) for name, data in files.items()}
    revision = digest(canonical({"files": names, "manifest": content}))
    return canonical({**content, "revision": revision}), revision


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of one of our own archives below a folder; the manifest of the last one stays."""
    for name, data in read(archive).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read(archive: Path) -> dict[str, bytes]:
    """The files of one of our own archives by name, the manifest among them."""
    with tarfile.open(archive, "r:gz") as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}


def _archive(files: Mapping[str, bytes], root: str, metadata: Mapping[str, str]) -> tuple[bytes, str]:
    written, revision = manifest(files, root, metadata)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=9) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, data in sorted({**files, MANIFEST: written}.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue(), revision

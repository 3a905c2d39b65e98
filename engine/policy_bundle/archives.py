"""From files to a policy bundle archive: equal files give equal bytes and an equal revision."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.opa.packed import MANIFEST, pack, sealed, unpacked

RULES_ROOT, VALUES_ROOT = "admission", "policy"
GENERATED = "# Generated: a finding for every requirement above that is not proven.\n"
"""The line in a served file of requirements after which nothing is its author's."""

WORDS = "catalogue"
"""In the manifest of rules: the digest of the words beside them, so that one revision covers both."""
_FINDING = re.compile(r'\.(?:finding|added)\("([^"]+)"')


def archive(files: Mapping[str, bytes], root: str, metadata: Mapping[str, str]) -> bytes:
    """The archive of these files, all below `root`."""
    return pack({**files, MANIFEST: manifest(files, root, metadata)[0]})


def manifest(files: Mapping[str, bytes], root: str, metadata: Mapping[str, str]) -> tuple[bytes, str]:
    """`.manifest` and the revision in it: the digest of everything else in the archive."""
    content: dict[str, Any] = {"roots": [root], "rego_version": 2}
    if metadata:
        content["metadata"] = dict(metadata)
    return sealed(files, content)


def read(archive: Path) -> dict[str, bytes]:
    """The files of one of our own archives by name, the manifest among them. Raises GatherError, OSError."""
    return unpacked(archive.read_bytes(), archive.name)


def authored_line(text: str, row: int, lines: Mapping[str, int], sought: Callable[[str], bool]) -> int:
    """The author's line for a line of a served file.

    In what is generated it is the first that is `sought` from the requirement on that the line was written out
    from, else the place of that requirement; `lines` has the places by code.
    """
    own, generated, _ = text.partition(GENERATED)
    written = own.splitlines()
    if not generated or row <= len(written):
        return row
    code = next((match[1] for one in reversed(text.splitlines()[:row]) if (match := _FINDING.search(one))), "")
    first = lines.get(code, 1)
    return next((at for at, one in enumerate(written[first - 1 :], first) if sought(one)), first)

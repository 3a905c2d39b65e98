"""Starts a source bundle in a folder of content: `bundle.yaml` from the files and their metadata."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.documents.files import open_beneath, opened_folder, printable, unreadable
from engine.errors import GatherError, reason_of
from engine.facts.archives.source_bundle import MOST_RECORDS
from engine.facts.net.urls import url_facts
from engine.settings import ReadLimits
from engine.sources.document import NewRecord, Statements, written
from engine.sources.metadata import PROJECT, Metadata, Resource, read

_MEDIA_TYPES = {
    ".jsonl": "application/jsonl",
    ".ndjson": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".md": "text/markdown",
    ".sqlite": "application/vnd.sqlite3",
    ".db": "application/vnd.sqlite3",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
}
"""By suffix, where Python's table has none or depends on the machine. Source: the IANA registry of media types."""

_LICENSE_TEXT = re.compile(
    r"(?:(?:un)?licen[cs]e|copying)(?:-[\w.+-]+)?(?:\.(?:lesser|txt|md|rst|html))?", re.IGNORECASE
)
"""Names of files with the text of a license."""

_TAG = re.compile(rb"SPDX-License-Identifier:[ \t]*([\w.+() -]{1,200})")
_OR = re.compile(r"\s+or\s+")
_TAG_WITHIN = 4_096
"""Bytes at the beginning of a file that may have tags (SPDX 2.3, annex E)."""


@dataclass(frozen=True, slots=True)
class Started:
    """A new document, and what its author should look at."""

    text: str
    records: int
    remarks: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Whether a person has to complete comments below the first line."""
        return any(line.lstrip().startswith("#") for line in self.text.splitlines()[1:])


def start(
    folder: Path,
    described: Metadata | None,
    stated: Statements,
    beside: Callable[[str], bool],
    progress: Callable[[int, int], None],
    limits: ReadLimits,
) -> Started:
    """Describe the files below a folder as a source bundle, except the paths allowed `beside` its content.

    `progress` is called with the number of hashed files and of all. Raises GatherError if the folder has
    nothing to describe, more files than a source bundle may have, or a file that cannot be read.
    """
    remarks: list[str] = []
    try:
        paths = sorted(_content(folder, "", beside, remarks))
    except OSError as error:
        raise GatherError(
            f"`{printable(str(error.filename))}` cannot be listed: {reason_of(error)}",
            remedy="check its permissions",
        ) from error
    if not paths:
        left = f"; {remarks[0]}" if remarks else ""
        raise GatherError(
            f"`{printable(str(folder))}` has no content{left}",
            remedy="add the files first; copy a folder of links, such as a snapshot of a hub, with `cp -rL`",
        )
    if len(paths) > MOST_RECORDS:
        raise GatherError(
            f"`{printable(str(folder))}` holds {len(paths):,} files; a source bundle has at most {MOST_RECORDS:,}",
            remedy="split it, or pack small files into fewer ones",
        )
    ids: set[str] = set()
    records = []
    common = (described and described.license) or stated.license
    others = (*_other_texts(folder, paths, remarks), *_other_packages(folder, paths, common, limits, remarks))
    for number, (path, resource) in enumerate(_matched(paths, described, remarks)):
        progress(number, len(paths))
        general = None if path.startswith(others) else common
        records.append(_record(folder, path, resource, described, general, ids, remarks))
    remarks += _absent(paths, described)
    name = as_id(described.name if described and described.name else folder.resolve().name)
    return Started(written(name, name, records, stated), len(records), tuple(remarks))


def _content(folder: Path, below: str, beside: Callable[[str], bool], remarks: list[str]) -> Iterator[str]:
    with os.scandir(folder / below) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            path = f"{below}{entry.name}"
            if beside(f"{path}/" if entry.is_dir(follow_symlinks=False) else path):
                continue
            if entry.name.startswith("."):
                remarks.append(f"{printable(path)}: hidden, so left out; remove it, or describe it in a record")
            elif entry.is_dir(follow_symlinks=False):
                yield from _content(folder, f"{path}/", beside, remarks)
            elif not entry.is_file(follow_symlinks=False):
                remarks.append(f"{printable(path)}: a link or special file, so left out; replace it by the file itself")
            else:
                yield path


def _other_texts(folder: Path, paths: list[str], remarks: list[str]) -> tuple[str, ...]:
    """The folders below with a license text that is not also at the top, as submodules and copies of libraries have."""
    top = {file_hash(folder, path.name) for path in folder.iterdir() if _is_license_text(path)}
    texts = [path for path in paths if "/" in path and _is_license_text(folder / path)]
    different = [path for path in texts if file_hash(folder, path) not in top]
    remarks += (
        f"{printable(path)}: a license text of its own; state the license of the files in its folder"
        for path in different
    )
    return tuple(f"{path.rpartition('/')[0]}/" for path in different)


def _other_packages(
    folder: Path, paths: list[str], common: str | None, limits: ReadLimits, remarks: list[str]
) -> Iterator[str]:
    """The folders below with a package that states another license than the common one, or cannot be read."""
    for path in paths:
        below, _, name = path.rpartition("/")
        if common is None or not below or name not in PROJECT:
            continue
        try:
            license_ = read(folder / path, limits).license
            other = license_ is not None and not _same(license_, common) and f"states {printable(license_)}"
        except GatherError as error:
            other = f"cannot be read: {error.message}"
        if other:
            remarks.append(f"{printable(path)}: it {other}; state the license of the files in its folder")
            yield f"{below}/"


def _same(one: str, other: str) -> bool:
    """Whether two labels have the same alternatives, in any order."""
    first, second = (sorted(_OR.split(label.lower())) for label in (one, other))
    return first == second


def _tags(folder: Path, path: str) -> list[str]:
    """The licenses that lines of a file state for it."""
    try:
        with opened_folder(folder) as root, open_beneath(root, path) as file:
            found = _TAG.findall(file.read(_TAG_WITHIN))
    except OSError as error:
        raise unreadable(path, error) from error
    return [tag.decode("ascii", "replace").strip(" -") for tag in found]


def _is_license_text(path: Path) -> bool:
    return _LICENSE_TEXT.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()


def _matched(paths: list[str], described: Metadata | None, remarks: list[str]) -> Iterator[tuple[str, Resource | None]]:
    """Each file with what the metadata states of it: by its path, else by its name if no other one can be meant.

    If the metadata may mean another file of that name, it is None, and the license of the file stays open.
    """
    by_path, by_name = defaultdict[str, list[Resource]](list), defaultdict[str, list[Resource]](list)
    for one in dict.fromkeys(described.resources if described else ()):
        by_path[one.path].append(one)
        by_name[_name(one.path)].append(one)
    files = Counter(map(_name, paths))
    for path in paths:
        same = by_path[path] or by_name[_name(path)]
        clear = len(same) == 1 and (same[0].path == path or files[_name(path)] == 1)
        if same and described and not clear:
            remarks.append(
                f"{printable(path)}: what {described.file} states of a file with this name is not used, because"
                " another one may be meant; complete the record"
            )
        yield path, same[0] if clear else (None if same else Resource(path))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _record(
    folder: Path,
    path: str,
    found: Resource | None,
    described: Metadata | None,
    common: str | None,
    ids: set[str],
    remarks: list[str],
) -> NewRecord:
    sha256, resource = file_hash(folder, path), found or Resource(path)
    file = described.file if described else ""
    if resource.sha256 is not None and resource.sha256 != sha256:
        remarks.append(f"{printable(path)}: its SHA-256 is {sha256}; {file} states {printable(resource.sha256)}")
    url = host = None
    if resource.url is not None:
        url, host = resource.url, url_facts(resource.url).host
        if host is None:
            remarks.append(
                f"{printable(path)}: {printable(resource.url)} is not an https URL in canonical form; correct it"
            )
    license_ = resource.license or common if found else None
    if license_ is not None and (other := [tag for tag in _tags(folder, path) if not _same(tag, license_)]):
        remarks.append(f"{printable(path)}: a line of it states {printable(other[0])}; state its license")
        license_ = None
    return NewRecord(
        _unique(as_id(path), ids), path, sha256, resource.media_type or _media_type(path), license_, url, host
    )


def _absent(paths: list[str], described: Metadata | None) -> Iterator[str]:
    names = set(map(_name, paths))
    for resource in described.resources if described else ():
        if _name(resource.path) not in names:
            where = f"; download it from {printable(resource.url)}" if resource.url else ""
            yield f"{printable(resource.path)}: named by {described.file if described else ''}, but not here{where}"


def file_hash(folder: Path, path: str) -> str:
    """The SHA-256 of a regular file below a folder, in hexadecimal; no link is followed. Raises GatherError."""
    try:
        with opened_folder(folder) as root, open_beneath(root, path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def _media_type(path: str) -> str:
    suffix = Path(path).suffix.lower()
    return _MEDIA_TYPES.get(suffix) or mimetypes.guess_type(f"x{suffix}")[0] or "application/octet-stream"


def as_id(text: str) -> str:
    """A text as an id of format 1: lower-case letters, digits, dots, underscores and hyphens."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:100] or "content"


def _unique(name: str, ids: set[str]) -> str:
    number, found = 1, name
    while found in ids:
        number += 1
        found = f"{name}-{number}"
    ids.add(found)
    return found

"""The metadata of content: a Hugging Face card, Croissant, a Frictionless data package, or the license of a project.

Nothing is judged or fetched. A license label is copied as written; policy/licenses.yaml
knows the common spellings. Sources: https://huggingface.co/docs/hub/datasets-cards,
https://docs.mlcommons.org/croissant/docs/croissant-spec.html, https://datapackage.org/standard/data-package/,
https://packaging.python.org/specifications/pyproject-toml/, https://docs.npmjs.com/files/package.json/,
https://doc.rust-lang.org/cargo/reference/manifest.html.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.documents.files import Document, load, printable, read_bytes, unreadable
from engine.errors import GatherError, Location
from engine.settings import ReadLimits

CARD, CROISSANT, DATA_PACKAGE = "README.md", "croissant.json", "datapackage.json"

_FRONT_MATTER = re.compile(rb"\A---[ \t]*\r?\n(.*?\r?\n)---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_CROISSANT = re.compile(rb'"(?:dct:)?conformsTo"\s{0,9}:\s{0,9}"https?://mlcommons\.org/croissant/')
_HEAD = 65_536
"""Bytes at the beginning of a file that say whether it is Croissant, which has many names, such as `metadata.json`."""
_UNSTATED = frozenset({"other", "unknown"})
"""Values of a card's `license` that name no license."""

_LABEL = re.compile(r".{1,100}")
"""The name of a license, which is often in the place of its text."""
_CHOICE = re.compile(r"\sOR\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Resource:
    """One file of a dataset as its metadata describes it; None for what the metadata does not state."""

    path: str
    url: str | None = None
    sha256: str | None = None
    media_type: str | None = None
    license: str | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a data set: the file that it is from, its name, its license and its resources."""

    file: str
    name: str | None = None
    license: str | None = None
    resources: tuple[Resource, ...] = ()


def found(folder: Path, limits: ReadLimits) -> Metadata | None:
    """The metadata of a folder: Croissant, a data package, a card with front matter, or what a project states."""
    for file in (CROISSANT, DATA_PACKAGE):
        if (folder / file).is_file():
            return _READERS[file](folder / file, limits)
    named_otherwise = [path for path in folder.glob("[!.]*.json") if _is_croissant(path)]
    if len(named_otherwise) == 1:
        return _croissant(named_otherwise[0], limits)
    if (folder / CARD).is_file() and _front_matter(folder / CARD, limits) is not None:
        return _card(folder / CARD, limits)
    stated = {file: read(folder / file, limits) for file in PROJECT if (folder / file).is_file()}
    labels = {file: one.license for file, one in stated.items() if one.license is not None}
    return Metadata(", ".join(labels), license=_all([*labels.values()])) if labels else None


def read(path: Path, limits: ReadLimits) -> Metadata:
    """Read the metadata file at this path. Raises GatherError if it does not have the format of its name."""
    return _READERS[path.name](path, limits)


def _is_croissant(path: Path) -> bool:
    """Whether a file states that it is Croissant. No link is followed. Raises GatherError if it cannot be read."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return _CROISSANT.search(file.read(_HEAD)) is not None
    except OSError as error:
        raise unreadable(printable(str(path)), error) from error


def _front_matter(path: Path, limits: ReadLimits) -> bytes | None:
    match = _FRONT_MATTER.match(read_bytes(path, limits.document_bytes))
    return None if match is None else match[1]


def _card(path: Path, limits: ReadLimits) -> Metadata:
    text = _front_matter(path, limits)
    if text is None:
        raise GatherError(
            "it has no front matter, the block between two `---` lines at its beginning",
            remedy="use --from folder",
            where=Location(str(path), 1),
        )
    card = _mapping(load(text, str(path), limits))
    stated = [*_texts(card.get("license")), *_texts(card.get("licenses"))]  # its name until 2022
    labels = [label for label in stated if label.lower() not in _UNSTATED]
    return Metadata(CARD, _text(card.get("pretty_name")), _all(labels or _texts(card.get("license_name"))))


def _croissant(path: Path, limits: ReadLimits) -> Metadata:
    document = _mapping(load(read_bytes(path, limits.document_bytes), str(path), limits))
    resources = []
    for item in _mappings(document.get("distribution")):
        address = _text(item.get("contentUrl")) or ""
        media_types = _texts(item.get("encodingFormat"))
        if "containedIn" not in item and address:
            resources.append(
                _resource(
                    address, None, _text(item.get("sha256")), media_types[0] if media_types else None, _license_of(item)
                )
            )
    name = _text(document.get("name"))
    return Metadata(path.name, name, _license_of(document), tuple(resources))


def _license_of(item: dict[str, Any]) -> str | None:
    """The `license` of schema.org: texts, addresses, or CreativeWorks with one of these."""
    stated = item.get("license")
    works = [_text(work.get("url")) or _text(work.get("name")) for work in _mappings(stated)]
    return _all([*_texts(stated), *(label for label in works if label)])


def _data_package(path: Path, limits: ReadLimits) -> Metadata:
    document = _mapping(load(read_bytes(path, limits.document_bytes), str(path), limits))
    resources = []
    for item in _mappings(document.get("resources")):
        sources = [_text(source.get("path")) for source in _mappings(item.get("sources"))]
        kind, _, digest = (_text(item.get("hash")) or "").rpartition(":")
        for address in _texts(item.get("path")):
            source = sources[0] if len(sources) == 1 else None
            sha256 = digest if kind.lower() in {"sha256", "sha-256"} else None
            resources.append(_resource(address, source, sha256, _text(item.get("mediatype")), _licenses(item)))
    return Metadata(DATA_PACKAGE, _text(document.get("name")), _licenses(document), tuple(resources))


def _licenses(item: dict[str, Any]) -> str | None:
    """The `licenses` of a data package or resource: each has a name, a path (an address), or both."""
    labels = [_text(one.get("name")) or _text(one.get("path")) for one in _mappings(item.get("licenses"))]
    return _all([label for label in labels if label])


def _python_project(path: Path, limits: ReadLimits) -> Metadata:
    document = _toml(path, limits)
    project = _table(document, "project")
    stated = _texts(project.get("license")) or _texts(_table(document, "tool", "poetry").get("license"))
    classifiers = [label for label in _texts(project.get("classifiers")) if label.startswith("License ::")]
    texts = [text for text in _texts(_table(project, "license").get("text")) if _LABEL.fullmatch(text)]
    return Metadata(path.name, license=_all(stated or texts or classifiers))


def _node_package(path: Path, limits: ReadLimits) -> Metadata:
    document = _mapping(load(read_bytes(path, limits.document_bytes), str(path), limits))
    older = [label for one in _mappings(document.get("licenses")) for label in _texts(one.get("type"))]
    return Metadata(path.name, license=_all([*_texts(document.get("license")), *older]))


def _rust_package(path: Path, limits: ReadLimits) -> Metadata:
    document = _toml(path, limits)
    stated = [_table(document, *names).get("license") for names in (("package",), ("workspace", "package"))]
    # older manifests write `/` for OR
    return Metadata(path.name, license=_all([label.replace("/", " OR ") for one in stated for label in _texts(one)]))


def _toml(path: Path, limits: ReadLimits) -> dict[str, Any]:
    try:
        return tomllib.loads(read_bytes(path, limits.document_bytes).decode())
    except (ValueError, RecursionError) as error:
        raise GatherError(
            f"it is not valid TOML: {printable(str(error), 200)}",
            remedy="correct it, or use --from folder",
            where=Location(str(path)),
        ) from error


def _table(document: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        found = document.get(name)
        document = found if isinstance(found, dict) else {}
    return document


PROJECT: dict[str, Callable[[Path, ReadLimits], Metadata]] = {
    "pyproject.toml": _python_project,
    "package.json": _node_package,
    "Cargo.toml": _rust_package,
}
"""What states the license of a project in its root folder."""

_READERS: dict[str, Callable[[Path, ReadLimits], Metadata]] = {
    CARD: _card,
    CROISSANT: _croissant,
    DATA_PACKAGE: _data_package,
    **PROJECT,
}


def _resource(
    address: str, source: str | None, sha256: str | None, media_type: str | None, license_: str | None
) -> Resource:
    """A resource under the path that its address names: of a URL, its last part."""
    remote = "://" in address
    path = re.split(r"[?#]", address)[0].rpartition("/")[2] if remote else address.removeprefix("./")
    url = address if remote else source if source and "://" in source else None
    return Resource(path, url, sha256.lower() if sha256 else None, media_type, license_)


def _all(labels: list[str]) -> str | None:
    """Several licenses of one thing all apply, unless a person states otherwise."""
    different = [*dict.fromkeys(labels)]
    if len(different) > 1:
        different = [f"({label})" if _CHOICE.search(label) else label for label in different]
    return " AND ".join(different) or None


def _mapping(document: Document) -> dict[str, Any]:
    if not isinstance(document.value, dict):
        raise GatherError("it is not a mapping", remedy="correct it, or use --from folder", where=document.where())
    return document.value


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in _items(value) if isinstance(item, dict)]


def _texts(value: Any) -> list[str]:
    return [item.strip() for item in _items(value) if isinstance(item, str) and item.strip()]


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else (value,)


def _text(value: Any) -> str | None:
    return next(iter(_texts(value)), None)

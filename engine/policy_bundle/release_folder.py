"""The files of a release in memory: read within limits, and refused unless all parts are consistent.

release.json      the release statement, with the digest of everything else but the approval
rules.tar.gz      the archives that OPA serves, each with its own signature
values.tar.gz
catalogue.json    the texts of every finding code
places.json       the location of each value at the build
changes.json      what differs from the release before, and how it would change recorded decisions
approval.json     who approved exactly this statement; absent until the release is approved
.signatures.json  the signature of all files above; absent until the release is signed
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from engine.documents.canonical import canonical, digest
from engine.documents.files import printable, read_bytes
from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.errors import GatherError, Location, PolicyError, Problem, reason_of
from engine.model import Digest, Model
from engine.opa.packed import MANIFEST, PACKED_BYTES, SIGNATURES, UNPACKED_BYTES, VALUES_DATA, unpacked
from engine.opa.reply import RULES, VALUES
from engine.policy_bundle import archives
from engine.policy_bundle.catalogue import Catalogue
from engine.policy_bundle.last_release import LastRelease
from engine.policy_bundle.signing import SIGNATURE_BYTES

STATEMENT, CATALOGUE, PLACES = "release.json", "catalogue.json", "places.json"
CHANGES, APPROVAL = "changes.json", "approval.json"

_BYTES = {
    STATEMENT: 64 << 10,
    CATALOGUE: UNPACKED_BYTES,
    PLACES: UNPACKED_BYTES,
    CHANGES: UNPACKED_BYTES,
    APPROVAL: 64 << 10,
    RULES: PACKED_BYTES,
    VALUES: PACKED_BYTES,
    SIGNATURES: SIGNATURE_BYTES,
}
"""What a release consists of, and how many bytes each file may have."""

_AGAIN = "get the release again from its signer"
_NO_RELEASE = "name a folder that `engine policy build --output` wrote"
_PATH = tuple[str | int, ...]
_LOCATIONS = TypeAdapter(tuple[list[tuple[str, str, list[tuple[_PATH, int]]]], list[tuple[_PATH, str]]])
"""What `values.locations` reads."""


Principal = Annotated[str, Field(min_length=1, max_length=256)]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class _File(Model):
    """A file of a release."""

    @property
    def written(self) -> bytes:
        """The bytes of the file."""
        return canonical(self.model_dump(mode="json"))


class Statement(_File):
    """`release.json`: the release statement.

    `sequence` grows with every release of a policy; `created_at` is UTC and only for people, as are the `notes`.
    `author` is the principal who built it; another person approves it.
    """

    format: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,199}$")]
    sequence: Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
    created_at: Moment
    engine: Annotated[str, Field(max_length=200)]
    author: Principal
    notes: Annotated[str, Field(max_length=2_000)]
    rules: Digest
    values: Digest
    catalogue: Digest
    places: Digest
    changes: Digest

    @property
    def digest(self) -> str:
        """What an approval is bound to: it covers the content of the release."""
        return digest(self.written)

    @property
    def last(self) -> LastRelease:
        """What to remember of this release, so that nothing older is served after it."""
        return LastRelease(name=self.name, sequence=self.sequence, digest=self.digest)


class ReleaseApproval(_File):
    """`approval.json`: the yes of a person, to exactly the statement with this digest; `approved_at` is UTC."""

    format: Literal[1] = 1
    release: Digest
    approver: Principal
    reason: Annotated[str, Field(max_length=1_000)] | None
    approved_at: Moment


@dataclass(frozen=True, slots=True)
class Contents:
    """A release with consistent parts, whose author is not verified.

    `files` are the bytes by name, `rules` and `values` the files of the archives without signatures. `approval` is
    None until it is approved; one that is there is of this statement, and of another person than its author.
    """

    files: Mapping[str, bytes]
    statement: Statement
    catalogue: Catalogue
    rules: Mapping[str, bytes]
    values: Mapping[str, bytes]
    approval: ReleaseApproval | None


def read(folder: Path) -> Contents:
    """Read a release folder once. Raises PolicyError with all problems."""
    return check({name: _file(folder, name) for name in _names(folder)}, folder)


def check(files: Mapping[str, bytes], folder: Path) -> Contents:
    """The same for files that were read already; `folder` is for messages."""
    found = [
        _problem(folder, name, "the file is missing", _NO_RELEASE)
        for name in _BYTES
        if name not in {*files, SIGNATURES, APPROVAL}
    ]
    if found:
        raise PolicyError(tuple(found))
    try:
        statement = Statement.model_validate_json(files[STATEMENT])
    except ValidationError as error:
        raise PolicyError((_problem(folder, STATEMENT, "this is not a release statement", _AGAIN),)) from error
    approval = _approval(folder, files.get(APPROVAL), statement, found)
    rules = _archive(folder, RULES, files[RULES], found)
    values = _archive(folder, VALUES, files[VALUES], found)
    found += [_problem(folder, name, message, _AGAIN) for name, message in _differences(files, statement)]
    if rules is not None:
        found += [_problem(folder, RULES, message, _AGAIN) for message in _rules_differences(rules, statement)]
    if values is not None:
        found += [_problem(folder, VALUES, message, _AGAIN) for message in _values_differences(values, statement)]
    if found or rules is None or values is None:
        raise PolicyError(tuple(found))
    try:
        catalogue = Catalogue.model_validate_json(files[CATALOGUE])
        _LOCATIONS.validate_json(files[PLACES], strict=True)
    except ValidationError as error:
        remedy = "use an engine of the version that built the release, or build it again"
        raise PolicyError((_problem(folder, CATALOGUE, "this engine version cannot read it", remedy),)) from error
    return Contents(files, statement, catalogue, rules, values, approval)


def _names(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        reason = reason_of(error)
        raise PolicyError((Problem(Location(str(folder)), f"not a release: {reason}", _NO_RELEASE),)) from error
    if STATEMENT not in names:
        raise PolicyError((_problem(folder, STATEMENT, "the file is missing", _NO_RELEASE),))
    strange = [name for name in names if name not in _BYTES]
    if strange:
        message = "the file does not belong to the release"
        raise PolicyError(tuple(_problem(folder, printable(name), message, _AGAIN) for name in strange[:20]))
    return names


def _file(folder: Path, name: str) -> bytes:
    path = folder / name
    if path.is_symlink():
        raise PolicyError((_problem(folder, name, "this is a link", "replace it with the file itself"),))
    try:
        return read_bytes(path, _BYTES[name])
    except GatherError as error:
        raise PolicyError((_problem(folder, name, error.message, error.remedy),)) from error


def _approval(folder: Path, data: bytes | None, statement: Statement, found: list[Problem]) -> ReleaseApproval | None:
    if data is None:
        return None
    remedy = "have another person approve it: `engine policy approve`"
    try:
        approval = ReleaseApproval.model_validate_json(data)
    except ValidationError:
        found.append(_problem(folder, APPROVAL, "this is not an approval of a release", remedy))
        return None
    if approval.release != statement.digest:
        found.append(_problem(folder, APPROVAL, "it approves another release", remedy))
    if approval.approver == statement.author:
        found.append(_problem(folder, APPROVAL, "the approver is the author of the release", remedy))
    return approval


def _archive(folder: Path, name: str, data: bytes, found: list[Problem]) -> dict[str, bytes] | None:
    try:
        files = unpacked(data, name)
    except GatherError as error:
        found.append(_problem(folder, name, error.message, error.remedy))
        return None
    files.pop(SIGNATURES, None)
    return files


def _differences(files: Mapping[str, bytes], statement: Statement) -> Iterator[tuple[str, str]]:
    if statement.written != files[STATEMENT]:
        yield STATEMENT, "it is not in the form that the engine writes"
    for name, stated in (
        (CATALOGUE, statement.catalogue),
        (PLACES, statement.places),
        (CHANGES, statement.changes),
    ):
        if digest(files[name]) != stated:
            yield name, f"its digest is not the one in {STATEMENT}"


def _rules_differences(files: Mapping[str, bytes], statement: Statement) -> Iterator[str]:
    content = {name: data for name, data in files.items() if name != MANIFEST}
    for name in content:
        if not (name.startswith(f"{archives.RULES_ROOT}/") and name.endswith(".rego")):
            yield f"the member `{printable(name)}` is not a rule file"
    metadata = _metadata(files.get(MANIFEST, b""))
    if archives.manifest(content, archives.RULES_ROOT, metadata) != (files.get(MANIFEST), statement.rules):
        yield f"its revision, or the one in {STATEMENT}, is not the digest of its content"
    elif metadata.get(archives.WORDS) != statement.catalogue:
        yield f"its manifest states another digest of {CATALOGUE} than {STATEMENT}"


def _values_differences(files: Mapping[str, bytes], statement: Statement) -> Iterator[str]:
    content = {name: data for name, data in files.items() if name != MANIFEST}
    if set(content) != {VALUES_DATA}:
        yield f"it contains something other than `{VALUES_DATA}`"
    elif not _is_object(content[VALUES_DATA]):
        yield f"`{VALUES_DATA}` is not a JSON object"
    if archives.manifest(content, archives.VALUES_ROOT, {}) != (files.get(MANIFEST), statement.values):
        yield f"its revision, or the one in {STATEMENT}, is not the digest of its content"


def _metadata(manifest: bytes) -> dict[str, str]:
    """The metadata of a manifest; empty if it cannot be read, and then the manifest is refused."""
    try:
        metadata: Any = json.loads(manifest)["metadata"]
        return {str(name): str(text) for name, text in metadata.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _problem(folder: Path, name: str, message: str, remedy: str) -> Problem:
    return Problem(Location(str(folder / name)), message, remedy)

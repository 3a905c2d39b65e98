"""Source bundle, format 1: its closed model, and a lenient reading of documents that violate it.

A document that breaks the format is still read, so that it gets a decision and not a crash: every
wrong field is taken out of the tree and named as an error, by a path without any user content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from engine.documents.files import Document, Path_
from engine.errors import GatherError, Location
from engine.facts.archives.field_notes import note
from engine.facts.net.urls import LONGEST, canonical_host
from engine.facts.text.hidden import is_blank
from engine.model import Model, Sha256, Word, passing
from engine.times import RFC3339, seconds

DOCUMENT = "bundle.yaml"
"""The file of a source bundle that describes its content."""

MOST_RECORDS = 100_000
"""Records of one source bundle: as many as it may have files."""

_MOST_NOTES = 10
"""Maximum number of unknown fields reported for one mapping."""

MOST_ERRORS = 50_000
"""Errors named one by one; what is wrong beyond them is taken out all the same, and counted as one."""

_LONGEST_PART = 255
"""Bytes of one part of a path (NAME_MAX of Linux)."""

_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MEDIA_NAME = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"


def last_second(day: str) -> int:
    """Seconds since 1970 UTC of the last second of the day `YYYY-MM-DD`. Raises ValueError."""
    if _DATE.fullmatch(day) is None:
        raise ValueError("not a date")
    return seconds(f"{day}T23:59:59Z")


def _host(text: str) -> str:
    if not canonical_host(text):
        raise ValueError("not a canonical host name")
    return text


def _content_path(text: str) -> str:
    parts = text.split("/")
    if any(part in {"", ".", ".."} or len(part.encode()) > _LONGEST_PART for part in parts) or _CONTROL.search(text):
        raise ValueError("not a plain relative path")
    return text


def _seen(text: str) -> str:
    if is_blank(text):
        raise ValueError("blank")
    return text


def _plain(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("has control characters")
    return text


Purpose = Literal["train", "eval", "tool", "environment"]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,127}$")]
"""An id or alias that is safe in messages, records and file names."""

Timestamp = Annotated[
    str,
    Field(json_schema_extra={"pattern": f"^{RFC3339}$"}),
    passing(seconds, "be a UTC time such as 2026-11-03T10:00:00Z"),
]
Date = Annotated[
    str, Field(json_schema_extra={"pattern": f"^{_DATE.pattern}$"}), passing(last_second, "be a day such as 2030-12-31")
]
Host = Annotated[str, AfterValidator(_host)]
ContentPath = Annotated[str, Field(max_length=1_024), AfterValidator(_content_path)]
Name = Annotated[str, Field(min_length=1, max_length=254), AfterValidator(_plain), AfterValidator(_seen)]
License = Annotated[str, Field(max_length=2_000), AfterValidator(_plain)]
RecordKind = Literal["fixture", "external", "synthetic", "transformed"]
MediaType = Annotated[str, Field(max_length=255, pattern=rf"^{_MEDIA_NAME}/{_MEDIA_NAME}$")]
Url = Annotated[str, Field(max_length=LONGEST)]


_ID = "lower-case letters, digits, `.`, `_` and `-`, first a letter or a digit, at most 128 characters"
_WORD = "lower-case letters, digits and `_`, first a letter"
_HASH = "the SHA-256 of the content file, 64 lower-case hexadecimal digits; `engine source hash` writes it"
_TIME = "a UTC time such as 2026-11-02T09:30:00Z"


class Budget(Model):
    """How many retrievals the pipeline may make."""

    max_requests: Annotated[int, Field(ge=0, le=1_000_000)] = Field(description="a whole number from 0 to 1000000")


class Network(Model):
    """What external access the pipeline would have while it builds."""

    enabled: bool = Field(description="true or false")
    allowed_hosts: Annotated[list[Host], Field(max_length=1_000)] = Field(
        description="a list of exact host names in lower case, such as [data.example.org], or []"
    )
    budget: Budget = Field(description="a mapping such as {max_requests: 0}")
    audit_required: bool = Field(description="true")


class Sandbox(Model):
    """What generated code would meet while the pipeline builds."""

    generated_code: Literal["disabled", "sandboxed"] = Field(description="disabled or sandboxed")
    filesystem: Word = Field(description=f"a word such as artifact_subdir: {_WORD}")
    redaction: bool = Field(description="true or false")
    network: Word = Field(description=f"a word such as none: {_WORD}")


class Retention(Model):
    """The last day on which the content may be kept, and the legal basis."""

    until: Date = Field(description='the last day in quotes, such as "2030-12-31"')
    basis: Word = Field(description=f"a word such as contract or license: {_WORD}")


class Record(Model):
    """One content file: where it is, where it came from, and what it may be used for."""

    id: Id = Field(description=f"an id that no other record has: {_ID}")
    kind: RecordKind | None = Field(default=None, description="fixture, external, synthetic or transformed")
    path: ContentPath = Field(description="the path of a file below the folder of bundle.yaml, with `/`, without `..`")
    url: Url | None = Field(description="the https address that it came from, or null")
    origin_alias: Id = Field(description=f"the public name of the origin: {_ID}")
    sha256: Sha256 = Field(description=_HASH)
    media_type: MediaType = Field(description="a media type in lower case, such as text/csv")
    license: License = Field(description="one line of text, an SPDX expression such as CC-BY-4.0")
    retrieved_at: Timestamp | None = Field(default=None, description=f"when it was downloaded: {_TIME}")
    retention: Retention = Field(description='a mapping such as {until: "2030-12-31", basis: license}')
    export: Literal["allowed", "forbidden"] = Field(description="allowed or forbidden")


class LicenseDecision(Model):
    """Someone's decision on the license of one record, for exactly one content."""

    record: Id = Field(description="the id of the record that it is about")
    sha256: Sha256 = Field(description="the SHA-256 of the content that was reviewed, 64 lower-case hexadecimal digits")
    decision: Literal["accepted", "incompatible", "review_required", "unknown"] = Field(
        description="accepted, incompatible, review_required or unknown"
    )
    decided_by: Name = Field(description="the name of the person who decided, one line of 1 to 254 characters")
    decided_at: Timestamp = Field(description=f"when it was decided: {_TIME}")


class SourceBundle(Model):
    """`bundle.yaml`, format 1."""

    # `Literal[1]` would accept `true` and `1.0`
    format: Annotated[int, Field(ge=1, le=1)] = Field(description="the number 1")
    id: Id = Field(description=f"the name of this source bundle: {_ID}")
    purpose: Purpose = Field(description="train, eval, tool or environment")
    environment: Id = Field(description=f"the name of what will be built from it: {_ID}")
    export_license: License | None = Field(
        description="the license under which the result is shared, such as CC-BY-4.0, or null if it is not shared"
    )
    network: Network = Field(description="a mapping of enabled, allowed_hosts, budget and audit_required")
    sandbox: Sandbox = Field(description="a mapping of generated_code, filesystem, redaction and network")
    records: Annotated[list[Record], Field(max_length=MOST_RECORDS)] = Field(
        description=f"a list of mappings, one for each content file, at most {MOST_RECORDS:,}"
    )
    license_decisions: Annotated[list[LicenseDecision], Field(max_length=MOST_RECORDS)] = Field(
        description=f"a list of mappings, one for each record, at most {MOST_RECORDS:,}, or []"
    )


_LISTS: dict[str, type[Model]] = {"records": Record, "license_decisions": LicenseDecision}
"""The long lists: checked item by item, so that invalid items use no memory."""

_KINDS = {
    "missing": "missing",
    "extra_forbidden": "unknown_field",
    "literal_error": "unknown_value",
    "string_too_long": "too_long",
    "too_long": "too_long",
    "string_too_short": "too_short",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
}
"""Pydantic's error types in our words; those that end in `_type` are `wrong_type`, the rest `bad_format`."""


class SchemaError(Model):
    """One way a document breaks the format: `records.2.sha256` is `missing`. Never content.

    The id of an unknown field is the path of its mapping; the root is `bundle`.
    """

    id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a document, without its invalid parts.

    `pruned` contains only values that fit format 1; a list item that is entirely invalid is `{}`, a
    list of words with an invalid item is left out. It shares objects with the document: do not change it.
    `places` has the place of every error by its id, `notes` what is wrong there and what it should be.
    """

    pruned: dict[str, Any]
    errors: tuple[SchemaError, ...]
    places: Mapping[str, Location]
    notes: Mapping[str, str]
    document: Document


def read(document: Document) -> Reading:
    """Read a document as a source bundle of format 1.

    Raises GatherError, with file and line, only when a record's path leaves the source bundle or has a backslash.
    """
    root = document.value
    found = _Found(document)
    if not isinstance(root, dict):
        found.add("missing" if root is None else "wrong_type", ())
        return found.reading({})
    _refuse_escapes(document, root.get("records"))
    lists = {name: items for name in _LISTS if isinstance(items := root.get(name), list)}
    pruned = found.prune(SourceBundle, {**root, **{name: [] for name in lists}}, ())
    for name, items in lists.items():
        if len(items) > MOST_RECORDS:
            found.add("too_long", (name,))
            del pruned[name]
        else:
            pruned[name] = [found.prune(_LISTS[name], item, (name, index)) for index, item in enumerate(items)]
    return found.reading(pruned)


def _refuse_escapes(document: Document, records: Any) -> None:
    for index, record in enumerate(records if isinstance(records, list) else ()):
        path = record.get("path") if isinstance(record, dict) else None
        if not isinstance(path, str):
            continue
        where = document.where(("records", index, "path"))
        if path.startswith("/") or ".." in re.split(r"[/\\]", path):
            message = "the path of a record leaves the source bundle"
            remedy = "give a path below the source bundle, with `/` and without `..`"
            raise GatherError(message, remedy=remedy, where=where)
        if "\\" in path:
            raise GatherError("the path of a record has `\\`", remedy="write `/` between folders", where=where)


class _Found:
    """Collects the errors of a document with their places while it is pruned."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._errors: dict[SchemaError, None] = {}  # an ordered set
        self._places: dict[str, Location] = {}
        self._notes: dict[str, list[str]] = {}

    def reading(self, pruned: dict[str, Any]) -> Reading:
        notes = {identity: "; ".join(texts) for identity, texts in self._notes.items()}
        return Reading(pruned, tuple(self._errors), self._places, notes, self._document)

    def add(self, kind: str, path: Path_) -> None:
        named = path[:-1] if kind == "unknown_field" else path
        error = SchemaError(id=".".join(map(str, named)) or "bundle", kind=kind)
        place = self._document.where(path)
        self._errors[error] = None
        self._places.setdefault(error.id, Location(place.file, place.line, error.id))
        notes = self._notes.setdefault(error.id, [])
        if len(notes) < _MOST_NOTES:
            notes.append(
                note(SourceBundle, kind, self._document.stated(path).value, path, place.line if notes else None)
            )

    def prune(self, model: type[Model], value: Any, at: Path_) -> dict[str, Any]:
        """The value without its wrong fields; the value itself when it fits the model."""
        try:
            model.model_validate(value)
            fitting: dict[str, Any] = value  # nothing else fits a model in strict mode
        except ValidationError as error:
            if len(self._errors) < MOST_ERRORS:
                return self._without(value, error, at)
            self.add("too_many_errors", ())
            return {}
        return fitting

    def _without(self, value: Any, error: ValidationError, at: Path_) -> dict[str, Any]:
        pruned = _copied(value) if isinstance(value, dict) else {}
        for each in error.errors(include_url=False, include_context=False):
            kind = _kind(each["type"], each["input"])
            self.add(kind, (*at, *each["loc"]))
            if kind != "missing":
                _remove(pruned, each["loc"])
        return pruned


def _kind(pydantic_type: str, value: Any) -> str:
    if pydantic_type == "literal_error" and (isinstance(value, bool) or not isinstance(value, (str, int))):
        return "wrong_type"
    return _KINDS.get(pydantic_type) or ("wrong_type" if pydantic_type.endswith("_type") else "bad_format")


def _copied(value: dict[str, Any]) -> dict[str, Any]:
    """A copy whose mappings may be changed; lists are only ever left out as a whole."""
    return {key: _copied(inner) if isinstance(inner, dict) else inner for key, inner in value.items()}


def _remove(tree: dict[str, Any], path: Path_) -> None:
    """Remove the field at `path`; an invalid item removes its whole list."""
    fields = [str(part) for part in takewhile(lambda part: isinstance(part, str), path)]
    for field in fields[:-1]:
        tree = tree.get(field, {})
    if fields:
        tree.pop(fields[-1], None)

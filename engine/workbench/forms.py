"""Values in forms made from the schemas of their documents. What a form changes becomes an edit of the file's text.

It is handled like an edit that was typed: tried, previewed, and saved under the content that was shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from engine.api.messages import Response
from engine.documents.edits import changed, removed
from engine.documents.files import load
from engine.errors import EngineError, GatherError
from engine.settings import ReadLimits
from engine.values import DOCUMENTS
from engine.workbench import preview
from engine.workbench.desk import Desk
from engine.workbench.files import NEW, ConflictError, FileError, PolicyFile, form_address, found
from engine.workbench.pages import UnknownError
from engine.workbench.schema_forms import UNSET, Below, FormField, Node, field_of, fields, node_of
from engine.workbench.visit import Visit

_MOST_FIELDS, _MOST_DEEP = 40, 16
"""Fields of a page, and keys of a path."""

_FIELD = "f."
"""Begins the names of fields in a form."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a file of values: `base` is the object whose fields the form has, `new` whether it is not there."""

    file: PolicyFile
    path: tuple[str, ...]
    base: tuple[str, ...]
    node: Node
    parts: tuple[FormField | Below, ...]
    new: bool
    removable: bool

    @property
    def form_fields(self) -> list[FormField]:
        """The fields of the form."""
        return [one for one in self.parts if isinstance(one, FormField)][:_MOST_FIELDS]


def form(visit: Visit) -> Response:
    """A place in a file as a form."""
    path = _path(visit.query.get("path", "[]"))
    key = visit.query.get("key", "").strip()
    return _form(visit, _place(visit.desk, visit.query.get("file", ""), (*path, key) if key else path))


def _form(visit: Visit, place: _Place, status: int = 200, fault: EngineError | None = None) -> Response:
    file, path = place.file, place.path
    return visit.page(
        "values_form.html",
        status,
        place=place,
        file=file,
        path=json.dumps(path, ensure_ascii=False),
        above=[(part, form_address(file.name, path[:at])) for at, part in enumerate(path)],
        below=[(one, form_address(file.name, (*path, one.name))) for one in place.parts if isinstance(one, Below)],
        given={name.removeprefix(_FIELD): text for name, text in visit.form.items() if name.startswith(_FIELD)},
        own=lambda text: visit.desk.sources().with_own_files(text, opens=False),
        before=file.digest,
        counts=preview.COUNTS,
        count=preview.COUNTS[1],
        fault=fault,
        new=NEW,
    )


def _path(text: str) -> tuple[str, ...]:
    """The keys of a path. Raises UnknownError."""
    try:
        keys = json.loads(text)
    except (ValueError, RecursionError):
        keys = None
    if not isinstance(keys, list) or len(keys) > _MOST_DEEP or not all(isinstance(key, str) and key for key in keys):
        raise UnknownError("this file of values has no such place", remedy="follow a link of the page Values")
    return tuple(keys)


def _place(desk: Desk, name: str, path: tuple[str, ...]) -> _Place:
    """The place that a form is for. Raises FileError, PolicyError, UnknownError."""
    file = found(desk, name)
    if form_address(file.name) is None:
        raise FileError(f"`{file.name}` has no schema, so there are no forms of it", remedy="edit its text")
    node = node_of(DOCUMENTS[PurePosixPath(name).stem].model_json_schema(), _document(desk, file))
    parents = [node]
    for key in path:
        child = parents[-1].child(key)
        if child is None:
            raise UnknownError("the schema has no such place", remedy="go on from the list of values")
        parents.append(child)
    node, parent = parents[-1], parents[-2] if path else None
    free = parent is not None and path[-1] not in parent.named
    new = node.value is UNSET and bool(path)
    if node.leaf and parent is not None:
        required = free or path[-1] in parent.schema.get("required", ())
        parts: tuple[FormField | Below, ...] = (field_of(path[-1], node, required=required),)
        return _Place(file, path, path[:-1], node, parts, new, free and not new)
    return _Place(file, path, path, node, tuple(fields(node)), new, free and not new)


def _document(desk: Desk, file: PolicyFile) -> Any:
    """The document of a file; for one that is laid over the shipped values, what is in force."""
    if _is_overlay(file):
        return desk.policy().data[PurePosixPath(file.name).stem]
    return load(file.text.encode("utf-8"), file.name, ReadLimits()).value


def _is_overlay(file: PolicyFile) -> bool:
    return not file.name.startswith("policy/")


def sent(visit: Visit) -> Response:
    """Turn a form into an edit of its file, and preview that as any other edit."""
    place = _place(visit.desk, visit.form.get("file", ""), _path(visit.form.get("path", "")))
    if visit.form.get("before") != place.file.digest:
        message = f"`{place.file.name}` has changed since you opened the form; nothing was done"
        return _form(visit, place, 409, ConflictError(message, remedy="look at the values again, and repeat your edit"))
    try:
        text = _edited(place, visit.form)
    except GatherError as error:
        return _form(visit, place, 422, error)
    return preview.tried(visit, place.file, text, place.file.digest)


def _edited(place: _Place, form: Mapping[str, str]) -> str:
    """The text of the file with what the form changes. Raises GatherError, FileError."""
    text = place.file.text
    if form.get("verb") == "remove" and place.removable:
        return _unset(place, text, place.path)
    row: dict[str, Any] = {}
    for field in place.form_fields:
        entered = form.get(_FIELD + field.name, "").replace("\r\n", "\n")
        if entered.strip() == field.text.strip():
            continue
        value = field.value(entered)
        path = (*place.base, field.name)
        if place.new and value is not UNSET and not place.node.leaf:
            row[field.name] = value
        elif value is not UNSET:
            text = changed(text, path, value)
        elif field.stated:
            text = _unset(place, text, path)
    if place.new and not place.node.leaf:
        text = changed(text, place.path, row)
    return text


def _unset(place: _Place, text: str, path: tuple[str, ...]) -> str:
    """Take a value away; one of the shipped values is taken away by a null in the file that is laid over them."""
    return changed(text, path, None) if _is_overlay(place.file) else removed(text, path)

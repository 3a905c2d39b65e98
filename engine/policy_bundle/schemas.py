"""What rules may read, as JSON Schemas: the input of each point, and the values of `policy/`.

`opa check --schema` judges copies of the rules that name their schema: rules of a point are judged
by its input, those of every point by what all inputs have, and helpers by the inputs of the points
that reach them. OPA judges no argument of a function, no element that `every` binds, and nothing
below a mapping with free keys. For the item of a requirement the copy binds it where OPA looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from engine.errors import Location, Problem
from engine.facts.text.nearest import did_you_mean

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]

HEAD = (
    "# METADATA",
    "# scope: package",
    "# schemas:",
    "#   - input: schema.input.{name}",
    "#   - data.policy: schema.policy",
)
"""The text above `package` in a copy; `name` is the file of an input schema."""

_PACKAGE = re.compile(r"^package ", re.MULTILINE)
_ITEM = re.compile(r"^\tnot \{\n\t\t(\w+) := __item\n", re.MULTILINE)
"""How the generator begins the conditions of an item: bound inside `not`, where OPA knows no types."""
_NUMBERS = re.compile(r"[0-9]+")
"""Names that differ in a number are different names, such as versions."""


def annotated(text: str, name: str) -> str:
    """The copy of a rule file that is judged by a schema; every line is len(HEAD) lines further down."""
    head = "\n".join(HEAD).format(name=name)
    return _PACKAGE.sub(f"{head}\npackage ", _ITEM.sub("\t\\1 = __item\n\tnot {\n", text), count=1)


def union(schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """What one of these inputs has."""
    return _joined(schemas, lambda bodies: {"anyOf": list(bodies.values())})


def policy(documents: Mapping[str, Schema]) -> dict[str, Any]:
    """`data.policy` with these documents."""
    return _joined(documents, lambda bodies: {"type": "object", "properties": bodies, "additionalProperties": False})


def common(schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """What all of these inputs have."""
    first, *others = schemas.values()
    shared = {
        name: schema
        for name, schema in first.get("properties", {}).items()
        if all(name in other.get("properties", {}) for other in others)
    }
    return {**first, "properties": shared, "required": list(shared)} if shared else {}


def at(schema: Schema, path: Iterable[str | None]) -> Schema | None:
    """The schema at a path; None if nothing can be there, {} if anything can.

    A None in the path is any key of a mapping or any item of a list.
    """
    found = [schema]
    for part in path:
        found = [below for one in found for below in _below(one, part, schema)]
        if any(not one for one in found):
            return {}
    return None if not found else found[0] if len(found) == 1 else {"anyOf": found}


def values_at(schema: Schema, path: Iterable[str | None]) -> list[str]:
    """The only texts that are valid at a path; empty if others are valid too."""
    found = at(schema, path)
    forms = [] if found is None else _forms(found, schema)
    if not forms or not all("enum" in one or "const" in one for one in forms):
        return []
    return [value for one in forms for value in one.get("enum", [one.get("const")]) if isinstance(value, str)]


def types_at(schema: Schema, path: Iterable[str | None]) -> set[str]:
    """The types that are valid at a path, as Rego names them; empty if any is."""
    found = at(schema, path)
    types = {"number" if type_ == "integer" else type_ for one in _forms(found or {}, schema) for type_ in _types(one)}
    return set() if "any" in types else types


def is_list(schema: Schema, root: Schema) -> bool:
    """Whether what a schema describes may be a list."""
    return not schema or any(not one or one.get("type") == "array" for one in _forms(schema, root))


def mistaken(schema: Schema, path: Sequence[str | None], what: str) -> tuple[str, str]:
    """Where an invalid path first goes wrong, and the remedy: the keys that are valid there."""
    end = next((end for end in range(1, len(path)) if at(schema, path[:end]) is None), len(path))
    wrong = path[end - 1] or ""
    return wrong, name_remedy(wrong, names_at(schema, path[: end - 1]), f"known {what}")


def names_at(schema: Schema, path: Iterable[str | None]) -> list[str]:
    """The fields that a schema names at a path, sorted."""
    return sorted({name for one in _forms(at(schema, path) or {}, schema) for name in one.get("properties", ())})


def name_remedy(wrong: str, known: Iterable[str], what: str) -> str:
    """What to do about a name that is not known."""
    listed = list(known)
    return f"{likely(wrong, listed)}{what} here: {', '.join(f'`{one}`' for one in listed[:40]) or 'none'}"


def likely(wrong: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """The question before a remedy, and a space; empty if no known name is spelled like the wrong one."""
    close = closest(wrong, known, cutoff)
    return "" if close is None else f"{did_you_mean((close,))} "


def closest(wrong: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """The known name that is spelled most like a wrong one; None if there is none like it."""
    return next(iter(get_close_matches(wrong, known, 1, cutoff)), None)


def meant(path: Path, keys: Iterable[str], where: Callable[[Path], Location | None]) -> str | None:
    """The key, among those beside a path, that another file has and that differs by hardly more than a typing error."""
    *table, name = path
    alike = [one for one in keys if one != name and _NUMBERS.findall(one) == _NUMBERS.findall(str(name))]
    typed = [one for one in alike if abs(len(one) - len(str(name))) <= 1]
    others = [one for one in typed if _file(where((*table, one))) != _file(where(path))]
    return closest(str(name), others, 0.85)


def _file(place: Location | None) -> str | None:
    return None if place is None else place.file


def problem(error: Mapping[str, Any], file: str, line: int | None) -> Problem | None:
    """OPA's error for a reference that no schema knows; None for other errors."""
    reference = str(error.get("message", "")).partition("undefined ref: ")[2].splitlines()
    details = error.get("details")
    if not reference or not isinstance(details, dict) or not isinstance(details.get("ref"), list):
        return None
    kind = "values" if reference[0].startswith("data.policy") else "facts"
    have = str(details["ref"][details["pos"]]["value"])
    known = [str(one) for one in details.get("oneOf") or ()]
    message = f"`{reference[0]}`: there are no {kind} `{have}` here, so it is never defined"
    remedy = name_remedy(have, known, f"known {kind}")
    if (kind, have) == ("facts", "parameters"):
        remedy = "read a value of values/parameters.yaml, as `data.policy.parameters.<name>`"
    return Problem(Location(file, line), message, remedy)


def _joined(schemas: Mapping[str, Schema], join: Any) -> dict[str, Any]:
    """Several schemas as one, with separate definitions."""
    bodies, definitions = {}, {}
    for name, schema in schemas.items():
        moved = json.loads(json.dumps(_bare(schema)).replace('"#/$defs/', f'"#/$defs/{name}.'))
        definitions.update({f"{name}.{one}": body for one, body in moved.pop("$defs", {}).items()})
        bodies[name] = moved
    return {**join(bodies), "$defs": definitions}


def _bare(node: Any) -> Any:
    """A schema without texts for people: OPA would read an `id` in a default as the name of a schema."""
    if isinstance(node, list):
        return [_bare(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        name: {key: _bare(one) for key, one in value.items()} if name in {"properties", "$defs"} else _bare(value)
        for name, value in node.items()
        if name not in {"default", "title", "description", "examples"}
    }


def _forms(schema: Schema, root: Schema) -> list[Schema]:
    """The alternatives of a schema, references followed."""
    if "$ref" in schema:
        return _forms(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return [form for one in schema["anyOf"] for form in _forms(one, root)]
    return [schema]


def _types(form: Schema) -> list[str]:
    types = form.get("type", "any")
    return types if isinstance(types, list) else [types]


def _below(schema: Schema, part: str | None, root: Schema) -> Iterable[Schema]:
    for form in _forms(schema, root):
        properties = form.get("properties", {})
        if part is None and form.get("type") == "array":
            yield form.get("items", {})
        elif part in properties:
            yield properties[part]
        else:
            yield from properties.values() if part is None else ()
            yield from _free(form)


def _free(form: Schema) -> Iterable[Schema]:
    """The schemas of keys that a mapping is free to choose."""
    patterned = form.get("patternProperties", {}).values()
    unknown = form.get("type") == "object" and not form.get("properties") and not patterned
    free = form.get("additionalProperties", unknown or form.get("type") is None)
    yield from patterned
    yield from [free] if isinstance(free, dict) else [{}] if free else ()

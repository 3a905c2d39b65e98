"""Documents as their models, and pydantic's errors as problems: the place, what is wrong, what to do.

One problem a mistake: of a value that may have several forms, the form that fits best is explained, and a field that is
missing because its name is misspelled counts as misspelled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from engine.documents.canonical import canonical
from engine.documents.files import Document, load, printable
from engine.documents.validation import PATTERNS, PROBLEMS, place_of, without_lists_of_invalid_items
from engine.errors import GatherError, Location, Problem
from engine.facts.archives.field_notes import TYPES
from engine.facts.text.nearest import did_you_mean
from engine.policy_bundle import schemas
from engine.settings import ReadLimits

ModelT = TypeVar("ModelT", bound=BaseModel)
_Path: TypeAlias = tuple[int | str, ...]

_MESSAGES = {
    **PROBLEMS,
    "string_too_short": "is empty",
    "string_pattern_mismatch": "has the wrong form; it should be {form}",
}
_SHOULD = {
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "string_type": "text",
    "int_type": "a whole number without a decimal point",
    "int_from_float": "a whole number without a decimal point",
    "float_type": "a number",
    "bool_type": "true or false",
}
FORMS = {
    **PATTERNS,
    r"\S+\s+\S+\s+\S+": "a sentence of at least three words",
    r"^((engine\.)?[a-z][a-z0-9_]*(:[a-z][a-z0-9_]*)?|[A-Z][A-Z0-9_]*_MESSAGE|[A-Z][A-Za-z]*Error)$": (
        "lower-case letters, digits and `_`, such as license_unknown"
    ),
    "^(-#|--?[!-<>-~]+|[!-~]{1,3})$": "an option such as --output or -o, or a word of up to 3 characters",
    "^(0|[1-9][0-9]{0,5})(\\.[0-9]{1,6})?$": 'a price in quotes, such as "0.15"',
    "^(ACE|DoS|injection)(, (ACE|DoS|injection))*$": "ACE, DoS, injection or several of them, as in `ACE, DoS`",
    "^(\\*|group:[a-z][a-z0-9_]*|[A-Za-z0-9_.-]{1,128}\\*?)$": "a tool, files_*, group:files or *",
    "^-[A-Za-z-]{1,30}[ =]?(\\*|[A-Za-z]{1,10}:\\*|\\*:\\*)$": (
        "an option with `*` for the secret, such as --token=* or -u *:*"
    ),
    "^/": "a path that begins with /",
    "^/[!-~]+$": "an absolute path without spaces, such as /opt/server",
    "^/usr/(?:[A-Za-z0-9_+-][A-Za-z0-9_.+-]*/)*[A-Za-z0-9_+-][A-Za-z0-9_.+-]*$": "a path such as /usr/bin/git",
    "^[!-~]+( [!-~]+)*$": "words with single spaces between them, such as git commit",
    "^[!-~]{16,512}$": "16 to 512 visible ASCII characters without spaces",
    "^[!-~]{4,64}$": "4 to 64 visible ASCII characters without spaces",
    "^[A-Z0-9-]+$": "a charset in capitals, such as UTF-8",
    "^[A-Z][A-Z0-9_]*$": "a variable in capitals, such as LANG",
    "^[A-Z]{3}$": "a currency such as EUR",
    "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/?$": "a relative path, such as notes/ or notes/a.txt",
    "^[A-Za-z0-9._-]+\\*?$": "the name of a file such as .DS_Store, or how it begins, such as ._*",
    "^[A-Za-z0-9](?:[A-Za-z0-9-]|_[A-Za-z0-9-]){0,63}$": (
        "letters, digits, `-` and single `_`, first a letter or digit, such as issue-tracker"
    ),
    "^[A-Za-z0-9][A-Za-z0-9 _.~/:=+-]{1,39}$": "how a secret begins, 2 to 40 characters, such as ghp_",
    "^[A-Za-z0-9][A-Za-z0-9._:/@-]*$": "the name of a model, such as vendor/model-1.5",
    "^[A-Za-z0-9_]+\\.[a-z0-9]+$": "the name of a file, such as main.py",
    "^(\\.|\\*|[A-Za-z0-9_][A-Za-z0-9_.-]*)$": "the name of one folder, such as scripts, or `.` or `*`",
    "^[A-Za-z][A-Za-z0-9_.:]*$": "a code such as license_unknown",
    "^[A-Za-z][A-Za-z0-9_]{0,63}$": "letters, digits and `_`, first a letter, at most 64 characters",
    "^[A-Za-z][A-Za-z_/]{0,63}$": "a method of MCP, such as tools/call",
    "^[A-Za-z_$][A-Za-z0-9_$]*$": "a name of the language, such as json",
    "^[A-Za-z_][A-Za-z0-9_]*$": "the name of a variable, such as PATH",
    "^[^/].*$": "a relative path, such as docs/guide.md",
    "^[a-z0-9-]+(\\.[a-z0-9-]+)+$": "a host in lower case, such as api.example.com",
    r"^[a-z0-9]+(\|[a-z0-9]+)*\??( [a-z0-9]+(\|[a-z0-9]+)*\??)*$": (
        "words in lower case, with `|` between alternatives and `?` after an optional one, such as drop|skip all? rules"
    ),
    "^[a-z0-9]+/[a-z0-9][a-z0-9.+-]*$": "a media type in lower case, such as text/plain",
    "^[a-z0-9][a-z0-9_.-]{0,63}$": "lower-case letters, digits, `_`, `.` and `-`, at most 64 characters",
    "^[a-z]+(/[a-z]+)*$": "lower-case words with / between them, such as tools/call",
    "^[a-z][a-z0-9 _-]{1,30}$": "a program in lower case, with its command if it has some, such as docker login",
    "^[a-z][a-z0-9_-]*$": "lower-case letters, digits, `_` and `-`, first a letter",
    "^[a-z][a-z0-9_.+-]*$": "the name of a program, such as python3.11",
    r"^[a-z][a-z0-9_]*(\.([a-zA-Z0-9_-]+|\{[a-z0-9_.]+\}|\{[a-z0-9_.]+\{[a-z0-9_.]+\}[a-z0-9_.]*\}))*$": (
        "a path below policy/, such as licenses.licenses.{license.alternatives}"
    ),
    "^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*$": "a path of facts, such as bundle.records",
    "^[a-z][a-z_ ]*$": "lower-case words, such as stated",
    "^[a-z_]+(\\.[a-z_]+)*$": "a path of facts, such as license.expression",
    "^https://[a-z0-9-]+(\\.[a-z0-9-]+)+(:[1-9][0-9]{0,4})?$": "an origin, such as https://docs.example.com",
    "^https://[a-z0-9./:_-]+$": "an address in lower case, such as https://api.example.com/v1",
    "^https?://[^?#@\\s]+$": "an address such as https://runner.example.com, without `?`, `#` and `@`",
    "^https?://[a-z0-9.:\\[\\]-]+$": "an origin, such as https://runner.example.com",
}
"""Patterns of requests, of values, and of METADATA in words."""
_KEY = "[key]"
"""What pydantic appends to the location of a key."""
_REMEDIES = {
    "extra_forbidden": "correct the spelling or remove it",
    "missing": "write it",
}
_WORD = re.compile(r"'([^']*)'")
"""One of the words in pydantic's list of those which are expected."""
_EMPTY = "restore it, from version control or a backup"
_SHIPPED = "; without the file, shipped values are in force"
_NO_FIELDS = "write `name: value`, with a space after the colon"


def read(data: bytes, name: str, found: list[Problem], empty: str | None = None) -> Document | None:
    """The document in these bytes, or None with the reason added to `found`; `empty` is the remedy for no bytes."""
    empty = empty or f"{_EMPTY}{_SHIPPED if '/values/' in name else ''}"
    try:
        return load(data, name, ReadLimits(), empty, json_lines=True)
    except GatherError as error:
        found.append(Problem(error.where or Location(name), error.message, error.remedy))
        return None


def validated(
    model: type[ModelT],
    document: Document | None,
    found: list[Problem],
    *,
    first_line: int = 1,
    remedies: Mapping[str, str] | None = None,
    context: Mapping[str, Any] | None = None,
    overrides: Collection[_Path] = (),
) -> ModelT | None:
    """The document as its model, or None with the reasons added to `found`.

    `remedies` by dotted field come before the usual ones; `first_line` is the line of the file at which the
    document begins; `context` is what the model's validators get. No document, which is a problem already, is no model.
    """
    if document is None:
        return None
    try:
        return model.model_validate_json(canonical(document.value), context=context)
    except ValidationError as error:
        found.extend(_problems(error, model, document, first_line, remedies or {}, overrides))
        return None


def _problems(
    error: ValidationError,
    model: type[BaseModel],
    document: Document,
    first_line: int,
    remedies: Mapping[str, str],
    overrides: Collection[_Path],
) -> Iterator[Problem]:
    placed = [
        (found, place_of(found["loc"], document.value, missing=found["type"] in {"missing", "extra_forbidden"}))
        for found in _best_forms(error.errors(include_url=False), document.value)
    ]
    unknown = [path for found, path in placed if found["type"] == "extra_forbidden"]
    intended = _intended(model, document, unknown, overrides)
    rows = _intended_rows(document, [path[:-1] for found, path in placed if found["type"] == "missing"])
    for row, near in rows.items():
        name = printable(".".join(map(str, row)))
        message = f"`{name}` is a new row, and not all of its fields are written"
        yield Problem(document.where(row), message, f"{did_you_mean((near,))} correct the spelling or write all fields")
    misspelled = {*intended.values()}
    for found, path in placed:
        if found["type"] == "missing" and (path in misspelled or path[:-1] in rows):
            continue
        field = printable(".".join(map(str, path)))
        where = document.where(path)
        line = None if where.line is None else where.line + first_line - 1
        message = _message(found, f"`{field}`" if field else "the document")
        named = ".".join(part for part in path if isinstance(part, str))
        remedy = remedies.get(named) or (_REMEDIES.get(found["type"], "correct the value") if field else _NO_FIELDS)
        if path in intended:
            remedy = f"{did_you_mean((str(intended[path][-1]),))} {remedy}"
        elif found["type"] in {"literal_error", "enum"}:
            remedy = f"{schemas.likely(str(found['input']), _WORD.findall(found['ctx']['expected']))}{remedy}"
        yield Problem(Location(where.file, line, field or None), message, remedy)


def _intended(
    model: type[BaseModel], document: Document, unknown: Sequence[_Path], overrides: Collection[_Path]
) -> dict[_Path, _Path]:
    """For each field that a model does not know, the one beside it that its file lacks and is spelled alike."""
    schema = model.model_json_schema() if unknown else {}
    found: dict[_Path, _Path] = {}
    for path in unknown:
        around = path[:-1]
        there = reduce(lambda inner, part: inner[part], around, document.value)
        known = schemas.names_at(schema, (part if isinstance(part, str) else None for part in around))
        file = document.where(path).file
        own = [] if path in overrides else [one for one in there if document.where((*around, one)).file == file]
        if (close := schemas.closest(str(path[-1]), [one for one in known if one not in own])) is not None:
            found[path] = (*around, close)
    return found


def _intended_rows(document: Document, rows: Iterable[_Path]) -> dict[_Path, str]:
    """For each of these rows that only the recipe has, the shipped one beside it that is spelled alike."""
    found: dict[_Path, str] = {}
    for row in dict.fromkeys(row for row in rows if row):
        table = reduce(lambda inner, part: inner[part], row[:-1], document.value)
        if isinstance(table, dict) and (near := schemas.meant(row, table, document.where)) is not None:
            found[row] = near
    return found


def _message(found: Mapping[str, Any], field: str) -> str:
    context = found.get("ctx", {})
    if found["type"] in _SHOULD or found["type"] == _NO_FORM:
        value = found["input"]
        such = f", such as [{printable(value)}]" if found["type"] == "tuple_type" and isinstance(value, str) else ""
        should = context["expected"] if found["type"] == _NO_FORM else f"{_SHOULD[found['type']]}{such}"
        return f"{field} is {TYPES.get(type(value), 'empty')}; it should be {should}"
    message = found["msg"].removeprefix("Value error, ")
    form = FORMS.get(context.get("pattern"), "another one")
    if found["type"] not in _MESSAGES:
        return f"{field}: {message[:1].lower()}{message[1:]}"
    return f"{field} {_MESSAGES[found['type']].format(**{**context, 'form': form})}"


_NO_FORM = "no_form"
"""The type of our own error for a value that is of none of its forms."""


def _best_forms(errors: Sequence[Any], value: Any) -> list[Any]:
    """The errors, but of each value that may have several forms only those of the form that fits best.

    pydantic names the form in the location, after the path of the value.
    """
    found: list[Any] = []
    forms: dict[tuple[str | int, ...], dict[str | int, list[dict[str, Any]]]] = {}
    for error in without_lists_of_invalid_items(errors):
        loc, end = error["loc"], len(place_of(error["loc"], value, missing=False, whole=False))
        last = end == len(loc) - 1
        if end == len(loc) or loc[end] == _KEY or (last and error["type"] == "missing"):
            found.append(error)
        else:
            inner = {**error, "loc": (*loc[:end], *loc[end + 1 :])}
            forms.setdefault(loc[:end], {}).setdefault(loc[end], []).append(inner)
    for path, by_form in forms.items():
        tried = [_best_forms(inner, value) for inner in by_form.values()]
        fitting = [one for one in tried if all(error["loc"] != path for error in one)]
        if fitting or len(tried) == 1:
            found += min((len(one), number, one) for number, one in enumerate(fitting or tried))[2]
        else:
            should = [
                one["ctx"]["expected"] if "expected" in one.get("ctx", {}) else _SHOULD.get(one["type"])
                for one in (each[0] for each in tried)
            ]
            found.append({**tried[0][0], "type": _NO_FORM, "ctx": {"expected": " or ".join(filter(None, should))}})
    return found

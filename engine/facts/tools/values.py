"""Facts about the values of arguments that rules have conditions on: texts, numbers, e-mail addresses, SQL.

A value is one item or a flat list of items. What is nested, too large or a secret has none, so that nothing of it is
shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal, cast

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.facts.net.urls import canonical_host
from engine.facts.tools.sql import Dialect, SqlFacts, sql_facts
from engine.model import Model
from engine.secrets.forms import SecretForms
from engine.secrets.patterns import is_secret
from engine.secrets.redaction import is_secret_name

ITEMS, CHARACTERS = 200, 8_192
"""Most items of a value, and characters of one, that rules can compare."""

SQL = "sql_"
"""Prefix of the types of arguments that are SQL; the dialect follows."""

_LOCAL = r"[A-Za-z0-9_+'-](?:[A-Za-z0-9._+'-]{0,62}[A-Za-z0-9_+'-])?"
_DOMAIN = r"[A-Za-z0-9.-]{1,253}"
_ADDRESS = re.compile(
    rf"(?:(?:\"[^\"\\<>@,;:]{{0,128}}\" ?|[^\"\\<>@,;:()\[\]]{{0,128}})<{_LOCAL}@(?P<named>{_DOMAIN})>"
    rf"|{_LOCAL}@(?P<bare>{_DOMAIN}))"
)
_NEXT = re.compile(r", ?")


class Item(Model):
    """One value. `folded` is the text without what programs often ignore: case, width, blanks around it."""

    kind: Literal["text", "number", "boolean", "null"]
    text: str | None = None
    folded: str | None = None
    length: int | None = None
    domains: tuple[str, ...] | None = None
    number: int | float | None = None
    boolean: bool | None = None


class ArgumentValue(Model):
    """The value of an argument; `present` unless it is left out, null or an empty list. `size` counts its items.

    `shape` is `other` for what is nested or too large, and `hidden` for what contains a secret.
    """

    name: str
    present: bool
    shape: Literal["one", "list", "other", "hidden"]
    size: int
    items: tuple[Item, ...]
    sql: SqlFacts | None = None


def argument_values(
    arguments: Mapping[str, Any], ruled: Mapping[str, str], forms: SecretForms
) -> tuple[ArgumentValue, ...]:
    """The facts of the arguments that rules are about, in the order of their names. Never raises."""
    return tuple(_value(name, arguments.get(name), kind, forms) for name, kind in sorted(ruled.items()))


def _value(name: str, value: Any, kind: str, forms: SecretForms) -> ArgumentValue:
    if value is None or value == []:
        return ArgumentValue(name=name, present=False, shape="one", size=0, items=())
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(one, dict | list) for one in listed) or len(listed) > ITEMS:
        return ArgumentValue(name=name, present=True, shape="other", size=len(listed), items=())
    texts = [one for one in listed if isinstance(one, str)]
    if is_secret_name(name) or any(is_secret(text, forms) for text in (*texts, " ".join(texts))):
        return ArgumentValue(name=name, present=True, shape="hidden", size=len(listed), items=())
    return ArgumentValue(
        name=name,
        present=True,
        shape="list" if isinstance(value, list) else "one",
        size=len(listed),
        items=tuple(map(_item, listed)),
        sql=sql_facts(value, cast("Dialect", kind.removeprefix(SQL)))
        if kind.startswith(SQL) and isinstance(value, str)
        else None,
    )


def _item(value: Any) -> Item:
    if isinstance(value, str):
        if len(value) > CHARACTERS:
            return Item(kind="text", length=len(value))
        return Item(kind="text", text=value, folded=folded(value), length=len(value), domains=email_domains(value))
    if isinstance(value, bool):
        return Item(kind="boolean", boolean=value)
    if isinstance(value, int | float):
        exact = -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER
        return Item(kind="number", number=value if exact else None)
    return Item(kind="null")


def folded(text: str) -> str:
    """A text as a lenient program may read it: compatibility forms, lower case, nothing invisible, trimmed."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(one for one in plain if one.isprintable() or one.isspace()).strip()


def email_domains(text: str) -> tuple[str, ...] | None:
    """The domains of a text that is e-mail addresses and nothing else, in lower case; None for any other text."""
    found: list[str] = []
    position = 0
    while text.isprintable() and (match := _ADDRESS.match(text, position)) is not None:
        domain = (match["named"] or match["bare"]).lower()
        if not canonical_host(domain):
            return None
        found.append(domain)
        if match.end() == len(text):
            return tuple(dict.fromkeys(found))
        if (comma := _NEXT.match(text, match.end())) is None:
            return None
        position = comma.end()
    return None

"""Conditions of rules on the values of arguments, and their mistakes.

A condition is shown to hold, shown not to hold, or neither: for a value that is missing, of another type or not
understood. An allow rule needs the first; a rule that refuses or asks applies unless the second is the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt
from pydantic.types import Strict

from engine.documents.files import printable
from engine.facts.tools.sql import Kind
from engine.facts.tools.values import SQL, folded
from engine.model import Model
from engine.secrets.forms import least_length
from engine.values.fields import Items
from engine.values.hosts import is_host_or_domain

Number = StrictInt | StrictFloat
Plain = StrictBool | StrictInt | StrictFloat | str
Texts = Annotated[Items[Annotated[str, Field(min_length=1, max_length=1_024)]], Field(min_length=1)]
Count = Annotated[StrictInt, Field(ge=0)]
Bounds = Annotated[tuple[Count | None, Count | None], Strict(strict=False)]


class Sql(Model):
    """What a text of SQL may do. What is left out: in an allow rule nothing, in other rules anything."""

    statements: Annotated[Items[Kind], Field(min_length=1)] | None = Field(
        default=None, description="Kinds of statements; of a text with several, all of them, those in subqueries too."
    )
    tables: Literal["any"] | Texts | None = Field(
        default=None, description="Tables as they are written, such as `orders` or `public.orders`, or `any`."
    )
    functions: Literal["any"] | Texts | None = Field(
        default=None, description="Functions beside those of `plain_sql_functions`, or `any`."
    )


class Condition(Model):
    """One condition on an argument: exactly one of these, and perhaps `optional`.

    A list is held to it item by item; in an allow rule only beside `items`, or for `email_domains`.
    """

    one_of: Annotated[Items[Plain], Field(min_length=1)] | None = Field(
        default=None, description="The values: texts, numbers or truth values."
    )
    pattern: str | None = Field(
        default=None,
        description="The whole text: characters and classes such as `[A-Z0-9]`, each with a count such as `{3}` or "
        "`{1,10}`, as in policy/secrets.yaml.",
    )
    prefixes: Texts | None = Field(default=None, description="The text begins with one of these.")
    suffixes: Texts | None = Field(default=None, description="The text ends with one of these.")
    email_domains: Texts | None = Field(
        default=None,
        description="The text is one or more e-mail addresses at these domains, such as example.com or *.example.com.",
    )
    range: Annotated[tuple[Number | None, Number | None], Strict(strict=False)] | None = Field(
        default=None, description="The number is from the first to the second, both included; `null` is no bound."
    )
    length: Bounds | None = Field(default=None, description="Minimum and maximum number of characters of the text.")
    items: Bounds | None = Field(default=None, description="Minimum and maximum number of items of the list.")
    sql: Sql | None = Field(default=None, description="What the statements do. Only for arguments of a type `sql_…`.")
    optional: Literal[True] | None = Field(
        default=None,
        description="The argument may be left out, null or an empty list: then the condition holds for an allow rule, "
        "and other rules do not apply.",
    )


Conditions = Literal["any"] | Condition | Annotated[Items[Condition], Field(min_length=1)]

OPERATORS = tuple(name for name in Condition.model_fields if name != "optional")


def listed(conditions: Any) -> list[Any]:
    """The conditions on one argument as a list; `any` is none."""
    if conditions == "any":
        return []
    return list(conditions) if isinstance(conditions, list | tuple) else [conditions]


def problems(conditions: Conditions, types: Mapping[str, str], *, allow: bool) -> Iterator[str]:
    """What is wrong with the conditions on one argument; `types` are its types by tool."""
    each: list[Condition] = listed(conditions)
    for condition in each:
        yield from _problems(condition, types, allow=allow)
    if len({condition.optional for condition in each}) > 1:
        yield "write `optional` in all conditions on an argument, or in none"
    if len({_operator(condition) for condition in each}) < len(each):
        yield "write each kind of condition once for an argument"
    values = next((condition.one_of for condition in each if condition.one_of is not None), None)
    if values is not None and len(each) > 1:
        yield "`one_of` states the values already: leave the other conditions out"


def _operator(condition: Condition) -> str:
    return next((name for name in OPERATORS if getattr(condition, name) is not None), "")


def _problems(condition: Condition, types: Mapping[str, str], *, allow: bool) -> Iterator[str]:
    stated = [name for name in OPERATORS if getattr(condition, name) is not None]
    if len(stated) != 1:
        yield f"write exactly one of {', '.join(f'`{name}`' for name in OPERATORS)}"
        return
    name, operand = stated[0], getattr(condition, stated[0])
    wrong = sorted({kind for kind in types.values() if (name == "sql") != kind.startswith(SQL)})
    if wrong:
        yield f"`{name}` does not fit an argument of type {', '.join(f'`{kind}`' for kind in wrong)}"
    if name in {"range", "length", "items"}:
        yield from _bound_problems(name, operand)
    elif name == "pattern":
        yield from _pattern_problems(operand)
    elif name == "email_domains":
        yield from _domain_problems(operand)
    elif name == "sql":
        yield from _sql_problems(operand, allow=allow)
    elif not allow:
        yield from (
            f"`{printable(text)}` has no characters that are compared"
            for text in operand
            if isinstance(text, str) and not folded(text)
        )


def _bound_problems(name: str, bounds: tuple[float | None, float | None]) -> Iterator[str]:
    low, high = bounds
    if low is None and high is None:
        yield f"`{name}` without bounds covers everything: write `any`, or a bound"
    elif not all(bound is None or isfinite(bound) for bound in bounds):
        yield "a bound is a number"
    elif low is not None and high is not None and low > high:
        yield f"`{name}` from {low} to {high} contains nothing: write the smaller number first"


def _pattern_problems(pattern: str) -> Iterator[str]:
    try:
        least_length(pattern)
    except ValueError as error:
        yield f"`{printable(pattern)}`: {error}"


def _domain_problems(domains: Iterable[str]) -> Iterator[str]:
    for domain in domains:
        if not is_host_or_domain(domain):
            yield f"`{printable(domain)}` is not a domain: write it in lower case, such as example.com or *.example.com"


def _sql_problems(sql: Sql, *, allow: bool) -> Iterator[str]:
    if allow and sql.statements is None:
        yield "state the `statements` that are allowed"
    if not allow and sql == Sql():
        yield "state `statements`, `tables` or `functions`"
    if not allow and "any" in (sql.tables, sql.functions):
        yield "leave out what may be anything"

"""Section `contracts` of policy/code.yaml: what the output of a program must be, and what is said of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints
from pydantic_core import InitErrorDetails

from engine.model import Model
from engine.values.fields import Items, Text, value_error

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
Bound = Annotated[float, Field(ge=-(2**53), le=2**53)] | Literal["any"]
Places = Annotated[int, Field(ge=0, le=12)]

SAID_OF_A_RUN = ("exec_ms", "stdout_bytes", "stderr_bytes", "backend", "isolation")
"""What an answer may say of the run itself: milliseconds, bytes of output, the sandbox and its kind."""

NAMED = re.compile(r"\{([a-z][a-z0-9_]*)\}")
"""A name in an answer; there is nothing else that braces mean."""

_FIELD = "The name of the field."
_LEAST = "The least it may be, or `any`."
_MOST = "The most it may be, or `any`."


class Percent(Model):
    """How a rate is shown in percent, beside itself."""

    name: Name = Field(description="The name under which it is shown.")
    decimals: Places = Field(description="To how many places it is rounded.")


class NumberField(Model):
    """A number."""

    name: Name = Field(description=_FIELD)
    type: Literal["number"] = Field(description="What it must be.")
    minimum: Bound = Field(description=_LEAST)
    maximum: Bound = Field(description=_MOST)
    decimals: Places = Field(description="To how many places it is rounded where it is shown.")
    percent: Percent | None = Field(default=None, description="How it is shown in percent, if it is.")


class IntegerField(Model):
    """A whole number, written without point and exponent."""

    name: Name = Field(description=_FIELD)
    type: Literal["integer"] = Field(description="What it must be.")
    minimum: Bound = Field(description=_LEAST)
    maximum: Bound = Field(description=_MOST)


class ConvertibleField(Model):
    """A number, or text that is one; it is rounded before anything else is done with it."""

    name: Name = Field(description=_FIELD)
    type: Literal["convertible"] = Field(description="What it must be.")
    minimum: Bound = Field(description=_LEAST)
    maximum: Bound = Field(description=_MOST)
    decimals: Places = Field(description="To how many places it is rounded.")


class ChoiceField(Model):
    """One of a few texts."""

    name: Name = Field(description=_FIELD)
    type: Literal["choice"] = Field(description="What it must be.")
    one_of: Annotated[Items[Text], Field(min_length=1)] = Field(description="The texts it may be.")


class FlagField(Model):
    """True or false."""

    name: Name = Field(description=_FIELD)
    type: Literal["flag"] = Field(description="What it must be.")
    must_be: bool = Field(description="Which of the two.")


class RequestField(Model):
    """What the field of this name of the request says, which has to be carried."""

    name: Name = Field(description=_FIELD)
    type: Literal["request"] = Field(description="What it must be.")


OutputField = Annotated[
    NumberField | IntegerField | ConvertibleField | ChoiceField | FlagField | RequestField, Field(discriminator="type")
]


class Carried(Model):
    """A field of the request that the answer repeats."""

    name: Name = Field(description=_FIELD)
    case: Literal["as_is", "upper"] = Field(description="Whether it is repeated in upper case; compared likewise.")


class Contract(Model):
    """What the output of a program must be, and what is said of it."""

    fields: Annotated[Items[OutputField], Field(min_length=1)] = Field(
        description="The fields of the output, in the order of the checks; the first that fails is told."
    )
    carried: Items[Carried] = Field(description="Fields of the request that the answer repeats.")
    answer: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="The sentence of the answer, with the names of fields in braces."
    )


def errors(name: str, contract: Contract) -> Iterator[InitErrorDetails]:
    """Every mistake of one contract, at the path of its field."""
    at = ("contracts", name)
    fields = [field.name for field in contract.fields]
    carried = [field.name for field in contract.carried]
    percents = [
        field.percent.name for field in contract.fields if isinstance(field, NumberField) and field.percent is not None
    ]
    yield from _doubled((*at, "fields"), fields)
    yield from _doubled((*at, "carried"), carried)
    yield from _doubled((*at, "fields"), [*set(fields), *percents], what="percentage")
    for index, field in enumerate(contract.fields):
        yield from _field_errors((*at, "fields", index), field, carried)
    for one in sorted((set(carried) | set(SAID_OF_A_RUN)) & set(_computed(contract, percents))):
        yield value_error(f"`{one}` would mean two things in the answer", (*at, "carried"), one)
    yield from _answer_errors((*at, "answer"), contract.answer, {*fields, *percents, *carried, *SAID_OF_A_RUN})


def _computed(contract: Contract, percents: Iterable[str]) -> Iterator[str]:
    yield from percents
    yield from (field.name for field in contract.fields if not isinstance(field, RequestField))


def _field_errors(path: tuple[str | int, ...], field: OutputField, carried: list[str]) -> Iterator[InitErrorDetails]:
    if isinstance(field, RequestField) and field.name not in carried:
        yield value_error(f"`{field.name}` of the request has to be in `carried`", (*path, "name"), field.name)
    if isinstance(field, NumberField | IntegerField | ConvertibleField):
        low, high = field.minimum, field.maximum
        if isinstance(low, float) and isinstance(high, float) and low > high:
            yield value_error("nothing is between this and the maximum", (*path, "minimum"), low)
    if isinstance(field, NumberField) and field.percent is not None and "any" in {field.minimum, field.maximum}:
        yield value_error("what is shown in percent has bounds", (*path, "percent"), field.percent.name)


def _doubled(path: tuple[str | int, ...], names: list[str], what: str = "field") -> Iterator[InitErrorDetails]:
    for name, times in Counter(names).items():
        if times > 1:
            yield value_error(f"the {what} `{name}` is there twice", path, name)


def _answer_errors(path: tuple[str | int, ...], answer: str, known: set[str]) -> Iterator[InitErrorDetails]:
    for name in sorted(set(NAMED.findall(answer)) - known):
        yield value_error(f"nothing is named `{name}`: use one of {', '.join(sorted(known))}", path, answer)
    if set("{}") & set(NAMED.sub("", answer)):
        yield value_error("a brace belongs to no name: write `{name}`", path, answer)

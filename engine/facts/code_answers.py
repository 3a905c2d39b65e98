"""The result of a program, its metrics and the sentence about them, made from the limits of a decision alone.

Rounding is done here and not in Rego, which rounds in decimals: Python rounds the number that the program
gave, as the program would have. Rows C42, C43, C46, C74, C79, C82.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from engine.model import Model

Places = Annotated[int, Field(ge=0, le=12)]
Shown = float | int | str

_NAMED = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class PercentLimit(Model):
    """How a rate is shown in percent."""

    name: str
    decimals: Places


class NumberLimit(Model):
    """A number of the result: `rounded` to `decimals` places at once, or else (`number`) where it is shown."""

    name: str
    kind: Literal["number", "rounded"]
    value: float
    decimals: Places


class RateLimit(Model):
    """A number of the result that is shown in percent too."""

    name: str
    kind: Literal["rate"]
    value: float
    decimals: Places
    percent: PercentLimit


class IntegerLimit(Model):
    """A whole number of the result."""

    name: str
    kind: Literal["integer"]
    value: int


class TextLimit(Model):
    """A text of the result: a `choice` in the words of the policy, or a field of the `request` in its own."""

    name: str
    kind: Literal["choice", "request"]
    value: str


class FlagLimit(Model):
    """True or false."""

    name: str
    kind: Literal["flag"]
    value: bool


OneLimit = NumberLimit | RateLimit | IntegerLimit | TextLimit | FlagLimit
ResultLimit = Annotated[OneLimit, Field(discriminator="kind")]


class CarriedLimit(Model):
    """A field of the request that the answer repeats."""

    name: str
    value: str


def result_of(items: Sequence[OneLimit]) -> dict[str, Shown]:
    """The validated result: exactly the fields of the contract, converted (C74)."""
    return {item.name: _converted(item) for item in items}


def metrics_of(items: Sequence[OneLimit]) -> dict[str, Shown]:
    """What is shown of the result: rounded, rates also in percent, without what the request says itself (C46)."""
    shown: dict[str, Shown] = {}
    for item in items:
        if item.kind == "request":
            continue
        shown[item.name] = round(item.value, item.decimals) if isinstance(item, NumberLimit | RateLimit) else item.value
        if isinstance(item, RateLimit):
            shown[item.percent.name] = round(item.value * 100, item.percent.decimals)
    return shown


def carried_of(items: Sequence[CarriedLimit]) -> dict[str, str]:
    """The fields of the request that the answer repeats (C82)."""
    return {item.name: item.value for item in items}


def sentence(template: str, *values: Mapping[str, Shown]) -> str:
    """The template with each `{name}` replaced once; what is put in is not read again. Raises KeyError."""
    known = {name: value for one in values for name, value in one.items()}
    return _NAMED.sub(lambda match: str(known[match[1]]), template)


def _converted(item: OneLimit) -> Shown:
    return round(item.value, item.decimals) if isinstance(item, NumberLimit) and item.kind == "rounded" else item.value

"""Builds a program's result, metrics and summary sentence from the limits of a decision alone.

Rounding is done here and not in Rego, which rounds in decimals: Python rounds the number that the program
gave, as the program would have. Rows C42, C43, C46, C74, C79, C82.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from engine.facts.code.outputs import Shape
from engine.model import Model, Sha256

Places = Annotated[int, Field(ge=0, le=12)]
MetricValue = float | int | str

NAMED = re.compile(r"\{([a-z][a-z0-9_]*)\}")
"""A name in an answer; there is nothing else that braces mean."""


class PercentLimit(Model):
    """A rate as a percentage."""

    name: str
    decimals: Places


class NumberLimit(Model):
    """A number of the result: `rounded` to `decimals` places at once, or (`number`) only for display."""

    name: str
    kind: Literal["number", "rounded"]
    value: float
    decimals: Places


class RateLimit(Model):
    """A number of the result that is also shown as a percentage."""

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


class ContentLimit(Model):
    """What the program itself wrote: a `text`, a `list`, or a `table` with these columns; known by its digest."""

    name: str
    kind: Literal["text", "list", "table"]
    columns: tuple[str, ...]
    content: Sha256

    @property
    def shape(self) -> Shape:
        """What is looked for in the output."""
        return None if self.kind == "text" else self.columns


OneLimit = NumberLimit | RateLimit | IntegerLimit | TextLimit | FlagLimit | ContentLimit
ResultLimit = Annotated[OneLimit, Field(discriminator="kind")]


class EchoedLimit(Model):
    """A field of the request that the answer repeats."""

    name: str
    value: str


def result_of(items: Sequence[OneLimit]) -> dict[str, MetricValue]:
    """The validated single values: those fields of the contract, converted (C74)."""
    return {
        item.name: round(item.value, item.decimals) if item.kind == "rounded" else item.value
        for item in items
        if not isinstance(item, ContentLimit)
    }


def metrics_of(items: Sequence[OneLimit]) -> dict[str, MetricValue]:
    """The metrics of the result: rounded, rates also in percent, without fields of the request (C46)."""
    metrics: dict[str, MetricValue] = {}
    for item in items:
        if item.kind == "request" or isinstance(item, ContentLimit):
            continue
        metrics[item.name] = (
            round(item.value, item.decimals) if isinstance(item, NumberLimit | RateLimit) else item.value
        )
        if isinstance(item, RateLimit):
            metrics[item.percent.name] = round(item.value * 100, item.percent.decimals)
    return metrics


def echoed_of(items: Sequence[EchoedLimit]) -> dict[str, str]:
    """The fields of the request that the answer repeats (C82)."""
    return {item.name: item.value for item in items}


def sentence(template: str, *values: Mapping[str, MetricValue]) -> str:
    """The template with each `{name}` replaced once; what is put in is not read again. Raises KeyError."""
    known = {name: value for row in values for name, value in row.items()}
    return NAMED.sub(lambda match: str(known[match[1]]), template)

"""policy/code.yaml: what a code action may be, how long it may run, and what its output must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from engine.model import Model
from engine.values.code_scan import Scan
from engine.values.fields import Items, Text, Word

Seconds = Annotated[float, Field(gt=0, le=3_600)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Entrypoint = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+\.[a-z0-9]+$", max_length=64)]


class WholeHint(Model):
    """A whole number that a hint may state: what holds without one, and within what it is kept."""

    default: Count = Field(description="What holds where no hint can be read.")
    minimum: Count = Field(description="A hint below becomes this.")
    maximum: Count = Field(description="A hint above becomes this.")


class SecondsHint(Model):
    """A time that a hint may state, in seconds."""

    default: Seconds = Field(description="What holds where no hint can be read.")
    minimum: Seconds = Field(description="A hint below becomes this.")
    maximum: Seconds = Field(description="A hint above becomes this.")


class Hints(Model):
    """What the hints of a request may set. They only narrow what policy allows."""

    network_access: Items[Word] = Field(description="Words of a hint that mean: no network. Any other is refused.")
    max_code_chars: WholeHint = Field(description="Characters of the code.")
    exec_timeout_seconds: SecondsHint = Field(description="How long one execution may take.")


class OutputField(Model):
    """A field that the output must have. Fields are checked in their order, the first that fails is told."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)] = Field(
        description="The name of the field."
    )
    type: Literal["number", "integer", "text", "convertible"] = Field(
        description="What it must be; `convertible` is a number, or text that is one."
    )
    minimum: float | None = Field(default=None, description="The least it may be.")
    maximum: float | None = Field(default=None, description="The most it may be.")
    one_of: Items[Text] | None = Field(default=None, description="The texts it may be.")
    same_as_request: bool = Field(default=False, description="Whether it must equal the field of the request.")
    decimals: Annotated[int, Field(ge=0, le=12)] | None = Field(
        default=None, description="To how many places it is rounded."
    )


class Contract(Model):
    """What the output of a program must be, and what is said of it."""

    fields: Items[OutputField] = Field(description="The fields of the output, in the order of the checks.")
    carried: Items[Word] = Field(description="Fields of the request that the answer repeats.")
    percentages: Mapping[Word, Word] = Field(description="Fields that are also shown in percent, and under what name.")
    answer: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="The sentence of the answer, with the names of fields in braces."
    )


class Code(Model):
    """policy/code.yaml: what a code action may be, how it may run, and what its output must be."""

    languages: Items[Word] = Field(description="Languages in which an action may be proposed.")
    execution: Mapping[Word, Word] = Field(
        description="Languages that may be executed, and the profile of policy/sandbox.yaml in which each runs."
    )
    entrypoints: Items[Entrypoint] = Field(description="Entry points that an action may name.")
    max_seconds: Seconds = Field(description="The time budget of a whole run.")
    stdout_bytes: Count = Field(description="The most bytes of standard output.")
    stderr_bytes: Count = Field(description="The most bytes of standard error.")
    attempts: Annotated[int, Field(ge=1, le=100)] = Field(description="Tries at one task, repairs included.")
    retention_days: Annotated[int, Field(ge=1, le=36_500)] = Field(
        description="How long code, results and failure logs are kept."
    )
    environment: Mapping[Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")], Text] = Field(
        description="Variables that a program finds in its environment. There are no others but PATH, HOME, LANG."
    )
    hints: Hints = Field(description="What the hints of a request may set.")
    scan: Mapping[Word, Scan] = Field(description="What the text of code may hold, for each language.")
    contracts: Mapping[Word, Contract] = Field(description="What output must be, by name.")

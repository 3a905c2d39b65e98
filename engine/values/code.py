"""policy/code.yaml: what a code action may be, how long it may run, and what its output must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from engine.model import Model
from engine.values.code_output import Contract
from engine.values.code_output import errors as output_errors
from engine.values.code_scan import Scan
from engine.values.fields import Items, Text, Word, value_error

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


class Outputs(Model):
    """Which contract holds for the output of a program, by its role in a run."""

    solution: Word = Field(description="The contract of a program whose run names none itself.")
    verifier: Word = Field(description="The contract of a program that verifies another one's output.")


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
    outputs: Outputs = Field(description="The contract of the output of each role of a program.")

    @model_validator(mode="after")
    def _values_fit(self) -> Code:
        if found := list(_errors(self)):
            raise ValidationError.from_exception_data("Code", found)
        return self


def _errors(code: Code) -> Iterator[InitErrorDetails]:
    for language in code.execution:
        if language not in code.languages:
            yield value_error(
                f"`{language}` is in no proposal: add it to `languages`, or remove it",
                ("execution", language),
                language,
            )
    for name, hint in (
        ("max_code_chars", code.hints.max_code_chars),
        ("exec_timeout_seconds", code.hints.exec_timeout_seconds),
    ):
        if not hint.minimum <= hint.default <= hint.maximum:
            yield value_error(
                "the default is not between minimum and maximum", ("hints", name, "default"), hint.default
            )
    if code.hints.exec_timeout_seconds.maximum > code.max_seconds:
        yield value_error(
            "one execution would outlast the whole run: at most `max_seconds`",
            ("hints", "exec_timeout_seconds", "maximum"),
            code.hints.exec_timeout_seconds.maximum,
        )
    for role, name in (("solution", code.outputs.solution), ("verifier", code.outputs.verifier)):
        if name not in code.contracts:
            yield value_error(f"there is no contract `{name}`", ("outputs", role), name)
    for name, contract in code.contracts.items():
        yield from output_errors(name, contract)

"""policy/secrets.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from engine.model import Model
from engine.secret_forms import Form, least_length
from engine.values.fields import Items, Word


def _linear(pattern: str) -> str:
    least_length(pattern)
    return pattern


Start = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.~/:=+-]{1,39}$")]
Rest = Annotated[str, StringConstraints(max_length=200), AfterValidator(_linear)]
Program = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9 _-]{1,30}$")]
Option = Annotated[str, StringConstraints(pattern=r"^-[A-Za-z-]{1,30}[ =]?(\*|[A-Za-z]{1,10}:\*|\*:\*)$")]


class SecretForm(Model):
    """How the secrets of one kind look."""

    starts: Annotated[Items[Start], Field(min_length=1)] = Field(description="The words that one begins with.")
    rest: Rest = Field(description="What follows: characters and classes, each with a count.")
    digit: bool = Field(default=False, description="At least one digit stands in it.")
    within: bool = Field(default=False, description="It may begin in the middle of a word.")

    @model_validator(mode="after")
    def _long_enough(self) -> SecretForm:
        _ = Form(self.starts, self.rest).least
        return self


class Secrets(Model):
    """policy/secrets.yaml: what a secret looks like that a vendor issued."""

    forms: Annotated[Mapping[Word, SecretForm], Field(min_length=1)] = Field(
        description="The forms by name. Adding one refuses more, deleting one admits MORE."
    )
    options: Mapping[Program, Items[Option]] = Field(
        description="Options of programs that hand over a secret, which stands for `*`. Deleting one admits MORE."
    )

"""policy/secrets.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from engine.model import Model
from engine.secrets.forms import Form, least_length
from engine.values.fields import Items, Word

Start = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.~/:=+-]{1,39}$")]


def _in_grammar(pattern: str) -> str:
    least_length(pattern)
    return pattern


Rest = Annotated[str, StringConstraints(max_length=200), AfterValidator(_in_grammar)]
Program = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9 _-]{1,30}$")]
Option = Annotated[str, StringConstraints(pattern=r"^-[A-Za-z-]{1,30}[ =]?(\*|[A-Za-z]{1,10}:\*|\*:\*)$")]


class SecretForm(Model):
    """The format of one kind of secrets."""

    prefixes: Annotated[Items[Start], Field(min_length=1)] = Field(description="Prefixes of the secret.")
    rest: Rest = Field(description="What follows the prefix: characters and classes, each with a count.")
    digit: bool = Field(default=False, description="Whether the secret contains at least one digit.")
    inside_words: bool = Field(default=False, description="Whether the prefix may be preceded by a letter or digit.")

    @model_validator(mode="after")
    def _long_enough(self) -> SecretForm:
        _ = Form(self.prefixes, self.rest).least
        return self


class Secrets(Model):
    """policy/secrets.yaml: the formats of secrets that vendors issue."""

    forms: Annotated[Mapping[Word, SecretForm], Field(min_length=1)] = Field(
        description="Formats of secrets by name. Adding one refuses more; deleting one admits MORE."
    )
    options: Mapping[Program, Items[Option]] = Field(
        description="Command-line options that pass a secret, by program; `*` marks the secret. Deleting one admits "
        "MORE."
    )
    published: Items[Annotated[str, StringConstraints(pattern=r"^[!-~]{16,512}$")]] = Field(
        description="Values that vendors publish as examples and that are no secrets. Deleting one refuses more."
    )
    ids: Mapping[Word, Rest] = Field(
        description="Patterns of ids, which do not count as secrets for looking random. Deleting one refuses more."
    )

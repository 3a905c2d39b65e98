"""What the models of values share: frozen lists, words, texts, and errors with the path of a field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, StrictInt, StringConstraints, ValidationError, model_validator
from pydantic.types import Strict
from pydantic_core import InitErrorDetails, PydanticCustomError

from engine.documents.files import printable
from engine.model import Model

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Strict(strict=False)]
"""A YAML list; frozen like everything else."""

Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
"""A name of ours: lower case, digits, underscores."""

MediaType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+/[a-z0-9][a-z0-9.+-]*$", max_length=255)]
"""A media type in lower case, without parameters."""

SideEffect = Literal["none", "read", "write", "network", "execute", "destructive"]
Positive = Annotated[StrictInt, Field(ge=1, le=1 << 31)]

Host = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$", max_length=253)]
"""An exact host name in lower case; no wildcard."""


def _day(text: str) -> str:
    if date.fromisoformat(text).isoformat() != text:
        raise ValueError("not a day such as 2027-03-31")
    return text


Day = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_day)]
"""A day as `YYYY-MM-DD`."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]


def value_error(message: str, path: tuple[str | int, ...], value: object) -> InitErrorDetails:
    """One error of a value, at the path of its field."""
    # Braces would be read as placeholders by pydantic.
    error = PydanticCustomError("policy_value", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=path, input=value)


def unknown(what: str, name: str, known: Iterable[str], path: tuple[str | int, ...]) -> Iterator[InitErrorDetails]:
    """The error of a name that is not known, if it is not."""
    if name not in known:
        names = ", ".join(f"`{one}`" for one in known) or "none are defined"
        yield value_error(f"no {what} `{printable(name)}`: use one of {names}", path, name)


class Checked(Model):
    """A document whose values must also fit each other."""

    def _mistakes(self) -> Iterable[InitErrorDetails]:
        """Every mistake that no single field shows, at the path of its field."""
        return ()

    @model_validator(mode="after")
    def _values_fit(self) -> Self:
        if found := list(self._mistakes()):
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self

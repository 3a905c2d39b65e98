"""policy/results.yaml: what the results of tools may contain."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from engine.model import Model
from engine.values.fields import Items

Origin = Annotated[str, StringConstraints(pattern=r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(:[1-9][0-9]{0,4})?$")]
Phrase = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+(\|[a-z0-9]+)*\??( [a-z0-9]+(\|[a-z0-9]+)*\??)*$", max_length=300)
]
Token = Annotated[str, StringConstraints(pattern=r"^[!-~]{4,64}$")]
Characters = Annotated[StrictInt, Field(ge=0, le=1 << 20)]


class DataCharacters(Model):
    """How much data each kind of link may carry to a host that is not named."""

    image: Characters = Field(description="Characters of data in an address that is loaded without a click.")
    link: Characters = Field(description="Characters of data in a link that needs a click.")
    text: Characters = Field(description="Characters of data in an address in a text.")


class Markers(Model):
    """Signs that a text instructs the model."""

    phrases: Annotated[Items[Phrase], Field(max_length=500)] = Field(
        description="Words in a row, in lower case; `a|b` is one or the other, a word with `?` may be missing. "
        "Deleting one admits MORE."
    )
    tokens: Annotated[Items[Token], Field(max_length=500)] = Field(
        description="Exact texts of at least four characters, in any case. Deleting one admits MORE."
    )


class Results(Model):
    """policy/results.yaml: what the results of tools may contain before a model sees them."""

    redact: Items[Literal["secrets", "hidden_characters", "links"]] = Field(
        description="What is taken out of a result that is then shown. Whatever is not listed withholds the result."
    )
    hosts: Items[Origin] = Field(description="Origins to which links and images may carry any data.")
    data_characters: DataCharacters = Field(
        description="Characters of data that links and images may carry to any other host."
    )
    markers: Markers = Field(description="Phrases and tokens that count as instructions to the model.")

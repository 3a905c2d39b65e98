"""policy/addresses.yaml."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from engine.model import Model
from engine.values.fields import Items, Text


def _plain(text: str) -> str:
    try:
        plain = str(ip_network(text))
    except ValueError:
        plain = ""
    if plain != text:
        raise ValueError("this is no range of addresses in its shortest spelling, such as `10.0.0.0/8`")
    return text


Range = Annotated[str, AfterValidator(_plain)]
"""A range of addresses in CIDR notation, without host bits."""

Date = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class PublicRange(Model):
    """A range that the internet's addresses come from."""

    family: Literal["ipv4", "ipv6"] = Field(description="Addresses of the other family are not in this range.")
    cidr: Range = Field(description="The range.")

    @model_validator(mode="after")
    def _of_its_family(self) -> PublicRange:
        if isinstance(ip_network(self.cidr), IPv4Network) != (self.family == "ipv4"):
            raise ValueError("the range is of the other family")
        return self


class RefusedRange(Model):
    """A range inside of them that is never reached."""

    cidr: Range = Field(description="The range.")
    reason: Text = Field(description="What is there.")
    source: Text = Field(description="Who says so.")
    date: Date = Field(description="Of which day the source is.")


class Addresses(Model):
    """policy/addresses.yaml: the addresses on the network that may be reached."""

    public: Annotated[Items[PublicRange], Field(min_length=1)] = Field(
        description="Where every address has to be. Delete a row to reach none of its addresses."
    )
    refused: Annotated[Items[RefusedRange], Field(min_length=1)] = Field(
        description="Where no address may be. Adding a row admits less, deleting one admits MORE."
    )

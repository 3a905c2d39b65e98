"""Sources, networks and addresses: what a source bundle may be and where its material may come from."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictInt, StringConstraints, model_validator

from engine.facts.archives.source_bundle import Purpose, RecordKind
from engine.model import Model
from engine.values.fields import Day, Items, MediaType, Text, Word
from engine.values.hosts import HostOrDomain

Member = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/?$", max_length=200)]
"""A path below the folder of `bundle.yaml`."""

NamePattern = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+\*?$", max_length=80)]
"""The name of a file in any folder, or how it begins before a `*`."""

Charset = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9-]+$", max_length=40)]
"""The name of a character encoding in capital letters."""


class Sources(Model):
    """policy/sources.yaml: what a source bundle and its records may be."""

    purposes: Items[Purpose] = Field(description="Uses for which source bundles are admitted.")
    kinds: Items[RecordKind] = Field(description="Admitted kinds of records.")
    kind_without_origin: RecordKind = Field(description="Kind of a record that states neither kind nor origin.")
    retention_bases: Items[Word] = Field(description="Legal bases on which a record may be kept.")
    extra_files: Items[Member] = Field(
        description="Files, and folders with a trailing `/`, that a source bundle may contain without a record."
    )
    system_files: Items[NamePattern] = Field(
        description="Names of files that a source bundle may contain without a record in any folder."
    )


class Fetch(Model):
    """What a fetch may bring in; nothing but this ends a transfer early."""

    max_urls: Annotated[StrictInt, Field(ge=0, le=1_000)] = Field(description="Maximum number of addresses in one run.")
    max_bytes: Annotated[StrictInt, Field(ge=0, le=1 << 30)] = Field(
        description="Maximum size of one response, in bytes."
    )
    seconds: Annotated[StrictInt, Field(ge=0, le=3_600)] = Field(
        description="Timeout of one transfer from the connection to the last byte, in seconds."
    )
    media_types: Items[MediaType] = Field(description="Media types of responses, without parameters.")
    text_types: Items[MediaType] = Field(description="Media types of text whose names do not begin with `text/`.")
    charsets: Items[Charset] = Field(description="Values of `charset` that a media type may have, in capital letters.")


class TunnelValues(Model):
    """Where commands in the sandbox may connect to, and what one run may use."""

    hosts: Items[HostOrDomain] = Field(
        description="Hosts that commands may connect to, such as packages.example.org or *.example.org."
    )
    at_once: Annotated[StrictInt, Field(ge=1, le=64)] = Field(
        description="Maximum number of open connections at a time."
    )
    most: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        description="Maximum number of connections, refused ones included."
    )
    sent_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 40)] = Field(
        description="Maximum number of bytes that all connections may send. Data can leave in them."
    )
    received_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 40)] = Field(
        description="Maximum number of bytes that all connections may receive."
    )
    seconds: Annotated[StrictInt, Field(ge=1, le=3_600)] = Field(
        description="Maximum duration of one connection, in seconds."
    )


class Networks(Model):
    """policy/networks.yaml: where material may come from, what a fetch may bring in, where commands may connect to."""

    hosts: Items[HostOrDomain] = Field(
        description="Hosts from which material may come, such as data.example.org or *.example.org."
    )
    schemes: Items[Word] = Field(description="Admitted URL schemes of material.")
    ports: Items[Annotated[StrictInt, Field(ge=1, le=65535)]] = Field(description="Admitted TCP ports of material.")
    fetch: Fetch = Field(description="Limits of a fetch.")
    tunnels: TunnelValues = Field(description="Hosts and limits of connections of commands in the sandbox.")


def _plain(text: str) -> str:
    try:
        plain = str(ip_network(text))
    except ValueError:
        plain = ""
    if plain != text:
        raise ValueError("not an address range in canonical form, such as `10.0.0.0/8`")
    return text


Range = Annotated[str, AfterValidator(_plain)]
"""A range of addresses in CIDR notation, without host bits."""


class PublicRange(Model):
    """A range of public internet addresses."""

    family: Literal["ipv4", "ipv6"] = Field(description="Address family of the range.")
    cidr: Range = Field(description="Range in CIDR notation.")

    @model_validator(mode="after")
    def _of_its_family(self) -> PublicRange:
        if isinstance(ip_network(self.cidr), IPv4Network) != (self.family == "ipv4"):
            raise ValueError("the range belongs to the other address family")
        return self


class RefusedRange(Model):
    """A range inside of them that is always refused."""

    cidr: Range = Field(description="Range in CIDR notation.")
    reason: Text = Field(description="Use of the range, which is the reason to refuse it.")
    source: Text = Field(description="Registry or document that states this use.")
    date: Day = Field(description="Date of that source, such as 2025-10-09.")


class Addresses(Model):
    """policy/addresses.yaml: the network addresses that may be reached."""

    public: Annotated[Items[PublicRange], Field(min_length=1)] = Field(
        description="Ranges in which every address of a host must be. Deleting one admits less."
    )
    refused: Annotated[Items[RefusedRange], Field(min_length=1)] = Field(
        description="Ranges in which no address of a host may be. Adding one admits less; deleting one admits MORE."
    )
    local_names: Annotated[Items[Text], Field(min_length=1)] = Field(
        description="Names that are not public, such as localhost or *.internal. `any` in rules of tools.yaml does not "
        "mean them. Adding one admits less; deleting one admits MORE."
    )

"""Point `network`: whether one address may be fetched, or a tunnel opened to it, decided before any socket opens.

The host, its port and its addresses are facts; path and query may contain secrets, and only the digest covers
them. The host is resolved only where the caller has enabled the fetch and named it. What comes back is decided
at point `network_response`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from engine.documents.canonical import digest
from engine.facts.archives.source_bundle import Id
from engine.facts.net.addresses import HostAddress, host_addresses
from engine.facts.net.urls import UrlFacts, canonical_host, plain_host, url_facts
from engine.facts.text.hidden import is_blank
from engine.model import Decision, Digest, Limits, Line, Mode, Model, Outcome, Pace
from engine.points import GatherContext, Gathered, Point
from engine.record.source_events import EventName, Hashes, SourceEvent

if TYPE_CHECKING:
    from engine.policy_bundle.catalogue import Catalogue

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31}):")

KIND = "external"
"""The kind of every record that is fetched."""

UNDECIDED = "undecided"
"""The license outcome of what is only labelled: a person decides on the content."""


Purpose = Literal["material", "tunnel"]
"""What a connection is for: content that is kept, or whatever a program in the sandbox sends through a tunnel."""


class FetchBudget(Model):
    """How many requests the run may make."""

    max_requests: Annotated[int, Field(ge=0, le=1_000_000)]


class FetchNetwork(Model):
    """What the caller enables, as in a source bundle: access, exact hosts, requests of this run."""

    enabled: bool = False
    allowed_hosts: Annotated[list[Line], Field(max_length=1_000, default_factory=list)]
    budget: FetchBudget


class NetworkRequest(Model):
    """Ask for one address of a run: `urls` are all of the run, `position` is the one that is next, from 0.

    `id` names the record that its content would be, `alias` its origin; `license` is the label of the content. A
    tunnel leads to the host and port of its address; nothing of it becomes a record.
    """

    id: Id
    alias: Id
    urls: Annotated[list[Annotated[str, Field(max_length=8_192)]], Field(max_length=1_000)]
    position: Annotated[int, Field(ge=0, le=1_000)] = 0
    purpose: Purpose = "material"
    license: Line | None = None
    network: FetchNetwork

    @model_validator(mode="after")
    def _one_of_the_urls(self) -> Self:
        if self.position > 0 and self.position >= len(self.urls):
            raise ValueError("`position` counts from 0 and must be below the number of `urls`")
        return self


class RemoteUrl(Model):
    """An address; its port only when it is canonical, its host also when only other parts are not.

    `digest` is of the whole text.
    """

    canonical: bool
    digest: Digest
    scheme: str | None = None
    host: str | None = None
    port: int | None = None


class AllowedHost(Model):
    """A host that the caller allows; `exact` if it is one host name, without a pattern."""

    id: str
    name: str
    exact: bool


class NetworkFacts(Model):
    """The fetch. `urls` is the number of addresses of the run, `requests_used` how many of them come before this one.

    `licensed`: the caller states a license label.
    """

    id: str
    alias: str
    purpose: Purpose
    enabled: bool
    urls: int
    requests_used: int
    max_requests: int
    licensed: bool
    allowed_hosts: tuple[AllowedHost, ...]
    url: RemoteUrl | None = None


class NetworkInput(Model):
    """What OPA sees; `addresses` are all of the host's, and none where it was not looked up, or not found in time."""

    network: NetworkFacts
    addresses: tuple[HostAddress, ...]


class NetworkLimits(Limits):
    """One connection: to exactly this address, at one of these addresses of its host, within these caps.

    Of material, the body is read only of an answer with `status`, up to `max_bytes`. A tunnel has neither: what all of
    a run may move is a limit of point `sandbox`. `seconds` are from the connection to the last byte.
    """

    purpose: Purpose
    url_digest: Digest
    host: str
    port: int
    addresses: tuple[str, ...]
    status: int | None
    max_bytes: int | None
    seconds: int

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if {self.status is None, self.max_bytes is None} != {self.purpose == "tunnel"}:
            raise ValueError("material has `status` and `max_bytes`, a tunnel has neither")
        return self


def gather(request: NetworkRequest, context: GatherContext) -> Gathered:
    """Read the address, and look its host up where the caller enabled the fetch and named this host."""
    network = request.network
    text = request.urls[request.position] if request.position < len(request.urls) else None
    url = None if text is None else remote_url(text, _with_host(text, url_facts(text)))
    fetched = url is not None and url.canonical and network.enabled and url.host in network.allowed_hosts
    host = url.host if url is not None and fetched else None
    answers = None if host is None else context.addresses(host)
    facts = NetworkFacts(
        id=request.id,
        alias=request.alias,
        purpose=request.purpose,
        enabled=network.enabled,
        urls=len(request.urls),
        requests_used=request.position,
        max_requests=network.budget.max_requests,
        licensed=request.license is not None and not is_blank(request.license),
        allowed_hosts=tuple(
            AllowedHost(id=f"#{index}", name=name, exact=canonical_host(name))
            for index, name in enumerate(network.allowed_hosts)
        ),
        url=url,
    )
    title = f"fetch of {request.alias}" if request.purpose == "material" else "tunnel"
    return Gathered(NetworkInput(network=facts, addresses=host_addresses(answers or ())), title)


def _with_host(text: str, facts: UrlFacts) -> UrlFacts:
    return facts if facts.canonical else facts.model_copy(update={"host": plain_host(text)})


def remote_url(text: str, facts: UrlFacts) -> RemoteUrl:
    """The address with these facts."""
    scheme = _SCHEME.match(text)
    return RemoteUrl(
        canonical=facts.canonical,
        digest=digest(text.encode("utf-8", "surrogatepass")),
        scheme=None if scheme is None else scheme[1].lower(),
        host=facts.host,
        port=facts.port,
    )


def events(gathered: Gathered, decision: Decision, catalogue: Catalogue) -> tuple[SourceEvent, ...]:
    """The attempt, and its rejection where nothing may be fetched; identified by the alias only (A40, A42).

    A tunnel brings no source.
    """
    if decision.mode is Mode.CHECK or not isinstance(gathered.input, NetworkInput):
        return ()
    facts = gathered.input.network
    if facts.purpose == "tunnel":
        return ()
    causes = tuple(finding.code for finding in decision.findings)
    unlicensed = min(catalogue.codes("network", "license").intersection(causes), default=UNDECIDED)
    attempt = fetch_event(EventName.FETCH_ATTEMPT, decision, facts.alias, (), license_outcome=unlicensed)
    if decision.outcome is Outcome.ALLOW:
        return (attempt,)
    return attempt, fetch_event(EventName.FETCH_REJECTED, decision, facts.alias, causes, license_outcome=unlicensed)


def fetch_event(
    event: EventName,
    decision: Decision,
    alias: str,
    causes: tuple[str, ...],
    *,
    computed: str | None = None,
    license_outcome: str = UNDECIDED,
) -> SourceEvent:
    """An event of a fetch, which has no source yet; `computed` is the SHA-256 of what came."""
    return SourceEvent(
        event=event,
        source_id=None,
        source_kind=KIND,
        policy_outcome=decision.outcome,
        origin_alias=alias,
        hashes=Hashes(declared=None, computed=computed),
        license_outcome=license_outcome,
        rejection_causes=causes,
    )


POINT = Point(
    "network",
    NetworkRequest,
    NetworkInput,
    NetworkLimits,
    gather,
    pace=Pace.SLOW,
    act="`engine fetch`, POST /v1/fetch, or `fetch` in Python",
    events=events,
)

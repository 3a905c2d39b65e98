"""Point `llm`: whether one attempt at a completion may go to the remote model, decided before any socket opens.

Which provider and model is asked comes from the variables of the engine's process. The prompt is under a digest of
what will be sent; no text of it is a fact. Each attempt is a decision of its own, so that the quota counts what
really leaves.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.documents.canonical import digest
from engine.facts.completion import endpoint_facts, prepared
from engine.facts.net.addresses import HostAddress, host_addresses
from engine.model import Digest, Limits, Line, Model, ModelError, Named, Pace, ProviderSettings, Text
from engine.points import GatherContext, Gathered, Point, stated_in
from engine.points.network import RemoteUrl, remote_url
from engine.policy_bundle.lookups import Lookups

MOST_ATTEMPTS = 10


class ModelMessage(Model):
    """One message of the prompt."""

    role: Literal["system", "user", "assistant"]
    content: Text


class ModelAttempt(Model):
    """An attempt. `target` is the host that the caller means: the key goes to no other one.

    `after` is the error of the attempt before, `none` for the first.
    """

    target: Line
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)]
    stream: bool
    attempt: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
    after: Literal["none"] | ModelError


class LlmRequest(ModelAttempt):
    """Ask for one attempt. `model` names another model of the provider than the configured one."""

    model: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,128}$")] | None = None
    messages: Annotated[list[ModelMessage], Field(max_length=10_000)]


class LlmFacts(ModelAttempt):
    """The attempt. `url` is the address below the base URL; `prompt_digest` is of all that is sent."""

    url: RemoteUrl | None = None
    model: str | None = None
    messages: int
    prompt_digest: Digest
    prompt_bytes: int
    timeout_seconds: int | None = None


class LlmInput(Model):
    """What OPA sees. `addresses` are all those of the host; the list is empty if the lookup failed or was not made.

    `missing` are the variables of the remote model that are not set, or cannot be used.
    """

    llm: LlmFacts
    missing: tuple[Named, ...]
    addresses: tuple[HostAddress, ...]


class ModelPrice(Model):
    """Price of 1,000,000 tokens of the prompt and of the answer, in decimal notation."""

    currency: str
    prompt: str
    completion: str


class LlmLimits(Limits):
    """One attempt: exactly this request, to exactly this address, and the answers that count.

    Only an answer with `status` has its body read. `seconds` count from the connection to the last byte. `retry_errors`
    allow another attempt. `prices` is empty if the policy has no price for the model; otherwise it has one row.
    """

    provider: str
    url_digest: Digest
    host: str
    port: int
    addresses: tuple[str, ...]
    status: int
    max_bytes: int
    seconds: int
    model: str
    prompt_digest: Digest
    stream: bool
    answers_as: tuple[str, ...]
    finish_reasons: tuple[str, ...]
    unmetered: bool
    prices: tuple[ModelPrice, ...]
    retry_errors: tuple[ModelError, ...]
    wait_least_ms: int
    wait_most_ms: int
    longest_wait_ms: int


def target_of(settings: ProviderSettings, lookups: Lookups) -> str:
    """The configured host; empty if the base URL is not canonical."""
    return endpoint_facts(_stated(settings, lookups).base_url or "").host or ""


def gather(request: LlmRequest, context: GatherContext) -> Gathered:
    """Build what would be sent, and look the host up where it is the caller's and the policy's."""
    settings = _stated(context.provider(), context.lookups)
    messages = [one.model_dump() for one in request.messages]
    model = request.model or settings.model
    ready = prepared(settings.base_url or "", model or "", messages, request.max_output_tokens, stream=request.stream)
    url = None if settings.base_url is None else remote_url(ready.url, endpoint_facts(settings.base_url))
    host = None if url is None or settings.missing or url.host != request.target else url.host
    answers = None if host is None else context.addresses(host)
    facts = LlmFacts(
        **stated_in(request, ModelAttempt),
        url=url,
        model=model,
        messages=len(messages),
        prompt_digest=digest(ready.body),
        prompt_bytes=len(ready.body),
        timeout_seconds=settings.timeout_seconds,
    )
    missing = tuple(Named(id=name) for name in settings.missing)
    quotas = {"host": url.host} if url is not None and url.host is not None else {}
    return Gathered(
        LlmInput(llm=facts, missing=missing, addresses=host_addresses(answers or ())),
        "request to the remote model",
        opened=ready,
        quotas=quotas,
    )


def _stated(settings: ProviderSettings, lookups: Lookups) -> ProviderSettings:
    """The settings with the defaults of the policy, where they count."""
    usual = lookups.provider_defaults
    changes: dict[str, object] = {"timeout_seconds": settings.timeout_seconds or usual.get("timeout_seconds")}
    if settings.defaults:
        changes |= {"base_url": usual.get("base_url"), "model": settings.model or usual.get("model")}
    return settings.model_copy(update=changes)


POINT = Point(
    "llm",
    LlmRequest,
    LlmInput,
    LlmLimits,
    gather,
    pace=Pace.SLOW,
    act="`engine model ask`, or `complete` in Python",
    secret=True,
)

"""The executor of a remote model: one attempt at a completion, through the pinned fetch, under a permit.

The wire is that of OpenAI's chat completions. The key leaves its holder in one header of one request to the address of
the permit. An answer that does not fit the contract or the limits is an error class, never text.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from admission_adapters.digests import digest
from admission_adapters.fetch import Fetcher, FetchGrant, Sent, Transfer
from admission_adapters.grants import granted, unenforceable
from admission_adapters.llm_answer import ModelAnswer, Tokens, plain_answer, streamed_answer
from admission_adapters.llm_provider import Provider, ProviderKey
from engine.model import Limits, ModelError, Permit, StopSignal

POINT = "llm"

_WAIT = re.compile(r"[0-9]+")
_JSON, _STREAM = "application/json", "text/event-stream"
_REDIRECTS, _REFUSALS, _THROTTLED, _FAULTS = range(300, 400), {401, 403}, 429, range(500, 600)


@runtime_checkable
class ModelGrant(FetchGrant, Protocol):
    """What is read of the limits of point `llm`."""

    prompt_digest: str  # `sha256:` and hex, of the whole body
    answers_as: Sequence[str]  # names of models that the answer may bear
    finish_reasons: Sequence[str]
    unmetered: bool  # whether an answer without usage counts
    stream: bool
    wait_least_ms: int  # before the next attempt
    wait_most_ms: int
    longest_wait_ms: int  # no longer one is kept to, whatever the provider asks for


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt brought: `text` or an `error`, and what was counted. `retry_after` in seconds."""

    text: str | None = None
    error: ModelError | None = None
    tokens: Tokens | None = None
    retry_after: float | None = None


class RemoteModel:
    """Asks the configured provider under permits; threads may share it."""

    def __init__(
        self,
        provider: Provider,
        ca_file: Path | None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`ca_file` has the trusted authorities (PEM); None for those of certifi. `pause` waits so many seconds."""
        self.provider = provider
        self.pause = pause
        self._fetcher = Fetcher(ca_file)
        self._random = random.SystemRandom()

    def attempt(self, permit: Permit, input_digest: str, url: str, body: bytes, stop: StopSignal) -> Attempt:
        """Send one request; blocks until it ended, in whichever way.

        Raises WorkError: `engine.permit_missing`; `engine.limit_unenforceable` for an address or a body that is not
        the one of the permit, or limits that cannot be held; `engine.transfer_stopped`.
        """
        grant = granted(permit, POINT, input_digest, ModelGrant)
        key = self.provider.key
        if key is None or digest(body) != grant.prompt_digest:
            raise unenforceable(
                "the permit is not for this request",
                "request a decision on exactly this request, with the variables of the remote model set",
            )
        if key.found_in(body):
            return Attempt(error="key_in_request")
        headers = {
            "accept": _STREAM if grant.stream else _JSON,
            "content-type": _JSON,
            "authorization": key.header(),
        }
        transfer = self._fetcher.exchange(grant, url, Sent("POST", headers, body), stop)
        return _attempt(grant, transfer, key)

    def wait(self, limits: Limits, retry_after: float | None) -> float | None:
        """Seconds to wait before the next attempt, at random within the limits; None if that would be too long."""
        if not isinstance(limits, ModelGrant):
            return None
        own = self._random.uniform(limits.wait_least_ms, limits.wait_most_ms) / 1000
        seconds = max(own, retry_after or 0.0)
        return seconds if seconds * 1000 <= limits.longest_wait_ms else None


def _attempt(grant: ModelGrant, transfer: Transfer, key: ProviderKey) -> Attempt:
    """What a transfer brought."""
    if (failed := _transfer_error(grant, transfer)) is not None:
        return Attempt(error=failed, retry_after=_seconds(transfer.retry_after))
    data = bytes(transfer.data)
    answer = _read(grant, transfer, data)
    if answer is None:
        return Attempt(error="key_in_answer" if key.found_in(data) else "answer_not_in_contract")
    checks: tuple[tuple[bool, ModelError], ...] = (
        (not key.found_in(data, answer.text, answer.model), "key_in_answer"),
        (answer.model in grant.answers_as, "other_model"),
        (answer.finish_reason in grant.finish_reasons, "finish_not_admitted"),
        (answer.tokens is not None or grant.unmetered, "usage_missing"),
    )
    error = next((error for held, error in checks if not held), None)
    return Attempt(answer.text if error is None else None, error, answer.tokens)


def _read(grant: ModelGrant, transfer: Transfer, data: bytes) -> ModelAnswer | None:
    """The answer; None for anything that does not fit the contract."""
    if transfer.head is None or transfer.head.get("media_type") != (_STREAM if grant.stream else _JSON):
        return None
    try:
        return streamed_answer(data) if grant.stream else plain_answer(data)
    except (ValueError, RecursionError):
        return None


def _transfer_error(grant: ModelGrant, transfer: Transfer) -> ModelError | None:
    """What stopped a transfer; None if all of an answer came."""
    head = transfer.head or {}
    steps: tuple[tuple[bool, ModelError], ...] = (
        (transfer.in_time, "deadline_exceeded"),
        (transfer.connected, "connection_failed"),
        (transfer.secured, "tls_failed"),
        (transfer.head is not None, "response_malformed"),
    )
    failed = next((error for held, error in steps if not held), None)
    if failed is not None:
        return failed
    if head["status"] != grant.status:
        return _status_error(head["status"])
    if not transfer.within_cap:
        return "answer_too_large"
    if not transfer.read or head["framing"] not in {"length", "chunked"}:
        return "response_malformed"
    return None if transfer.complete else "answer_incomplete"


def _status_error(status: int) -> ModelError:
    if status in _REDIRECTS:
        return "redirect_blocked"
    if status in _REFUSALS:
        return "key_refused"
    if status == _THROTTLED:
        return "throttled"
    return "provider_failed" if status in _FAULTS else "request_refused"


def _seconds(text: str | None) -> float | None:
    """A `Retry-After` in seconds from now; None for none that can be read."""
    if text is None:
        return None
    stripped = text.strip()
    if _WAIT.fullmatch(stripped):
        return float(stripped)
    try:
        moment = parsedate_to_datetime(stripped).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())

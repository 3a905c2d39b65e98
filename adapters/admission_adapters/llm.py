"""The executor of a remote model: one attempt at a completion, through the pinned fetch, under a permit.

The wire is that of OpenAI's chat completions. `Provider` reads the variables of the remote model and is the only
holder of the key, which leaves it in one header of one request to the address of the permit. An answer that does not
fit the contract is an error class, never text.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Protocol, runtime_checkable

from pydantic import BaseModel, Field, ValidationError

from admission_adapters.fetch import Fetcher, FetchGrant, Sent, Transfer
from engine.errors import GatherError, WorkError
from engine.model import Limits, ModelError, Permit, ProviderSettings

POINT = "llm"

BASE_URL, KEY, MODEL = "AGENT_DATA_LLM_BASE_URL", "AGENT_DATA_API_KEY", "AGENT_DATA_LLM_MODEL"
OPENAI_KEY, OPENAI_MODEL, TIMEOUT = "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_TIMEOUT_SECONDS"
VARIABLES = (BASE_URL, KEY, MODEL, OPENAI_KEY, OPENAI_MODEL, TIMEOUT)

_KEY = re.compile(r"[\x21-\x7e]{8,4096}")
"""A key as a header can carry it; a shorter one would be found in ordinary text."""

_MODEL = re.compile(r"[\x21-\x7e]{1,128}")
_FILE_BYTES = 64 << 10
_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_SECONDS = re.compile(r"[1-9][0-9]{0,3}")
_WAIT = re.compile(r"[0-9]{1,9}")
_STREAM_END = "[DONE]"
_ANSWERED, _REDIRECTS, _REFUSALS, _THROTTLED, _FAULTS = 200, range(300, 400), {401, 403}, 429, range(500, 600)


@runtime_checkable
class ModelGrant(FetchGrant, Protocol):
    """What is read of the limits of point `llm`."""

    answers_as: Sequence[str]  # names of models that the answer may bear
    finish_reasons: Sequence[str]
    stream: bool
    wait_least_ms: int  # before the next attempt
    wait_most_ms: int
    longest_wait_ms: int  # no longer one is kept to, whatever the provider asks for


class ProviderKey:
    """The key of the remote model. It prints as redacted, is never pickled, and compares with nothing."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "[redacted]"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("the key of the remote model is not copied or pickled")

    def found_in(self, *texts: str | bytes) -> bool:
        """Whether one of these contains the key."""
        return any((self._text.encode("ascii") if isinstance(one, bytes) else self._text) in one for one in texts)  # type: ignore[operator]

    def header(self) -> str:
        """The value of the one header that carries it."""
        return f"Bearer {self._text}"


@dataclass(frozen=True, slots=True)
class Provider:
    """The configured remote model: what the variables state, and the key; None where it is missing."""

    settings: ProviderSettings
    key: ProviderKey | None

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, file: Path | None = None) -> Provider:
        """From the variables, and those in a `.env` file, which a variable that is set outranks.

        Any of the AGENT_DATA variables selects all three; otherwise OPENAI_API_KEY selects OPENAI's.
        Raises GatherError for a file that cannot be read.
        """
        found = {} if file is None else _file(file)
        found |= {name: environment[name] for name in VARIABLES if name in environment}
        stated = {name: text.strip() for name, text in found.items() if text.strip()}
        openai = OPENAI_KEY in stated and not stated.keys() & {BASE_URL, KEY, MODEL}
        names = (OPENAI_KEY,) if openai else (BASE_URL, KEY, MODEL)
        key_text = stated.get(OPENAI_KEY if openai else KEY, "")
        key = ProviderKey(key_text) if _KEY.fullmatch(key_text) else None
        base_url, model = stated.get(BASE_URL), stated.get(OPENAI_MODEL if openai else MODEL)
        timeout = stated.get(TIMEOUT)
        unusable = {
            OPENAI_KEY if openai else KEY: key is None,
            BASE_URL: key is not None and key.found_in(base_url or ""),
            OPENAI_MODEL if openai else MODEL: model is not None
            and (not _MODEL.fullmatch(model) or (key is not None and key.found_in(model))),
            TIMEOUT: timeout is not None and not _SECONDS.fullmatch(timeout),
        }
        missing = [name for name in names if name not in stated] + [name for name, bad in unusable.items() if bad]
        settings = ProviderSettings(
            missing=tuple(dict.fromkeys(missing)),
            base_url=None if openai or unusable[BASE_URL] else base_url,
            model=None if unusable[OPENAI_MODEL if openai else MODEL] else model,
            timeout_seconds=int(timeout) if timeout is not None and not unusable[TIMEOUT] else None,
            defaults=openai,
        )
        return cls(settings, key)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that the provider counted."""

    prompt: int
    completion: int


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
        ca_file: Path | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`ca_file` has the trusted authorities (PEM); None for those of certifi. `pause` waits so many seconds."""
        self.provider = provider
        self.pause = pause
        self._fetcher = Fetcher(ca_file)
        self._random = random.SystemRandom()

    def attempt(self, permit: Permit, input_digest: str, limits: type[Limits], url: str, body: bytes) -> Attempt:
        """Send one request; blocks until it ended, in whichever way.

        Raises WorkError: `engine.permit_missing`; `engine.limit_unenforceable` for an address that is not the one
        of the permit, or limits that cannot be held.
        """
        grant = permit.demand(POINT, input_digest, limits)
        key = self.provider.key
        if not isinstance(grant, ModelGrant) or key is None:
            raise WorkError(
                "there is no key for this request",
                remedy="request a decision with the variables of the remote model set",
                code="engine.limit_unenforceable",
            )
        if key.found_in(body):
            return Attempt(error="key_in_request")
        headers = {
            "accept": "text/event-stream" if grant.stream else "application/json",
            "content-type": "application/json",
            "authorization": key.header(),
        }
        transfer = self._fetcher.exchange(grant, url, Sent("POST", headers, body))
        return _attempt(grant, transfer, key)

    def wait(self, limits: Limits, retry_after: float | None) -> float | None:
        """Seconds to wait before the next attempt, at random within the limits; None if that would be too long."""
        if not isinstance(limits, ModelGrant):
            return None
        own = self._random.uniform(limits.wait_least_ms, limits.wait_most_ms) / 1000
        seconds = max(own, retry_after or 0.0)
        return seconds if seconds * 1000 <= limits.longest_wait_ms else None


def _attempt(grant: ModelGrant, transfer: Transfer, key: ProviderKey) -> Attempt:
    wait = _seconds(transfer.retry_after)
    if (error := _transfer_error(transfer)) is not None:
        return Attempt(error=error, retry_after=wait)
    data = bytes(transfer.data)
    try:
        answer = _streamed(data) if grant.stream else _plain(data)
    except (ValueError, ValidationError, RecursionError):
        answer = None
    fits = transfer.head is not None and transfer.head.get("media_type") == (
        "text/event-stream" if grant.stream else "application/json"
    )
    if answer is None or not fits:
        return Attempt(error="key_in_answer" if key.found_in(data) else "answer_not_in_contract")
    if key.found_in(data, answer.text, answer.model):
        return Attempt(error="key_in_answer", tokens=answer.tokens)
    if answer.model not in grant.answers_as:
        return Attempt(error="other_model", tokens=answer.tokens)
    if answer.finish_reason not in grant.finish_reasons:
        return Attempt(error="finish_not_admitted", tokens=answer.tokens)
    return Attempt(text=answer.text, tokens=answer.tokens)


def _transfer_error(transfer: Transfer) -> ModelError | None:
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
    if head["status"] != _ANSWERED:
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


Count = Annotated[int, Field(ge=0, le=1 << 40)]


class _Part(BaseModel, strict=True, extra="ignore"):
    """A part of an answer; providers add fields of their own."""


class _Usage(_Part):
    prompt_tokens: Count
    completion_tokens: Count


_NoCalls = Annotated[list[Any], Field(max_length=0)] | None
"""Nobody offered the model a tool, so an answer that calls one is none."""


class _Message(_Part):
    role: Literal["assistant"]
    content: str
    tool_calls: _NoCalls = None


class _Choice(_Part):
    message: _Message
    finish_reason: str


class _Completion(_Part):
    object: Literal["chat.completion"]
    model: str
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]
    usage: _Usage


class _Delta(_Part):
    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: _NoCalls = None


class _ChunkChoice(_Part):
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(_Part):
    object: Literal["chat.completion.chunk"]
    model: str
    choices: Annotated[list[_ChunkChoice], Field(max_length=1)]
    usage: _Usage | None = None
    error: None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    model: str
    finish_reason: str
    tokens: Tokens


def _plain(data: bytes) -> _Answer:
    """A plain completion. Raises ValidationError."""
    found = _Completion.model_validate_json(data)
    (choice,) = found.choices
    return _Answer(choice.message.content, found.model, choice.finish_reason, _tokens(found.usage))


def _streamed(data: bytes) -> _Answer:
    """A streamed completion, whole to its end mark. Raises ValueError or ValidationError."""
    events = list(_events(data.decode("utf-8")))
    if not events or events.index(_STREAM_END) != len(events) - 1:
        raise ValueError("the stream has no end, or goes on after it")
    chunks = [_Chunk.model_validate_json(event) for event in events[:-1]]
    (model,) = {chunk.model for chunk in chunks}
    *_, usage = [chunk.usage for chunk in chunks if chunk.usage is not None]
    choices = [choice for chunk in chunks for choice in chunk.choices]
    (finish,) = [choice.finish_reason for choice in choices if choice.finish_reason is not None]
    return _Answer("".join(choice.delta.content or "" for choice in choices), model, finish, _tokens(usage))


def _events(text: str) -> Iterator[str]:
    """The data of each server-sent event; comments and other fields are left out. Raises ValueError for a torn one."""
    lines = re.split(r"\r\n|\n|\r", text)
    if len(lines) < 2 or lines[-2:] != ["", ""]:  # noqa: PLR2004  (the blank line that ends an event)
        raise ValueError("the last event has no end")
    data: list[str] = []
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            data += [value.removeprefix(" ")] if name == "data" else []
        elif data:
            yield "\n".join(data)
            data = []


def _tokens(usage: _Usage) -> Tokens:
    return Tokens(usage.prompt_tokens, usage.completion_tokens)


def _seconds(text: str | None) -> float | None:
    """A `Retry-After` in seconds from now; None for none that can be read."""
    if text is None:
        return None
    stripped = text.strip()
    if _WAIT.fullmatch(stripped):
        return float(stripped)
    try:
        moment = parsedate_to_datetime(stripped)
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _file(path: Path) -> dict[str, str]:
    """The variables of the remote model in a `.env` file; others are left out. Raises GatherError."""
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GatherError(
            "the file of variables cannot be read", remedy="name a text file of lines such as NAME=value"
        ) from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (stripped := line.strip()) or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise GatherError(
                f"line {number} of the file of variables has no value", remedy="write each line as NAME=value"
            )
        if match[1] in VARIABLES:
            found[match[1]] = _unquoted(match[2])
    return found


def _unquoted(text: str) -> str:
    for quote in "\"'":
        if text.startswith(quote) and (end := text.find(quote, 1)) > 0:
            return text[1:end]
    return re.split(r"[ \t]#", text)[0].strip()

"""The lines of source_events.jsonl: seven facts about a source and the name of the event, nothing else (row A27).

No time and no decision id, so that the same fixture produces the same bytes in every run (row A26).
Values other than plain labels and codes (text, URLs, hosts, secrets) are replaced by a digest (row A28).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, Field

from engine.documents.canonical import canonical
from engine.model import Model, Outcome, Sha256
from engine.record.model import CoveredEvents
from engine.secrets.redaction import REDACTED, redact, redacted

_LONGEST = 128
_LABEL = re.compile(r"[A-Za-z0-9#][A-Za-z0-9._#-]{0,127}")
_HOST = re.compile(
    r"(?:[A-Za-z0-9]+\.)+[A-Za-z]{2,}(?![A-Za-z0-9])|(?<![A-Za-z0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9])"
)
_FILE = re.compile(
    r"(?i)(?:[A-Z0-9]+\.){1,2}(?:[0-9]+\.)?(?:tar\.)?"
    r"(?:arrow|bz2|csv|gz|html?|jsonl?|md|ndjson|parquet|pdf|tar|tgz|tsv|txt|xml|ya?ml|zip|zst)"
)
"""Names of files, which ids often have. A name with more parts than these may begin with a host."""

_CODE = re.compile(r"(?:engine\.)?[a-z][a-z0-9_]{0,63}")


class EventName(StrEnum):
    """What happened to the source: checked in a dry run, admitted to an environment or refused; fetched or refused."""

    SOURCE_CHECKED = "source_checked"
    ADMITTED = "environment_source_admitted"
    REJECTED = "environment_source_rejected"
    FETCH_ATTEMPT = "fetch_attempt"
    FETCH_ACCEPTED = "fetch_accepted"
    FETCH_REJECTED = "fetch_rejected"


def _label(text: str) -> str:
    clean: str = redact(text)[0] if _LABEL.fullmatch(text) else redacted(text)
    return text if REDACTED.fullmatch(text) else clean


def _alias(text: str) -> str:
    return redacted(text) if _HOST.search(text[:_LONGEST]) else _label(text)


def _id(text: str) -> str:
    hosts = [match[0] for match in _HOST.finditer(text[:_LONGEST]) if not _FILE.fullmatch(match[0])]
    return redacted(text) if hosts else _label(text)


def _code(text: str) -> str:
    return text if _CODE.fullmatch(text) or REDACTED.fullmatch(text) else redacted(text)


def _codes(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({_code(text) for text in texts}))


Label = Annotated[str, AfterValidator(_label)]
"""An id of at most 128 letters, digits and `._#-`; anything else is redacted."""

Alias = Annotated[str, AfterValidator(_alias)]
"""A label without a host name or address: it must not identify the origin."""

Id = Annotated[str, AfterValidator(_id)]
"""A label without a host name or address, except names of files."""

Code = Annotated[str, AfterValidator(_code)]
"""A code in lower case, perhaps under `engine.`."""


class Hashes(Model):
    """SHA-256 as declared by the bundle and as computed by the engine; null if there is none."""

    declared: Sha256 | None
    computed: Sha256 | None


class SourceEvent(Model):
    """The facts about one source that data governance may see; null where the bundle states nothing.

    `rejection_causes` are codes, sorted, each once.
    """

    event: Annotated[EventName, Field(strict=False)]
    source_id: Id | None
    source_kind: Label | None
    policy_outcome: Annotated[Outcome, Field(strict=False)]
    origin_alias: Alias | None
    hashes: Hashes
    license_outcome: Code | None
    rejection_causes: Annotated[tuple[str, ...], AfterValidator(_codes)]


def line(event: SourceEvent) -> bytes:
    """The exact bytes of one line, its newline included."""
    return canonical(event.model_dump(mode="json")) + b"\n"


def block(events: Iterable[SourceEvent]) -> tuple[bytes, CoveredEvents | None]:
    """The bytes of a decision's events and the record's summary of them; None without events."""
    lines = [line(event) for event in events]
    data = b"".join(lines)
    if not lines:
        return data, None
    return data, CoveredEvents(bytes=len(data), count=len(lines), sha256=sha256(data).hexdigest())

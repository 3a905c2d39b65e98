"""Point `adapter_envelope`: whether a request to an adapter, or its result, keeps the contract of its manifest.

    request  {"format": 1, "id", "manifest", "operation", "tool", "arguments", "approval"}
    result   {"format": 1, "request", "manifest", "operation", "tool", "status", "content", "code", "approval"}

`tool` is null for the operation that lists tools; `approval` and `code` may be null. Each term of the contract is a
fact: what the envelope states, and what the contract admits there. Values appear as digests only (A60).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from engine.documents.canonical import canonical, digest
from engine.facts.tools.definitions import UnreadableDefinitionError, definition_of
from engine.facts.tools.schemas import fits
from engine.model import AdapterContract, Digest, Limits, Model, Object, Pace
from engine.points import GatherContext, Gathered, Point

LISTS, CALLS = "tools/list", "tools/call"
"""The operations of MCP that there are envelopes of."""

_FORMAT = 1
_ID = re.compile(r"[0-9a-f]{32}")
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_REQUEST = frozenset({"format", "id", "manifest", "operation", "tool", "arguments", "approval"})
_RESULT = frozenset({"format", "request", "manifest", "operation", "tool", "status", "content", "code", "approval"})
_STATUSES = ("ok", "error", "refused", "awaiting_approval")


class AdapterEnvelopeRequest(Model):
    """The envelope at this end; for a result also the request that it answers."""

    end: Literal["request", "result"]
    envelope: Any
    asked: Object | None = None


class TermFacts(Model):
    """One term of the contract. `stated` is absent where the envelope has no value of the right type there."""

    id: str
    stated: str | None = None
    admitted: tuple[str, ...] | None = None
    bytes: int | None = None


class AdapterEnvelopeInput(Model):
    """What OPA sees of an envelope: the switch of adapters, and the terms of the contract."""

    enabled: bool
    end: Literal["request", "result"]
    envelope: Digest
    terms: tuple[TermFacts, ...]


class AdapterEnvelopeLimits(Limits):
    """Exactly this envelope may be used."""

    end: Literal["request", "result"]
    envelope: Digest


def gather(request: AdapterEnvelopeRequest, context: GatherContext) -> Gathered:
    """Compare the envelope with the contract of its manifest, term by term."""
    known, envelope = context.adapters(), request.envelope
    data = canonical(envelope)
    fields = envelope if isinstance(envelope, dict) else {}
    terms = [TermFacts(id="size", bytes=len(data))]
    if request.end == "request":
        terms += _request_terms(fields, known.contracts)
    else:
        terms += _result_terms(fields, request.asked or {}, known.contracts)
    tool = (fields if request.end == "request" else request.asked or {}).get("tool")
    made = AdapterEnvelopeInput(enabled=known.enabled, end=request.end, envelope=digest(data), terms=tuple(terms))
    return Gathered(
        made,
        f"{request.end} of an adapter",
        opened=envelope,
        tool=tool if isinstance(tool, str) else "",
    )


def _request_terms(envelope: dict[str, Any], contracts: Mapping[str, AdapterContract]) -> Iterator[TermFacts]:
    manifest, operation, tool = (envelope.get(name) for name in ("manifest", "operation", "tool"))
    contract = contracts.get(manifest) if isinstance(manifest, str) else None
    schemas = {} if contract is None else contract.schemas
    calls = operation == CALLS
    schema = schemas.get(tool) if calls and isinstance(tool, str) else None
    arguments = envelope.get("arguments")
    fitting = fits(schema, arguments) if schema is not None else not calls and arguments == {}
    yield _shape("fields", holds=envelope.keys() == _REQUEST)
    yield _value("format", envelope, [_FORMAT])
    yield _shape("id", holds=_text(_ID, envelope.get("id")))
    yield _value("manifest", envelope, [] if contract is None else [manifest])
    yield _value("operation", envelope, () if contract is None else contract.operations)
    yield _value("tool", envelope, schemas if calls else [None])
    yield _shape("arguments", holds=isinstance(arguments, dict) and fitting)
    yield _shape("approval", holds=_code_or_null(envelope.get("approval")))


def _result_terms(
    envelope: dict[str, Any], asked: dict[str, Any], contracts: Mapping[str, AdapterContract]
) -> Iterator[TermFacts]:
    for term in _request_terms(asked, contracts):  # a result is only as good as the request that it answers
        yield term.model_copy(update={"id": f"asked_{term.id}"})
    contract = contracts.get(str(asked.get("manifest")))
    content = envelope.get("content")
    fitting = _lists(content, contract) if asked.get("operation") == LISTS else isinstance(content, str)
    yield _shape("fields", holds=envelope.keys() == _RESULT)
    yield _value("format", envelope, [_FORMAT])
    yield _value("request", envelope, [asked.get("id")])
    for name in ("manifest", "operation", "tool"):
        yield _value(name, envelope, [asked.get(name)])
    yield _value("status", envelope, _STATUSES)
    yield _shape("content", holds=fitting)
    yield _shape("code", holds=_code_or_null(envelope.get("code")))
    yield _shape("approval", holds=_code_or_null(envelope.get("approval")))


def _value(name: str, envelope: dict[str, Any], admitted: Iterable[Any]) -> TermFacts:
    """A term that the field has one of these values; true is no 1."""
    stated = _sealed(envelope[name]) if name in envelope else None
    return TermFacts(id=name, stated=stated, admitted=tuple(_sealed(value) for value in admitted))


def _shape(name: str, *, holds: bool) -> TermFacts:
    """A term that a field has the shape it must have."""
    return TermFacts(id=name, stated="as_agreed" if holds else None, admitted=("as_agreed",))


def _sealed(value: Any) -> str:
    return digest(canonical(value))


def _text(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _code_or_null(value: Any) -> bool:
    return value is None or _text(_CODE, value)


def _lists(content: Any, contract: AdapterContract | None) -> bool:
    """Whether these are definitions of tools of the manifest, each once and with the schema stated there."""
    known = {} if contract is None else contract.schemas
    try:
        listed = [definition_of(one) for one in content] if isinstance(content, list) else None
    except UnreadableDefinitionError:
        return False
    if listed is None or len({one.name for one in listed}) != len(listed):
        return False
    return all(
        one.name in known and one.input_schema is not None and _sealed(one.input_schema) == _sealed(known[one.name])
        for one in listed
    )


POINT = Point(
    "adapter_envelope",
    AdapterEnvelopeRequest,
    AdapterEnvelopeInput,
    AdapterEnvelopeLimits,
    gather,
    pace=Pace.HEAVY,
    secret=True,
)

"""`GET /v1/decisions`: the record, page by page; `…/{id}`: one decision with its input.

Each request is itself a decision at point `record_read`, recorded with who read. What the policy does not let the
caller read is 403.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from engine.api.answers import DecisionPage, DecisionSummary, RecordedDecision
from engine.api.messages import Exchange, Response
from engine.api.problems import not_permitted, problem
from engine.errors import EngineError
from engine.model import Permit, Result
from engine.points.record_read import RecordReadLimits, RecordReadRequest
from engine.record.chain import Entry
from engine.record.pages import Page, read_page
from engine.record.reader import Filter
from engine.work import Job

if TYPE_CHECKING:
    from engine.api.app import App

ModelT = TypeVar("ModelT", bound=DecisionSummary)

_LIMIT = 100
"""Decisions of a page where the query states no number."""

_NUMBER = re.compile("[0-9]{1,9}")

FILTERS = frozenset(RecordReadRequest.model_fields) - {"id"}
"""The parameters of the query."""


async def page(api: App, exchange: Exchange) -> Response:
    """Decisions that the query selects."""
    found = await _read(api, exchange, _request(exchange.query))
    if isinstance(found, Response):
        return found
    return Response.of(
        DecisionPage(decisions=tuple(_stated(entry, DecisionSummary) for entry in found.entries), next=found.next)
    )


async def one(api: App, exchange: Exchange) -> Response:
    """The decision of the path."""
    id_ = exchange.head.path.rpartition("/")[2]
    found = await _read(api, exchange, {**_request(exchange.query), "id": id_, "limit": 1})
    if isinstance(found, Response):
        return found
    if not found.entries:
        rest = f"ask again with `cursor={found.next}` to search further" if found.next else "check the id, and `whose`"
        unknown = EngineError("no decision with this id can be read", remedy=rest, code="engine.decision_unknown")
        return problem(unknown, exchange)
    return Response.of(_stated(found.entries[0], RecordedDecision))


def _request(query: Mapping[str, str]) -> dict[str, Any]:
    """The request of the point; a number is one only where it is written as one."""
    request: dict[str, Any] = {"whose": "own", "limit": _LIMIT, **query}
    if _NUMBER.fullmatch(query.get("limit", "")):
        request["limit"] = int(query["limit"])
    return request


async def _read(api: App, exchange: Exchange, request: dict[str, Any]) -> Page | Response:
    """Decide whether it may be read, and read it under the permit; otherwise the answer that says why not."""
    pages: list[Page] = []

    def read(permit: Permit, job: Job) -> Result:
        limits = permit.demand("record_read", job.input_digest, RecordReadLimits)
        pages.append(_page(api, RecordReadRequest.model_validate(request), limits))
        return Result("read", {"decisions": len(pages[0].entries), "bytes": pages[0].bytes})

    context = replace(exchange.context, idempotency_key=None)  # what is read changes
    async with api.batches.turn(exchange.account):
        answer = await api.engine.decide("record_read", request, read, context)
    if answer.fault is not None:
        return problem(answer.fault, exchange, answer.decision)
    return pages[0] if pages else not_permitted(answer.decision, exchange)


def _page(api: App, request: RecordReadRequest, limits: RecordReadLimits) -> Page:
    selected = Filter(
        decision_id=request.id,
        point=request.point,
        outcome=request.outcome,
        since=request.since,
        until=request.until,
        principal=limits.principal if limits.whose == "own" else None,
    )
    return read_page(api.engine.settings.state, selected, limits.decisions, limits.bytes, request.cursor)


def _stated(entry: Entry, model: type[ModelT]) -> ModelT:
    """The fields of this model in a line of the record, with its chain and number there."""
    named = model.model_fields.keys() - {"chain", "seq"}
    return model(**{name: getattr(entry.body, name) for name in named}, chain=entry.chain, seq=entry.seq)

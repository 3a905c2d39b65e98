"""Envoy's `ext_authz` over HTTP: may this request pass? 200 lets it, 403 and everything else stop it.

Envoy sends method, path and chosen headers of the request below `/v1/envoy`. What such a request asks here is a
value: `envoy` in policy/operations.yaml. A request without a row is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.api.mapping import filled, references, rows_of
from engine.api.messages import ANYTHING_BELOW, Exchange, Head, Response
from engine.api.problems import not_permitted, problem
from engine.errors import EngineError
from engine.model import Decision, Outcome

if TYPE_CHECKING:
    from engine.api.app import App

_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~!$&'()*+,=:@-]+)*/?")
"""A path that every reader reads alike: without dot segments, empty segments and percent-encoding."""


async def check(api: App, exchange: Exchange) -> Response:
    """Decide on the request that Envoy holds; the headers of the answer say how, and why."""
    sent = _sent(exchange.head)
    row = next((row for row in rows_of(api, "envoy") if _covers(row, sent)), None)
    if row is None:
        unmapped = EngineError(
            "the policy has no row for this request",
            remedy="add a row under `envoy` in policy/operations.yaml",
            code="engine.request_unmapped",
        )
        return _refused(unmapped, exchange)
    if (ambiguous := _ambiguous(row["request"], exchange.head)) is not None:
        return _refused(ambiguous, exchange)
    async with api.load.turn(exchange.account):
        answer = await api.engine.decide(row["point"], filled(row["request"], sent), context=exchange.context)
    decision = answer.decision
    headers = _outcome_headers(decision)
    if answer.fault is not None:
        return problem(answer.fault, exchange, decision, headers=headers)
    if decision.outcome is not Outcome.ALLOW:
        return not_permitted(decision, exchange, headers)
    return Response.of(decision, decision=decision, headers=headers)


def _refused(fault: EngineError, exchange: Exchange) -> Response:
    return problem(fault, exchange, headers=_reasons(Outcome.DENY, (fault.code,)))


def _sent(head: Head) -> dict[str, Any]:
    """What the request is, for the rows."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}
    return {
        "method": head.method,
        "host": headers.get("host", "").lower(),
        "path": "/" + head.path.removeprefix(ANYTHING_BELOW),
        "query": head.query,
        "headers": headers,
    }


def _covers(row: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether the row is about this host, method and path: the path itself, or one below it where it ends in `/`."""
    path, own = sent["path"], row["path"]
    below = own.endswith("/") and path.startswith(own)
    same = sent["host"] in row["hosts"] and sent["method"] in row["methods"] and _PLAIN.fullmatch(path) is not None
    return same and (path == own or below)


def _outcome_headers(decision: Decision) -> tuple[tuple[bytes, bytes], ...]:
    id_ = (b"x-admission-decision", decision.decision_id.encode("ascii"))
    return (id_, *_reasons(decision.outcome, sorted({finding.code for finding in decision.findings})))


def _reasons(outcome: Outcome, codes: Any) -> tuple[tuple[bytes, bytes], ...]:
    """Codes are words of the policy: letters, digits, dots and underscores."""
    text = ",".join(codes)[:1_024].encode("ascii", "replace")
    return ((b"x-admission-outcome", outcome.value.encode("ascii")), (b"x-admission-reasons", text))


def _ambiguous(template: Mapping[str, Any], head: Head) -> EngineError | None:
    """A header that the row uses and the request repeats: the service behind Envoy may read another one of them.

    Envoy joins them with a comma to ask, and forwards each.
    """
    joined = {name for name, value in head.headers.items() if b"," in value}
    repeated = {f"$headers.{name.decode('latin-1')}" for name in head.repeated | joined}
    if (twice := next((text for text in references(template) if text in repeated), None)) is None:
        return None
    return EngineError(
        f"the header `{twice.removeprefix('$headers.')}`, which decides what is asked, is repeated or has a comma",
        remedy="send the header once, without a comma",
        code="engine.request_ambiguous",
    )

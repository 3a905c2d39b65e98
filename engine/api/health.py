"""`/health`: this process answers. `/ready`: it can allow. Details for identified callers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from engine.api.answers import Health, HealthCaller, HealthDetails, OpaHealth, Ready
from engine.api.messages import Exchange, Response
from engine.api.metrics import MEDIA_TYPE
from engine.steps import own_thread
from engine.version import __version__

if TYPE_CHECKING:
    from engine.api.app import App


async def health(api: App, exchange: Exchange) -> Response:
    """200 while the process is alive; details for identified callers."""
    document = Health(status="stopping" if api.stopping else "ok")
    caller = await api.who(exchange)
    if caller is not None:
        status = await api.status()
        guards = await own_thread(partial(trust, api))
        document = HealthDetails(
            status=document.status,
            trust_level=trust_level(api, guards),
            trust=guards,
            caller=HealthCaller(via=caller.via, principal=caller.principal),
            policy=status.revisions,
            opa=OpaHealth(alive=status.opa, restarts=status.opa_restarts),
            record=status.record,
            state=status.state,
            state_age_seconds=round(status.state_age, 3),
            version=__version__,
        )
    return Response.of(document)


async def ready(api: App, _exchange: Exchange) -> Response:
    """200 when OPA answers from the expected revisions, and record and state can be written; else 503."""
    status = await api.status()
    good = status.ready and not api.stopping
    document = Ready(
        ready=good,
        stopping=api.stopping,
        opa=status.opa,
        record=status.record,
        state=status.state,
        policy=status.agreed,
    )
    return Response.of(document) if good else Response.of(document, 503, headers=((b"retry-after", b"1"),))


def trust_level(api: App, guards: Mapping[str, bool]) -> int:
    """How strongly callers are identified, from cheapest to strongest (D56).

    0 being on this machine is enough · 1 a shared token · 2 TLS or mutual TLS · 3 scoped tokens ·
    4 secrets of a run are sealed to its runner. Steps combine and the strongest counts, but a listener that
    others can reach without TLS is never above 1: the token can be sniffed.
    """
    steps = (("payload_encryption", 4), ("scoped_tokens", 3), ("tls", 2), ("shared_token", 1))
    level = next((level for name, level in steps if guards[name]), 0)
    return level if guards["tls"] or api.site.loopback else min(level, 1)


def trust(api: App) -> dict[str, bool]:
    """Every step by itself."""
    policy = api.engine.policy
    return {
        "loopback": api.site.loopback,
        "shared_token": api.gate.shared_token,
        "tls": api.gate.tls,
        "mutual_tls": api.gate.mutual_tls,
        "scoped_tokens": api.identity.scoped(),
        "payload_encryption": policy is not None and policy.lookups.payload_encryption,
    }


async def metrics(api: App, _exchange: Exchange) -> Response:
    """All metrics as text, for Prometheus."""
    status = await api.status()
    gauges = {
        "engine_http_connections": ("Open connections.", api.connections.used),
        "engine_http_body_bytes": ("Bytes of bodies in memory.", api.bodies.used),
        "engine_decisions_in_flight": ("Decisions in progress.", api.load.running.used + api.batches.running.used),
        "engine_decisions_waiting": (
            "Decisions waiting for a slot.",
            api.load.waiting.used + api.batches.waiting.used,
        ),
        "engine_opa_up": ("Whether OPA answers.", status.opa),
        "engine_policy_up": ("Whether the release that was activated for all engines is served.", status.agreed),
        "engine_record_up": ("Whether the record can be written.", status.record),
        "engine_state_up": ("Whether the state can be written.", status.state),
    }
    refused = api.load.waiting.refused + api.batches.waiting.refused + api.bodies.refused
    counts = {
        "engine_overloaded": ("Requests refused under overload.", refused),
        "engine_log_lines_dropped": ("Lines of the operational log that were dropped.", api.log.dropped),
        "engine_opa_restarts": ("Restarts of OPA.", status.opa_restarts),
    }
    shadow = api.shadow
    if shadow is not None:
        gauges["engine_shadow_up"] = ("Whether the candidate policy decides too.", shadow.up)
        changed = shadow.decided.total() - shadow.decided["unchanged"]
        counts["engine_shadow_decisions"] = ("Recorded decisions of the candidate policy.", shadow.decided.total())
        counts["engine_shadow_changed"] = ("Those that differ from the decision.", changed)
        counts["engine_shadow_dropped"] = ("Requests that the candidate did not decide.", shadow.dropped.total())
    if api.tracing is not None:
        counts["engine_spans_lost"] = ("Spans that no collector accepted.", api.tracing.lost)
    return Response(200, api.metrics.text(gauges, counts), MEDIA_TYPE)

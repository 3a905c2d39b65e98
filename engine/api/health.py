"""`/health`: this process answers. `/ready`: it can allow. Details for those who show who they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.api.messages import Response

if TYPE_CHECKING:
    from engine.api.app import Api
    from engine.api.messages import Exchange


async def health(api: Api, exchange: Exchange) -> Response:
    """200 while the process lives; more for callers that can be told apart."""
    document: dict[str, Any] = {"status": "stopping" if api.stopping else "ok"}
    caller = api.who(exchange)
    if caller is not None:
        status = await api.status()
        document |= {
            "trust_level": trust_level(api),
            "trust": trust(api),
            "caller": {"via": caller.via.value, "principal": caller.principal},
            "policy": None if status.revisions is None else status.revisions.model_dump(mode="json"),
            "opa": {"alive": status.opa, "restarts": status.opa_restarts},
            "record": status.record,
            "state": status.state,
            "state_age_seconds": round(status.state_age, 3),
            "version": __version__,
        }
    return Response(200, json.dumps(document).encode("ascii"))


async def ready(api: Api, _exchange: Exchange) -> Response:
    """200 when OPA answers from the expected revisions and record and state can be written; else 503."""
    status = await api.status()
    parts = {"opa": status.opa, "record": status.record, "state": status.state}
    good = all(parts.values()) and not api.stopping
    document = {"ready": good, "stopping": api.stopping, **parts}
    headers = () if good else ((b"retry-after", b"1"),)
    return Response(200 if good else 503, json.dumps(document).encode("ascii"), headers=headers)


def trust_level(api: Api) -> int:
    """How strongly callers are told apart, from cheapest to strongest (D56).

    0 being on this machine is enough · 1 a shared token · 2 TLS or mutual TLS · 3 scoped tokens ·
    4 an encrypted payload, which this engine does not offer. Steps combine and the strongest counts, but
    a listener that others can reach without TLS is never above 1: whoever listens has the token.
    """
    guards = trust(api)
    level = 3 if guards["scoped_tokens"] else 2 if guards["tls"] else 1 if guards["shared_token"] else 0
    return level if guards["tls"] or api.loopback else min(level, 1)


def trust(api: Api) -> dict[str, bool]:
    """Every step by itself."""
    return {
        "loopback": api.loopback,
        "shared_token": api.gate.shared_token,
        "tls": api.gate.tls,
        "mutual_tls": api.gate.mutual_tls,
        "scoped_tokens": api.identity.scoped(),
        "payload_encryption": False,
    }

"""Keeps the end of each run for its caller, with the result, for as long as its permit says."""

from __future__ import annotations

from typing import Any

from engine.code.gateway import crashed
from engine.code.result import CodeRun
from engine.code.running import Ticket
from engine.documents.canonical import canonical
from engine.drive import Call, Steps
from engine.flow import Services
from engine.model import Pace
from engine.secrets.redaction import redact
from engine.state.rows import CodeRunRow, StateLimits

RESULT_BYTES = 1 << 20
"""The largest result that is kept; a permit lets a program print less."""

_DAY = 86_400


def keep(done: CodeRun, ticket: Ticket, services: Services) -> Steps[None]:
    """Keep the end of a run. If that fails, it is logged: the run itself is in the record."""

    def store() -> None:
        now = services.gather_context.clock()
        result = _result(done.document) if done.keep_days else None
        services.store().add_code_run(
            CodeRunRow(
                id=ticket.run_id,
                owner=ticket.owner,
                status=done.document["status"],
                stop_reason=done.stop_reason,
                decision_id=None if done.answer is None else done.answer.decision.decision_id,
                result=result,
                started_at=ticket.started_at,
                ended_at=now,
                expires_at=now + (done.keep_days * _DAY or StateLimits().run_seconds),
            )
        )

    try:
        yield Call(store, Pace.SLOW)
    except Exception as error:  # noqa: BLE001  (the run has ended, and is recorded)
        crashed(error, services)


def _result(document: dict[str, Any]) -> str | None:
    """The result without secrets and without the content of files, as JSON; None if it is too large."""
    files = [{name: value for name, value in one.items() if name != "content"} for one in document.get("artifacts", ())]
    text = canonical(redact({**document, **({"artifacts": files} if files else {})})[0])
    return text.decode("utf-8") if len(text) <= RESULT_BYTES else None

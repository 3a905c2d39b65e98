"""One admitted adapter: each request and each result is an envelope that is decided on before it is used.

    admitted = engine.admit_adapter(manifest, registry)          # needs enable_mcp_adapter=True
    host = AdapterHost(engine, ToolAdapter(gate), manifest_digest, context)
    answer = host.call("tools/call", "contacts_list", {"search": "Ada"})

request ─> adapter_envelope ─> the adapter, in this process ─> adapter_envelope ─> AdapterAnswer
"""

from __future__ import annotations

import copy
import secrets
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from admission_adapters.grants import granted, unenforceable
from admission_adapters.interfaces import Answer, Decides
from admission_adapters.tools.result import codes_of
from engine.errors import EngineError, WorkError
from engine.model import Job, Permit, Result

REJECTED = "adapter_contract_rejected"

Status = Literal["ok", "error", "refused", "awaiting_approval", "rejected"]


class Adapter(Protocol):
    """What does the work of admitted requests."""

    def handle(self, envelope: dict[str, Any]) -> Any:
        """The result envelope of a request envelope; anything else is a contract failure, an exception too."""


@runtime_checkable
class EnvelopeGrant(Protocol):
    """What is read of the limits of point `adapter_envelope`."""

    end: Literal["request", "result"]  # the end at which the envelope may be used


@dataclass(frozen=True, slots=True)
class AdapterAnswer:
    """The answer to a request. `rejected`: one of its envelopes was not admitted, and nothing of it is used.

    `code` is the stable reason of all but `ok`. `details` names what failed of the contract, without values.
    `failure_class` is `contract` for a failure of the contract, which is never one of a verifier (A61); else it names
    what failed or refused.
    """

    status: Status
    content: Any = ""
    code: str | None = None
    details: tuple[str, ...] = ()
    failure_class: Literal["contract", "engine", "tool", "policy"] | None = None
    approval: str | None = None
    decision_id: str | None = None


class AdapterHost:
    """Requests to one adapter under one manifest; threads may share it. Never raises for adapter, policy or engine."""

    def __init__(self, engine: Decides[Answer], adapter: Adapter, manifest: str, context: Any) -> None:
        """`manifest` is the digest of the admitted manifest, `context` the engine's Context of the caller."""
        self._engine, self._adapter, self._manifest, self._context = engine, adapter, manifest, context
        self._lock = threading.Lock()
        self._failures: Counter[str] = Counter()

    @property
    def failures(self) -> Mapping[str, int]:
        """How many answers failed so far, by failure class."""
        with self._lock:
            return dict(self._failures)

    def call(
        self,
        operation: str,
        tool: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        approval: str | None = None,
    ) -> AdapterAnswer:
        """One operation, in an envelope of our own; `approval` is the id of an `awaiting_approval` answer."""
        return self.answer(
            {
                "format": 1,
                "id": secrets.token_hex(16),
                "manifest": self._manifest,
                "operation": operation,
                "tool": tool,
                "arguments": {} if arguments is None else arguments,
                "approval": approval,
            }
        )

    def answer(self, envelope: Any) -> AdapterAnswer:
        """Decide on a request envelope, hand it to the adapter, decide on the result envelope, return its content."""
        found = self._answer(envelope)
        if found.failure_class is not None:
            with self._lock:
                self._failures[found.failure_class] += 1
        return found

    def _answer(self, envelope: Any) -> AdapterAnswer:
        request = self._decided({"end": "request", "envelope": envelope})
        if isinstance(request, AdapterAnswer):
            return request
        try:
            result = self._adapter.handle(copy.deepcopy(request))
        except (Exception, SystemExit):  # noqa: BLE001  (foreign code: it returned no result, which is then decided on)
            result = None
        found = self._decided({"end": "result", "envelope": result, "asked": request})
        return found if isinstance(found, AdapterAnswer) else _returned(found)

    def _decided(self, request: dict[str, Any]) -> dict[str, Any] | AdapterAnswer:
        """The envelope as it was decided on, or the rejection."""
        admitted: list[dict[str, Any]] = []

        def executor(permit: Permit, job: Job) -> Result:
            grant = granted(permit, "adapter_envelope", job.input_digest, EnvelopeGrant)
            if grant.end != request["end"]:
                raise unenforceable("the permit is for the other end of the adapter")
            if not isinstance(job.opened, dict):
                raise WorkError("this is not an envelope", remedy="send a plain JSON object", code=REJECTED)
            admitted.append(job.opened)
            return Result("admitted", {"end": grant.end})

        try:
            answer = self._engine.decide("adapter_envelope", request, executor, self._context)
        except EngineError as error:
            return AdapterAnswer("rejected", code=error.code, failure_class="engine")
        except Exception:  # noqa: BLE001  (no answer is no permission)
            return AdapterAnswer("rejected", code="engine.internal", failure_class="engine")
        fault = None if answer.fault is None else answer.fault.code
        if admitted and fault is None:
            return admitted[0]
        if fault == "engine.request_invalid" and request["envelope"] is not None:
            return self._decided(request | {"envelope": None})  # without a JSON form it is no envelope
        decision = answer.decision
        code = fault or codes_of(decision)[0]
        broken = tuple(one.subject.rpartition("/")[2] for one in decision.findings if one.subject is not None)
        return AdapterAnswer(
            "rejected",
            code=code,
            details=broken if code == REJECTED else (),
            failure_class="contract" if code == REJECTED else "policy" if fault is None else "engine",
            decision_id=decision.decision_id,
        )


def _returned(result: dict[str, Any]) -> AdapterAnswer:
    """The content of an admitted result envelope."""
    classes: dict[str, Literal["tool", "policy"]] = {
        "error": "tool",
        "refused": "policy",
        "awaiting_approval": "policy",
    }
    status = result["status"]
    return AdapterAnswer(
        status,
        result["content"],
        result["code"],
        failure_class=classes.get(status),
        approval=result["approval"],
    )

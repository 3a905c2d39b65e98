"""From a source bundle to an environment: admitted at point `source`, decided on at point `environment`, then built.

    source ─> its permit ─> environment ─> its permit ─> the folder

Each decision is recorded before the next step. An environment-source event is written once for each record:
by the decision that refuses it, or by the one under which the environment is built.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from admission_adapters.environments.build import BUILT, build_environment
from engine.adapter_admissions import source_policy_hash
from engine.admitted_sources import note_source, source_request
from engine.decide import parsed
from engine.drive import Steps
from engine.flow import Answer, Context, Services, answer
from engine.idempotency import Whole, whole_once
from engine.model import AdmittedSource, Decision, Job, Mode, Outcome, Permit, Result
from engine.points import Gathered, environment, source
from engine.points.registry import find
from engine.policy_bundle.catalogue import Catalogue
from engine.record.source_events import SourceEvent


def build_once(services: Services, path: Path, into: Path, digest: str | None, context: Context) -> Steps[Answer]:
    """`build_steps`, once for each idempotency key of a caller; a repetition returns the first answer (C69)."""
    whole = Whole(
        "build",
        {"path": str(path), "into": str(into), "digest": digest},
        lambda: build_steps(services, path, into, digest, context),
        _kept,
        _again,
        lambda first, error: replace(first, fault=first.fault or error),
    )
    return (yield from whole_once(whole, services, context))


def _kept(first: Answer) -> tuple[Answer, Any] | None:
    """The decision and what was built; None after a fault."""
    if first.fault is not None:
        return None
    built = None if first.result is None else first.result.facts
    return first, {"decision": first.decision.model_dump(mode="json"), "built": built}


def _again(first: Any) -> tuple[Answer, str]:
    fields, built = first["decision"], first["built"]
    decision = parsed(find(fields["point"]), fields)
    result = None if built is None else Result(BUILT, built)
    return Answer(decision, None, None, result), decision.decision_id


def build_steps(services: Services, path: Path, into: Path, digest: str | None, context: Context) -> Steps[Answer]:
    """Build the environment of a source bundle below `into`; returns the answer that stopped it, or the last one.

    An approval that `context` brings is used at point `source`.
    """
    admitted: list[AdmittedSource] = []
    granted: list[source.SourceLimits] = []

    def admit(permit: Permit, job: Job) -> Result:
        limits = permit.demand("source", job.input_digest, source.SourceLimits)
        hashes = {record.id: record.sha256 for record in limits.records}
        granted.append(limits)
        admitted.append(AdmittedSource(digest=limits.bundle_digest, records=hashes))
        return Result("admitted", {"records": len(hashes)})

    def build(permit: Permit, job: Job) -> Result:
        rows, bundle = job.opened.rows, job.opened.opened.facts
        note_source(services.store(), granted[0], bundle, lambda name: (text for row in rows(name) for text in row))
        return build_environment(into, permit, job.input_digest, rows, source_policy_hash(granted[0]))

    point = replace(source.POINT, events=_refused)
    own = replace(context, idempotency_key=None)
    request = source_request(path, digest, into)
    first: Answer = yield from answer(point, request, Mode.ENFORCE, services, own, admit)
    if not admitted or first.fault is not None:
        return first
    holding = replace(services, gather_context=replace(services.gather_context, admitted=admitted[0]))
    request = {"path": str(path), "digest": admitted[0].digest}
    again = replace(own, approval=None)
    return (yield from answer(environment.POINT, request, Mode.ENFORCE, holding, again, build))


def _refused(gathered: Gathered, decision: Decision, catalogue: Catalogue) -> tuple[SourceEvent, ...]:
    """The events of point `source` for a refusal; what it admits, point `environment` may still refuse."""
    return () if decision.outcome is Outcome.ALLOW else source.events(gathered, decision, catalogue)

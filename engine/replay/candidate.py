"""A candidate policy on an OPA of its own, and its verdicts on recorded inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from engine.binaries import find_binary
from engine.decide import Verdict, authored, denial, read
from engine.documents.files import printable
from engine.drive import Ask, Call, Steps
from engine.errors import DecideError
from engine.model import is_reserved
from engine.opa.server import Served as ServedFiles
from engine.opa.supervisor import Supervisor
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.serving import Served
from engine.record.model import DecisionRecord
from engine.settings import OpaLimits

_NOT_ANSWERED = {"policy_unavailable", "policy_stale"}
"""OPA did not answer at all: a replay stops, because nothing is known of the policy."""


class Candidate:
    """A policy that decides recorded inputs, as long as its block is open."""

    def __init__(self, policy: PolicyBundle, supervisor: Supervisor[PolicyBundle]) -> None:
        self.policy = policy
        self._supervisor = supervisor

    @contextmanager
    def leased(self) -> Iterator[Served]:
        """The OPA that answers now; one that grew too large is replaced between two leases."""
        served = Served(self._supervisor.acquire(), self._supervisor)
        try:
            yield served
        finally:
            served.release()


@contextmanager
def opened(
    policy: PolicyBundle, limits: OpaLimits, points: frozenset[str] | None = None, key: Path | None = None
) -> Iterator[Candidate]:
    """Start an OPA with this policy, or with its rules of these decision points. Raises DecideError.

    `key` is the public key of a signed release.
    """

    def files(one: PolicyBundle) -> ServedFiles:
        return ServedFiles(one.rules.path, one.values.path, one.revisions, key, points)

    with closing(Supervisor(find_binary(), policy, files, limits, lambda *_: None)) as supervisor:
        yield Candidate(policy, supervisor)


def undecidable(body: DecisionRecord) -> str | None:
    """Why no policy can decide a recorded input again as it was decided; None if one can."""
    if body.point not in POINTS:
        return "the decision point no longer exists"
    faults = sorted({found.code for found in body.findings if is_reserved(found.code)})
    if faults:
        return f"the engine refused it, not the policy: {', '.join(map(printable, faults))}"
    if body.input is None:
        return "the record has no input"
    hidden = sorted({_field(path) for path in body.redactions if path.startswith(("input.", "limits."))})
    return f"redacted: {', '.join(hidden)}" if hidden else None


def uncounted(policy: PolicyBundle, body: DecisionRecord) -> tuple[str, ...]:
    """The budgets of this policy that were not counted for a recorded decision."""
    counted = {one["id"] for one in (body.input or {}).get("budgets", ())}
    return tuple(name for name in policy.lookups.budgets.get(body.point, ()) if name not in counted)


def verdict_steps(served: Served, body: DecisionRecord, document: dict[str, Any]) -> Steps[Verdict]:
    """The candidate's verdict on the input of a recorded decision; a rule that fails denies, as on the path.

    Its budgets are those of the candidate; one that was not counted is taken as unused. Raises DecideError while OPA
    does not answer.
    """
    point = POINTS[body.point]
    counted = {one["id"]: one for one in document.get("budgets", ())}
    budgets = served.lookups.budgets.get(body.point, ())
    document = {**document, "budgets": [counted.get(name, {"id": name, "used": 0, "amount": 1}) for name in budgets]}
    try:
        try:
            reply = yield Ask(served.opa, document, body.decision_id)
        except DecideError:  # any input of the batch may be the reason
            reply = yield Call(partial(served.opa.ask, "decision", document))
        return read(point, reply, served.catalogue)
    except DecideError as error:
        if error.code in _NOT_ANSWERED:
            raise
        return denial(authored(error, served))


def _field(path: str) -> str:
    """The path of a redacted value, without the positions of lists."""
    return printable(".".join("*" if part.isdigit() else part for part in path.split(".")), 200)

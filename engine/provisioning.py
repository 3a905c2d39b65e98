"""Provisioning: mounts an agent in the state once its specification was decided on, recorded, and approved by a person.

An agent is named by the decision that admitted it. It takes part in episodes until it is ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.documents.canonical import canonical, digest
from engine.episodes.result import EpisodeError, MaxAgentsExceededError
from engine.errors import EngineError, PermitMissingError
from engine.flow import Answer, Context, Services
from engine.model import Outcome, Permit, Result
from engine.points.provisioning import NewAgentProvisioning, ProvisioningLimits
from engine.state.rows import AgentRow
from engine.work import Executor, Job

POINT = "provisioning"


@dataclass(frozen=True, slots=True)
class Provisioned:
    """The decision on a new agent, and the id of the agent; None if it was not mounted.

    Where a person must approve, `answer.decision.approval` has the id of the approval to bring.
    """

    answer: Answer
    agent: str | None

    @property
    def error(self) -> EngineError | None:
        """Why there is no agent: MaxAgentsExceededError, a fault, or an error with the code of what stops it."""
        if self.answer.fault is not None or self.agent is not None:
            return self.answer.fault
        decision = self.answer.decision
        stopping = [finding for finding in decision.findings if finding.level.value == decision.outcome.value]
        codes = [finding.code for finding in stopping]
        kind = MaxAgentsExceededError if MaxAgentsExceededError.code in codes else EpisodeError
        first = stopping[codes.index(kind.code) if kind.code in codes else 0]
        return kind(f"refused: {first.requirement}", remedy=first.remedy, code=first.code)

    def raise_for_error(self) -> None:
        """Raise `error`, if there is one."""
        if (error := self.error) is not None:
            raise error


def provisioned(answer: Answer) -> Provisioned:
    """What became of a request to provision an agent; a repeated idempotency key names the agent again."""
    mounted = answer.decision.outcome is Outcome.ALLOW and answer.fault is None
    return Provisioned(answer, answer.decision.decision_id if mounted else None)


def mounting(services: Services, context: Context) -> Executor:
    """The executor that stores the agent as active."""

    def mount(permit: Permit, job: Job) -> Result:
        limits = permit.demand(POINT, job.input_digest, ProvisioningLimits)
        own: NewAgentProvisioning | None = job.opened
        text = canonical(None if own is None else own.model_dump(mode="json"))
        if own is None or digest(text) != limits.specification:
            raise PermitMissingError(
                "the permit is for another specification", remedy="request a decision on exactly this one"
            )
        now = services.gather_context.clock()
        row = AgentRow(permit.decision_id, own.name, own.role, text.decode("utf-8"), context.caller.principal, now)
        if not services.store().add_agent(row, limits.max_agents):
            raise MaxAgentsExceededError(
                f"{limits.max_agents} agents are active", remedy="end one with `engine agent end`"
            )
        return Result("mounted", {"agent": row.id, "name": row.name, "role": row.role})

    return mount

"""The initial state of a test case: prefixes, children, attempts, checks, memory, sources, flows, stops, agents.

Such a case gets its own store, so that cases do not affect each other.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any

from pydantic import BeforeValidator

from engine.documents.canonical import canonical
from engine.facts.text.blocks import blocks_of
from engine.facts.text.quotes import words_of
from engine.model import Digest, Model, Sha256
from engine.points.source import SourceTerms
from engine.state.rows import (
    AgentRow,
    ApprovalRow,
    ApprovalState,
    ArtifactCheckRow,
    AttemptRow,
    AttemptState,
    CheckName,
    ChildRow,
    ChildState,
    MemoryRow,
    PrefixRow,
    SourceRecordRow,
    StopRow,
    StopScope,
)
from engine.state.store import Store
from engine.times import seconds

Moment = Annotated[int, BeforeValidator(lambda text: seconds(str(text)), json_schema_input_type=str)]
"""Seconds since 1970, written in a case file as a time in UTC such as `2026-11-21T00:00:00Z`."""


class CasePrefix(Model):
    """A command prefix that was approved before, and perhaps revoked."""

    principal: str
    cwd: str
    tool: str
    words: tuple[str, ...]
    approver: str
    created_at: Moment
    expires_at: Moment
    revoked: bool = False


class CaseChild(Model):
    """A subagent's conversation that was started before, and its state."""

    id: str
    parent: str
    created_at: Moment
    state: ChildState = "running"
    principal: str = ""


class CaseAttempt(Model):
    """An earlier attempt at a task, and its result."""

    id: str
    principal: str = ""
    task: str
    code_sha256: Sha256
    created_at: Moment
    state: AttemptState = "failed"


class CaseCheck(Model):
    """An earlier check of a generated artifact."""

    sha256: Sha256
    name: CheckName
    passed: bool
    ran_in: str
    decision_id: str = "before"
    made_at: Moment


class CaseStop(Model):
    """A stop, in force unless it was lifted."""

    id: str
    scope: StopScope
    name: str = ""
    actor: str = "user:ana"
    created_at: Moment
    lifted: bool = False

    def write(self, store: Store) -> None:
        """Write it to a store."""
        store.add_stop(StopRow(**self.model_dump(exclude={"lifted"})))
        if self.lifted:
            store.lift_stop(self.id, self.created_at)


class CaseAgent(Model):
    """A provisioned agent, active unless it was ended."""

    id: str
    name: str
    role: str = "agent"
    specification: dict[str, Any]
    requester: str | None = None
    created_at: Moment
    ended: bool = False

    def write(self, store: Store, most: int) -> None:
        """Write it to a store."""
        text = canonical(self.specification).decode("utf-8")
        store.add_agent(AgentRow(specification=text, **self.model_dump(exclude={"ended", "specification"})), most)
        if self.ended:
            store.end_agent(self.id, self.created_at)


class CaseMemory(Model):
    """An entry of memory that was written before."""

    id: str
    owner: str
    text: str
    sensitivity: str
    origin: str
    origin_name: str = "before"
    created_at: Moment

    def write(self, store: Store) -> None:
        """Write it to a store."""
        found = sha256(self.text.encode("utf-8")).hexdigest()
        store.add_memory(MemoryRow(sha256=found, decision_id="before", **self.model_dump()))


class CaseFlow(Model):
    """What a run has touched before."""

    run: str
    touched: tuple[str, ...]
    touched_at: Moment

    def write(self, store: Store) -> None:
        """Write it to a store."""
        store.touch(self.run, self.touched, "before", self.touched_at)
        store.keep_touches("before")


class CaseSource(Model):
    """A record of a source bundle that was admitted before, with its text."""

    source: Digest
    record: str
    kind: str
    text: str
    export: bool
    sensitive: bool = False
    terms: SourceTerms = SourceTerms()

    def write(self, store: Store) -> None:
        """Store it with the blocks of its text."""
        found = sha256(self.text.encode("utf-8")).hexdigest()
        row = SourceRecordRow(
            sha256=found, terms=self.terms.model_dump_json(), **self.model_dump(exclude={"text", "terms"})
        )
        store.add_source_record(row, blocks_of(words_of(self.text)))


class CaseApproval(Model):
    """A request for approval, and its state."""

    id: str
    point: str
    requester: str | None = None
    requester_via: str
    state: ApprovalState
    expires_at: Moment

    def row(self) -> ApprovalRow:
        """The row in the state; its binding and findings belong to no decision."""
        return ApprovalRow(input_digest="", rules="", values="", codes=(), created_at=0, **self.model_dump())


class CaseState(Model):
    """The initial state of a case, the oldest rows first."""

    prefixes: tuple[CasePrefix, ...] = ()
    children: tuple[CaseChild, ...] = ()
    attempts: tuple[CaseAttempt, ...] = ()
    checks: tuple[CaseCheck, ...] = ()
    stops: tuple[CaseStop, ...] = ()
    agents: tuple[CaseAgent, ...] = ()
    memories: tuple[CaseMemory, ...] = ()
    sources: tuple[CaseSource, ...] = ()
    flows: tuple[CaseFlow, ...] = ()

    def write(self, store: Store) -> None:
        """Write all rows to a store, once. Raises ValueError for rows that no engine would have written."""
        for prefix in self.prefixes:
            approved = store.approve_prefix(PrefixRow(**prefix.model_dump(exclude={"revoked"})))
            if prefix.revoked:
                store.revoke_prefix(approved.id, prefix.created_at)
        for child in self.children:
            store.add_child(ChildRow(child.id, child.parent, child.created_at, principal=child.principal))
            if child.state != "running":
                store.end_child(child.id, child.state, child.created_at)
        for tried in self.attempts:
            store.begin_attempt(AttemptRow(**tried.model_dump(exclude={"state"})))
            if tried.state != "begun":
                store.end_attempt(tried.id, tried.state, tried.created_at)
        for check in self.checks:
            store.add_artifact_check(ArtifactCheckRow(**check.model_dump()))
        rows: tuple[CaseStop | CaseMemory | CaseSource | CaseFlow, ...] = (*self.stops, *self.memories, *self.sources)
        rows = (*rows, *self.flows)
        for row in rows:
            row.write(store)
        for agent in self.agents:
            agent.write(store, len(self.agents))

"""Entries of agents' memory behind point `memory`: written, read and forgotten only under a permit.

    request ─> memory ─> permit ─> the engine's state

A caller reads only what it has written itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.documents.canonical import digest
from engine.drive import Call, Steps
from engine.errors import Exit, PermitMissingError, WorkError
from engine.flow import Answer, Context, Services, answer
from engine.idempotency import answer_once
from engine.model import Job, Mode, Permit, Result
from engine.points.memory import MOST, POINT, MemoryLimits
from engine.state.rows import MemoryRow


@dataclass(frozen=True, slots=True)
class Memory:
    """An answer, and the entries that were written, read or forgotten under it; none if it was refused."""

    answer: Answer
    entries: tuple[MemoryRow, ...] = ()

    @property
    def exit(self) -> Exit:
        """The exit code of the request."""
        return self.answer.exit


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to remember. `origin` is its kind (policy/memory.yaml), `origin_name` such as the name of a tool."""

    text: str
    origin: str
    origin_name: str
    sensitivity: str


def write_steps(services: Services, new: NewEntry, context: Context) -> Steps[Memory]:
    """Decide on a new entry and, on an allow, store it for its owner, the caller; once for each idempotency key."""
    origin = {"kind": new.origin, "name": new.origin_name}
    entry = {"text": new.text, "origin": origin, "sensitivity": new.sensitivity}
    written: list[MemoryRow] = []

    def store(permit: Permit, job: Job) -> Result:
        limits = permit.demand(POINT.name, job.input_digest, MemoryLimits)
        found = digest(new.text.encode("utf-8"))
        if limits.written != (found,):
            raise _other_content()
        row = MemoryRow(
            owner=limits.owner,
            text=new.text,
            sha256=found.removeprefix("sha256:"),
            sensitivity=new.sensitivity,
            origin=new.origin,
            origin_name=new.origin_name,
            decision_id=permit.decision_id,
            created_at=services.gather_context.clock(),
        )
        services.store().add_memory(row)
        written.append(row)
        return Result("written", {"id": row.id})

    request = {"operation": "write", "entry": entry, "id": None}
    decided = yield from answer_once(POINT, request, Mode.ENFORCE, services, context, store)
    if written or decided.exit is not Exit.ALLOW:
        return Memory(decided, tuple(written))
    kept: tuple[MemoryRow, ...] = yield Call(lambda: services.store().memories(context.caller.principal or "", MOST))
    return Memory(decided, tuple(row for row in kept if row.decision_id == decided.decision.decision_id))


def read_steps(services: Services, id_: str | None, context: Context, *, forget: bool = False) -> Steps[Memory]:
    """Decide on an entry, or on all of the caller, and on an allow read it, or forget it."""
    entries: list[MemoryRow] = []

    def read(permit: Permit, job: Job) -> Result:
        store = services.store()
        limits = permit.demand(POINT.name, job.input_digest, MemoryLimits)
        for one in limits.entries:
            row = store.memory(one.id)
            if row is None or (row.owner, f"sha256:{row.sha256}") != (limits.owner, one.digest):
                raise _other_content()
            entries.append(row)
        if forget:
            for one in limits.entries:
                store.forget_memory(one.id)
        return Result("forgotten" if forget else "read", {"entries": len(entries)})

    request = {"operation": "forget" if forget else "read", "entry": None, "id": id_}
    decided = yield from answer(POINT, request, Mode.ENFORCE, services, context, read)
    return Memory(decided, () if decided.fault else tuple(entries))


def _other_content() -> WorkError:
    return PermitMissingError("this is not the entry that was decided on", remedy="repeat the request")

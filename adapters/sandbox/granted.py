"""What every permit for a sandbox grants, and what every hand looks at again before it runs anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Protocol

from adapters.sandbox.model import Backend, Bounds
from engine.errors import WorkError
from engine.model import Boundary, Model, Probe


class Granted(Protocol):
    """Where a program runs, who has to hold each boundary there, and its limits; seconds, bytes, counts."""

    backend: str
    isolation: str
    required: Model
    wall_seconds: float
    cpu_seconds: int
    memory_bytes: int
    processes: int
    open_files: int
    file_bytes: int
    disk_bytes: int
    stdout_bytes: int
    stderr_bytes: int
    artifact_files: int
    artifact_bytes: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What the sandboxes of this machine were shown to hold, and on what each was tried."""

    boundaries: Iterable[Boundary]
    probes: Iterable[Probe]


def enforced(backend: str, boundaries: Iterable[Boundary]) -> dict[str, str]:
    """The boundaries that a sandbox was shown to hold, and who holds each."""
    return {one.boundary: one.kind for one in boundaries if one.backend == backend and one.enforced}


def prove_again(grant: Granted, backend: Backend, shown: Shown) -> None:
    """The decision had these facts too; nobody runs anything on the word of a decision alone. Raises WorkError."""
    if backend.name != grant.backend:
        raise unenforceable(f"the permit is for the sandbox `{grant.backend}`, not for `{backend.name}`")
    lacking = backend.available()
    if lacking is not None:
        raise unenforceable(f"the sandbox `{backend.name}` cannot be used here: {lacking}")
    if not any(one.id == backend.name and one.authentic and one.subject == one.machine for one in shown.probes):
        raise unenforceable(f"the sandbox `{backend.name}` was not tried on this machine as it is now")
    held = enforced(backend.name, shown.boundaries)
    for name, kinds in grant.required.model_dump().items():
        if held.get(name) not in kinds:
            raise unenforceable(f"this machine was not shown to enforce `{name}`")


def bounds_of(grant: Granted) -> Bounds:
    """The limits of a permit as a backend takes them."""
    return Bounds(**{one.name: getattr(grant, one.name) for one in fields(Bounds)})


def unenforceable(message: str) -> WorkError:
    """What is refused because this machine cannot hold it."""
    return WorkError(
        message,
        remedy="run `engine doctor --sandbox`, install what it names, and ask again",
        code="engine.limit_unenforceable",
    )

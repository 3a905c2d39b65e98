"""The closed lists of sandbox boundaries and limits, and what all points share whose work runs in a sandbox.

Requests, limits and policy/sandbox.yaml use exactly these names; so does rego/admission/lib/boundary.rego.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints

from engine.model import Limits, Model

BoundaryName = Literal[
    "files", "network", "processes", "environment", "descriptors", "capabilities", "namespaces", "syscalls", "memory",
    "memory_process", "process_count", "open_files", "file_size", "disk", "inodes", "cpu", "output", "time",
    "survivors",
]  # fmt: skip
"""`memory`: of all processes together; `memory_process`: of one; `survivors`: no process outlives the answer."""

BOUNDARIES: tuple[BoundaryName, ...] = get_args(BoundaryName)

Kind = Literal["kernel", "supervised", "bounded"]
"""The mechanism that enforces a boundary: the operating system, the engine, or a product of other limits."""

Isolation = Literal["restricted_process", "container", "webassembly"]
"""The type of a backend, in the words of A02 and A94."""

Count = Annotated[int, Field(ge=1, le=1 << 20)]
Bytes = Annotated[int, Field(ge=1, le=1 << 40)]
WallSeconds = Annotated[float, Field(gt=0, le=3_600)]


class Bounds(Model):
    """Every limit of one program, in seconds, bytes and counts. `artifact_files` may be none."""

    wall_seconds: WallSeconds = Field(
        description="Wall-clock time, in seconds. The program and everything it started are then killed."
    )
    cpu_seconds: Annotated[int, Field(ge=1, le=3_600)] = Field(
        description="CPU time of one process, in seconds. The process is then killed."
    )
    memory_bytes: Bytes = Field(description="Memory, in bytes. Further allocations fail or the program is killed.")
    processes: Count = Field(description="Maximum number of processes and threads at a time. Starting more fails.")
    open_files: Count = Field(description="Maximum number of open files of one process. Opening more fails.")
    file_bytes: Bytes = Field(description="Maximum size of one file, in bytes. Further writes fail.")
    disk_bytes: Bytes = Field(description="Maximum size of all files together, in bytes. Further writes fail.")
    stdout_bytes: Bytes = Field(
        description="Maximum size of standard output, in bytes. The program is killed if it writes more."
    )
    stderr_bytes: Bytes = Field(
        description="Maximum size of standard error, in bytes. The program is killed if it writes more."
    )
    artifact_files: Annotated[int, Field(ge=0, le=1 << 16)] = Field(
        description="Maximum number of files returned after the run."
    )
    artifact_bytes: Annotated[int, Field(ge=0, le=1 << 40)] = Field(
        description="Maximum size of the returned files together, in bytes."
    )


BOUND_NAMES: tuple[str, ...] = tuple(Bounds.model_fields)


Kinds = Annotated[tuple[Kind, ...], Field(min_length=1)]


Required = Annotated[Mapping[BoundaryName, Kinds], Field(min_length=len(BOUNDARIES))]
"""The mechanisms that must enforce each boundary, for one program. The minimum length ensures that none is missing."""

ProfileName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]

_MOST = 1 << 40
_Lower = Annotated[int, Field(ge=1, le=_MOST)] | None
_LowerOrNone = Annotated[int, Field(ge=0, le=_MOST)] | None


class Tighten(Model):
    """Lower limits that a request asks for, by the names of `Bounds`; the policy sets those that are absent."""

    wall_seconds: Annotated[float, Field(gt=0, le=_MOST)] | None = None
    cpu_seconds: _Lower = None
    memory_bytes: _Lower = None
    processes: _Lower = None
    open_files: _Lower = None
    file_bytes: _Lower = None
    disk_bytes: _Lower = None
    stdout_bytes: _Lower = None
    stderr_bytes: _Lower = None
    artifact_files: _LowerOrNone = None
    artifact_bytes: _LowerOrNone = None


class Amount(Model):
    """A limit that the request states, by its name."""

    id: str
    value: int | float


class Needed(Model):
    """One boundary that must be enforced."""

    id: BoundaryName


class Needs(Model):
    """The boundaries that must be enforced: all of them, whatever was requested."""

    boundaries: tuple[Needed, ...] = tuple(Needed(id=name) for name in BOUNDARIES)


class Stated(Model):
    """A word that the request may state."""

    stated: bool
    value: str | None = None


class SandboxedLimits(Limits, Bounds):
    """Where work runs, which mechanism must enforce each boundary there, and its limits."""

    profile: ProfileName
    backend: Literal["bubblewrap", "bubblewrap_egress", "gvisor", "wasmtime"]
    isolation: Isolation
    required: Required
    network: Literal["none"]
    redact: Literal[True]

    def bounds(self) -> dict[str, Any]:
        """What the program may use, by name."""
        return self.model_dump(include=set(BOUND_NAMES))

    def boundaries(self) -> frozenset[str]:
        """All of them."""
        return frozenset(BOUNDARIES)

    def on_backend(self) -> str:
        """The backend whose evidence counts."""
        return self.backend


def amounts(tighten: Tighten | None) -> tuple[Amount, ...]:
    """The limits that a request states."""
    stated = {} if tighten is None else tighten.model_dump(exclude_none=True)
    return tuple(Amount(id=name, value=value) for name, value in stated.items())


def stated(value: str | None) -> Stated:
    """A word of a request, or its absence."""
    return Stated(stated=value is not None, value=value)

"""What a sandbox has to hold, and what bounds a program in it: the closed lists of both.

Requests, limits and policy/sandbox.yaml speak of exactly these; so does rego/admission/lib/boundary.rego.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from engine.model import Model

BoundaryName = Literal[
    "files", "network", "processes", "environment", "descriptors", "capabilities", "namespaces", "syscalls", "memory",
    "memory_process", "process_count", "open_files", "file_size", "disk", "inodes", "cpu", "output", "time",
    "survivors",
]  # fmt: skip
"""`memory` is that of all processes together, `memory_process` that of one; `survivors`: none after the answer."""

BOUNDARIES: tuple[BoundaryName, ...] = get_args(BoundaryName)

Kind = Literal["kernel", "supervised", "bounded"]
"""Who holds a boundary: the operating system, the engine, or a product of other limits."""

Isolation = Literal["restricted_process", "container", "webassembly"]
"""What a backend is, in the words of A02 and A94."""

Count = Annotated[int, Field(ge=1, le=1 << 20)]
Bytes = Annotated[int, Field(ge=1, le=1 << 40)]
WallSeconds = Annotated[float, Field(gt=0, le=3_600)]


class Bounds(Model):
    """Every limit of one program, in seconds, bytes and counts. `artifact_files` may be none."""

    wall_seconds: WallSeconds = Field(description="Seconds until the program is killed, with all it has started.")
    cpu_seconds: Annotated[int, Field(ge=1, le=3_600)] = Field(description="Seconds of processor time of a process.")
    memory_bytes: Bytes = Field(description="Bytes of memory.")
    processes: Count = Field(description="Processes and threads at a time.")
    open_files: Count = Field(description="Open files of a process.")
    file_bytes: Bytes = Field(description="Bytes of one file.")
    disk_bytes: Bytes = Field(description="Bytes of all files together.")
    stdout_bytes: Bytes = Field(description="Bytes of standard output.")
    stderr_bytes: Bytes = Field(description="Bytes of standard error.")
    artifact_files: Annotated[int, Field(ge=0, le=1 << 16)] = Field(description="Files that are handed out afterwards.")
    artifact_bytes: Annotated[int, Field(ge=0, le=1 << 40)] = Field(description="Bytes of these files together.")


BOUND_NAMES: tuple[str, ...] = tuple(Bounds.model_fields)


Kinds = Annotated[tuple[Kind, ...], Field(min_length=1)]


class Required(Model):
    """Who has to hold each boundary, for one program. All of them have to be held."""

    files: Kinds
    network: Kinds
    processes: Kinds
    environment: Kinds
    descriptors: Kinds
    capabilities: Kinds
    namespaces: Kinds
    syscalls: Kinds
    memory: Kinds
    memory_process: Kinds
    process_count: Kinds
    open_files: Kinds
    file_size: Kinds
    disk: Kinds
    inodes: Kinds
    cpu: Kinds
    output: Kinds
    time: Kinds
    survivors: Kinds

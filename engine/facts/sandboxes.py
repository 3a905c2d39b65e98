"""What every point whose work runs in a sandbox asks for, shows to OPA, and gives as limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from engine.facts.boundaries import BOUNDARIES, BoundaryName, Bounds, Isolation, Required
from engine.model import Limits, Model

ProfileName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]


class Tighten(Model):
    """Limits that a request asks to be lower, under their own names; what is not stated is as policy has it."""

    wall_seconds: Annotated[float, Field(gt=0, le=1 << 40)] | None = None
    cpu_seconds: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    memory_bytes: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    processes: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    open_files: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    file_bytes: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    disk_bytes: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    stdout_bytes: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    stderr_bytes: Annotated[int, Field(ge=1, le=1 << 40)] | None = None
    artifact_files: Annotated[int, Field(ge=0, le=1 << 40)] | None = None
    artifact_bytes: Annotated[int, Field(ge=0, le=1 << 40)] | None = None


class Amount(Model):
    """A limit that the request states, by its name."""

    id: str
    value: int | float


class Needed(Model):
    """One boundary that has to be held."""

    id: BoundaryName


class Needs(Model):
    """What has to be held: all there is, whatever was asked."""

    boundaries: tuple[Needed, ...] = tuple(Needed(id=name) for name in BOUNDARIES)


class Stated(Model):
    """A word that the request may state."""

    stated: bool
    value: str | None = None


class SandboxedLimits(Limits, Bounds):
    """Where work runs, who has to hold each boundary there, and what it may use."""

    profile: ProfileName
    backend: Literal["bubblewrap", "gvisor", "wasmtime"]
    isolation: Isolation
    required: Required
    network: Literal["none"]
    redact: Literal[True]

    def boundaries(self) -> frozenset[str]:
        """All of them."""
        return frozenset(Required.model_fields)

    def on_backend(self) -> str:
        """Only what this backend was shown to hold counts."""
        return self.backend


def amounts(tighten: Tighten | None) -> tuple[Amount, ...]:
    """The limits that a request states."""
    stated = {} if tighten is None else tighten.model_dump(exclude_none=True)
    return tuple(Amount(id=name, value=value) for name, value in stated.items())


def stated(value: str | None) -> Stated:
    """A word of a request, or that there is none."""
    return Stated(stated=value is not None, value=value)

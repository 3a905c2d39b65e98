"""policy/sandbox.yaml: what sandboxes there are, what each must be shown to hold, and the floor under all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from engine.facts.boundaries import BOUND_NAMES, BOUNDARIES, BoundaryName, Bounds, Isolation, Kind
from engine.model import Model
from engine.values.fields import Items, Word, value_error

BackendName = Literal["bubblewrap", "gvisor", "wasmtime"]
"""The backends that can be shown to hold something. A plain subprocess holds nothing and cannot be named."""

Executable = Annotated[
    str, StringConstraints(pattern=r"^/usr/(?:[A-Za-z0-9_+-][A-Za-z0-9_.+-]*/)*[A-Za-z0-9_+-][A-Za-z0-9_.+-]*$")
]
Command = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.+-]*$", max_length=64)]

SHELLS = frozenset(
    {"ash", "bash", "busybox", "csh", "dash", "env", "fish", "ksh", "ksh93", "mksh", "nsenter", "rbash", "rksh"}
    | {"setpriv", "setsid", "sh", "su", "sudo", "tcsh", "toybox", "unshare", "xargs", "zsh"}
)
"""Programs that take a command as text, or start another one; B11 is about neither."""

Held = Annotated[Items[Kind], Field(min_length=1)]


class Backend(Model):
    """A kind of sandbox."""

    isolation: Isolation = Field(description="What it is; `restricted_process` and `container` count for A02.")


class Floor(Model):
    """What no profile may go below."""

    boundaries: Mapping[BoundaryName, Held] = Field(description="Every boundary, and who may hold it.")
    most: Bounds = Field(description="The most that a profile may allow.")


class Profile(Model):
    """A named set: where a program runs, who holds its boundaries, and what it may use."""

    backend: BackendName = Field(description="The kind of sandbox.")
    boundaries: Mapping[BoundaryName, Held] = Field(
        description="Every boundary, and who may hold it here; nobody whom the floor does not name."
    )
    limits: Bounds = Field(description="What a program may use.")
    verifier: Bounds = Field(description="What a program that verifies another one may use.")
    instead: Items[Word] = Field(description="Profiles that a request may ask for in the place of this one.")


class Sandbox(Model):
    """policy/sandbox.yaml: sandboxes of generated code, and what a source bundle must at least ask for."""

    generated_code: Items[Literal["disabled", "sandboxed"]] = Field(
        description="What a source bundle may say about running generated code."
    )
    filesystem: Mapping[Word, Items[Kind]] = Field(
        description="File system boundaries that are admitted, and who must be shown to hold each on this machine."
    )
    redaction: Literal[True] = Field(description="Secret redaction; it cannot be switched off.")
    network: Items[Word] = Field(description="Networks that the sandbox of a source bundle may have.")
    backends: Mapping[BackendName, Backend] = Field(description="The kinds of sandboxes that profiles may name.")
    probe_max_age_seconds: Annotated[int, Field(ge=1, le=31_536_000)] = Field(
        description="For how long it counts what a sandbox was shown to hold."
    )
    floor: Floor = Field(description="Who may hold each boundary at all, and the most that any profile may allow.")
    profiles: Mapping[Word, Profile] = Field(description="The profiles by name.")
    executables: Mapping[Command, Executable] = Field(
        description="Programs that may be run by name, and where each is. No shells, and nothing that starts others."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if found := list(_errors(self)):
            raise ValidationError.from_exception_data("policy/sandbox.yaml", found)
        return self


def _errors(sandbox: Sandbox) -> Iterator[InitErrorDetails]:
    yield from _every(sandbox.floor.boundaries, ("floor", "boundaries"))
    for name, profile in sandbox.profiles.items():
        yield from _profile(sandbox, profile, ("profiles", name))
    for name, path in sandbox.executables.items():
        if SHELLS & {name, PurePosixPath(path).name}:
            message = "is a shell, or starts other programs; a command here is one program and its arguments"
            yield value_error(message, ("executables", name), path)


def _profile(sandbox: Sandbox, profile: Profile, at: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    if profile.backend not in sandbox.backends:
        yield value_error("is not among `backends`", (*at, "backend"), profile.backend)
    yield from _every(profile.boundaries, (*at, "boundaries"))
    for name, kinds in profile.boundaries.items():
        for index, kind in enumerate(kinds):
            if kind not in sandbox.floor.boundaries.get(name, ()):
                message = f"the floor does not let `{name}` be held so: a profile may only be stricter"
                yield value_error(message, (*at, "boundaries", name, index), kind)
    for role in ("limits", "verifier"):
        yield from _within(getattr(profile, role), sandbox.floor.most, (*at, role))
    for index, other in enumerate(profile.instead):
        if other not in sandbox.profiles:
            yield value_error("is no profile", (*at, "instead", index), other)


def _every(held: Mapping[BoundaryName, Any], at: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    for name in BOUNDARIES:
        if name not in held:
            yield value_error(f"has no `{name}`: every boundary has to be held by somebody", at, dict(held))


def _within(bounds: Bounds, most: Bounds, at: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    for name in BOUND_NAMES:
        value, ceiling = getattr(bounds, name), getattr(most, name)
        if value > ceiling:
            yield value_error(f"is beyond the floor, which admits at most {ceiling}", (*at, name), value)

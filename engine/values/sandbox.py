"""policy/sandbox.yaml: sandboxes, the boundaries that each must be shown to enforce, and the floor for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from pydantic_core import InitErrorDetails

from engine.facts.code.boundaries import BOUND_NAMES, BOUNDARIES, BoundaryName, Bounds, Isolation, Kind
from engine.model import Digest, Model
from engine.values.fields import Checked, Items, Word, value_error

BackendName = Literal["bubblewrap", "bubblewrap_egress", "gvisor", "wasmtime"]
"""The backends that can be probed. A plain subprocess enforces nothing and cannot be named."""

Executable = Annotated[
    str, StringConstraints(pattern=r"^/usr/(?:[A-Za-z0-9_+-][A-Za-z0-9_.+-]*/)*[A-Za-z0-9_+-][A-Za-z0-9_.+-]*$")
]
Command = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.+-]*$", max_length=64)]

SHELLS = frozenset(
    {"ash", "bash", "busybox", "csh", "dash", "env", "fish", "ksh", "ksh93", "mksh", "nsenter", "rbash", "rksh"}
    | {"setpriv", "setsid", "sh", "su", "sudo", "tcsh", "toybox", "unshare", "xargs", "zsh"}
)
"""Programs that accept a command as text, or start another program; B11 excludes both."""

Confined = Literal["restricted_process", "container"]
Held = Annotated[Items[Kind], Field(min_length=1)]


class Backend(Model):
    """A kind of sandbox."""

    isolation: Isolation = Field(
        description="Type of isolation. Solutions and verifiers need `restricted_process` or `container`."
    )
    egress: bool = Field(default=False, description="Whether programs may have one way out, the proxy of the engine.")


class Floor(Model):
    """The minimum for all profiles."""

    boundaries: Mapping[BoundaryName, Held] = Field(
        description="Every boundary, with the mechanisms that may enforce it."
    )
    limits: Bounds = Field(description="Highest limits that a profile may set.")


class Profile(Model):
    """A named set of settings: where a program runs, who must enforce its boundaries, and its limits."""

    backend: BackendName = Field(description="Kind of sandbox.")
    boundaries: Mapping[BoundaryName, Held] = Field(
        description="Every boundary, with the mechanisms that may enforce it here: a subset of those in `floor`."
    )
    limits: Bounds = Field(description="Limits of a program.")
    verifier: Bounds = Field(description="Limits of a program that verifies another one.")
    alternatives: Items[Word] = Field(description="Profiles that a request may choose in place of this one.")
    scan: Literal["binding", "advisory"] = Field(
        description="What findings of the code scan do here: `binding` refuses the program; `advisory` reports them "
        "where every boundary is proven on this machine. Code that cannot be scanned is refused by both."
    )


class Packages(Model):
    """A package environment: a read-only folder of Python packages."""

    tree: Digest = Field(
        description="Digest of all its files, as `engine sandbox env build` prints it. Other files cannot be used."
    )
    profile: Word = Field(description="Profile of programs that use it, unless the request names an alternative.")


class ArtifactIsolation(Model):
    """Where generated code of each kind must have run before it may be used; A02 limits `solution` and `verifier`."""

    code: Items[Isolation] = Field(description="Types of isolation for all other code.")
    tool: Items[Isolation] = Field(description="Types of isolation for tools.")
    environment_logic: Items[Isolation] = Field(description="Types of isolation for the logic of an environment.")
    solution: Items[Confined] = Field(description="Types of isolation for solutions.")
    verifier: Items[Confined] = Field(description="Types of isolation for verifiers.")


class Sandbox(Checked):
    """policy/sandbox.yaml: sandboxes of generated code, and what a source bundle must state about them."""

    generated_code: Items[Literal["disabled", "sandboxed"]] = Field(
        description="Admitted statements of a source bundle about running generated code."
    )
    filesystem: Mapping[Word, Items[Kind]] = Field(
        description="Admitted file system boundaries of a source bundle, with the mechanisms that must enforce each "
        "on this machine."
    )
    redaction: Literal[True] = Field(description="Redaction of secrets. It cannot be turned off.")
    network: Items[Word] = Field(description="Admitted networks of a source bundle's sandbox.")
    backends: Mapping[BackendName, Backend] = Field(description="Kinds of sandboxes that profiles may use.")
    probe_max_age_seconds: Annotated[int, Field(ge=1, le=31_536_000)] = Field(
        description="Maximum age of a sandbox probe on this machine, in seconds. An older probe does not count."
    )
    probe_clock_skew_seconds: Annotated[int, Field(ge=0, le=3_600)] = Field(
        description="Maximum time by which a probe may be ahead of the clock, in seconds. A later probe does not count."
    )
    artifact_isolation: ArtifactIsolation = Field(
        description="Types of isolation in which generated code must have run before use, by kind of code."
    )
    floor: Floor = Field(description="Minimum for all profiles: who may enforce each boundary, and the highest limits.")
    profiles: Mapping[Word, Profile] = Field(description="Profiles by name.")
    packages: Mapping[Word, Packages] = Field(
        description="Package environments that programs may import from, by name."
    )
    executables: Mapping[Command, Executable] = Field(
        description="Paths of programs that may be run by name. Shells, and programs that start others, are refused."
    )

    shells: Mapping[Word, Executable] = Field(
        description="Shells that run commands as text, by profile. A text can start every program below /usr."
    )

    def _mistakes(self) -> Iterator[InitErrorDetails]:
        for name in self.shells:
            if name not in self.profiles:
                yield value_error("is not a profile", ("shells", name), name)
        yield from _every(self.floor.boundaries, ("floor", "boundaries"))
        for name, profile in self.profiles.items():
            yield from _profile(self, profile, ("profiles", name))
        for name, environment in self.packages.items():
            if environment.profile not in self.profiles:
                yield value_error("is not a profile", ("packages", name, "profile"), environment.profile)
        for name, path in self.executables.items():
            if SHELLS & {name, PurePosixPath(path).name}:
                message = "is a shell, or starts other programs; list programs that run no other programs"
                yield value_error(message, ("executables", name), path)


def _profile(sandbox: Sandbox, profile: Profile, at: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    if profile.backend not in sandbox.backends:
        yield value_error("is not among `backends`", (*at, "backend"), profile.backend)
    yield from _every(profile.boundaries, (*at, "boundaries"))
    for name, kinds in profile.boundaries.items():
        for index, kind in enumerate(kinds):
            if kind not in sandbox.floor.boundaries.get(name, ()):
                message = f"the floor does not allow this for `{name}`: a profile may only be stricter"
                yield value_error(message, (*at, "boundaries", name, index), kind)
    for role in ("limits", "verifier"):
        yield from _within(getattr(profile, role), sandbox.floor.limits, (*at, role))
    for index, other in enumerate(profile.alternatives):
        if other not in sandbox.profiles:
            yield value_error("is not a profile", (*at, "alternatives", index), other)


def _every(held: Mapping[BoundaryName, Any], at: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    for name in BOUNDARIES:
        if name not in held:
            yield value_error(f"has no `{name}`: every boundary must be enforced", at, dict(held))


def _within(bounds: Bounds, most: Bounds, at: tuple[str, ...]) -> Iterator[InitErrorDetails]:
    for name in BOUND_NAMES:
        value, ceiling = getattr(bounds, name), getattr(most, name)
        if value > ceiling:
            yield value_error(f"is above the floor's limit of {ceiling}", (*at, name), value)

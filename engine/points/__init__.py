"""Decision points: what each asks for, what OPA sees, what its permitted work may do.

One file a point. A point judges nothing: `gather` computes facts and leaves out what is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.errors import Location
from engine.model import Boundary, Caller, Decision, Gate, Limits, Model, Pace, Probe, Revisions
from engine.secret_forms import UNKNOWN_FORMS, SecretForms
from engine.settings import ReadLimits
from engine.state.store import ApprovalRow, Store

if TYPE_CHECKING:
    from engine.policy_bundle.catalogue import Catalogue
    from engine.record.source_events import SourceEvent


class Input(Model):
    """What OPA sees: the point, the engine's clock in seconds since 1970 UTC, then the facts.

    A fact that is absent is left out, never null: `null < 5` is true in Rego.
    """

    point: str
    now: int


@dataclass(frozen=True, slots=True)
class Probed:
    """What a harness can do. `source` says whether it was asked (`probed`) or only assumed (`static`)."""

    capabilities: Mapping[str, bool]
    source: Literal["probed", "static"]


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """What the sandboxes of this machine were shown to hold, and when and on what each was tried."""

    boundaries: tuple[Boundary, ...] = ()
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """What gather may ask besides the request: the clock, the machine, the limits of reading."""

    clock: Callable[[], int]
    boundaries: Callable[[], tuple[Boundary, ...]]
    read: ReadLimits = field(default_factory=ReadLimits)
    progress: Callable[[str, int, int], None] = lambda *_: None
    """Told what is being read, how many parts are done, and of how many; for people who wait."""
    gate: Gate = field(default_factory=Gate)
    """What guards the listener of this engine."""
    capabilities: Callable[[str], Probed | None] = lambda _: None
    """What the harness of this name can do; None where nobody asked it."""
    argument_types: Callable[[str], Mapping[str, str]] = lambda _: {}
    """The declared types of the arguments of the tool of this name, in the policy being served."""
    addresses: Callable[[str], tuple[str, ...] | None] = lambda _: None
    """All addresses of a host, looked up once; None where that failed or took too long."""
    sandbox_facts: Callable[[str, int | None], SandboxFacts] = lambda *_: SandboxFacts()
    """What this backend was shown to hold, tried at most so many seconds ago; None leaves that to the engine."""
    backend_of: Callable[[str | None, str | None], str | None] = lambda *_: None
    """The backend of a profile, else of the profile for a language, in the policy being served."""
    probe_seconds: int = 0
    """How old a result may be by the policy being served."""
    kind_without_origin: str | None = None
    """The kind of a source record that states no origin, in the policy being served."""
    output_fields: Callable[[str], tuple[str, ...]] = lambda _: ()
    """The fields of the output contract of this name, in their order, in the policy being served."""
    carried_fields: Callable[[str], tuple[str, ...]] = lambda _: ()
    """The fields of a request that answers under the contract of this name repeat, in their order."""
    forms: SecretForms = UNKNOWN_FORMS
    """The forms of secrets that the policy being served states."""
    approval: Callable[[str], ApprovalRow | None] = lambda _: None
    """The request for approval of this id, as the state has it. Blocks. Raises StateError."""
    policy_in_force: Callable[[], bool] = lambda: True
    """Whether the policy being served is the one under which the record's last enforced decision was taken."""
    last_policy: Callable[[], Revisions | None] = lambda: None
    """The policy of that decision; None where nothing was ever enforced."""
    root: Path | None = None
    """The only folder below which requests may name paths; None where the caller is this process."""

    def sandbox(self, profile: str | None, language: str | None = None) -> SandboxFacts:
        """What the sandbox of this profile was shown to hold. Trying it takes seconds, once."""
        backend = self.backend_of(profile, language)
        return SandboxFacts() if backend is None else self.sandbox_facts(backend, self.probe_seconds)


STATE_FACTS = ("attempts", "checks", "children", "prefixes")
"""Lists of an input that come from the engine's state and, like approvals, are not under its digest."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """A point's input, and where a person finds the things its findings speak about."""

    input: Input
    title: str
    places: dict[str | None, Location] = field(default_factory=dict)
    """Where a person finds each subject of a finding; under None, the request as a whole."""
    subjects: tuple[str, ...] = ()
    """The things that are decided about one by one, such as every record."""
    opened: Any = None
    """What work needs again and OPA does not, such as an open source bundle; closed by the flow."""
    state: Callable[[Store, Caller, int], Mapping[str, list[dict[str, Any]]]] | None = None
    """Facts from the engine's own state, given the caller and the clock: any of `STATE_FACTS`."""
    quotas: Mapping[str, str] = field(default_factory=dict)
    """What else is counted for this request: the name of a quota, and whom it is counted for."""


@dataclass(frozen=True, slots=True)
class Point:
    """One decision point. `gather` raises GatherError for what cannot be read at all."""

    name: str
    request: type[Model]
    input: type[Input]
    limits: type[Limits]
    gather: Callable[[Any, World], Gathered]
    pace: Pace | None = None
    """How long gather takes where it reads files or asks others, so that an event loop must not wait for it."""
    secret: bool = False
    """Whether requests hold secrets that no pattern knows, so that no log may have them (D29)."""
    act: bool = False
    """Whether a decision is enforced only together with the act that it permits."""
    events: Callable[[Gathered, Decision, Catalogue], tuple[SourceEvent, ...]] | None = None
    """The narrow view of a decision for data governance, where the point has one."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of what OPA sees, the facts that the engine adds among them."""
        from engine.points.inputs import input_schema  # only the build of a policy needs it

        return input_schema(self.input)

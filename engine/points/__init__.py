"""Decision points: the request, the facts for OPA, and the limits of the permitted work.

One file per point. A point decides nothing: `gather` computes facts and leaves out what is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.documents.files import Stated
from engine.errors import Location, StateError
from engine.facts.release.git import Change, change_of
from engine.model import (
    AdapterFacts,
    AdmittedSource,
    Boundary,
    Caller,
    Decision,
    Gate,
    HeldEnvironment,
    Limits,
    Model,
    Pace,
    ProviderSettings,
    Revisions,
    SandboxFacts,
)
from engine.policy_bundle.lookups import Lookups
from engine.settings import ReadLimits
from engine.state.rows import ApprovalRow

if TYPE_CHECKING:
    from engine.policy_bundle.catalogue import Catalogue
    from engine.record.source_events import SourceEvent
    from engine.state.source_records import SourceRecords
    from engine.state.store import Store


@dataclass(frozen=True, slots=True)
class Probed:
    """What a harness can do. `source`: the harness was probed (`probed`) or its abilities are assumed (`static`)."""

    capabilities: Mapping[str, bool]
    source: Literal["probed", "static"]


def _no_sources() -> SourceRecords:
    raise StateError("there is no state", remedy="open an engine with a state folder")


@dataclass(frozen=True, slots=True)
class GatherContext:
    """What gather may ask besides the request: the clock, the machine, the limits of reading."""

    clock: Callable[[], int]
    boundaries: Callable[[], tuple[Boundary, ...]]
    read: ReadLimits = field(default_factory=ReadLimits)
    progress: Callable[[str, int, int], None] = lambda *_: None
    """Called with what is being read, how many parts are done, and how many there are; for progress."""
    gate: Gate = field(default_factory=Gate)
    """What guards the listener of this engine."""
    capabilities: Callable[[str], Probed | None] = lambda _: None
    """What the harness of this name can do; None if it was not probed."""
    lookups: Lookups = field(default_factory=Lookups)
    """What the engine looks up in the values being served."""
    addresses: Callable[[str], tuple[str, ...] | None] = lambda _: None
    """All addresses of a host, looked up once; None if the lookup failed or was too slow."""
    sandbox_facts: Callable[[str, int | None], SandboxFacts] = lambda *_: SandboxFacts()
    """The probe result of this backend, at most this many seconds old; None uses the engine's default."""
    backend_of: Callable[[str | None, str | None, str | None], str | None] = lambda *_: None
    """The backend of a profile, else that of a package environment or a language, in the policy being served."""
    packages: Callable[[str], str | None] = lambda _: None
    """The digest of the package environment of this name on this machine; None if there is none."""
    approval: Callable[[str], ApprovalRow | None] = lambda _: None
    """The request for approval of this id, as the state has it. Blocks. Raises StateError."""
    policy_in_force: Callable[[], bool] = lambda: True
    """Whether the policy being served is the one under which the record's last enforced decision was taken."""
    last_policy: Callable[[], Revisions | None] = lambda: None
    """The policy of that decision; None if nothing was ever enforced."""
    admitted: AdmittedSource | None = None
    """What point `source` has just permitted to this engine, which builds an environment of it."""
    held: Callable[[str, str | None], HeldEnvironment | None] = lambda *_: None
    """The built environment that this engine holds open under this id; and whether this checkpoint can be restored."""
    provider: Callable[[], ProviderSettings] = ProviderSettings
    """What the variables of the remote model state, without the key. Raises GatherError."""
    adapters: Callable[[], AdapterFacts] = AdapterFacts
    """The switch for adapters, and the admitted environments and manifests."""
    callbacks: str | None = None
    """Where a runner calls the tools of a run that states no callback: an origin."""
    sources: Callable[[], SourceRecords] = _no_sources
    """The records of admitted source bundles, as the state has them. Blocks. Raises StateError."""
    change: Callable[[Path, str | None], Change] = change_of
    """What the newest commit of a project changed since a revision. Blocks. Raises GatherError."""
    root: Path | None = None
    """The only folder below which requests may name paths; None if the caller is this process."""

    def sandbox(self, profile: str | None, language: str | None = None, packages: str | None = None) -> SandboxFacts:
        """The probe result of this profile's sandbox. The first probe takes seconds."""
        backend = self.backend_of(profile, language, packages)
        return SandboxFacts() if backend is None else self.sandbox_facts(backend, self.lookups.probe_seconds)


STATE_FACTS = ("agents", "attempts", "checks", "children", "memories", "prefixes")
"""Lists of an input that come from the engine's state and, like approvals, are not under its digest."""


FactsFromState = Mapping[str, list[dict[str, Any]]]
"""Any of `STATE_FACTS`."""


def stated_in(request: Model, base: type[Model]) -> dict[str, Any]:
    """The fields of a request that its input has too, because `base` is the base of both."""
    return {name: value for name, value in request if name in base.model_fields}


@dataclass(frozen=True, slots=True)
class Gathered:
    """A point's input, and the locations of the subjects of its findings."""

    input: Model
    title: str
    places: dict[str | None, Location] = field(default_factory=dict)
    """Where a person finds each subject of a finding; under None, the request as a whole."""
    subjects: tuple[str, ...] = ()
    """The things that are decided about one by one, such as every record."""
    opened: Any = None
    """What work needs again and OPA does not, such as an open source bundle."""
    close: Callable[[], object] = lambda: None
    """Lets go of what is open in it; called by the flow."""
    state: Callable[[Store, Caller], FactsFromState] | None = None
    """Reads facts from the engine's own state for the caller."""
    asks_state: Callable[[Caller], bool] = lambda _: True
    """Whether the state may have such facts for this caller; a needless lookup costs time."""
    tool: str = ""
    """The tool that the request is about; empty if it is about none."""
    touches: tuple[str, ...] = ()
    """What the run touches by this request: kinds of data that it reads, and whether it sends something out."""
    quotas: Mapping[str, str] = field(default_factory=dict)
    """What else is counted for this request: the name of a quota, and whom it is counted for."""
    amounts: Mapping[str, int] = field(default_factory=dict)
    """How much of a quota this request takes; 1 where nothing is stated."""
    stated: Callable[[str | None, str], Stated | None] = lambda *_: None
    """Finds the field of the request that a fact of a subject, by its dotted path, was read from."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with a subject, for people."""


@dataclass(frozen=True, slots=True)
class Point:
    """One decision point. `gather` raises GatherError for what cannot be read at all."""

    name: str
    request: type[Model]
    input: type[Model]
    limits: type[Limits]
    gather: Callable[[Any, GatherContext], Gathered]
    pace: Pace | None = None
    """The pace of gather if it reads files or uses the network, so that an event loop must not wait for it."""
    secret: bool = False
    """Whether requests contain secrets that no pattern knows, so that no log may contain them (D29)."""
    act: str = ""
    """What performs the act, if a decision is enforced only together with the act that it permits."""
    events: Callable[[Gathered, Decision, Catalogue], tuple[SourceEvent, ...]] | None = None
    """The narrow view of a decision for data governance, where the point has one."""

    def document(self, gathered: Gathered, now: int) -> dict[str, Any]:
        """What OPA sees: the point, the engine's clock in seconds since 1970 UTC, then the facts.

        A fact that is absent is left out, never null: `null < 5` is true in Rego.
        """
        return {"point": self.name, "now": now, **gathered.input.model_dump(mode="json", exclude_none=True)}

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of what OPA sees, the facts that the engine adds among them."""
        from engine.points.inputs import input_schema  # only the build of a policy needs it

        return input_schema(self.input)

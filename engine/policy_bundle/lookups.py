"""What the engine itself looks up in the values being served; everything else is read by rules alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.facts.text.instructions import Markers
from engine.secrets.forms import UNKNOWN_FORMS, SecretForms
from engine.values.tool_lookup import ruled_arguments

Windows = Mapping[str, Mapping[str, int]]
"""By decision point: what is counted, and its window in seconds."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """The defaults are those of no policy: nothing is known, so nothing will be allowed."""

    budgets: Windows = field(default_factory=dict)
    """The counted budgets: what counts alone (`principal`, `run`, `all`)."""
    quotas: Windows = field(default_factory=dict)
    """What else a point counts, by the name of the quota."""
    argument_types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """How the arguments of each tool are to be read."""
    programs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """How the options of programs in commands are to be read."""
    ruled_arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The arguments of each tool whose values rules look at, with their types."""
    touches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a run touches by a call of each tool."""
    output_fields: Mapping[str, Mapping[str, tuple[str, ...] | None]] = field(default_factory=dict)
    """The fields of each output contract, in the order in which they are checked; a table with the columns it has."""
    echoed_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fields of a request that answers under each contract repeat."""
    contracts: Mapping[str, str] = field(default_factory=dict)
    """The output contract of a program in each role."""
    probe_seconds: int = 0
    """How old the result of a sandbox's probe may be."""
    kind_without_origin: str | None = None
    """The kind of a source record that states no origin."""
    license_aliases: Mapping[str, str] = field(default_factory=dict)
    """SPDX ids by other spellings of licenses."""
    mapped: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    """What requests in the words of other systems ask, by system, as `policy/operations.yaml` has it."""
    environments: Mapping[str, str] = field(default_factory=dict)
    """What each environment holds, which is how its material is read."""
    provider_defaults: Mapping[str, Any] = field(default_factory=dict)
    """What the variables of the remote model stand for where they state nothing."""
    payload_encryption: bool = False
    """Whether a run has to seal its secrets."""
    harnesses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """How a runner starts each harness, and what it publishes about it."""
    backends: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Where runs take place, and the sandbox profile of each place on this machine."""
    default_backend: str = ""
    """The backend of runs that name none."""
    forms: SecretForms = UNKNOWN_FORMS
    """The forms in which vendors issue secrets."""
    markers: Markers = field(default_factory=Markers)
    """Signs that a text instructs a model."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Lookups:
        """Those of the checked values, as `data.policy` has them; a document that is missing leaves the defaults."""
        code, tools = data.get("code", {}), data.get("tools", {})
        contracts = code.get("contracts", {}).items()
        return cls(
            budgets=_windows(data.get("budgets", {}).get("budgets", {})),
            quotas=_windows(data.get("budgets", {}).get("quotas", {})),
            argument_types={name: tool["arguments"] for name, tool in tools.get("tools", {}).items()},
            programs=data.get("program_rows", {}),
            ruled_arguments=ruled_arguments(tools),
            touches={
                name: (*tool.get("reads", ()), *tool.get("sends", ())) for name, tool in tools.get("tools", {}).items()
            },
            output_fields={
                name: {one["name"]: _columns(one) for one in contract["fields"]} for name, contract in contracts
            },
            echoed_fields={name: tuple(one["name"] for one in contract["echoed"]) for name, contract in contracts},
            contracts=code.get("outputs", {}),
            probe_seconds=data.get("sandbox", {}).get("probe_max_age_seconds", 0),
            kind_without_origin=data.get("sources", {}).get("kind_without_origin"),
            license_aliases=data.get("licenses", {}).get("aliases", {}),
            mapped={name: tuple(data.get("operations", {}).get(name, ())) for name in ("authzen", "envoy")},
            environments={
                name: one["holds"] for name, one in data.get("environments", {}).get("environments", {}).items()
            },
            provider_defaults=data.get("llm", {}).get("defaults", {}),
            payload_encryption=tuple(data.get("runners", {}).get("payload_secrets", ())) == ("sealed",),
            harnesses=data.get("runners", {}).get("harnesses", {}),
            backends=data.get("runners", {}).get("backends", {}),
            default_backend=data.get("runners", {}).get("default_backend", ""),
            forms=SecretForms.of(data.get("secrets")),
            markers=Markers.of(data.get("results")),
        )


def _columns(field: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The columns of a table, none of a list; None for a single value."""
    if field["type"] not in {"list", "table"}:
        return None
    return tuple(column["name"] for column in field.get("columns", ()))


def _windows(rows: Mapping[str, Mapping[str, Any]]) -> Windows:
    return {
        point: {scope: one["window_seconds"] for scope, one in sorted(row.items()) if isinstance(one, dict)}
        for point, row in rows.items()
    }

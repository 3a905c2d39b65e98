"""Point `adapter`: whether a manifest admits an adapter, which offers tools of this program to others.

A field of the manifest that is missing, null or of another type is left out of the facts, so that its requirement
names it. What the engine knows by itself is never taken from the manifest: the switch, the admitted source and the
registered tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.documents.canonical import canonical, digest
from engine.documents.files import counted
from engine.facts.tools.definitions import Definition, UnreadableDefinitionError, definition_of
from engine.facts.tools.schemas import schema_valid
from engine.model import DIGEST, TOOL_NAME, Digest, Limits, Model, Object, Pace
from engine.points import GatherContext, Gathered, Point

MOST_TOOLS = 100
"""Tools whose schemas are looked at: each may take a second. Later ones count as tools without a schema."""

_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OPERATION = re.compile(r"[a-z]{1,32}(/[a-z]{1,32})*")

_BY_TOOL = ("tool_schemas", "side_effect_classes", "verifier_implications")
_FIELDS = frozenset(
    {
        *("format", "id", "execution", "environment_identity", "source_policy_hash"),
        *("supported_operations", "capabilities", *_BY_TOOL),
    }
)
"""Every field of format 1."""


class RegisteredTool(Model):
    """A tool of the registry: its definition in any shape, and whether it entered by a permit of `tool_contract`."""

    definition: Object
    curated: bool


class AdapterRequest(Model):
    """A manifest, and the registry of tools that the adapter would offer."""

    manifest: Object
    registry: Annotated[tuple[RegisteredTool, ...], Field(max_length=1_000)]


class NamedFacts(Model):
    """An entry of a list of the manifest; it has a name only where it is a plain one."""

    id: str
    name: str | None = None


class ManifestFacts(Model):
    """The manifest, as far as its fields can be read. Tools are named by the three fields that are about each of them.

    `bytes`: its size as JSON.
    """

    digest: Digest
    bytes: int
    format: int | None = None
    id: str | None = None
    execution: str | None = None
    environment_identity: str | None = None
    source_policy_hash: Digest | None = None
    supported_operations: tuple[NamedFacts, ...] | None = None
    tool_schemas: tuple[str, ...] | None = None
    side_effect_classes: tuple[str, ...] | None = None
    verifier_implications: tuple[str, ...] | None = None
    capabilities: tuple[NamedFacts, ...] | None = None
    unknown_fields: tuple[NamedFacts, ...]


class SourceFacts(Model):
    """What was admitted of the environment that the manifest names: the digest of the limits of that decision."""

    policy_hash: Digest


class RegisteredFacts(Model):
    """The registered tool of that name, and the digest of its schema where it has one."""

    curated: bool
    schema_digest: Digest | None = None


class ToolFacts(Model):
    """A tool that the manifest names anywhere. `schema_digest`: of a valid schema of an object."""

    id: str
    name: str | None = None
    schema_digest: Digest | None = None
    side_effects: tuple[str, ...] | None = None
    verifier_implication: str | None = None
    registered: RegisteredFacts | None = None


class AdapterInput(Model):
    """What OPA sees. `enabled`: the switch was given; `source` is absent where nothing was admitted."""

    enabled: bool
    manifest: ManifestFacts
    source: SourceFacts | None = None
    tools: tuple[ToolFacts, ...]


class AdapterLimits(Limits):
    """The admitted manifest, and all that its adapter may do: these operations on these tools, in this process."""

    manifest: Digest
    adapter: str
    environment: str
    source_policy_hash: Digest
    execution: Literal["in_process"]
    operations: tuple[str, ...]
    tools: tuple[str, ...]


def gather(request: AdapterRequest, context: GatherContext) -> Gathered:
    """Read the manifest, and look up what it names."""
    manifest, known = request.manifest, context.adapters()
    facts = _manifest(manifest)
    source = known.sources.get(facts.environment_identity or "")
    made = AdapterInput(
        enabled=known.enabled,
        manifest=facts,
        source=None if source is None else SourceFacts(policy_hash=source),
        tools=tuple(_tools(manifest, _registered(request.registry))),
    )
    return Gathered(made, f"manifest of `{facts.id or 'an adapter without an id'}`, {counted(len(made.tools), 'tool')}")


def _manifest(manifest: dict[str, Any]) -> ManifestFacts:
    data = canonical(manifest)
    edition = manifest.get("format")
    unknown = sorted(manifest.keys() - _FIELDS)
    names = {field: _keys(manifest.get(field)) for field in _BY_TOOL}
    return ManifestFacts(
        digest=digest(data),
        bytes=len(data),
        format=edition if type(edition) is int else None,
        id=_plain(_WORD, manifest.get("id")),
        execution=_plain(_WORD, manifest.get("execution")),
        environment_identity=_plain(_WORD, manifest.get("environment_identity")),
        source_policy_hash=_plain(DIGEST, manifest.get("source_policy_hash")),
        supported_operations=_named_facts(_OPERATION, manifest.get("supported_operations")),
        capabilities=_named_facts(_WORD, manifest.get("capabilities")),
        unknown_fields=_named_facts(TOOL_NAME, unknown) or (),
        **names,
    )


def _plain(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _named_facts(pattern: re.Pattern[str], value: Any) -> tuple[NamedFacts, ...] | None:
    if not isinstance(value, list):
        return None
    names = [_plain(pattern, entry) for entry in value]
    return tuple(NamedFacts(id=name or f"#{index}", name=name) for index, name in enumerate(names))


def _keys(value: Any) -> tuple[str, ...] | None:
    """The tools that a field is about; names that no tool may have are numbered."""
    if not isinstance(value, dict):
        return None
    return tuple(_plain(TOOL_NAME, name) or f"#{index}" for index, name in enumerate(sorted(value)))


def _tools(manifest: dict[str, Any], registered: dict[str, RegisteredFacts]) -> Iterator[ToolFacts]:
    parts = [manifest.get(field) for field in _BY_TOOL]
    schemas, effects, implications = (part if isinstance(part, dict) else {} for part in parts)
    for index, name in enumerate(sorted({*schemas, *effects, *implications})):
        plain = _plain(TOOL_NAME, name)
        yield ToolFacts(
            id=plain or f"#{index}",
            name=plain,
            schema_digest=schema_digest(schemas.get(name)) if index < MOST_TOOLS else None,
            side_effects=_words(effects.get(name)),
            verifier_implication=_plain(_WORD, implications.get(name)),
            registered=registered.get(name),
        )


def _words(value: Any) -> tuple[str, ...] | None:
    """A list of words; None if it has anything else, or nothing."""
    if not isinstance(value, list) or not value:
        return None
    words = [word for entry in value if (word := _plain(_WORD, entry)) is not None]
    return tuple(words) if len(words) == len(value) else None


def schema_digest(schema: Any) -> str | None:
    """The digest of a valid JSON Schema of an object; None for anything else."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not schema_valid(schema):
        return None
    return digest(canonical(schema))


def _registered(registry: tuple[RegisteredTool, ...]) -> dict[str, RegisteredFacts]:
    """The tools of the registry by name; one that is there twice, or has no readable definition, is left out."""
    found: dict[str, RegisteredFacts] = {}
    twice: set[str] = set()
    for entry in registry:
        try:
            definition: Definition = definition_of(entry.definition)
        except UnreadableDefinitionError:
            continue
        twice |= {definition.name} & found.keys()
        schema = definition.input_schema
        found[definition.name] = RegisteredFacts(
            curated=entry.curated, schema_digest=None if schema is None else digest(canonical(schema))
        )
    return {name: facts for name, facts in found.items() if name not in twice}


POINT = Point("adapter", AdapterRequest, AdapterInput, AdapterLimits, gather, pace=Pace.HEAVY)

"""What an engine admitted for adapters since it was opened: sources of environments, and contracts of manifests.

Both enter by a permit only. The switch is fixed when the engine is made; only `True` itself gives it (A98).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from admission_adapters.tools.registry import ToolRegistry
from engine.documents.canonical import canonical, digest, parse
from engine.errors import EngineError, PermitMissingError
from engine.model import AdapterContract, AdapterFacts, Digest, Job, Permit, Result
from engine.points.adapter import AdapterLimits
from engine.points.source import SourceLimits


class AdapterAdmissions:
    """The switch, and what was admitted; threads may share it."""

    def __init__(self, enabled: object) -> None:
        self._lock = threading.Lock()
        self._enabled = enabled is True
        self._sources: Mapping[str, Digest] = {}
        self._contracts: Mapping[Digest, AdapterContract] = {}

    def facts(self) -> AdapterFacts:
        """All of it, as decision points see it."""
        with self._lock:
            return AdapterFacts.model_construct(enabled=self._enabled, sources=self._sources, contracts=self._contracts)

    def admit_source(self, permit: Permit, job: Job) -> Result:
        """The executor of point `source` that notes under which limits the source of an environment was admitted."""
        limits = permit.demand("source", job.input_digest, SourceLimits)
        found = source_policy_hash(limits)
        with self._lock:
            self._sources = {**self._sources, limits.environment: found}
        return Result("admitted", {"environment": limits.environment, "source_policy_hash": found})

    def admit_manifest(self, permit: Permit, job: Job, manifest: Any) -> Result:
        """The executor of point `adapter` that notes the contract of a manifest."""
        limits = permit.demand("adapter", job.input_digest, AdapterLimits)
        data = canonical(manifest)
        if digest(data) != limits.manifest:
            raise PermitMissingError("the permit is for another manifest", remedy="request a decision on this manifest")
        stated = parse(data)["tool_schemas"]  # a copy: the caller may change its manifest
        schemas = {name: stated[name] for name in limits.tools}
        contract = AdapterContract(operations=limits.operations, schemas=schemas)
        with self._lock:
            self._contracts = {**self._contracts, limits.manifest: contract}
        return Result("admitted", {"adapter": limits.adapter, "manifest": limits.manifest, "tools": list(limits.tools)})


def source_policy_hash(limits: SourceLimits) -> Digest:
    """The digest of the limits with which a source bundle was admitted, as canonical JSON."""
    return digest(canonical(limits.model_dump(mode="json")))


def adapter_request(manifest: Any, registry: ToolRegistry) -> Any:
    """The request for point `adapter`, or the error from reading the manifest.

    Only a registry that admits by permit has curated tools.
    """
    if isinstance(manifest, EngineError):
        return manifest
    curated = type(registry) is ToolRegistry
    tools = [{"definition": registry.definition(name), "curated": curated} for name in registry.names()]
    return {"manifest": manifest, "registry": tools}

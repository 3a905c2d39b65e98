"""What the backends of one run were shown to enforce; a remote platform is asked for this run alone (D67)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from admission_adapters.runner.platform import Platform, PlatformError, RemoteSandbox
from engine.documents.canonical import RawJson
from engine.facts.run_request import WireRunRequest, agent_of
from engine.flow import Services
from engine.model import DIGEST, Boundary
from engine.runner.harnesses import JAIL, Harnesses

EGRESS = "egress"


class RunEvidence:
    """Looked up once, and only if the run declares a boundary. Close it at the end of the run."""

    def __init__(
        self, run_id: str, request_text: RawJson, services: Services, harnesses: Harnesses, ca_file: Path | None
    ) -> None:
        self._run_id, self._request_text, self._services, self._harnesses = run_id, request_text, services, harnesses
        self._ca_file = ca_file
        self._made: tuple[Platform, RemoteSandbox] | None = None

    @cached_property
    def boundaries(self) -> tuple[Boundary, ...]:
        """Those of this engine and of this machine, and those that the platform of the run states."""
        here = (*self._services.gather_context.boundaries(), *self._harnesses.boundaries(self._services))
        try:
            return (*here, *self._remote())
        except PlatformError as error:  # then nothing is proven, and the policy refuses what was declared
            self._services.on_event("platform", {"code": error.code, "problem": error.message})
            return here

    def sandbox(self) -> tuple[Platform, RemoteSandbox] | None:
        """The sandbox of a remote run: the one that is evidence, or a new one; None if the run is not remote."""
        if self._made is None:
            request, _, platform = self._place()
            if platform is not None:
                permission, run = request.sandbox_permission, agent_of(request)[1]
                made = platform.create(run, self._run_id, permission.network, permission.filesystem)
                self._made = platform, made
        return self._made

    def close(self) -> None:
        """Remove the sandbox of the platform."""
        if self._made is not None:
            platform, sandbox = self._made
            platform.remove(sandbox)

    def _remote(self) -> list[Boundary]:
        made = self.sandbox()
        if made is None:
            return []
        request, backend, _ = self._place()
        declared, (_, sandbox) = request.sandbox_permission, made
        fields = {EGRESS: ("network", declared.network), JAIL[1]: ("filesystem", declared.filesystem)}
        stated = declared.model_fields_set
        return [
            Boundary(
                backend=backend,
                boundary=boundary,
                kind="supervised",
                enforced=sandbox.applied.get(field) == word,
                evidence=sandbox.evidence,
                run=sandbox.run if DIGEST.fullmatch(sandbox.run) else None,
            )
            for boundary, (field, word) in fields.items()
            if field in stated
        ]

    def _place(self) -> tuple[WireRunRequest, str, Platform | None]:
        """The request, its backend, and the platform of that if it has one."""
        request = WireRunRequest.model_validate_json(self._request_text.data)
        lookups = self._services.lookups
        backend = agent_of(request)[0].sandbox or lookups.default_backend
        address = lookups.backends.get(backend, {}).get("platform")
        return request, backend, None if address is None else Platform(address, self._ca_file)

"""The served policy, as the path of a request sees it; and its stand-in while it is unavailable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from engine.errors import EngineError, Location
from engine.model import Revisions
from engine.opa.generation import Generation
from engine.opa.supervisor import Supervisor
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import Catalogue
from engine.policy_bundle.lookups import Lookups

_GATHERING = "lib/gathering"
"""The rules that state where facts are gathered from."""

_NOTHING = Catalogue(points={})


@dataclass(frozen=True, slots=True)
class Served:
    """One generation of OPA, leased until it is released."""

    opa: Generation[PolicyBundle]
    supervisor: Supervisor[PolicyBundle]
    own_files: bool = False

    @property
    def catalogue(self) -> Catalogue:
        """The words of its findings; with `own_files`, they name the files of values that are edited for it."""
        return self.opa.policy.display_catalogue if self.own_files else self.opa.policy.catalogue

    @property
    def revisions(self) -> Revisions:
        """What it answers from."""
        return self.opa.policy.revisions

    @property
    def digest(self) -> str | None:
        """The digest of the release that it is; None for one that was built here."""
        return self.opa.policy.digest

    @property
    def lookups(self) -> Lookups:
        """What the engine looks up in its values."""
        return self.opa.policy.lookups

    def backend_of(self, profile: str | None, language: str | None, packages: str | None) -> str | None:
        """The sandbox of a profile, else of that for a package environment or a language, from the policy."""
        named = {
            name: {"stated": False} if value is None else {"stated": True, "value": value}
            for name, value in {"profile": profile, "packages": packages}.items()
        }
        reply = self.opa.ask(f"{_GATHERING}/backend", {**named, "action": {"language": {"value": language or ""}}})
        return reply.result if reply.defined and isinstance(reply.result, str) else None

    def looks_up(self, point: str, host: str) -> bool:
        """Whether the policy allows this host name to be resolved at this decision point."""
        reply = self.opa.ask(f"{_GATHERING}/host_looked_up", {point: {"url": {"host": host}}})
        return reply.defined and reply.result is True

    def authored(self, served: Location) -> Location:
        """Where the author of a served rule finds the line."""
        return self.opa.policy.authored(served)

    def release(self) -> None:
        """Let go of the generation."""
        self.supervisor.release(self.opa)


class Unavailable:
    """The stand-in for an unavailable OPA: answers every query with the fault."""

    catalogue = _NOTHING
    lookups = Lookups()
    shared = None
    digest = None

    def __init__(self, fault: EngineError, revisions: Revisions | None = None) -> None:
        self.fault = fault
        self.revisions = revisions

    @property
    def opa(self) -> Unavailable:
        """No OPA."""
        return self

    def ask(self, _rule: str, _document: dict[str, Any], _seconds: float | None = None) -> NoReturn:
        """No answer."""
        raise self.fault

    async def ask_async(self, _rule: str, _document: dict[str, Any]) -> NoReturn:
        """No answer."""
        raise self.fault

    def backend_of(self, _profile: str | None, _language: str | None, _packages: str | None) -> None:
        """None is named: nothing will be allowed."""

    def looks_up(self, _point: str, _host: str) -> bool:
        """None is: nothing will be allowed."""
        return False

    def authored(self, served: Location) -> Location:
        """No rule is served."""
        return served

    def release(self) -> None:
        """Nothing to release."""

    def close(self) -> None:
        """Nothing was opened."""


Opa = Generation[PolicyBundle] | Unavailable
"""The query for the value of a rule."""

Serving = Served | Unavailable
"""What a request leases for its duration."""

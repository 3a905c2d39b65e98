"""The policy being served, as the path of a request sees it; and what stands in its place when it is down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from engine.errors import EngineError, Location
from engine.model import Revisions
from engine.opa.generation import Generation
from engine.opa.supervisor import Supervisor
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.catalogue import Catalogue
from engine.secret_forms import UNKNOWN_FORMS, SecretForms

_GATHERING = "lib/gathering"
"""The rules that say what facts are to be gathered from."""

_NOTHING = Catalogue(points={})


@dataclass(frozen=True, slots=True)
class Served:
    """One generation of OPA, held until it is released."""

    opa: Generation[PolicyBundle]
    supervisor: Supervisor[PolicyBundle]

    @property
    def catalogue(self) -> Catalogue:
        """The words of its findings."""
        return self.opa.policy.catalogue

    @property
    def revisions(self) -> Revisions:
        """What it answers from."""
        return self.opa.policy.revisions

    def budgets(self, point: str) -> Mapping[str, int]:
        """Windows of the counted budgets of a point, by what counts alone."""
        return self.opa.policy.windows.get(point, {})

    def quotas(self, point: str) -> Mapping[str, int]:
        """Windows of whatever else a point counts, by name of the quota."""
        return self.opa.policy.quotas.get(point, {})

    def argument_types(self, tool: str) -> Mapping[str, str]:
        """How the arguments of a tool are to be read; nothing of a tool that is not in policy/tools.yaml."""
        return self.opa.policy.argument_types.get(tool, {})

    def output_fields(self, contract: str) -> tuple[str, ...]:
        """The fields of an output contract of policy/code.yaml, in their order."""
        return self.opa.policy.output_fields.get(contract, ())

    def carried_fields(self, contract: str) -> tuple[str, ...]:
        """The fields of a request that answers under a contract of policy/code.yaml repeat."""
        return self.opa.policy.carried_fields.get(contract, ())

    def contract(self, role: str) -> str:
        """The output contract of a program in this role, by policy/code.yaml."""
        return self.opa.policy.contracts.get(role, "")

    def backend_of(self, profile: str | None, language: str | None) -> str | None:
        """The sandbox of a profile, else of the profile for a language; the policy says it."""
        stated = {"stated": False} if profile is None else {"stated": True, "value": profile}
        said = self.opa.ask(
            f"{_GATHERING}/backend", {"profile": stated, "action": {"language": {"value": language or ""}}}
        )
        return said.result if said.defined and isinstance(said.result, str) else None

    def probe_seconds(self) -> int:
        """How old the result of a probe may be, by policy/sandbox.yaml."""
        return self.opa.policy.probe_seconds

    def kind_without_origin(self) -> str | None:
        """The kind of a source record that states no origin, by policy/sources.yaml."""
        return self.opa.policy.kind_without_origin

    def looks_up(self, host: str) -> bool:
        """Whether the policy lets the name of this host be told to a resolver."""
        said = self.opa.ask(f"{_GATHERING}/host_looked_up", {"media": {"url": {"host": host}}})
        return said.defined and said.result is True

    def secret_forms(self) -> SecretForms:
        """The forms of policy/secrets.yaml."""
        return self.opa.policy.secret_forms

    def authored(self, served: Location) -> Location:
        """Where the author of a served rule finds the line."""
        from engine.policy_bundle.authored import authored

        return authored(self.opa.policy, served)

    def release(self) -> None:
        """Let go of the generation."""
        self.supervisor.release(self.opa)


class Down:
    """Stands where OPA should be: whatever is asked of it, the fault is the answer."""

    catalogue = _NOTHING

    def __init__(self, fault: EngineError, revisions: Revisions | None = None) -> None:
        self.fault = fault
        self.revisions = revisions

    @property
    def opa(self) -> Down:
        """No OPA."""
        return self

    def ask(self, _rule: str, _document: dict[str, Any]) -> NoReturn:
        """No answer."""
        raise self.fault

    async def ask_async(self, _rule: str, _document: dict[str, Any]) -> NoReturn:
        """No answer."""
        raise self.fault

    def budgets(self, _point: str) -> Mapping[str, int]:
        """None is counted: nothing will be allowed."""
        return {}

    def quotas(self, _point: str) -> Mapping[str, int]:
        """None is counted: nothing will be allowed."""
        return {}

    def argument_types(self, _tool: str) -> Mapping[str, str]:
        """None is known: nothing will be allowed."""
        return {}

    def output_fields(self, _contract: str) -> tuple[str, ...]:
        """None is known: nothing will be allowed."""
        return ()

    carried_fields = output_fields

    def contract(self, _role: str) -> str:
        """None is known: nothing will be allowed."""
        return ""

    def backend_of(self, _profile: str | None, _language: str | None) -> None:
        """None is named: nothing will be allowed."""

    def probe_seconds(self) -> int:
        """None counts: nothing will be allowed."""
        return 0

    def kind_without_origin(self) -> None:
        """None is known: nothing will be allowed."""

    def looks_up(self, _host: str) -> bool:
        """None is: nothing will be allowed."""
        return False

    def secret_forms(self) -> SecretForms:
        """None is known: whatever may be a secret counts as one."""
        return UNKNOWN_FORMS

    def authored(self, served: Location) -> Location:
        """No rule is served."""
        return served

    def release(self) -> None:
        """Nothing was held."""

    def close(self) -> None:
        """Nothing was opened."""

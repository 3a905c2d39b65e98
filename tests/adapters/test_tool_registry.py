"""The registry of active tools: nothing is shared with writers or readers, and nothing is replaced."""

from __future__ import annotations

import functools
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from admission_adapters.digests import json_digest
from admission_adapters.environments import contacts, documents
from admission_adapters.tools import implementations
from admission_adapters.tools.http_get import HttpGet
from admission_adapters.tools.implementations import implementation_digest
from admission_adapters.tools.project_shell import ProjectShell
from admission_adapters.tools.registry import ToolRegistry, UncuratedToolRegistry
from admission_adapters.tools.sandbox_shell import SandboxShell
from engine.cases.run import Runner
from engine.documents.files import load
from engine.errors import WorkError
from engine.model import Outcome, Permit
from engine.points.tool_contract import ToolContractLimits
from engine.settings import ReadLimits
from engine.work import Executor
from tests.adapters.implementations import Contacts, contacts_list
from tests.adapters.permits import DIGEST, misused, sealed
from tests.conftest import ROOT
from tests.expect import refused, there


def read_file(path: str) -> str:
    return path


def definition() -> dict[str, Any]:
    return {"name": "files_read", "input_schema": {"type": "object", "properties": {"path": {"enum": ["a"]}}}}


@functools.wraps(contacts_list)
def wrapped(search: str) -> list[str]:
    return [search]


def test_the_shipped_policy_admits_exactly_the_files_that_are_here() -> None:
    """After a reviewed change of one of them: write the new digest into policy/tools.yaml."""
    tools = load((ROOT / "policy/tools.yaml").read_bytes(), "tools.yaml", ReadLimits()).value["tools"]
    functions: dict[str, Any] = {
        "http_get": HttpGet.http_get,
        "project_shell": ProjectShell.project_shell,
        "sandbox_shell": SandboxShell.sandbox_shell,
        "contacts_sqlite": contacts.Contacts.get,
        "documents_fts": documents.Documents.get,
    }
    assert {name: row["curated"] for name, row in tools.items() if row["curated"]} == {
        name: [implementation_digest(function)]
        for name in tools
        for start, function in functions.items()
        if name.startswith(start)
    }


# covers: D49.1
def test_changing_a_nested_value_after_storing_does_not_change_the_registry() -> None:
    registry, given = UncuratedToolRegistry(), definition()
    registry.add("files_read", read_file, given)
    given["input_schema"]["properties"]["path"]["enum"].append("b")
    assert given != definition()  # the control: it was changed
    assert registry.definition("files_read") == definition()


# covers: D49.1
def test_changing_a_nested_value_in_a_read_copy_does_not_change_the_registry() -> None:
    registry = UncuratedToolRegistry()
    registry.add("files_read", read_file, definition())
    copy = registry.definition("files_read")
    copy["input_schema"]["properties"].clear()
    assert copy != definition()  # the control: it was changed
    assert registry.definition("files_read") == definition()


def test_a_tool_is_found_by_its_exact_name() -> None:
    registry = UncuratedToolRegistry()
    registry.add("b", read_file, {})
    registry.add("a", len, {})
    assert registry.names() == ("a", "b")
    assert registry.get("b") is read_file
    for ask in (registry.get, registry.definition):
        with refused(WorkError, "engine.tool_missing"):
            ask("B")


def test_a_registered_name_cannot_be_overwritten() -> None:
    registry = UncuratedToolRegistry()
    registry.add("a", read_file, definition())
    with refused(WorkError, "engine.tool_not_registered"):
        registry.add("a", len, {})
    assert registry.get("a") is read_file
    assert registry.definition("a") == definition()


def test_a_tool_is_replaced_and_removed_by_its_name_only() -> None:
    registry = UncuratedToolRegistry()
    with refused(WorkError, "engine.tool_missing"):
        registry.replace("a", len, {})
    with refused(WorkError, "engine.tool_missing"):
        registry.remove("a")
    registry.add("a", read_file, definition())
    registry.replace("a", len, {"name": "a"})
    assert (registry.get("a"), registry.definition("a")) == (len, {"name": "a"})
    registry.remove("a")
    assert registry.names() == ()
    registry.add("a", read_file, definition())


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "a\n", "x" * 129, None, 1])
def test_a_name_that_no_tool_may_have_is_refused(name: Any) -> None:
    registry = UncuratedToolRegistry()
    with pytest.raises(WorkError, match="characters"):
        registry.add(name, read_file, {})
    assert registry.names() == ()


@pytest.mark.parametrize("given", [None, [], "{}", {"a": float("nan")}, {"a": {1}}, {"a": object()}])
def test_a_definition_that_is_not_a_json_object_is_refused(given: Any) -> None:
    registry = UncuratedToolRegistry()
    with pytest.raises(WorkError, match="not a JSON object"):
        registry.add("a", read_file, given)
    with pytest.raises(WorkError, match="no callable"):
        registry.add("a", None, {})  # type: ignore[arg-type]
    assert registry.names() == ()


CURATED = implementation_digest(contacts_list)
DEFINITION = {
    "name": "contacts_list",
    "description": "List the contacts in the database",
    "inputSchema": {"type": "object", "properties": {"search": {"type": "string"}}},
}
CURATE = {"tools": {"tools": {"contacts_list": {"curated": [CURATED]}}}}


def candidate(**changes: Any) -> dict[str, Any]:
    tool = {
        "definition": DEFINITION,
        "implementation": {"local": True, "digest": CURATED},
        "environment": "workspace",
        "side_effects": ["read"],
    }
    return {"tool": tool | changes}


def admitting(registry: ToolRegistry, implementation: Any, definition: Any = DEFINITION) -> Executor:
    return lambda permit, job: registry.admit(permit, job.input_digest, implementation, definition)


# covers: A75
def test_a_curated_local_tool_enters_the_registry_by_its_permit(runner: Runner) -> None:
    registry = ToolRegistry()
    answer = runner.engine(CURATE).decide("tool_contract", candidate(), admitting(registry, contacts_list))
    assert answer.decision.outcome is Outcome.ALLOW
    assert there(answer.result).status == "registered"
    assert registry.names() == ("contacts_list",)
    assert registry.get("contacts_list") is contacts_list
    assert registry.definition("contacts_list") == DEFINITION


# covers: A75 A76.1 A77.1 A78.1 A103.1
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"implementation": {"local": True, "digest": "sha256:" + "0" * 64}}, "not_curated"),
        ({"implementation": {"local": False, "digest": CURATED}}, "not_local"),
        ({"definition": {**DEFINITION, "inputSchema": {"type": "words"}}}, "schema_incompatible"),
        ({"side_effects": ["none"]}, "side_effects_incompatible"),
        ({"environment": "production"}, "environment_incompatible"),
    ],
)
def test_a_refused_tool_is_not_registered(changes: dict[str, Any], code: str, runner: Runner) -> None:
    registry = ToolRegistry()
    answer = runner.engine(CURATE).decide("tool_contract", candidate(**changes), admitting(registry, contacts_list))
    assert [finding.code for finding in answer.decision.findings] == [code]
    assert registry.names() == ()


# covers: A69.1 A103.1
def test_an_accepted_proposal_registers_nothing(runner: Runner) -> None:
    registry = ToolRegistry()
    contract = {"name": "contacts_list", "description": "List the contacts"}
    asked = {"proposal": {"role": "tool_generation", "contract": contract}}
    answer = runner.engine({}).decide("tool_contract", asked, admitting(registry, contacts_list))
    assert answer.decision.outcome is Outcome.ALLOW
    assert there(answer.fault).code == "engine.permit_missing"
    assert registry.names() == ()


# covers: A75
@pytest.mark.parametrize(
    ("implementation", "definition", "code"),
    [
        (read_file, DEFINITION, "engine.tool_changed"),
        (contacts_list, {**DEFINITION, "description": "List them all"}, "engine.tool_changed"),
        (len, DEFINITION, "engine.tool_not_local"),
        (functools.partial(contacts_list, search=""), DEFINITION, "engine.tool_not_local"),
        (wrapped, DEFINITION, "engine.tool_not_local"),
    ],
    ids=["implementation", "definition", "built_in", "partial", "wrapped"],
)
def test_another_tool_than_the_permit_names_is_refused(
    implementation: Any, definition: Any, code: str, runner: Runner
) -> None:
    registry = ToolRegistry()
    executor = admitting(registry, implementation, definition)
    answer = runner.engine(CURATE).decide("tool_contract", candidate(), executor)
    assert answer.decision.outcome is Outcome.ALLOW  # the control: the tool that was asked about may enter
    assert there(answer.fault).code == code
    assert registry.names() == ()


# covers: A75
def test_a_function_with_replaced_code_is_not_accepted_as_local() -> None:
    def other(search: str) -> list[str]:
        return [search] * 2

    for place in (contacts_list.__code__.co_filename, "<string>"):
        with refused(WorkError, "engine.tool_not_local"):
            implementation_digest(FunctionType(other.__code__.replace(co_filename=place), globals()))
    assert implementation_digest(Contacts().list) == CURATED  # the control: a method of that file is what it says


def test_a_source_file_is_as_large_as_it_may_be_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    size = Path(contacts_list.__code__.co_filename).stat().st_size
    monkeypatch.setattr(implementations, "LARGEST", size)
    assert implementation_digest(contacts_list) == CURATED
    monkeypatch.setattr(implementations, "LARGEST", size - 1)
    with pytest.raises(WorkError, match="differs from its source file"):
        implementation_digest(contacts_list)


# covers: A75
@pytest.mark.parametrize("changes", [{"registers": False}, {"name": None}])
def test_a_permit_without_registration_registers_nothing(changes: dict[str, Any]) -> None:
    every: dict[str, Any] = {
        "registers": True,
        "name": "contacts_list",
        "definition": json_digest(DEFINITION),
        "implementation": CURATED,
    }
    good, none = (ToolContractLimits.model_construct(**stated) for stated in (every, every | changes))
    registry, own = ToolRegistry(), sealed("tool_contract", good)
    for permit in (sealed("tool_contract", none), *misused(own).values()):
        with refused(WorkError, "engine.permit_missing"):
            registry.admit(permit, DIGEST, contacts_list, DEFINITION)
        assert registry.names() == ()
    admitted = registry.admit(own, DIGEST, contacts_list, DEFINITION)
    assert admitted.status == "registered"  # the control


# covers: A75
def test_only_the_uncurated_registry_adds_tools_without_a_permit() -> None:
    registry = ToolRegistry()
    assert not hasattr(registry, "add")
    forged = Permit("d", "tool_contract", DIGEST, ToolContractLimits(registers=False), b"")
    for one in (registry, UncuratedToolRegistry()):
        with refused(WorkError, "engine.permit_missing"):
            one.admit(forged, forged.input_digest, contacts_list, DEFINITION)
        assert one.names() == ()


# covers: A75
def test_an_admitted_tool_cannot_replace_a_registered_name(runner: Runner) -> None:
    registry = UncuratedToolRegistry()
    registry.add("contacts_list", read_file, DEFINITION)
    answer = runner.engine(CURATE).decide("tool_contract", candidate(), admitting(registry, contacts_list))
    assert there(answer.fault).code == "engine.tool_not_registered"
    assert registry.get("contacts_list") is read_file

"""A client that others' tools generate from the description asks every operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.api.docs import example_of
from engine.api.openapi import document
from engine.api.routes import routes
from tests.api.serving import ALLOWED, Serving
from tests.conftest import ROOT
from tests.facilities import needs
from tests.tools import installed, run

GENERATOR = "openapi-python-client==0.29.1"  # in an environment of its own: it wants an older typer than ours
DOCUMENT = document(routes())
OPERATIONS = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}


def test_every_schema_is_named_by_its_title() -> None:
    names = DOCUMENT["components"]["schemas"]
    assert {name: schema["title"] for name, schema in names.items()} == {name: name for name in names}
    assert {name for name in names if not name.isalnum()} == set()


def test_no_operation_has_a_parameter_twice() -> None:
    for name, operation in OPERATIONS.items():
        named = [json.dumps(parameter) for parameter in operation["parameters"]]
        assert len(named) == len(set(named)), name


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the generator."""
    return installed(tmp_path_factory.mktemp("generator"), GENERATOR)


@pytest.mark.full
@needs("package_index")
def test_a_generated_client_calls_every_operation(api: Serving, tools: Path, tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_bytes(api.ask("GET", "/openapi.json").body)
    output = ["--meta", "none", "--output-path", tmp_path / "client"]
    config = ["--config", ROOT / "docs" / "examples" / "client.yaml", "--fail-on-warning"]
    generator = tools / "openapi-python-client"
    run(generator, "generate", "--path", tmp_path / "openapi.json", *output, *config)

    asked = {name: body for name, operation in OPERATIONS.items() if (body := example(operation)) is not None}
    asked["decide_license"] = ALLOWED
    address = f"http://{api.host}:{api.port}"
    script = ROOT / "tests" / "api" / "ask_everything.py"
    answers = json.loads(run(tools / "python", script, tmp_path, address, given=json.dumps(asked)))

    assert set(answers) == set(OPERATIONS)
    failed = {name: answer for name, answer in answers.items() if answer[0] >= 500}
    assert failed == {"run": [502, "RunAnswer", None]}  # no runner listens here
    assert answers["decide_license"] == [200, "LicenseDecision", "allow"]
    assert answers["activate"][:2] == [403, "Problem"]
    untyped = {name for name, answer in answers.items() if answer[1] == "NoneType"}
    assert untyped == set()


def example(operation: dict[str, Any]) -> Any:
    """A body with the required fields."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    return None if schema is None else example_of(schema, DOCUMENT)

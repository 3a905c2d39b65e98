"""The API describes itself: what OpenAPI says holds for whatever is sent, and the page works in a browser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, settings

from engine.api import docs
from engine.api.docs import ASSETS
from engine.api.openapi import document
from engine.api.routes import routes
from engine.api.uploads import ARCHIVES
from engine.points.registry import POINTS
from tests.api.serving import ALLOWED, LICENSE, Serving
from tests.expect import there
from tests.facilities import needs
from tests.lanes import lane

if TYPE_CHECKING:
    from schemathesis.schemas import BaseSchema

NOT_ASKED = {"/run"}  # it would forward; asked in tests of its own
DOCUMENT = document(routes())
OPERATIONS = [
    f"{method} {path}"
    for path, methods in routes().items()
    for method in methods
    if path not in NOT_ASKED | {f"/docs/{name}" for name in ASSETS}
]
_POINT = re.compile("|".join(f"(?<=/){point}(?=/|$)" for point in POINTS))


def test_every_route_is_described_and_nothing_else() -> None:
    served = {(path, method.lower()) for path, methods in routes().items() for method in methods}
    served -= {(f"/docs/{name}", "get") for name in ASSETS}
    assert {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods} == served


def test_the_document_is_served_and_names_the_security_schemes(api: Serving) -> None:
    found = api.ask("GET", "/openapi.json").json
    assert found == DOCUMENT
    assert found["openapi"] == "3.1.0"
    assert set(found["components"]["securitySchemes"]) == {"bearer", "runnerToken", "mutualTls"}


def test_the_document_is_serialized_once() -> None:
    """It is open to every caller, and writing it takes longer than most decisions."""
    description = docs.Description(routes())
    exchange: Any = None
    first, *others = (asyncio.run(description.openapi(exchange, exchange)).body for _ in range(3))
    assert first == json.dumps(DOCUMENT, ensure_ascii=False).encode("utf-8")
    assert all(body is first for body in others)


@pytest.mark.parametrize("point", POINTS)
def test_the_schema_of_every_point_is_served(api: Serving, point: str) -> None:
    from jsonschema_rs import meta

    reply = api.ask("GET", f"/v1/schemas/{point}")
    assert reply.headers["content-type"] == "application/schema+json"
    meta.validate(reply.json)
    assert reply.json["additionalProperties"] is False


def test_every_default_is_a_value_that_may_be_sent() -> None:
    """A client may send what the document says is meant where a field is left out."""
    from jsonschema_rs import Draft202012Validator

    def with_default(node: Any) -> Iterator[dict[str, Any]]:
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict) and {"type", "anyOf", "$ref"} & node.keys() and "default" in node:
            yield node
        yield from (found for child in children for found in with_default(child))

    found = list(with_default(DOCUMENT))
    assert len(found) > 100
    for node in found:
        Draft202012Validator({**node, "components": DOCUMENT["components"]}).validate(node["default"])


@pytest.mark.parametrize("request_", [ALLOWED, LICENSE, {**ALLOWED, "license": "GPL-3.0-only"}])
def test_decisions_are_as_the_document_says(api: Serving, request_: dict[str, Any]) -> None:
    from jsonschema_rs import Draft202012Validator

    schema = {"$ref": "#/components/schemas/LicenseDecision", "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(api.decide("license", request_).json)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Connections that are used again; nothing of the environment is read for each request."""
    with requests.Session() as made:
        made.trust_env = False
        yield made


@pytest.fixture(scope="module")
def described() -> BaseSchema:
    """What the document describes; it is read when it is asked for, because that takes seconds."""
    import schemathesis

    @schemathesis.serializer(*(kind.decode("ascii") for kind in ARCHIVES))
    def _archive(_: Any, value: Any) -> bytes:
        """Any value as the bytes of an archive."""
        return value if isinstance(value, bytes) else str(value).encode()

    return schemathesis.openapi.from_dict(DOCUMENT)


@pytest.mark.parametrize("operation", lane(OPERATIONS, lambda operation: [_POINT.sub("{point}", operation)]))
def test_the_answer_to_a_random_request_is_as_described(
    api: Serving, session: requests.Session, described: BaseSchema, operation: str
) -> None:
    ask(api, session, described, operation, 2, ["fuzzing"])


@pytest.mark.full
@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_generated_request_is_answered_as_described(
    api: Serving, session: requests.Session, described: BaseSchema, operation: str
) -> None:
    ask(api, session, described, operation, 12, ["examples", "fuzzing", "coverage"])


def ask(
    api: Serving, session: requests.Session, described: BaseSchema, operation: str, count: int, modes: list[str]
) -> None:
    """Send an operation's generated requests, `count` of them random, and compare each answer with the document."""
    import schemathesis
    from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test

    def compare(case: schemathesis.Case[Any]) -> None:
        base = f"http://{api.host}:{api.port}"
        response = case.call(base_url=base, session=session, headers={"Host": "localhost"}, timeout=30)
        all_failed = case.path.endswith("/batch") and response.status_code == 500
        assert response.status_code < 500 or all_failed, response.text
        case.validate_response(
            response,
            checks=[
                schemathesis.checks.status_code_conformance,
                schemathesis.checks.content_type_conformance,
                schemathesis.checks.response_schema_conformance,
            ],
        )

    found = there(described.find_operation_by_label(operation))
    how = settings(
        max_examples=count,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    create_test(
        operation=found,
        test_func=compare,
        config=HypothesisTestConfig(
            project=described.config, modes=[HypothesisTestMode(mode) for mode in modes], explicit_settings=how
        ),
    )()


def test_nothing_on_the_page_comes_from_elsewhere_or_is_inline(api: Serving) -> None:
    page = api.ask("GET", "/docs")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert b"http://" not in page.body
    assert b"https://" not in page.body
    assert b" style=" not in page.body
    assert b"onclick" not in page.body
    assert page.body.count(b"<main>") == page.body.count(b"</main>") == 1
    for name in ASSETS:
        assert api.ask("GET", f"/docs/{name}").status == 200


class Browser:
    """A headless Chromium, spoken to over two pipes."""

    def __init__(self, to: int, answers: int) -> None:
        self._to = to
        self._answers = answers
        self._left = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable", page=True)

    def call(self, method: str, *, page: bool = False, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if page:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return dict(found["result"])
            self.events.append(found)

    def run(self, script: str) -> Any:
        """The value of a script in the page, which may be awaited."""
        result = self.call("Runtime.evaluate", page=True, expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser ended"
            self._left += part
        line, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(line))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    program = there(shutil.which("chromium") or shutil.which("google-chrome"))
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    command = f'exec "$@" 3<&{read_in} 4>&{write_out}'
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        ["/bin/bash", "-c", command, "bash", program, *options, f"--user-data-dir={folder}"],
        pass_fds=(read_in, write_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )
    try:
        yield Browser(write_in, read_out)
    finally:
        process.kill()
        process.wait()
        for descriptor in (read_in, write_in, read_out, write_out):
            os.close(descriptor)


_SEND = """
(async () => {
  const form = document.querySelector('form[data-path="%s"]');
  form.closest('details').open = true;
  form.elements[0].value = %s;
  form.querySelector('button').click();
  const output = form.querySelector('output');
  for (let turn = 0; turn < 200 && !/^[0-9]/.test(output.textContent); turn++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  return output.textContent;
})()
"""


@needs("chromium")
def test_in_a_browser_a_person_can_read_the_page_and_get_a_decision(api: Serving, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as chromium:
        chromium.call("Page.navigate", page=True, url=f"http://{api.host}:{api.port}/docs")
        end = time.monotonic() + 30
        loaded = "document.readyState === 'complete' && document.forms.length > 0"
        while not chromium.run(loaded):
            assert time.monotonic() < end
        assert "decision API" in chromium.run("document.querySelector('h1').textContent")
        assert chromium.run("getComputedStyle(document.body).maxWidth") == "960px"  # its style sheet was taken
        answer = chromium.run(_SEND % ("/v1/decide/license", json.dumps(json.dumps(ALLOWED))))
        assert answer.startswith("200")
        decision = json.loads(answer.partition("\n")[2])
        assert decision["outcome"] == "allow"
        entries = [one["params"]["entry"] for one in chromium.events if one.get("method") == "Log.entryAdded"]
        assert [one for one in entries if one["level"] != "verbose"] == []  # nothing is against its own policy
        answer = chromium.run(_SEND % ("/v1/decisions/{id}", json.dumps(decision["decision_id"])))
        assert "record_read_out_of_scope" in answer  # the policy decides on this one
        assert not [one for one in chromium.events if one.get("method") == "Runtime.exceptionThrown"]

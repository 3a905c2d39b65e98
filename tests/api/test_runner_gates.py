"""The gates of a runner: one set of tests for each way to run it.

`plain` is a process with default settings, `mutual_tls` one behind client certificates, and `deployment_files` has
command and variables of deploy/runner: compose.tls.yaml where no token is set, compose.yaml where one is.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import NameOID

from engine.facts.run_result import WireRunResult
from tests.adapters.test_sealed import keys
from tests.agents import policy_with
from tests.api.serving import Serving, serving
from tests.api.test_access import SHARED, Authority
from tests.api.test_runner import FILESYSTEM, HELLO, LOCAL_NETWORK, MCP, SERVER, listening, tool
from tests.facilities import needs
from tests.project.test_deploy import EVERYWHERE, read, resolved

pytestmark = needs("bubblewrap")

LOOPBACK = "127.0.0.1"
POINTS = ["runner_request", "runner_capability", "tool_visibility", "sandbox"]
TOKEN = {"AGENTA_AGENT_RUNNER_TOKEN": SHARED}


@dataclass(frozen=True, slots=True)
class Deployed:
    """Two runners, one without a token and one with it, and the address at which each has to listen."""

    open: Serving
    guarded: Serving
    open_at: str = LOOPBACK


class Certificates:
    """The files of a runner behind mutual TLS, named as in deploy/runner/compose.tls.yaml, and a client's context."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tls"
        self.folder.mkdir()
        authority = Authority(self.folder, "callers")
        authority.issue("runner", (NameOID.COMMON_NAME, "runner"))
        keys(folder)[0].rename(self.folder / "secrets.key")
        self.context = ssl.create_default_context(cafile=str(authority.path))
        self.context.load_cert_chain(*authority.issue("gate", (NameOID.COMMON_NAME, "gate")))

    @property
    def options(self) -> tuple[str, ...]:
        """Those of the command."""
        names = {"--tls-cert": "runner.pem", "--tls-key": "runner.key", "--tls-client-ca": "callers.pem"}
        return tuple(word for option, name in names.items() for word in (option, str(self.folder / name)))


def deployed_as(kind: str, folder: Path, cache: Path, stack: ExitStack) -> Deployed:
    """Both runners. Clients show their certificate where they are asked for it."""
    policy = policy_with(folder, "http://127.0.0.1:9", backends={"elsewhere": {"host": "remote"}})
    callers = {"certificates": {"CN=gate": POINTS}}
    (policy / "values" / "callers.yaml").write_text(json.dumps(callers), encoding="utf-8")
    known = Certificates(folder)

    def begun(name: str, *arguments: str | Path, env: dict[str, str], tls: bool) -> Serving:
        (folder / name).mkdir()
        found = stack.enter_context(
            serving(folder / name, cache, *arguments, "--policy", policy, env=env, command=("runner", "serve"))
        )
        found.host = LOOPBACK
        found.context = known.context if tls else None
        return found

    if kind != "deployment_files":
        tls = kind == "mutual_tls"
        options = known.options if tls else ()
        return Deployed(begun("open", *options, env={}, tls=tls), begun("guarded", *options, env=TOKEN, tls=tls))

    def of_file(name: str, variables: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        service = read(f"runner/{name}")["services"]["runner"]
        env = {key: resolved(value, variables) for key, value in service["environment"].items()}
        assert service["command"][:2] == ["runner", "serve"]
        return service["command"][2:], {key: value.replace("/tls/", f"{known.folder}/") for key, value in env.items()}

    command, env = of_file("compose.tls.yaml", {})
    opened = begun("open", *command, env=env, tls=True)
    command, env = of_file("compose.yaml", {**TOKEN, "AGENTA_AGENT_RUNNER_HOST": LOOPBACK})
    return Deployed(opened, begun("guarded", *command, env=env, tls=False), EVERYWHERE)


KINDS = ("plain", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("mutual_tls", "deployment_files")))


@pytest.fixture(scope="module", params=KINDS)
def deployed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cache: Path
) -> Iterator[Deployed]:
    with ExitStack() as stack:
        yield deployed_as(request.param, tmp_path_factory.mktemp(request.param), cache, stack)


# covers: D22.1 D23.1 D28.1 D28.6
def test_a_runner_listens_on_its_configured_address_and_needs_no_token_unless_set(deployed: Deployed) -> None:
    for one, address in ((deployed.open, deployed.open_at), (deployed.guarded, LOOPBACK)):
        assert listening(one.process.pid) == {(address, one.port)}
        assert one.ask("GET", "/health").status == 200
    reply = deployed.open.ask("POST", "/run", {"harness": "pi_core", "messages": HELLO})
    assert (reply.status, reply.json["ok"], reply.json["outputs"]["invoke"]) == (200, True, "hello")
    WireRunResult.model_validate_json(reply.body)


# covers: D03.2 D24.1 D25.1 D28.2-6
def test_with_a_token_set_every_run_needs_it(deployed: Deployed) -> None:
    guarded = deployed.guarded
    assert guarded.ask("POST", "/run", {}).status == 401
    assert guarded.ask("POST", "/run", {}, {"Authorization": "Bearer another"}).status == 401
    refused = {"harness": "pi_core", "messages": [], "mcp_servers": [SERVER]}
    for headers in ({"Authorization": f"Bearer {SHARED}"}, {"X-Agenta-Runner-Token": SHARED}):
        decided = guarded.ask("POST", "/run", refused, headers).json["decision"]
        assert decided["outcome"] == "deny"  # past the token
        missing = guarded.ask("POST", "/run", {}, headers)
        assert (missing.status, missing.json["ok"]) == (400, False)
        assert [one["field"] for one in missing.json["errors"]] == ["messages"]
    assert guarded.ask("POST", "/tools/call", {}).status == 401
    for path in ("/capabilities", "/inspect"):
        assert guarded.ask("GET", path).status == 401


ELSEWHERE = {"sandbox": "elsewhere"}


# covers: D09 D21 D26.1 D27.1 D28.7-11 D28.13
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"sandbox_permission": {"network": "restricted"}, "messages": []}, LOCAL_NETWORK),
        ({"sandbox_permission": {"network": "restricted", "enforcement": "strict"}}, LOCAL_NETWORK),
        ({"sandbox_permission": {"network": "restricted", "enforcement": "best_effort"}}, LOCAL_NETWORK),
        ({**ELSEWHERE, "sandbox_permission": {"filesystem": "workspace", "enforcement": "strict"}}, FILESYSTEM),
        ({**ELSEWHERE, "sandbox_permission": {"filesystem": "workspace", "enforcement": "best_effort"}}, FILESYSTEM),
        ({"mcp_servers": [SERVER], "messages": []}, MCP),
        ({"harness": "claude", "tools": [tool()]}, MCP),
        ({"tools": [{**tool(), "kind": "code", "code": "print()"}]}, "code tools are not supported by the runner"),
    ],
)
def test_a_run_with_an_unenforceable_boundary_is_refused_with_the_documented_error(
    deployed: Deployed, change: dict[str, Any], error: str
) -> None:
    reply = deployed.open.ask("POST", "/run", {"harness": "pi_core", "messages": HELLO, **change})
    assert (reply.status, reply.json["ok"], reply.json["error"]) == (200, False, error)
    assert reply.json["decision"]["outcome"] == "deny"

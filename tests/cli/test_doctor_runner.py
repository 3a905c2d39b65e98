"""`engine doctor --runner`: what callers can reach, tried where they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.x509.oid import NameOID

from tests.api.serving import environment, serving
from tests.api.test_access import Authority
from tests.command import Command
from tests.conftest import ROOT
from tests.facilities import needs
from tests.processes import own_port
from tests.project.test_deploy import IMAGE, read, resolved
from tests.runners import answering, running


def test_a_runner_that_answers_can_be_used(command: Command) -> None:
    with running(answering({"status": "ok", "trust_level": 1})) as runner:
        found = command("doctor", "--runner", runner.address)
        assert found.code == 0
        assert "answered 200; trust level 1" in found.stdout
        assert found.stdout.splitlines()[-1] == "the runner can be used from here; exit 0"
        asked = command("doctor", "--runner", runner.address, "--format", "json").json
        assert [(check["name"], check["state"]) for check in asked["checks"]] == [
            ("address", "ok"),
            ("connection", "ok"),
            ("client certificate", "ok"),
            ("health", "ok"),
        ]
    with running(answering({"status": "ok"}, 503)) as runner:
        assert command("doctor", "--runner", runner.address).code == 4


def test_a_port_where_nothing_listens_is_reported_with_what_to_set(command: Command) -> None:
    with own_port() as port:
        found = command("doctor", "--runner", f"http://127.0.0.1:{port}")
    assert found.code == 4
    assert f"127.0.0.1 port {port}: connection refused" in found.stdout
    assert "set AGENTA_AGENT_RUNNER_HOST" in found.stdout
    assert (
        found.stdout.splitlines()[-1] == "the runner cannot be used from here until this is fixed: connection; exit 4"
    )


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "url", ["runner:8765", "ftp://runner", "http://", "http://runner:0", "http://runner:99999", "http://a@runner/?b"]
)
def test_an_invalid_runner_url_is_a_usage_error(command: Command, url: str) -> None:
    command("doctor", "--runner", url).refused("such as http://runner:8765", code=2)


NETWORKS = """
set -eu
ip link set lo up
unshare --net --uts sleep 600 & box=$!
until [ "$(readlink /proc/$box/ns/uts)" != "$(readlink /proc/self/ns/uts)" ]; do :; done
in_box() { nsenter --target "$box" --net --uts "$@"; }
ip link add veth0 type veth peer name veth1 netns "$box"
ip addr add 10.99.0.1/24 dev veth0
ip link set veth0 up
in_box ip link set lo up
in_box ip addr add 10.99.0.2/24 dev veth1
in_box ip link set veth1 up
in_box "$PYTHON" -c "import socket; socket.sethostname('10.99.0.2')"
mkfifo "$STATE.log"
in_box "$PYTHON" -m engine $COMMAND --state "$STATE" 2>"$STATE.log" &
exec 9<"$STATE.log"
grep -qm1 "listening on" <&9
cat <&9 >/dev/null &
in_box "$PYTHON" -m engine doctor --runner http://127.0.0.1:8765 >/dev/null
echo "a check of its loopback passes"
if in_box "$PYTHON" -c "$HEALTH"; then echo "health check: good"; else echo "health check: bad"; fi 2>/dev/null
"$PYTHON" -m engine doctor --runner http://10.99.0.2:8765 || true
"""
"""A container and a caller in networks of their own, with a link between them; the runner runs in the container.

The container's name stands for its address, as Docker has it in /etc/hosts.
"""


def reached(folder: Path, cache: Path, **variables: str) -> str:
    """What a caller beside the container of deploy/runner/compose.yaml finds, with these variables of its operator."""
    service = read("runner/compose.yaml")["services"]["runner"]
    own = environment(cache)
    own |= {name: resolved(value, variables) for name, value in service["environment"].items()}
    own |= {"PYTHON": sys.executable, "COMMAND": " ".join(service["command"]), "STATE": str(folder)}
    (health,) = re.findall(r'^    CMD \["python", "-c", "(.*)"\]$', IMAGE, re.MULTILINE)
    command = ["unshare", "-rn", "--pid", "--fork", "--mount-proc", "bash", "-c", NETWORKS]  # nothing outlives it
    own["HEALTH"] = health
    done = subprocess.run(command, env=own, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# covers: D48.1 D66.1-2
@needs("network_namespace", "ip")
def test_a_loopback_bind_is_found_from_the_callers_side(tmp_path: Path, cache: Path) -> None:
    token = {"AGENTA_AGENT_RUNNER_TOKEN": "0123456789abcdef" * 2}
    shut = reached(tmp_path / "shut", cache, AGENTA_AGENT_RUNNER_HOST="127.0.0.1", **token)
    assert "a check of its loopback passes" in shut
    assert "health check: bad" in shut
    assert "10.99.0.2 port 8765: connection refused" in shut
    assert "the runner cannot be used from here" in shut
    served = reached(tmp_path / "served", cache, **token)  # the control
    assert "health check: good" in served
    assert "answered 200; trust level 1" in served
    assert "the runner can be used from here; exit 0" in served


def certified(command: Command, address: str, *options: str | Path) -> tuple[int, str]:
    """Exit code and report of a look at a runner."""
    found = command("doctor", "--runner", address, *options)
    return found.code, found.stdout


def test_a_client_certificate_over_plain_http_is_reported(command: Command, tmp_path: Path) -> None:
    mine = Authority(tmp_path).issue("mine", (NameOID.COMMON_NAME, "gate"))
    with running(answering({"status": "ok"})) as runner:
        code, told = certified(command, runner.address)
        assert (code, "plain HTTP: none is requested" in told) == (0, True)
        code, told = certified(command, runner.address, "--runner-cert", mine[0], "--runner-key", mine[1])
        assert (code, "fix: use the https address of the runner" in told) == (4, True)
    command("doctor", "--runner", runner.address, "--runner-cert", mine[0]).refused("--runner-key together", code=2)


@pytest.mark.full
def test_a_required_accepted_or_refused_client_certificate_is_reported(
    command: Command, tmp_path: Path, cache: Path
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    server = authority.issue("server", (NameOID.COMMON_NAME, "runner"))
    name = (NameOID.COMMON_NAME, "gate")
    tls = ("--tls-cert", server[0], "--tls-key", server[1])

    def showing(pem: Path, key: Path) -> tuple[int, str]:
        return certified(command, address, "--ca-file", authority.path, "--runner-cert", pem, "--runner-key", key)

    (tmp_path / "mutual").mkdir()
    mutual = (*tls, "--tls-client-ca", authority.path)
    token = {"AGENTA_AGENT_RUNNER_TOKEN": "0123456789abcdef" * 2}
    with serving(tmp_path / "mutual", cache, *mutual, env=token, command=("runner", "serve")) as runner:
        address = f"https://127.0.0.1:{runner.port}"
        code, told = certified(command, address)
        assert (code, "its certificate cannot be verified" in told, "--ca-file" in told) == (4, True, True)
        code, told = certified(command, address, "--ca-file", authority.path)
        assert (code, "it demands one, and none is given" in told, "--runner-cert" in told) == (4, True, True)
        code, told = showing(*authority.issue("mine", name))
        assert (code, "demands one and accepted yours: CN=gate, valid until 2" in told) == (0, True)
        right = token["AGENTA_AGENT_RUNNER_TOKEN"]
        for text, wanted, words in ((right, 0, "trust level 2"), ("mistaken-token", 4, "fix: use the token")):
            (tmp_path / "token").write_text(text)
            mine = ("--runner-cert", tmp_path / "mine.pem", "--runner-key", tmp_path / "mine.key")
            shown = (*mine, "--runner-token-file", tmp_path / "token")
            code, told = certified(command, address, "--ca-file", authority.path, *shown)
            assert (code, words in told) == (wanted, True), told
        code, told = showing(*authority.issue("late", name, days=-1))
        assert (code, "refused yours" in told, "expired on 2" in told, "issued again" in told) == (4, True, True, True)
        code, told = showing(*other.issue("foreign", name))
        assert (code, "refused yours" in told, "authority of its --tls-client-ca" in told) == (4, True, True)
        code, told = certified(command, address.replace("https", "http"))
        assert (code, "whether its address begins with https" in told) == (4, True)
    (tmp_path / "open").mkdir()
    with serving(tmp_path / "open", cache, *tls, command=("runner", "serve")) as runner:
        address = f"https://127.0.0.1:{runner.port}"
        code, told = certified(command, address, "--ca-file", authority.path)
        assert (code, "the runner demands none" in told) == (0, True)
        code, told = showing(*authority.issue("mine", name))
        assert (code, "yours was not asked for: CN=gate" in told) == (0, True)

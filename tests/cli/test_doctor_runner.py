"""`engine doctor --runner`: what callers can reach, tried where they are."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.serving import environment
from tests.command import Command
from tests.conftest import ROOT
from tests.facilities import needs
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
            ("health", "ok"),
        ]
    with running(answering({"status": "ok"}, 503)) as runner:
        assert command("doctor", "--runner", runner.address).code == 4


def test_a_port_where_nothing_listens_is_reported_with_what_to_set(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
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
def test_what_is_no_address_of_a_runner_is_a_wrong_call(command: Command, url: str) -> None:
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
@pytest.mark.full
@needs("network_namespace")
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

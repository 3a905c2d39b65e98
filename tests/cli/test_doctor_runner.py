"""`engine doctor --runner`: what callers can reach, tried where they are."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.serving import environment
from tests.command import Command
from tests.conftest import ROOT
from tests.facilities import needs
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
unshare --net sleep 600 & box=$!
until [ "$(readlink /proc/$box/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
in_box() { nsenter --target "$box" --net "$@"; }
ip link add veth0 type veth peer name veth1 netns "$box"
ip addr add 10.99.0.1/24 dev veth0
ip link set veth0 up
in_box ip link set lo up
in_box ip addr add 10.99.0.2/24 dev veth1
in_box ip link set veth1 up
in_box env AGENTA_AGENT_RUNNER_HOST="$HOST" "$PYTHON" -m engine $SERVE & runner=$!
until in_box "$PYTHON" -m engine doctor --runner http://127.0.0.1:8765 >/dev/null; do kill -0 $runner; done
echo "own health check passes"
"$PYTHON" -m engine doctor --runner http://10.99.0.2:8765 || true
"""
"""A container and a caller in networks of their own, with a link between them; the runner runs in the container."""


def reached(tmp_path: Path, host: str) -> str:
    own = environment(tmp_path / "cache" / "admission-engine")
    own |= {"HOST": host, "PYTHON": sys.executable, "SERVE": f"serve --port 8765 --state {tmp_path / host}"}
    own |= {"AGENTA_AGENT_RUNNER_TOKEN": "0123456789abcdef" * 2, "PATH": os.environ["PATH"]}
    command = ["unshare", "-rn", "--pid", "--fork", "--mount-proc", "bash", "-c", NETWORKS]  # nothing outlives it
    done = subprocess.run(command, env=own, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# covers: D48 D66.2
@pytest.mark.full
@needs("network_namespace")
def test_a_loopback_bind_is_found_from_the_callers_side(tmp_path: Path) -> None:
    shut = reached(tmp_path, "127.0.0.1")
    assert "own health check passes" in shut
    assert "10.99.0.2 port 8765: connection refused" in shut
    assert "the runner cannot be used from here" in shut
    everywhere = "0.0.0.0"  # noqa: S104  (what is tested)
    assert "the runner can be used from here; exit 0" in reached(tmp_path, everywhere)  # the control

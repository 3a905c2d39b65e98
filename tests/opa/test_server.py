"""The bundled OPA as a process: it starts with our revisions only, and nothing of it outlives us."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import DecideError
from engine.model import Revisions
from engine.opa.binary import Binary, find_binary
from engine.opa.server import Server
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.sources import PolicySources
from engine.settings import OpaLimits, Settings
from tests.processes import alive, gone, stop

LIMITS = OpaLimits(start_seconds=10, answer_seconds=1)


@pytest.fixture(scope="module")
def policy(cache: Path) -> PolicyBundle:
    settings = Settings(cache=cache)
    sources = PolicySources(settings.rego, settings.policy, settings.recipe)
    return build(sources, POINTS, find_binary(), cache)


def start(policy: PolicyBundle, binary: Binary | None = None, limits: OpaLimits = LIMITS) -> Server:
    return Server.start(binary or find_binary(), policy.rules.path, policy.values.path, policy.revisions, limits)


def test_answers_and_ends(policy: PolicyBundle) -> None:
    server = start(policy)
    server.ready()
    pid = server.pid
    assert pid is not None
    assert server.ask("decision", {"point": "nowhere"}).result == {"outcome": "deny", "findings": []}
    folder = server.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "opa.sock").stat().st_mode & 0o777 == 0o600
    assert Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0") == b"GOGC=400"
    server.close()
    assert gone(pid)
    assert not folder.exists()


def test_unknown_rule_is_undefined(policy: PolicyBundle) -> None:
    server = start(policy)
    server.ready()
    assert not server.ask("no_such_rule", {}).defined
    server.close()


def test_other_revisions_are_refused(policy: PolicyBundle) -> None:
    expected = Revisions(rules=policy.revisions.rules, values="sha256:" + "0" * 64)
    server = Server.start(find_binary(), policy.rules.path, policy.values.path, expected, LIMITS)
    with pytest.raises(DecideError) as caught:
        server.ready()
    assert caught.value.code == "policy_stale"
    server.close()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, "policy_unavailable"), (signal.SIGSTOP, "policy_unavailable")]
)
def test_killed_or_stopped(policy: PolicyBundle, number: signal.Signals, code: str) -> None:
    server = start(policy)
    server.ready()
    assert server.pid is not None
    if number is signal.SIGSTOP:
        stop(server.pid)
    else:
        os.kill(server.pid, number)
    with pytest.raises(DecideError) as caught:
        server.ask("decision", {"point": "source"})
    assert caught.value.code == code
    server.close()
    assert gone(server.pid)


def test_killed_while_starting(policy: PolicyBundle) -> None:
    server = start(policy)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(DecideError) as caught:
        server.ready()
    assert caught.value.code == "policy_unavailable"
    server.close()


def test_broken_archive(policy: PolicyBundle, tmp_path: Path) -> None:
    broken = tmp_path / "rules.tar.gz"
    whole = policy.rules.path.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    server = Server.start(find_binary(), broken, policy.values.path, policy.revisions, LIMITS)
    with pytest.raises(DecideError) as caught:
        server.ready()
    assert caught.value.code == "policy_unavailable"
    server.close()


def test_no_binary_to_run(policy: PolicyBundle, tmp_path: Path) -> None:
    with pytest.raises(DecideError) as caught:
        start(policy, replace(find_binary(), path=tmp_path / "missing"))
    assert caught.value.code == "engine.opa_binary"


def test_what_runs_is_the_file_that_was_verified(policy: PolicyBundle, tmp_path: Path) -> None:
    real, path = find_binary(), tmp_path / "opa"
    shutil.copy(real.path, path)
    verified = replace(real, path=path).verified
    with verified() as file:
        path.unlink()
        path.write_text("another file")
        assert os.fstat(file).st_size == real.path.stat().st_size
        assert os.read(file, 4) == b"" or os.pread(file, 4, 0) == b"\x7fELF"
    with pytest.raises(DecideError), verified():
        pass
    server = start(policy)
    server.ready()
    opened = [str(one.readlink()) for one in Path(f"/proc/{server.pid}/fd").iterdir()]
    server.close()
    assert str(real.path) not in opened


@pytest.mark.parametrize("fault", ["missing", "other", "not_executable"])
def test_another_binary_is_never_run(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_binary()
    path = tmp_path / "opa"
    (tmp_path / "opa.json").write_text(f'{{"version": "{real.version}", "sha256": "{real.sha256}"}}')
    if fault == "other":
        path.write_text("#!/bin/sh\necho evil\n")
        path.chmod(0o755)
    elif fault == "not_executable":
        path.write_bytes(real.path.read_bytes())
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may execute anything
    monkeypatch.setattr("engine.opa.binary.bundled", lambda name: tmp_path / name)
    with pytest.raises(DecideError) as caught:
        find_binary()
    assert caught.value.code == "engine.opa_binary"
    assert "scripts/run" in caught.value.remedy


def test_dies_with_a_killed_engine_and_its_folder_is_swept(policy: PolicyBundle) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from engine.model import Revisions\n"
        "from engine.opa.binary import find_binary\n"
        "from engine.opa.server import Server\n"
        "from engine.settings import OpaLimits\n"
        "revisions = Revisions(rules=sys.argv[3], values=sys.argv[4])\n"
        "server = Server.start(find_binary(), Path(sys.argv[1]), Path(sys.argv[2]), revisions, OpaLimits())\n"
        "server.ready()\n"
        "print(server.pid, server.folder, flush=True)\n"
        "time.sleep(60)\n"
    )
    arguments = [policy.rules.path, policy.values.path, policy.revisions.rules, policy.revisions.values]
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdout is not None
        pid, folder = engine.stdout.readline().split()
        assert alive(int(pid))
        engine.kill()
    assert gone(int(pid))
    assert Path(folder).exists()
    server = start(policy)  # the next engine sweeps
    assert not Path(folder).exists()
    server.close()


def test_a_base_folder_of_someone_else_is_refused(
    policy: PolicyBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / f"admission-engine-{os.getuid()}"
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(DecideError) as caught:
        start(policy)
    assert caught.value.code == "policy_unavailable"

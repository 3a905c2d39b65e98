"""The bundled OPA as a process: it starts with our revisions only, and nothing of it outlives us."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.errors import DecideError
from engine.opa.packed import of_points
from engine.opa.server import LONGEST_BASE, Server, _rules_of, fresh_folder
from engine.policy_bundle.build import PolicyBundle
from tests.expect import refused, there
from tests.opa.served import DENIED, DOCUMENT, LIMITS, files, serving
from tests.processes import gone, in_child, opened_by


def test_a_server_answers_and_leaves_nothing_behind(policy: PolicyBundle) -> None:
    with serving(files(policy)) as server:
        pid = there(server.pid)
        assert server.ask("decision", DOCUMENT).result == DENIED
        folder = server.folder
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "opa.sock").stat().st_mode & 0o777 == 0o600
        assert Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0") == b"GOGC=400"
    assert gone(pid)
    assert not folder.exists()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_that_closes_its_copy_leaves_the_server_to_its_parent(policy: PolicyBundle) -> None:
    def child() -> bool:
        server.close()
        return True

    with serving(files(policy)) as server:
        assert in_child(child)
        assert server.ask("decision", DOCUMENT).result == DENIED
        assert server.folder.exists()


def test_a_missing_binary_is_refused(policy: PolicyBundle, tmp_path: Path) -> None:
    with refused(DecideError, "engine.opa_binary"):
        Server.start(replace(find_binary(), path=tmp_path / "missing"), files(policy), LIMITS)


def test_the_executed_file_is_the_verified_one(policy: PolicyBundle, tmp_path: Path) -> None:
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
    with serving(files(policy)) as server:
        opened = opened_by(there(server.pid))
    assert real.path not in opened


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder short enough for a socket: those of pytest are refused for their length."""
    with tempfile.TemporaryDirectory(prefix="opa-", dir="/tmp") as folder:
        monkeypatch.setattr("tempfile.tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize(
    ("mode", "owner"),
    [(0o777, os.getuid()), pytest.param(0o700, 65534, marks=pytest.mark.skipif(os.getuid() != 0, reason="as root"))],
    ids=["others may write to it", "another user made it"],
)
def test_a_base_folder_of_another_user_is_refused(mode: int, owner: int, policy: PolicyBundle, short: Path) -> None:
    base = short / f"admission-engine-{os.getuid()}"
    base.mkdir()
    base.chmod(mode)
    os.chown(base, owner, -1)
    with pytest.raises(DecideError, match="not a private folder of this user") as caught:
        Server.start(find_binary(), files(policy), LIMITS)
    assert caught.value.code == "policy_unavailable"
    assert not [*base.iterdir()]


def test_a_base_folder_that_is_too_long_for_a_socket_is_refused(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = short / ("x" * LONGEST_BASE)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(OSError, match="too long for a socket path"):
        fresh_folder()


@pytest.mark.usefixtures("short")
def test_folders_of_dead_engines_are_removed_and_what_cannot_be_looked_at_stays() -> None:
    (dead, left), *living = (fresh_folder() for _ in range(3))
    os.close(left)
    unknown = living[0][0] / "lock"
    unknown.unlink()
    unknown.mkdir()
    living.append(fresh_folder())
    assert [folder.exists() for folder in (dead, *(one for one, _ in living))] == [False, True, True, True]
    for _, lock in living:
        os.close(lock)


def test_an_opa_that_is_not_ready_in_time_is_refused(policy: PolicyBundle) -> None:
    with closing(Server.start(find_binary(), files(policy), replace(LIMITS, start_seconds=0.2))) as server:
        os.kill(there(server.pid), signal.SIGSTOP)
        with refused(DecideError, "policy_unavailable"):
            server.ask("decision", DOCUMENT)
        with pytest.raises(DecideError, match="not ready in time"):
            server.ready()


def test_with_points_only_their_rules_are_loaded_and_the_revision_stays(policy: PolicyBundle) -> None:
    served = replace(files(policy), points=frozenset({"license"}))
    with serving(served) as server:
        license_ = server.ask("decision", {"point": "license"}).result
        assert {finding["level"] for finding in license_["findings"]} == {"deny"}
        assert server.ask("decision", {"point": "source"}).result == {"outcome": "deny", "findings": []}
        with serving(server.served) as again:  # as after a death of the first
            assert again.ask("decision", {"point": "license"}).result == license_


def test_rules_of_points_bring_those_that_they_refer_to() -> None:
    files = {
        "admission/main.rego": b"package admission",
        "admission/requirements/common/time.rego": b"package admission.requirements.common.time",
        "admission/requirements/a/one.rego": b"x if data.admission.limits.b.y",
        "admission/limits/b.rego": b"y if data.admission.requirements.c.z",
        "admission/requirements/c/z.rego": b"z if true",
        "admission/requirements/d/w.rego": b"w if true",
        "admission/compiled/d.rego": b"v if true",
        "admission/added/lib/names.rego": b"n if true",
        "admission/added/a/own.rego": b"import data.admission.added.lib.names",
        "admission/added/d/own.rego": b"import data.admission.added.lib.names",
    }
    kept = of_points(files, {"a"})
    d = {"admission/requirements/d/w.rego", "admission/compiled/d.rego", "admission/added/d/own.rego"}
    assert files.keys() - kept.keys() == d
    assert _rules_of(b"no archive", frozenset({"a"})) == b"no archive"


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (b'not data.admission["requirements"].d.w', True),
        (b"not data.admission.requirements[input.point].w", True),
        (b"import data.admission.requirements\n\nx if not requirements.d.w", True),
        (b"x if input.d", False),
    ],
)
def test_rules_referred_to_in_another_form_are_loaded_too(reference: bytes, *, found: bool) -> None:
    files = {"admission/requirements/a/one.rego": reference, "admission/requirements/d/w.rego": b"w if true"}
    kept = of_points(files, {"a"})
    assert ("admission/requirements/d/w.rego" in kept) == found

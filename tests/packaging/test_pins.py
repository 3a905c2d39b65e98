"""What the package says of itself, and the versions that are pinned."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.tags import sys_tags

from engine.opa import build
from engine.settings import bundled
from hatch_build import wheel_platform

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# covers: C33.1
def test_package_requires_python_3_11() -> None:
    required = SpecifierSet(PROJECT["requires-python"])

    assert [version for version in ("3.10.99", "3.11.0", "3.12.1", "3.14.0") if version in required] == [
        "3.11.0",
        "3.12.1",
        "3.14.0",
    ]


# covers: C33.1
def test_tests_run_on_a_python_the_package_accepts() -> None:
    assert "{}.{}.{}".format(*sys.version_info[:3]) in SpecifierSet(PROJECT["requires-python"])


def test_bundled_opa_is_the_pinned_one() -> None:
    pin = build.read_pin(ROOT / "engine" / "opa")
    note = json.loads(bundled("opa.json").read_text(encoding="utf-8"))

    assert pin.package == "github.com/open-policy-agent/opa"
    assert (note["version"], note["platform"]) == (pin.version.removeprefix("v"), build.target())


def test_the_bundled_parser_is_the_pinned_one() -> None:
    pin = build.read_pin(ROOT / "engine" / "facts" / "shell")
    note = json.loads(bundled("shell_parser.json").read_text(encoding="utf-8"))

    assert (pin.name, pin.version) == ("shell_parser", "v3.14.1")
    assert (note["version"], note["platform"]) == (pin.version.removeprefix("v"), build.target())


def test_regal_is_pinned_by_a_module_of_its_own() -> None:
    pin = build.read_pin(ROOT / "scripts" / "regal")

    assert (pin.package, pin.version) == ("github.com/open-policy-agent/regal", "v0.42.0")


def test_wheel_is_for_this_platform_and_any_python() -> None:
    accepted = {tag.platform for tag in sys_tags()}

    assert accepted.intersection(wheel_platform(build.target()).split("."))


def test_wheel_platforms() -> None:
    assert {target: wheel_platform(target) for target in ("linux/amd64", "linux/arm64", "darwin/arm64")} == {
        "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        "darwin/arm64": "macosx_12_0_arm64",
    }

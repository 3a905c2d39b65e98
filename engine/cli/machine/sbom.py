"""The command `engine sbom`: what this installation consists of, as a CycloneDX 1.6 document."""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from engine.cli.outputs import print_text
from engine.settings import bundled

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_THIS = "admission-engine"


def sbom() -> None:
    """List the Python packages and the Go modules of this installation, with versions and licenses, as CycloneDX."""
    tools = [json.loads(bundled(f"{name}.cdx.json").read_text(encoding="utf-8")) for name in ("opa", "shell_parser")]
    modules = [part for tool in tools for part in (tool["metadata"]["component"], *tool["components"])]
    this, *packages = (_component(package) for package in _installed())
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": this | {"type": "application"}},
        "components": [*packages, *{part["bom-ref"]: part for part in modules}.values()],
    }
    print_text(json.dumps(document, indent=2))


def _installed() -> list[Distribution]:
    """This package, then every installed package that it or one of those requires, sorted by name."""
    found: dict[str, Distribution] = {}
    waiting = [_THIS]
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # of an extra, or for another platform
            continue
        found[key] = package
        required = [line for line in package.requires or () if key == _THIS or "extra ==" not in line]
        waiting += [match[0] for line in required if (match := _NAME.match(line))]
    return [found.pop(_THIS), *(found[key] for key in sorted(found))]


def _component(package: Distribution) -> dict[str, Any]:
    name, version = package.name, package.version
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
    licenses = [{"expression": one} for one in package.metadata.get_all("License-Expression", [])]
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return found | ({"licenses": licenses} if licenses else {})

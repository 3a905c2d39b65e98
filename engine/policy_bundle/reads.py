"""Which values the rules of a point read, as the served rules name them."""

from __future__ import annotations

import re

from engine.policy_bundle import archives
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.checks import COMMON

_VALUES = re.compile(r"\bdata\.policy\.([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*)")
_HELPERS = re.compile(r"\bdata\.(admission(?:\.added)?\.lib\.[a-z][a-z0-9_]*)")


def values_read(bundle: PolicyBundle, point: str) -> list[str]:
    """Paths below `policy/` that the rules of a point name, also through helpers; rows by a fact are one path."""
    texts = {
        name: data.decode("utf-8").partition(archives.GENERATED)[0]
        for name, data in archives.read(bundle.rules.path).items()
        if name.endswith(".rego")
    }
    folders = tuple(f"admission/{kind}/{at}/" for kind in ("requirements", "added") for at in (point, COMMON))
    waiting = [name for name in texts if name.startswith(folders) or name == f"admission/limits/{point}.rego"]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in texts:
            continue
        seen.add(name)
        waiting += [f"{package.replace('.', '/')}.rego" for package in _HELPERS.findall(texts[name])]
    found = {path for name in seen for path in _VALUES.findall(texts[name])}
    return sorted(path for path in found if not any(path.startswith(f"{other}.") for other in found))

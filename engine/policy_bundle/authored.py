"""A line of a served rule to the line that its author wrote: comments are blanked there, and findings appended."""

from __future__ import annotations

import re

from engine.errors import Location
from engine.policy_bundle import archives
from engine.policy_bundle.build import PolicyBundle

_FINDING = re.compile(r'\.(?:finding|added)\("([^"]+)"')


def authored(policy: PolicyBundle, served: Location) -> Location:
    """Where the author of a rule finds it; `served` is a file of the archive of rules and a line of it.

    In what is generated it is the requirement that the line was written out from, else the place itself.
    """
    name = _name(policy, served.file)
    text = archives.read(policy.rules.path).get(served.file, b"").decode("utf-8")
    lines, own = text.splitlines(), text.partition(archives.GENERATED)[0].splitlines()
    line = served.line or 1
    if line <= len(own) or line > len(lines):
        return Location(name, served.line)
    found = next((match[1] for one in reversed(lines[:line]) if (match := _FINDING.search(one))), "")
    held = [entries.requirements.get(found) for entries in policy.catalogue.points.values()]
    first = next((one.line for one in held if one is not None and one.file == name), 1)
    failing = lines[line - 1].strip()
    return Location(name, next((at for at, one in enumerate(own[first - 1 :], first) if one.endswith(failing)), first))


def _name(policy: PolicyBundle, served: str) -> str:
    """The file's name as people call it, such as `rego/admission/lib/origin.rego`."""
    parts = served.split("/")
    if parts[:2] == ["admission", "added"]:
        return "/".join(["bundles", policy.name, "rules", *parts[2:]])
    return f"rego/{served}"

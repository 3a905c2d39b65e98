"""Small policies as files, built and asked on a real OPA."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import Binary, find_binary
from engine.errors import PolicyError, Problem
from engine.model import Model
from engine.opa.command import OpaCommand
from engine.policy_bundle.build import PolicyBundle, build
from engine.policy_bundle.sources import PolicySources
from engine.values.operations import Levels

REQUIREMENTS = "rego/admission/requirements/source"
LOWERED = '{level: warn, owner: a@example.org, reason: new terms, until: "2027-03-31"}'
"""A row of policy/levels.yaml that lowers a refusal for some time."""

LIMITS = "rego/admission/limits/source.rego"
RULES = "bundles/house/rules/source"


@dataclass(frozen=True)
class Point:
    """A decision point as the build knows it; {} says nothing about its input."""

    input_schema: dict[str, Any]


POINTS = {"source": Point({})}


class Licenses(Model):
    """Decisions by license; `note` shows what becomes of null."""

    licenses: Mapping[str, str]
    most: int
    note: str | None = None


DOCUMENTS: Mapping[str, type[Model]] = {"levels": Levels, "licenses": Licenses}


def requirement(
    name: str = "admitted(record)",
    body: str = 'record.license == "MIT"',
    *,
    each: str = "bundle.records",
    code: str = "",
    more: str = "",
) -> str:
    """The text of one requirement; `more` are further lines below `custom`."""
    lines = [
        "# METADATA",
        "# title: What must hold",
        "# description: Why it must hold",
        "# custom:",
        f"#   code: {code or name.partition('(')[0]}",
        "#   remedy: What to do",
        *([f"#   each: {each}"] if "(" in name else []),
        *(f"#   {line}" for line in more.splitlines()),
        f"{name} if {{",
        *(f"\t{line}" for line in body.splitlines()),
        "}",
    ]
    return "\n".join(lines)


def topic(*rules: str, name: str = "license", imports: str = "") -> str:
    """The text of one file of requirements."""
    head = f"package admission.requirements.source.{name}\n\n{imports}import future.keywords.not\n\n"
    return head + "\n\n".join(rules) + "\n"


BASE = {
    f"{REQUIREMENTS}/license.rego": topic(requirement()),
    LIMITS: "package admission.limits.source\n\nimport future.keywords.not\n\n"
    'limits := {"purpose": input.bundle.purpose}\n',
    "policy/levels.yaml": "levels: {}\n",
    "policy/licenses.yaml": "licenses:\n  MIT: admit\n  GPL-2.0-only: refuse\nmost: 5\n",
    "bundles/house/recipe.yaml": "description: A small policy\nowner: compliance@example.org\n",
}
"""One requirement, its limits, two documents of values, a recipe."""


Files = Mapping[str, str | bytes | None]
"""What is laid over the base: each file with its content, or None where it is removed."""


def write(folder: Path, changes: Files | None = None) -> PolicySources:
    """The base with files changed, added, or removed where None; its inventories list what is there."""
    for name, content in {**BASE, **(changes or {})}.items():
        path = folder / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for root in ("rego", "bundles/house"):
        if f"{root}/inventory.yaml" not in (changes or {}):
            list_codes(folder / root)
    return PolicySources(folder / "rego", folder / "policy", folder / "bundles" / "house")


def list_codes(root: Path) -> None:
    """Write the inventory of the rules below a folder."""
    found: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.rego")):
        if path.parent.parent.name not in {"requirements", "rules"} or path.name.endswith("_test.rego"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        codes = set(re.findall(r"^#   code: \"?([^\s\"]+)", text, re.MULTILINE))
        if path.parent.parent.name == "rules" and "package admission.added." not in text:
            sets = Counter(re.findall(r"^((?:deny|violation)\w*)(?: contains|\[)", text, re.MULTILINE))
            named = {f"{path.stem}_{name.lower()}": count for name, count in sets.items()}
            if len(codes) == len(named) == 1:
                named = {codes.pop(): one for one in named.values()}
            codes = {name if count == 1 else f"{name} ({count} rules)" for name, count in named.items()}
        found.setdefault(path.parent.name, set()).update(codes)
    lines = [
        f"{point}:\n" + "".join(f"  - {code}\n" for code in sorted(codes)) for point, codes in found.items() if codes
    ]
    inventory = root / "inventory.yaml"
    inventory.unlink(missing_ok=True)
    if lines:
        inventory.write_text("".join(lines), encoding="utf-8")


@functools.cache
def opa() -> Binary:
    """The bundled OPA, whose digest is compared once for all tests of a process."""
    return find_binary()


def built(sources: PolicySources, cache: Path) -> PolicyBundle:
    return build(sources, POINTS, opa(), cache, DOCUMENTS)


def policy(folder: Path, changes: Files | None = None, values: tuple[str, ...] = ()) -> PolicyBundle:
    """The policy of these files with these values laid over it, written and built below a folder."""
    return built(replace(write(folder, changes), values=values), folder / "cache")


def problems(folder: Path, changes: Files | None = None, values: tuple[str, ...] = ()) -> tuple[Problem, ...]:
    """What the build says of such a policy; each problem has a remedy."""
    with pytest.raises(PolicyError) as caught:
        policy(folder, changes, values)
    assert all(one.remedy for one in caught.value.problems)
    return caught.value.problems


@dataclass(frozen=True)
class Served:
    """A built policy as the files OPA loads."""

    bundle: PolicyBundle
    folder: Path

    def ask(self, document: Any) -> Any:
        """The decision on one input."""
        return self._eval("data.admission.decision", document)

    def ask_all(self, documents: Sequence[Any]) -> list[Any]:
        """The decisions of a batch."""
        answer: list[Any] = self._eval("data.admission.decisions", {"items": documents})
        return answer

    def ask_with(self, documents: Sequence[Any], policy: Any) -> list[Any]:
        """The decisions with other values in the place of `data.policy`."""
        query = (
            "values := input.policy; answers := [d | some item in input.items;"
            " d := data.admission.decision with input as item with data.policy as values]"
        )
        answer: list[Any] = self._eval(query, {"items": documents, "policy": policy})
        return answer

    def _eval(self, query: str, document: Any) -> Any:
        path = self.folder.with_suffix(".input.json")
        path.write_text(json.dumps(document), encoding="utf-8")
        options = ("--bundle", str(self.folder), "--input", str(path), "--format", "json")
        finished = OpaCommand(opa().path).run("eval", *options, query)
        assert finished.code == 0, finished
        report = finished.json()
        if not report.get("result"):
            return None
        result = report["result"][0]
        return (
            result["bindings"]["answers"]
            if "answers" in result.get("bindings", {})
            else result["expressions"][0]["value"]
        )


def served(folder: Path, changes: Files | None = None) -> Served:
    """Write, build and unpack a policy below `folder`."""
    bundle = policy(folder, changes)
    bundle.unpack(folder / "served")
    return Served(bundle, folder / "served")


def source(records: Any = None, **facts: Any) -> dict[str, Any]:
    """An input of the point `source` that the base policy allows."""
    bundle = {"purpose": "train", "records": [{"id": "one", "license": "MIT"}] if records is None else records, **facts}
    return {"point": "source", "now": 1_700_000_000, "bundle": bundle}


def codes(decision: Any) -> list[tuple[str, str | None]]:
    """What a decision found: code and subject."""
    return [(one["code"], one["subject"]) for one in decision["findings"]]

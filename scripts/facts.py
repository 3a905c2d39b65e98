"""Pages of docs/facts/: what rules see at each point, from the input schemas and one case each."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.cases.run import CaseFile, Runner, case_paths, read_case
from engine.cases.state import CaseState
from engine.gather import FROM_STATE
from engine.model import Outcome
from engine.points import Point
from engine.points.registry import POINTS
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.reads import values_read
from engine.settings import Settings

_ALWAYS = ("point", "now", "caller", *FROM_STATE)
"""Facts that the engine adds at every point; described once."""
_ABOUT = {
    "point": "The decision point.",
    "now": "The engine's clock, in seconds since 1970 UTC.",
    "caller": "The caller.",
    "budgets": "The budgets of the point, and how much of each was used.",
    "quotas": "The quotas of the point, and how much of each was used.",
    "approvals": "The approval that the request brings; empty without one.",
    "attempts": "Earlier attempts at the same task.",
    "checks": "The newest check of each name that was made of the artifact.",
    "children": "Conversations of subagents that the request names.",
    "memories": "Entries of memory that the request reads or forgets.",
    "prefixes": "Command prefixes that a person approved.",
}
_SANDBOXED = ("sandbox", "code_execution")
"""Points whose facts depend on the machine, unless the case states what holds there."""
_LONGEST = 1_500
"""Characters of the longest request that is an example."""


def pages(cases: Path, policy: PolicyBundle, note: str) -> dict[str, str]:
    """The pages by file name: `index.md`, and one a point."""
    with tempfile.TemporaryDirectory(prefix="admission-facts-") as scratch, Runner(Settings(), Path(scratch)) as runner:
        examples = {name: _example(cases, name) for name in sorted(POINTS)}
        found = {
            f"{name}.md": note + _page(POINTS[name], values_read(policy, name), file, runner.answer(file).document)
            for name, file in examples.items()
        }
    return {"index.md": note + _index(), **found}


_DIGEST = re.compile("sha256:[0-9a-f]{64}")
"""Some are of paths, which differ from one checkout to the next."""


def _example(cases: Path, point: str) -> CaseFile:
    """The allowed case whose request says most; where possible without a state or folder of its own."""
    files = [read_case(path) for path in case_paths(cases / point)]
    return min((one for one in files if one.case.want.outcome is Outcome.ALLOW), key=_rank)


def _rank(file: CaseFile) -> tuple[bool, int, str]:
    case, size = file.case, len(json.dumps(file.case.request))
    placed = case.world.root is not None or case.state != CaseState()
    placed |= case.point in _SANDBOXED and case.world.boundaries is None
    return placed, -size if size <= _LONGEST else 0, str(file.path)


def _index() -> str:
    text = "# Facts\n\nWhat a rule sees as `input`. `engine policy input POINT -i FILE` prints it for a request.\n"
    text += "A fact that is absent is left out, never null. Times are seconds since 1970 UTC.\n\n"
    text += "| point | decides |\n|---|---|\n"
    for name in sorted(POINTS):
        words = (import_module(f"engine.points.{name}").__doc__ or "").strip().split("\n\n")[0]
        text += f"| [`{name}`]({name}.md) | {' '.join(words.partition(': ')[2].split()).rstrip('.')} |\n"
    text += "\n## At every point\n\nThe engine adds these facts to every input. A list is empty where the point"
    text += " does not use it.\n\n"
    schema = next(iter(POINTS.values())).input_schema
    return text + _table(schema, {name: schema["properties"][name] for name in _ALWAYS})


def _page(point: Point, read: list[str], example: CaseFile, document: dict[str, Any] | None) -> str:
    schema = point.input_schema
    own = {name: one for name, one in schema["properties"].items() if name not in _ALWAYS}
    text = f"# Facts at `{point.name}`\n\n"
    text += "Beside these, `input` has the facts [at every point](index.md#at-every-point).\n"
    text += f"The full schema is [{point.name}.schema.json](../schemas/input/{point.name}.schema.json).\n\n"
    text += _table(schema, own)
    text += "\n## Values that the rules read\n\n" + "".join(f"- `data.policy.{path}`\n" for path in read)
    case = example.path.relative_to(example.path.parents[3]).as_posix()
    shown = _DIGEST.sub("sha256:…", json.dumps(document, indent=2, ensure_ascii=False))
    text += f"\n## Example\n\n`{case}`: {example.case.description}\n\n```json\n{shown}\n```\n"
    return text


def _table(schema: dict[str, Any], properties: Mapping[str, Any]) -> str:
    text = "| fact | type | |\n|---|---|---|\n"
    for name, one in properties.items():
        for path, kind, about in _facts(schema, name, one, name in schema.get("required", ())):
            meaning = about or _ABOUT.get(path, "")
            text += f"| `{path}` | {kind} | {meaning} |\n"
    return text


def _facts(root: dict[str, Any], path: str, node: Any, required: bool) -> Iterator[tuple[str, str, str]]:  # noqa: FBT001
    """The facts below a path: path, type, description."""
    body = _body(root, node)
    about = " ".join(str(node.get("description") or body.get("description") or "").split()).replace("|", "\\|")
    items, end = body, path
    while items.get("type") == "array":
        items, end = _body(root, items.get("items", {})), f"{end}[_]"
    kind = _kind(root, body)
    yield path, kind if required else f"{kind}, optional", about
    for name, one in items.get("properties", {}).items():
        yield from _facts(root, f"{end}.{name}", one, name in items.get("required", ()))
    free = items.get("additionalProperties")
    if isinstance(free, dict) and _body(root, free).get("properties"):
        for name, one in _body(root, free)["properties"].items():
            yield from _facts(root, f"{end}[name].{name}", one, name in _body(root, free).get("required", ()))


def _body(root: dict[str, Any], node: Any) -> dict[str, Any]:
    """What a schema describes, references followed."""
    while "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    body: dict[str, Any] = node
    return body


def _kind(root: dict[str, Any], node: Any) -> str:
    body = _body(root, node)
    if "enum" in body or "const" in body:
        return " or ".join(f"`{one}`" for one in body.get("enum", [body.get("const")]))
    if "anyOf" in body:
        return " or ".join(dict.fromkeys(_kind(root, one) for one in body["anyOf"]))
    if body.get("type") == "array":
        return f"list of {_kind(root, body['items'])}" if body.get("items") else "list"
    if body.get("type") == "object" and isinstance(body.get("additionalProperties"), dict):
        return f"{_kind(root, body['additionalProperties'])} by name"
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(
        str(body.get("type")), str(body.get("type", "any"))
    )

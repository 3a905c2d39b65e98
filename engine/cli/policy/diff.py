"""`engine policy diff`: what differs between two policies, in words."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.outputs import json_text, print_text
from engine.cli.policy.commands import built_policy, refusals
from engine.documents.files import printable

if TYPE_CHECKING:
    from engine.policy_bundle.build import PolicyBundle
    from engine.policy_bundle.difference import PolicyDifference, RequirementDifference, ValueDifference

_VALUE = 300


@options.sourced("rego")
def diff_policies(
    sources: options.Sources,
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Policy folder, all values, or a release."),
    ],
    other: Annotated[
        Path | None, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Later version of it.")
    ] = None,
    how: options.Output = "text",
) -> None:
    """Compare two policies, or the shipped one with one policy: values, requirements, levels, waivers, files of rules.

    Either may be a release. Others are built as `engine policy build` does. Exits with 5 if either has problems, else
    with 0.
    """
    from engine.policy_bundle.difference import difference

    pair = (None, folder) if other is None else (folder, other)
    old, new = (_policy(sources, one) for one in pair)
    found = difference(old, new)
    print_text(json_text(asdict(found)) if how == "json" else _text(found))


def _policy(sources: options.Sources, folder: Path | None) -> PolicyBundle:
    from engine.policy_bundle.release import policy_of
    from engine.policy_bundle.release_folder import STATEMENT, read

    if folder is None or not (folder / STATEMENT).exists():
        return built_policy(replace(sources, policy=folder))
    with refusals():
        return policy_of(folder, read(folder))


def _text(found: PolicyDifference) -> str:
    parts = [
        ("values", [*map(_value, found.values)]),
        ("levels", [*map(_value, found.levels)]),
        ("waivers", [*map(_value, found.waivers)]),
        ("requirements", [line for one in found.requirements for line in _requirement(one)]),
        ("files of rules", [f"  {one.kind}: {printable(one.file)}" for one in found.rules]),
    ]
    lines = [line for title, part in parts if part for line in (title, *part, "")]
    return "\n".join(lines[:-1]) if lines else "the policies are the same"


def _value(one: ValueDifference) -> str:
    words = {
        "added": f"added, {_json(one.after)}",
        "removed": f"removed, was {_json(one.before)}",
        "changed": f"{_json(one.before)} → {_json(one.after)}",
    }
    place = "" if one.where is None else f" ({printable(one.where)})"
    return f"  {printable(one.path)}: {words[one.kind]}{place}"


def _requirement(one: RequirementDifference) -> list[str]:
    lines = [f"  {one.kind}: {one.point} {one.code}, {printable(one.title)} ({printable(one.where)})"]
    return lines + [f"    {name}: {printable(old, 1_000)} → {printable(new, 1_000)}" for name, old, new in one.words]


def _json(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False), _VALUE)

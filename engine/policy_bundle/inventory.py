"""Every code that must exist, in a file beside the rules that is reviewed like code.

A requirement that is deleted or renamed leaves nothing behind that could fail: no rule, no test, no
finding. So the build compares: `rego/inventory.yaml` lists the codes of `rego/`, and
`inventory.yaml` of a recipe those of its added rules.

source:
  - license_incompatible
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from pydantic import TypeAdapter, ValidationError

from engine.errors import GatherError, Location, Problem
from engine.files import Document, load
from engine.policy_bundle.catalogue import Requirement
from engine.policy_bundle.explain import problems as explained
from engine.settings import ReadLimits

_ENTRIES = TypeAdapter(dict[str, list[str]])


def problems(name: str, data: bytes | None, held: Collection[Requirement]) -> Iterator[Problem]:
    """Where the inventory and the requirements differ; `data` is None where there is no such file."""
    document = Document(name, {}, {})
    if data is not None:
        try:
            document = load(data, name, ReadLimits())
            _ENTRIES.validate_python(document.value, strict=True)
        except GatherError as error:
            yield Problem(error.where or Location(name), error.message, error.remedy)
            return
        except ValidationError as error:
            yield from explained(error, document, remedies={"document": "write `<point>:` and its codes below"})
            return
    elif held:
        yield Problem(Location(name), "the inventory is missing", "list every code that must exist, by point")
    listed: dict[str, list[str]] = document.value
    yield from _order(document, listed)
    rule = "rule" if name.startswith("bundles/") else "requirement"
    there = {(one.point, one.entry) for one in held}
    for point, entries in listed.items():
        for index, entry in enumerate(entries):
            if (point, entry) not in there:
                message = f"the code `{entry}` of `{point}` must exist, but no {rule} has it"
                remedy = f"restore the {rule}; to drop it on purpose, remove this line too"
                yield Problem(_place(document, point, index), message, remedy)
    for one in held:
        if one.entry not in listed.get(one.point, ()):
            line = f"the line `  - {one.entry}` below `{one.point}:` in {name}"
            lines = f"the lines `{one.point}:` and `  - {one.entry}` to {name}"
            remedy = f"add {line if one.point in listed else lines}"
            yield Problem(Location(one.file, one.line), f"the code `{one.entry}` is not in {name}", remedy)


def _order(document: Document, listed: dict[str, list[str]]) -> Iterator[Problem]:
    for point, entries in listed.items():
        if not entries:
            yield Problem(_place(document, point), f"`{point}` lists no code", "remove the line")
        for index, (before, entry) in enumerate(pairwise(entries), 1):
            if before >= entry:
                message = f"`{entry}` stands after `{before}`"
                yield Problem(_place(document, point, index), message, "sort the codes, and list each once")


def _place(document: Document, *path: str | int) -> Location:
    return Location(document.name, document.where(path).line)

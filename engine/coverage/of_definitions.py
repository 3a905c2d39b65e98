"""Definitions of tools that exist, and that policy/tools.yaml has no entry for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.coverage.gaps import Gap, Kind
from engine.coverage.tool_values import ToolValues
from engine.files import shown


def definition_gaps(values: ToolValues, names: Iterable[str]) -> Iterator[Gap]:
    """A gap for every name, as agents would call it, that has no entry."""
    known = frozenset(values.tools)
    for name in names:
        if name not in known:
            yield Gap(
                Kind.DEFINITION_WITHOUT_ENTRY,
                name,
                f"the tool `{shown(name, 128)}` has no entry",
                "a tool without an entry is hidden, and a call of it is refused",
                "write an entry under `tools` once somebody has read what it does: `engine tools audit` gives one to "
                "paste; or leave it refused",
                values.where("tools", "tools"),
            )

"""The active tools of a process: a callable and a definition for each name.

Definitions are kept as JSON text, so callers share no object with the registry
(D49). A tool enters under a permit of point `tool_contract` for exactly this implementation and definition (A75).
`UncuratedToolRegistry` bypasses this: the program is responsible for its tools, and no policy is asked about them.
Neither decides what may be called: each call needs its own decision.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from admission_adapters.digests import json_digest
from admission_adapters.grants import granted
from admission_adapters.tools.implementations import implementation_digest
from engine.errors import PermitMissingError, WorkError
from engine.model import TOOL_NAME, Permit, Result


@dataclass(frozen=True, slots=True)
class _Entry:
    implementation: Callable[..., Any]
    definition: str


@runtime_checkable
class ToolContractGrant(Protocol):
    """What the registry reads of the limits of point `tool_contract`."""

    registers: bool  # whether the tool is registered; a proposal is not
    name: str | None  # the tool
    definition: str | None  # `sha256:` and hex of its definition as it was sent
    implementation: str | None  # `sha256:` and hex of its source file


class ToolRegistry:
    """Callables by name, each admitted by its permit; threads may share it. Raises WorkError only."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def admit(
        self,
        permit: Permit,
        input_digest: str,
        implementation: Callable[..., Any],
        definition: dict[str, Any],
        *,
        replace: bool = False,
    ) -> Result:
        """Register the tool that the permit names, with exactly this implementation and definition.

        `replace`: in place of the tool of this name. Raises WorkError: `engine.permit_missing`;
        `engine.tool_not_local`; `engine.tool_changed` when it is not what was decided on; and
        `engine.tool_not_registered` for a name in use, or with `replace` `engine.tool_missing` for one that is not.
        """
        grant = granted(permit, "tool_contract", input_digest, ToolContractGrant)
        if grant.registers is not True or grant.name is None:
            raise PermitMissingError(
                "this permit registers no tool",
                remedy="request a decision on the tool itself; an accepted proposal registers nothing",
            )
        if implementation_digest(implementation) != grant.implementation:
            raise _changed(grant.name, "implementation")
        if json_digest(json.loads(_text(grant.name, definition))) != grant.definition:
            raise _changed(grant.name, "definition")
        self._put(grant.name, implementation, definition, replace=replace)
        return Result("registered", {"tool": grant.name})

    def remove(self, name: str) -> None:
        """Forget a tool: calls that have not begun are refused. Raises WorkError `engine.tool_missing`."""
        self._entry(name)
        self._entries.pop(name, None)

    def _put(
        self, name: str, implementation: Callable[..., Any], definition: dict[str, Any], *, replace: bool = False
    ) -> None:
        if not _is_name(name):
            raise _refused("the tool's name has invalid characters", "use letters, digits, `_`, `.`, `-`")
        if not callable(implementation):
            raise _refused(f"tool `{name}` has no callable", "pass the function that implements it")
        entry = _Entry(implementation, _text(name, definition))
        if replace:
            self._entry(name)
            self._entries[name] = entry
        elif self._entries.setdefault(name, entry) is not entry:
            raise _refused(f"tool `{name}` is already registered", "use a unique name for each tool")

    def get(self, name: str) -> Callable[..., Any]:
        """The callable of a tool. Raises WorkError `engine.tool_missing`."""
        return self._entry(name).implementation

    def definition(self, name: str) -> dict[str, Any]:
        """The definition of a tool, copied at each call. Raises WorkError `engine.tool_missing`."""
        found: dict[str, Any] = json.loads(self._entry(name).definition)
        return found

    def names(self) -> tuple[str, ...]:
        """The names of all tools, sorted."""
        return tuple(sorted(self._entries))

    def _entry(self, name: str) -> _Entry:
        if (entry := self._entries.get(name)) is None:
            raise WorkError(
                "no tool of this name is registered",
                remedy="use a name that the registry lists",
                code="engine.tool_missing",
            )
        return entry


class UncuratedToolRegistry(ToolRegistry):
    """A registry that also accepts tools without a permit: no policy covers their code."""

    def add(self, name: str, implementation: Callable[..., Any], definition: dict[str, Any]) -> None:
        """Register a tool. `definition` is plain JSON in any shape. Raises WorkError `engine.tool_not_registered`."""
        self._put(name, implementation, definition)

    def replace(self, name: str, implementation: Callable[..., Any], definition: dict[str, Any]) -> None:
        """`add` in place of the tool of this name. Raises WorkError `engine.tool_missing` too."""
        self._put(name, implementation, definition, replace=True)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and TOOL_NAME.fullmatch(name) is not None


def _text(name: str, definition: dict[str, Any]) -> str:
    try:
        text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = ""
    if not text.startswith("{"):
        raise _refused(f"the definition of tool `{name}` is not a JSON object", "use plain JSON")
    return text


def _changed(name: str, what: str) -> WorkError:
    return WorkError(
        f"the {what} of tool `{name}` changed after the decision",
        remedy="request a decision on exactly this tool",
        code="engine.tool_changed",
    )


def _refused(message: str, remedy: str) -> WorkError:
    return WorkError(message, remedy=remedy, code="engine.tool_not_registered")

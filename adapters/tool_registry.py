"""The active tools of a process: for each name a callable, and what is said about it.

What is said is kept as JSON text, so nothing that a caller stored or read is shared with the registry
(D49). A tool enters under a permit of point `tool_contract` for exactly this implementation and definition (A75).
`UncuratedToolRegistry` is the way round: a program answers for its own tools there, and no policy was asked about them.
Neither says what may be called: each call is decided on by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adapters.implementations import implementation_digest
from engine.errors import WorkError
from engine.model import Limits, Permit, Result

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class _Entry:
    implementation: Callable[..., Any]
    definition: str


@runtime_checkable
class ToolContractGrant(Protocol):
    """What the registry reads of the limits of point `tool_contract`."""

    @property
    def registers(self) -> bool:
        """Whether a tool enters at all; a proposal does not."""
        ...

    @property
    def name(self) -> str | None:
        """The tool."""
        ...

    @property
    def definition(self) -> str | None:
        """`sha256:` and hex of its definition as it was sent."""
        ...

    @property
    def implementation(self) -> str | None:
        """`sha256:` and hex of its source file."""
        ...


class ToolRegistry:
    """Callables by name, each admitted by its permit; threads may share it. Raises WorkError only."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def admit(
        self,
        permit: Permit,
        input_digest: str,
        limits: type[Limits],
        implementation: Callable[..., Any],
        definition: dict[str, Any],
    ) -> Result:
        """Put in the tool that the permit names, which has to be this implementation with this definition.

        `limits` is the limits type of point `tool_contract`. Raises WorkError: `engine.permit_missing`;
        `engine.tool_not_local`; `engine.tool_changed` when it is not what was decided on; and
        `engine.tool_not_registered` for a name that is taken: a name is taken once and for all.
        """
        grant = permit.demand("tool_contract", input_digest, limits)
        if not isinstance(grant, ToolContractGrant) or grant.registers is not True or grant.name is None:
            raise WorkError(
                "this permit registers no tool",
                remedy="ask for a decision on the tool itself: a proposal that is accepted is still a proposal",
                code="engine.permit_missing",
            )
        if implementation_digest(implementation) != grant.implementation:
            raise _changed(grant.name, "implementation")
        if _digest(grant.name, definition) != grant.definition:
            raise _changed(grant.name, "definition")
        self._put(grant.name, implementation, definition)
        return Result("registered", {"tool": grant.name})

    def _put(self, name: str, implementation: Callable[..., Any], definition: dict[str, Any]) -> None:
        if not _is_name(name):
            raise _refused("a tool's name has characters that no tool may have", "use letters, digits, `_`, `.`, `-`")
        if not callable(implementation):
            raise _refused(f"tool `{name}` has no callable", "give the function that does its work")
        entry = _Entry(implementation, _text(name, definition))
        if self._entries.setdefault(name, entry) is not entry:
            raise _refused(f"tool `{name}` is registered already", "give each tool a name of its own")

    def get(self, name: str) -> Callable[..., Any]:
        """The callable of a tool. Raises WorkError `engine.tool_missing`."""
        return self._entry(name).implementation

    def definition(self, name: str) -> dict[str, Any]:
        """What is said about a tool; a copy of its own at each reading. Raises WorkError `engine.tool_missing`."""
        found: dict[str, Any] = json.loads(self._entry(name).definition)
        return found

    def names(self) -> tuple[str, ...]:
        """The names of all tools, sorted."""
        return tuple(sorted(self._entries))

    def _entry(self, name: str) -> _Entry:
        if (entry := self._entries.get(name)) is None:
            raise WorkError(
                "no tool of this name is registered",
                remedy="use one of the names that the registry lists",
                code="engine.tool_missing",
            )
        return entry


class UncuratedToolRegistry(ToolRegistry):
    """A registry that also takes tools without a permit: no policy says what their code is or does."""

    def add(self, name: str, implementation: Callable[..., Any], definition: dict[str, Any]) -> None:
        """Put a tool in. `definition` is plain JSON in any shape. Raises WorkError `engine.tool_not_registered`."""
        self._put(name, implementation, definition)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _text(name: str, definition: dict[str, Any]) -> str:
    try:
        text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = ""
    if not text.startswith("{"):
        raise _refused(f"the definition of tool `{name}` is no JSON object", "give plain JSON")
    return text


def _digest(name: str, definition: dict[str, Any]) -> str:
    text = json.dumps(
        json.loads(_text(name, definition)), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _changed(name: str, what: str) -> WorkError:
    return WorkError(
        f"the {what} of tool `{name}` is not the one that was decided on",
        remedy="ask for a decision on exactly this tool",
        code="engine.tool_changed",
    )


def _refused(message: str, remedy: str) -> WorkError:
    return WorkError(message, remedy=remedy, code="engine.tool_not_registered")

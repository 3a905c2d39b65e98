"""What the hands of tools read of their permits, and what they are told of a job."""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

from engine.errors import WorkError
from engine.model import Limits, Permit


@runtime_checkable
class CallGrant(Protocol):
    """What is read of the limits of point `tool_call`."""

    @property
    def tool(self) -> str:
        """The tool that may be called."""
        ...

    @property
    def seconds(self) -> int:
        """How long it may take."""
        ...

    @property
    def result_bytes(self) -> int:
        """How much it may give."""
        ...

    @property
    def side_effects(self) -> tuple[str, ...]:
        """The classes of side effects that the tool declares."""
        ...

    @property
    def record_side_effect(self) -> bool:
        """Each of them is to be recorded."""
        ...


@runtime_checkable
class ResultGrant(Protocol):
    """What is read of the limits of point `tool_result`."""

    @property
    def max_bytes(self) -> int:
        """How much of the result may be returned."""
        ...

    @property
    def prompt_bytes(self) -> int:
        """How much a prompt may hold."""
        ...

    @property
    def error_mode(self) -> Literal["safe", "debug"]:
        """How errors are told."""
        ...

    @property
    def show_message(self) -> bool:
        """Whether the message of the error may be told."""
        ...


@runtime_checkable
class VisibilityGrant(Protocol):
    """What is read of the limits of point `tool_visibility`."""

    @property
    def visible(self) -> tuple[str, ...]:
        """The tools whose definitions may go into the prompt."""
        ...


class DecidedCall(Protocol):
    """The call as it was decided on."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
        ...

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments by name."""
        ...


class Job(Protocol):
    """What a hand is told beside its permit."""

    @property
    def input_digest(self) -> str:
        """The digest of the input that was decided on."""
        ...

    @property
    def opened(self) -> Any:
        """What gather left open; a DecidedCall at point `tool_call`."""
        ...


def granted(permit: Permit, job: Job, point: str) -> Limits:
    """The limits of a permit for exactly this job. Raises WorkError for any other."""
    return permit.demand(point, job.input_digest, type(permit.limits))


def unenforceable(point: str) -> WorkError:
    """The error for limits that are not what a hand of this point can hold to."""
    return WorkError(
        f"the limits of point `{point}` are not those of its hand",
        remedy="use adapters and engine of one version",
        code="engine.limit_unenforceable",
    )

"""The grants that tool executors read from their permits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable


@runtime_checkable
class CallGrant(Protocol):
    """What is read of the limits of point `tool_call`."""

    tool: str  # the tool that may be called
    seconds: int  # how long it may take
    result_bytes: int  # the most bytes of its result
    side_effects: tuple[str, ...]  # the classes of side effects that the tool declares
    record_side_effect: bool  # each of them is to be recorded


@runtime_checkable
class ResultGrant(Protocol):
    """What is read of the limits of point `tool_result`."""

    max_bytes: int  # how much of the result may be returned
    prompt_bytes: int  # how much a prompt may hold
    redact_secrets: bool  # whether secrets are taken out of it
    redact_hidden: bool  # whether hidden characters are taken out of it
    redact_links: tuple[str, ...]  # the numbers of links whose addresses are taken out of it
    error_mode: Literal["safe", "debug"]  # how much of an error is shown
    show_message: bool  # whether the message of the error may be shown


@runtime_checkable
class VisibilityGrant(Protocol):
    """What is read of the limits of point `tool_visibility`."""

    visible: tuple[str, ...]  # the tools whose definitions may go into the prompt


class DecidedCall(Protocol):
    """The call as it was decided on: the resource that gather leaves open at point `tool_call`."""

    tool: str  # the name of the tool
    arguments: dict[str, Any]  # its arguments by name


class DecidedResult(Protocol):
    """The result as it was decided on: the resource that gather leaves open at point `tool_result`."""

    def without(self, *, secrets: bool, hidden: bool, links: Sequence[str]) -> tuple[str, dict[str, int]]:
        """Its text without these, and how many of each were taken out."""

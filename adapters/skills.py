"""The hand of skill files: reads exactly the file that was decided on, and turns every failure into a result.

The path is never looked up a second time: what is read is the open file that the decision was taken on. No
content gets into a record, which has its size and digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from engine.errors import EngineError, WorkError
from engine.model import Permit, Result

POINT = "skill_file"

_CHUNK = 64 << 10


@dataclass(frozen=True, slots=True)
class SkillFile:
    """What a tool that reads skill files gives back.

    `text` is the content or, where `error` is true, why there is none: fit to be shown to a model. `codes` are
    those of the findings or of the fault, `approval` names the approval that a person has to give.
    """

    error: bool
    text: str
    codes: tuple[str, ...] = ()
    decision_id: str | None = None
    approval: str | None = None


@runtime_checkable
class SkillFileGrant(Protocol):
    """What is read of the limits of point `skill_file`."""

    @property
    def max_bytes(self) -> int:
        """No more bytes than these are read."""
        ...


class OpenedJob(Protocol):
    """What the hand is given beside the permit."""

    @property
    def input_digest(self) -> str:
        """Of the input that was decided on."""
        ...

    @property
    def opened(self) -> Any:
        """The open file, with its `descriptor`."""
        ...


class Decides(Protocol):
    """The one method of `engine.Engine` that is used."""

    def decide(self, point: str, request: Any, hand: Callable[[Permit, OpenedJob], Result]) -> Any:
        """Decide and, on an allow, run the hand."""
        ...


class DecidesAsync(Protocol):
    """The one method of `engine.AsyncEngine` that is used."""

    async def decide(self, point: str, request: Any, hand: Callable[[Permit, OpenedJob], Result]) -> Any:
        """Decide and, on an allow, run the hand."""
        ...


def read_skill_file(engine: Decides, skill: str, path: str) -> SkillFile:
    """The text of the file `path` of the skill in the folder `skill`; every failure is an error result (B36)."""
    reading = _Reading()
    try:
        return reading.result(engine.decide(POINT, {"skill": skill, "path": path}, reading.hand))
    except Exception as error:  # noqa: BLE001  (whatever it is, the caller's process goes on)
        return _failed(error)


async def read_skill_file_async(engine: DecidesAsync, skill: str, path: str) -> SkillFile:
    """`read_skill_file` for an event loop."""
    reading = _Reading()
    try:
        return reading.result(await engine.decide(POINT, {"skill": skill, "path": path}, reading.hand))
    except Exception as error:  # noqa: BLE001
        return _failed(error)


class _Reading:
    """One file being read: the hand leaves the text here, beside the record."""

    def __init__(self) -> None:
        self._text: str | None = None

    def hand(self, permit: Permit, job: OpenedJob) -> Result:
        """Read under the permit. Raises WorkError."""
        granted = permit.demand(POINT, job.input_digest, type(permit.limits))
        if not isinstance(granted, SkillFileGrant):
            raise WorkError(
                "the permit does not say how many bytes may be read",
                remedy="ask for a decision on a file of a skill",
                code="engine.limit_unenforceable",
            )
        data = _at_most(job.opened.descriptor, granted.max_bytes)
        try:
            self._text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WorkError(
                "the file of the skill is not text in UTF-8",
                remedy="save it as UTF-8, or have it read by a tool for such files",
                code="engine.skill_file_not_text",
            ) from error
        return Result("read", {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})

    def result(self, answer: Any) -> SkillFile:
        """What the answer of the engine means for the caller."""
        decision, fault = answer.decision, answer.fault
        if fault is not None:
            return SkillFile(error=True, text=_told(fault), codes=(fault.code,), decision_id=decision.decision_id)
        if self._text is not None:
            return SkillFile(error=False, text=self._text, decision_id=decision.decision_id)
        findings = [finding for finding in decision.findings if finding.level != "warn"]
        lines = [f"{finding.code}: required: {finding.message}; {finding.remedy}" for finding in findings]
        return SkillFile(
            error=True,
            text="\n".join(["the file of the skill may not be read", *lines]),
            codes=tuple(finding.code for finding in findings),
            decision_id=decision.decision_id,
            approval=None if decision.approval is None else decision.approval.id,
        )


def _at_most(descriptor: int, most: int) -> bytes:
    """All bytes of the open file. Raises WorkError when it has grown beyond what may be read."""
    data = bytearray()
    while chunk := os.pread(descriptor, min(_CHUNK, most + 1 - len(data)), len(data)):
        data += chunk
        if len(data) > most:
            raise WorkError(
                f"the file of the skill has grown beyond {most} bytes since it was decided on",
                remedy="leave the file as it is, and ask again",
                code="engine.skill_file_changed",
            )
    return bytes(data)


def _failed(error: Exception) -> SkillFile:
    code = error.code if isinstance(error, EngineError) else EngineError.code
    return SkillFile(error=True, text=_told(error), codes=(code,))


def _told(error: Exception) -> str:
    """The engine's own words, and of any other exception its type alone: its text may hold anything."""
    if isinstance(error, EngineError):
        return f"{error.code}: {error.message}; {error.remedy}"
    return f"{EngineError.code}: reading failed with {type(error).__name__}"

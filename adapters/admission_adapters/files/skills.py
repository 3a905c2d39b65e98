"""The executor of skill files: reads exactly the file that was decided on and returns every failure as a result.

The path is never looked up a second time: what is read is the open file that the decision was taken on. No
content gets into a record, which has its size and digest.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from admission_adapters.grants import granted
from admission_adapters.interfaces import Answer, Awaited, Decides
from engine.errors import EngineError, WorkError
from engine.model import Job, Permit, Result

POINT = "skill_file"

_CHUNK = 64 << 10


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The result of a tool that reads skill files.

    `text` is the content or, if `error` is true, a reason that may be shown to a model. `codes` are
    those of the findings or the fault; `approval` is the approval that a person must grant.
    """

    error: bool
    text: str
    codes: tuple[str, ...] = ()
    decision_id: str | None = None
    approval: str | None = None


@runtime_checkable
class SkillFileGrant(Protocol):
    """What is read of the limits of point `skill_file`."""

    max_bytes: int  # no more bytes than these are read


def read_skill_file(engine: Decides[Answer], skill: str, path: str, context: Any = None) -> SkillFile:
    """The text of the file `path` of the skill in the folder `skill`; every failure is an error result (B36).

    `context` has the caller, the run and a granted approval.
    """
    reading = _Reading()
    try:
        return reading.result(engine.decide(*reading.question(skill, path, context)))
    except Exception as error:  # noqa: BLE001  (whatever it is, the caller's process continues)
        return _failed(error)


async def read_skill_file_async(engine: Decides[Awaited], skill: str, path: str, context: Any = None) -> SkillFile:
    """`read_skill_file` for an event loop."""
    reading = _Reading()
    try:
        return reading.result(await engine.decide(*reading.question(skill, path, context)))
    except Exception as error:  # noqa: BLE001
        return _failed(error)


class _Reading:
    """One file being read: the executor leaves the text here, beside the record."""

    def __init__(self) -> None:
        self._text: str | None = None

    def question(self, skill: str, path: str, context: Any) -> tuple[Any, ...]:
        """The arguments of `decide`."""
        asked = POINT, {"skill": skill, "path": path}, self.executor
        return asked if context is None else (*asked, context)

    def executor(self, permit: Permit, job: Job) -> Result:
        """Read under the permit. Raises WorkError."""
        grant = granted(permit, POINT, job.input_digest, SkillFileGrant)
        data = _at_most(job.opened.fileno(), grant.max_bytes)
        try:
            self._text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WorkError(
                "the skill file is not UTF-8 text",
                remedy="save it as UTF-8, or have it read by a tool for such files",
                code="engine.skill_file_not_text",
            ) from error
        return Result("read", {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})

    def result(self, answer: Any) -> SkillFile:
        """The result for the caller, from the answer of the engine."""
        decision, fault = answer.decision, answer.fault
        if fault is not None:
            return SkillFile(error=True, text=_work_error(fault), codes=(fault.code,), decision_id=decision.decision_id)
        if self._text is not None:
            return SkillFile(error=False, text=self._text, decision_id=decision.decision_id)
        findings = [finding for finding in decision.findings if finding.level != "warn"]
        lines = [f"{finding.code}: required: {finding.requirement}; {finding.remedy}" for finding in findings]
        return SkillFile(
            error=True,
            text="\n".join(["the file of the skill may not be read", *lines]),
            codes=tuple(finding.code for finding in findings),
            decision_id=decision.decision_id,
            approval=None if decision.approval is None else decision.approval.id,
        )


def _at_most(descriptor: int, most: int) -> bytes:
    """All bytes of the open file. Raises WorkError if it has grown beyond the limit."""
    data = bytearray()
    while chunk := os.pread(descriptor, min(_CHUNK, most + 1 - len(data)), len(data)):
        data += chunk
        if len(data) > most:
            raise WorkError(
                f"the skill file has grown beyond {most} bytes since the decision",
                remedy="leave the file unchanged and repeat the request",
                code="engine.skill_file_changed",
            )
    return bytes(data)


def _failed(error: Exception) -> SkillFile:
    code = error.code if isinstance(error, EngineError) else EngineError.code
    return SkillFile(error=True, text=_work_error(error), codes=(code,))


def _work_error(error: Exception) -> str:
    """The text of an engine error; of any other exception only its type, as its text may contain anything."""
    if isinstance(error, EngineError):
        return f"{error.code}: {error.message}; {error.remedy}"
    return f"{EngineError.code}: reading failed with {type(error).__name__}"

"""The path of one export: from a file of samples to a file of exported samples.

    samples ─> export ─(write aside)─> export ─(write aside)─> … ─> the file
               once for some samples

Each decision is enforced and has its own record. The file appears when every sample was allowed, or not at all.
After a refusal the rest is still decided on, as a dry run, so that one run names what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from admission_adapters.files.exports import ExportFile, Line
from engine.documents.canonical import RawJson, canonical, digest
from engine.documents.files import printable
from engine.documents.validation import FieldsError, object_in, validate
from engine.drive import Call, Steps
from engine.errors import EngineError, Exit, GatherError, Location, PermitMissingError, WorkError, reason_of
from engine.facts.text.content import redacted_content
from engine.flow import Answer, Context, Services, answer
from engine.model import Job, Mode, Outcome, Pace, Permit, Result
from engine.points.export import MOST, POINT, ExportedSample, ExportLimits, SampleLine
from engine.settings import ReadLimits

_BATCH_BYTES = 1 << 20
"""Bytes of samples that are decided on together, unless one is larger."""

_MOST_REFUSED = 20
"""Refused decisions that are kept; a run ends with the last of them."""

_REMEDY = (
    "write one object per line with exactly: content, kind, provenance, treatment (redact, fixture or null); "
    "docs/exporting.md describes them"
)


@dataclass(slots=True)
class Exported:
    """What became of an export. `file` is None if anything was refused.

    `refused` are the first answers that were no allow, `samples` counts those that were looked at.
    """

    answer: Answer | None = None
    refused: list[Answer] = field(default_factory=list)
    file: Path | None = None
    samples: int = 0
    bytes: int = 0
    sha256: str | None = None
    unwritten: EngineError | None = None

    @property
    def fault(self) -> EngineError | None:
        """The first fault; None for a refusal by the policy."""
        found = next((one.fault for one in self.refused if one.fault is not None), None)
        return found or self.unwritten

    @property
    def exit(self) -> Exit:
        """The exit code of the run."""
        if self.fault is not None:
            return self.fault.exit
        exits = [one.exit for one in self.refused]
        return Exit.DENY if Exit.DENY in exits else exits[0] if exits else Exit.ALLOW


def export_steps(services: Services, path: Path, into: Path, context: Context) -> Steps[Exported]:
    """Export the samples of a file of JSON lines. Raises GatherError for a file that cannot be read or written."""
    own, done = replace(context, idempotency_key=None), Exported()
    with ExportFile(into) as file, _opened(path) as lines:
        batches = _batches(lines, path, services.gather_context.read)
        while batch := (yield from _next(batches)):
            mode = Mode.CHECK if done.refused else Mode.ENFORCE
            executor = _executor(file, batch) if mode is Mode.ENFORCE else None
            decided = yield from answer(POINT, _request(batch), mode, services, own, executor)
            done.answer, done.samples = decided, done.samples + len(batch)
            if decided.fault is not None or decided.decision.outcome is not Outcome.ALLOW:
                done.refused.append(_placed(decided, path, batch))
            if decided.fault is not None or len(done.refused) == _MOST_REFUSED:
                break
            services.gather_context.progress("exporting", done.samples, 0)
        if done.answer is None:
            raise GatherError("there are no samples", remedy="name a file with one JSON object per line")
        if not done.refused:
            try:
                done.bytes, done.sha256 = yield Call(file.finish, Pace.SLOW)
                done.file = into
            except EngineError as error:
                done.unwritten = error
    return done


Sample = tuple[int, dict[str, Any]]
"""The number of a line, and its sample."""


def _next(batches: Iterator[list[Sample]]) -> Steps[list[Sample]]:
    found: list[Sample] = yield Call(lambda: next(batches, []), Pace.SLOW)
    return found


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise GatherError(
            f"`{printable(str(path))}` cannot be read: {reason_of(error)}",
            remedy="name a file of samples, one JSON object per line",
        ) from error


def _batches(lines: BinaryIO, path: Path, limits: ReadLimits) -> Iterator[list[Sample]]:
    most = limits.document_bytes
    batch: list[Sample] = []
    size, number = 0, 0
    while line := lines.readline(most + 1):
        number += 1
        if len(line) > most:
            raise GatherError(
                f"the line is longer than {most} bytes", remedy="split the sample", where=Location(str(path), number)
            )
        if not line.strip():
            continue
        if batch and (size + len(line) > _BATCH_BYTES or len(batch) == MOST):
            yield batch
            batch, size = [], 0
        batch.append((number, _sample(line, path, number, limits)))
        size += len(line)
    if batch:
        yield batch


def _sample(line: bytes, path: Path, number: int, limits: ReadLimits) -> dict[str, Any]:
    where = Location(str(path), number)
    found = object_in(line, "line", "write one JSON object per line", where)
    if isinstance(found, GatherError):
        raise found
    try:
        validate(SampleLine, canonical(found), "the form of a sample", _REMEDY, limits)
    except FieldsError as error:
        error.where = where
        raise
    return found


def _request(batch: Sequence[Sample]) -> RawJson:
    return RawJson(canonical({"samples": [{"id": str(number), **sample} for number, sample in batch]}))


def _placed(decided: Answer, path: Path, batch: Sequence[Sample]) -> Answer:
    """The answer, with the line of each sample that a finding may name."""
    if decided.gathered is None:
        return decided
    places: dict[str | None, Location] = {None: Location(str(path))}
    places |= {f"samples/{number}": Location(str(path), number) for number, _ in batch}
    return replace(decided, gathered=replace(decided.gathered, places=places))


def _executor(file: ExportFile, batch: Sequence[Sample]) -> Callable[[Permit, Job], Result]:
    def lines(limits: ExportLimits) -> list[Line]:
        if [one.id for one in limits.samples] != [str(number) for number, _ in batch]:
            raise _other()
        return [_line(one, sample["content"]) for one, (_, sample) in zip(limits.samples, batch, strict=True)]

    return lambda permit, job: file.add(permit, job.input_digest, lines)


def _line(allowed: ExportedSample, content: Any) -> Line:
    """One exported sample: what the permit states of it, and its content after the treatment."""
    if digest(canonical(content)) != allowed.digest:
        raise _other()
    stated = allowed.model_dump(mode="json", include={"kind", "treatment", "provenance"})
    return {**stated, "content": redacted_content(content) if allowed.treatment == "redact" else content}


def _other() -> WorkError:
    return PermitMissingError("the permit is for other samples", remedy="repeat the export")

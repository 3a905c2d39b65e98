"""Point `code_output`: whether the output of a program may be used, and exactly which part.

The last of the checks of a code run. An answer is made from these limits and from nothing else. Rows C34 to
C43, C56, C57, C73, C74, C85, H02, H18, H20.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from engine.facts.code.answers import EchoedLimit, ResultLimit
from engine.facts.code.outputs import EchoedFacts, OutputFacts, echoed_facts, output_facts
from engine.model import Count, Limits, Model, Sha256, Text, Word
from engine.points import GatherContext, Gathered, Point

Signal = Annotated[int, Field(ge=1, le=128)]
ExitCode = Annotated[int, Field(ge=0, le=255)]


class Run(Model):
    """How a run ended, as reported by the sandbox. Bytes are counted as received, including those that were cut."""

    status: Word
    exit_code: ExitCode | None = None
    signal: Signal | None = None
    stdout_bytes: Count
    stderr_bytes: Count
    limit: Word | None = None


class LeftFile(Model):
    """A file that the program left: its content by its SHA-256, its bytes, and whether a secret was seen in it."""

    sha256: Sha256
    bytes: Count
    secret: bool


class CodeOutputRequest(Model):
    """A request to use output: the contract, the request that it answers, how the run ended, and standard output.

    `artifacts` are the files that the program left; the decision also states which of them may be kept.
    """

    contract: Word
    request: Any = None
    run: Run
    stdout: Text
    artifacts: Annotated[tuple[LeftFile, ...], Field(max_length=1_000)] = ()


class ExitFacts(Model):
    """How the program ended: its exit code, or the number of the signal that killed it, below zero."""

    id: str
    code: int


class RunFacts(Model):
    """The run. `exits` has one entry if the program ended, and is empty if that is unknown."""

    status: str
    stdout_bytes: int
    stderr_bytes: int
    limit: str | None = None
    exits: tuple[ExitFacts, ...]


class FileFacts(Model):
    """A file that the program left; its id is its SHA-256. Nothing of its name or content is here."""

    id: Sha256
    bytes: int
    secret: bool


class CodeOutputInput(Model):
    """What OPA sees: how the run ended, and what the output is; none of its text."""

    contract: str
    run: RunFacts
    output: OutputFacts
    echoed: tuple[EchoedFacts, ...]
    artifacts: tuple[FileFacts, ...]


class CodeOutputLimits(Limits):
    """What an answer may contain: the result in the order of the contract, the echoed fields, the sentence.

    `artifacts` are the files that may be kept, by SHA-256; no other file is kept. `printed` is the SHA-256 of standard
    output that may be passed on as text; empty, none of it may.
    """

    contract: str
    result: tuple[ResultLimit, ...]
    echoed: tuple[EchoedLimit, ...]
    answer: str
    artifacts: tuple[Sha256, ...]
    printed: Annotated[tuple[Sha256, ...], Field(max_length=1)]


def gather(request: CodeOutputRequest, context: GatherContext) -> Gathered:
    """Read the output strictly, under the names of its contract."""
    run = request.run
    output = output_facts(request.stdout, context.lookups.output_fields.get(request.contract, {}))
    missing = [one.id for one in output.fields if not one.present]
    return Gathered(
        CodeOutputInput(
            contract=request.contract,
            run=RunFacts(**run.model_dump(exclude={"exit_code", "signal"}), exits=_exits(run)),
            output=output,
            echoed=echoed_facts(request.request, context.lookups.echoed_fields.get(request.contract, ())),
            artifacts=_files(request.artifacts),
        ),
        f"output of a program, {output.bytes} bytes: {run.status}",
        notes={"": f"an output without {', '.join(missing)}"} if missing else {},
    )


def _exits(run: Run) -> tuple[ExitFacts, ...]:
    code = -run.signal if run.signal is not None else run.exit_code
    return () if code is None else (ExitFacts(id=str(code), code=code),)


def _files(files: tuple[LeftFile, ...]) -> tuple[FileFacts, ...]:
    """Each content once; if it is stated twice, it contains a secret if either states so."""
    secret = {file.sha256 for file in files if file.secret}
    found = {file.sha256: FileFacts(id=file.sha256, bytes=file.bytes, secret=file.sha256 in secret) for file in files}
    return tuple(found.values())


POINT = Point("code_output", CodeOutputRequest, CodeOutputInput, CodeOutputLimits, gather, secret=True)

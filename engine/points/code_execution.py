"""Point `code_execution`: whether a code action may run, in which sandbox, and within what limits.

The last check before anything runs. It repeats the checks of the earlier points for callers that skip them: the
contract of the action, its hints, the scan of its text. Attempts come from the engine's state, boundaries from the
engine's own probe. Neither code nor payload gets into the input. Rows C04 to C09, C14, C17, C18, C44, C63, C75,
C78, A84, A86, A87.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from engine.facts.code.actions import ActionFacts, action_facts, hint_facts
from engine.facts.code.boundaries import Amount, Needs, ProfileName, SandboxedLimits, Stated, Tighten, amounts, stated
from engine.facts.code.scan import scan
from engine.facts.code.scan_items import ScanFacts
from engine.model import Boundary, Count, Digest, Model, Pace, Probe, Sha256, Word
from engine.points import GatherContext, Gathered, Point
from engine.points.code_action import ActionInput, ActionRequest, attempts_of

Role = Literal["solution", "verifier"]
FileName = Annotated[str, StringConstraints(pattern=r"^[^/\\.\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*$", max_length=100)]
"""The name of one file: it names no folder, and is not hidden."""

Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""Values of PYTHONHASHSEED."""


class InputFile(Model):
    """A file that the program finds in `inputs/`: its name there, its bytes, its content by its SHA-256."""

    name: FileName
    bytes: Count
    sha256: Sha256


class CodeExecutionRequest(ActionRequest):
    """A request to run an action, `elapsed_ms` after its run began.

    `artifacts` requests the files that the program leaves in its artifact folder, `packages` names the packages
    that it imports, `contract` what its output must be, `files` what it is given to read.
    """

    role: Role
    profile: ProfileName | None = None
    packages: Word | None = None
    contract: Word | None = None
    files: Annotated[tuple[InputFile, ...], Field(max_length=1_000)] = ()
    seed: Seed = 0
    artifacts: bool = False
    tighten: Tighten | None = None


class PackagesFacts(Stated):
    """The named package environment, and the digest of the files that this machine has under that name."""

    tree: Digest | None = None


class FileFacts(Model):
    """An input file by its name."""

    id: str
    bytes: int
    sha256: Sha256


class CodeExecutionInput(ActionInput):
    """What OPA sees; `attempts` come from the engine's state. `scan` is absent if the language is not text."""

    scan: ScanFacts | None = None
    role: Role
    profile: Stated
    packages: PackagesFacts
    contract: Stated
    files: tuple[FileFacts, ...]
    seed: int
    artifacts: bool
    tighten: tuple[Amount, ...]
    required: Needs
    boundaries: tuple[Boundary, ...]
    probes: tuple[Probe, ...]


class PackagesLimit(Model):
    """The packages that the program may import: their name here, and the digest of all their files."""

    name: Word
    tree: Digest


class FileLimit(Model):
    """A file that the program gets: its name, and its content by its SHA-256."""

    name: FileName
    sha256: Sha256


class CodeExecutionLimits(SandboxedLimits):
    """What exactly may run and what it may use; `environment` is all that it finds beside PATH, HOME and LANG.

    `packages` is empty without a package environment. `live`: the output may be shown while the program runs.
    `scan` says whether the findings of the scan were binding.
    """

    action_id: Annotated[str, Field(min_length=1, max_length=128)]
    language: Annotated[str, Field(min_length=1, max_length=64)]
    entrypoint: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+\.[a-z0-9]+$", max_length=64)]
    code_sha256: Sha256
    role: Role
    seed: Seed
    environment: Mapping[Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")], str]
    retention_days: Annotated[int, Field(ge=1)]
    packages: Annotated[tuple[PackagesLimit, ...], Field(max_length=1)]
    files: tuple[FileLimit, ...]
    live: bool
    scan: Literal["binding", "advisory"]

    @model_validator(mode="after")
    def _one_seed(self) -> Self:
        if self.environment.get("PYTHONHASHSEED") != str(self.seed):
            raise ValueError("PYTHONHASHSEED in the environment is not the seed")
        return self


def gather(request: CodeExecutionRequest, context: GatherContext) -> Gathered:
    """Scan the code, and probe the sandboxes that the policy names unless that was done before."""
    facts = action_facts(request.action)
    found = context.sandbox(request.profile, facts.language.value, request.packages)
    return Gathered(
        CodeExecutionInput(
            action=facts,
            hints=hint_facts(request.policy_hints),
            elapsed_ms=request.elapsed_ms,
            scan=_scan(request.action, facts),
            role=request.role,
            profile=stated(request.profile),
            packages=_packages(request.packages, context),
            contract=stated(request.contract),
            files=tuple(FileFacts(id=one.name, bytes=one.bytes, sha256=one.sha256) for one in request.files),
            seed=request.seed,
            artifacts=request.artifacts,
            task=stated(request.task),
            tighten=amounts(request.tighten),
            required=Needs(),
            boundaries=found.boundaries,
            probes=found.probes,
        ),
        f"code execution, {facts.code.chars} characters",
        state=attempts_of(request),
    )


def _scan(action: Any, facts: ActionFacts) -> ScanFacts | None:
    if facts.language.value is None or not facts.code.text:
        return None
    return scan(facts.language.value, action["code"])


def _packages(name: str | None, context: GatherContext) -> PackagesFacts:
    tree = None if name is None else context.packages(name)
    return PackagesFacts(stated=name is not None, value=name, tree=tree)


POINT = Point(
    "code_execution",
    CodeExecutionRequest,
    CodeExecutionInput,
    CodeExecutionLimits,
    gather,
    pace=Pace.SLOW,
    secret=True,
)

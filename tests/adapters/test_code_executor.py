"""The executor of a code execution: no permit, no run; and it believes no decision about the machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from admission_adapters.sandbox.executor import Code, enforced, result_facts, run_code
from admission_adapters.sandbox.model import Bounds, Program, Status
from engine.errors import WorkError
from engine.facts.code.boundaries import BOUNDARIES
from engine.model import Limits, Permit, SandboxFacts
from engine.points.code_execution import CodeExecutionLimits
from tests.adapters.sandbox.recorder import MACHINE, Recorder, shown

INPUT = "sha256:" + "d" * 64
TEXT = "print(1)"


def limits(**changes: Any) -> CodeExecutionLimits:
    required = {name: ["kernel", "supervised", "bounded"] for name in BOUNDARIES}
    fields: dict[str, Any] = {
        "profile": "standard",
        "backend": "bubblewrap",
        "isolation": "restricted_process",
        "required": required,
        "network": "none",
        "redact": True,
        "wall_seconds": 2.0,
        "cpu_seconds": 2,
        "memory_bytes": 1 << 28,
        "processes": 4,
        "open_files": 64,
        "file_bytes": 1 << 20,
        "disk_bytes": 1 << 20,
        "stdout_bytes": 4096,
        "stderr_bytes": 4096,
        "artifact_files": 0,
        "artifact_bytes": 0,
        "action_id": "c1",
        "language": "python",
        "entrypoint": "main.py",
        "code_sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "role": "solution",
        "seed": 7,
        "environment": {"PYTHONHASHSEED": "7"},
        "retention_days": 90,
    }
    return CodeExecutionLimits.model_validate(fields | changes, strict=False)


def permit(granted: Limits | None = None, point: str = "code_execution") -> Permit:
    return Permit.seal(decision_id="d-1", point=point, input_digest=INPUT, limits=granted or limits())


def code(text: str = TEXT, entrypoint: str = "main.py") -> Code:
    return Code(text, entrypoint, b"{}\n")


# covers: A86.1 C01.1 C30
def test_exactly_what_was_permitted_runs_within_exactly_its_limits() -> None:
    backend = Recorder()
    result, ended, grant = run_code(permit(), INPUT, CodeExecutionLimits, code(), backend, shown())
    ((program, bounds),) = backend.ran
    assert (program.code, program.stdin, program.language, program.seed) == (TEXT, b"{}\n", "python", 7)
    assert program.environment == {"PYTHONHASHSEED": "7"}
    assert program.folder.startswith("code_exec_agent_")
    assert program.command == ()
    assert bounds == Bounds(**{name: getattr(limits(), name) for name in Bounds.__slots__})
    assert (ended.status, grant.retention_days) == (Status.OK, 90)
    assert (result.status, result.facts["exec_ms"], result.facts["network"]) == ("ok", 25, "enforced")
    run_code(permit(), INPUT, CodeExecutionLimits, code(), backend, shown())
    assert backend.ran[1][0].folder != program.folder


class OtherLimits(Limits):
    seconds: int = 1


REFUSED: dict[str, Callable[[Recorder], Any]] = {
    "another point": lambda own: (permit(point="sandbox"), INPUT, CodeExecutionLimits, code(), own, shown()),
    "another input": lambda own: (permit(), MACHINE, CodeExecutionLimits, code(), own, shown()),
    "other limits": lambda own: (permit(OtherLimits()), INPUT, CodeExecutionLimits, code(), own, shown()),
    "no limits of a sandbox": lambda own: (permit(OtherLimits()), INPUT, OtherLimits, code(), own, shown()),
    "other code": lambda own: (permit(), INPUT, CodeExecutionLimits, code("print(2)"), own, shown()),
    "another entry point": lambda own: (permit(), INPUT, CodeExecutionLimits, code(TEXT, "x.py"), own, shown()),
    "another sandbox": lambda own: (permit(limits(backend="gvisor")), INPUT, CodeExecutionLimits, code(), own, shown()),
}
UNPROVEN = {
    "no probe": SandboxFacts(shown().boundaries, ()),
    "a probe of another machine": shown(of_probe={"machine": INPUT}),
    "a probe that somebody made": shown(of_probe={"authentic": False}),
    "a probe of another sandbox": shown(of_probe={"id": "gvisor"}),
}


# covers: C01.1 H05
@pytest.mark.parametrize("wrong", list(REFUSED.values()), ids=list(REFUSED))
def test_anything_else_starts_nothing(wrong: Callable[[Recorder], Any]) -> None:
    backend = Recorder()
    with pytest.raises(WorkError):
        run_code(*wrong(backend))
    assert backend.ran == []


# covers: C01.1 H05
@pytest.mark.parametrize("name", UNPROVEN)
def test_what_nobody_has_tried_here_starts_nothing(name: str) -> None:
    backend = Recorder()
    with pytest.raises(WorkError):
        run_code(permit(), INPUT, CodeExecutionLimits, code(), backend, UNPROVEN[name])
    assert backend.ran == []


# covers: D19 H05
@pytest.mark.parametrize("name", sorted(BOUNDARIES))
@pytest.mark.parametrize("changes", [{"enforced": False}, {"kind": "unsupported"}, {"backend": "gvisor"}], ids=str)
def test_a_boundary_that_is_no_longer_held_starts_nothing(name: str, changes: dict[str, Any]) -> None:
    backend = Recorder()
    with pytest.raises(WorkError, match=name):
        run_code(permit(), INPUT, CodeExecutionLimits, code(), backend, shown(name, **changes))
    assert backend.ran == []


def test_a_sandbox_that_the_machine_lacks_starts_nothing() -> None:
    backend = Recorder()
    backend.lacking = "bubblewrap is not installed"
    with pytest.raises(WorkError, match="not installed"):
        run_code(permit(), INPUT, CodeExecutionLimits, code(), backend, shown())
    assert backend.ran == []


def test_a_run_that_was_cancelled_before_starts_nothing_and_says_so() -> None:
    backend, cancel = Recorder(), threading.Event()
    cancel.set()
    result, ended, _ = run_code(permit(), INPUT, CodeExecutionLimits, code(), backend, shown(), cancel)
    assert (result.status, ended.status, backend.ran) == ("cancelled", Status.CANCELLED, [])
    assert result.facts["root_cause"] == "cancelled"


# covers: C81.1
def test_a_backend_without_a_network_boundary_claims_none() -> None:
    every = [one for one in shown().boundaries if one.boundary != "network"]
    assert "network" not in enforced("bubblewrap", every)
    assert enforced("gvisor", shown().boundaries) == {}
    grant: Any = limits()
    ended = Recorder().run(Program("python", TEXT, b"", {}, 0, "f"), Bounds(**grant.bounds()))
    told = [
        result_facts(grant, ended, SandboxFacts(tuple(rows), ()))["network"] for rows in (every, shown().boundaries)
    ]
    assert told == ["not_enforced", "enforced"]

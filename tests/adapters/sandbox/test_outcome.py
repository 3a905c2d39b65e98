"""What a run is called, by what was seen of it; nothing that is not certain is called a program's own end."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from admission_adapters.sandbox.model import Artifact, RefusedArtifact, Status
from admission_adapters.sandbox.run.outcome import RunObservations, ended
from admission_adapters.sandbox.run.report import Report
from tests.adapters.sandbox.programs import BOUNDS, bounds

CPU = BOUNDS.cpu_seconds
KILL, SEGV, TERM, XCPU, SYS = (
    int(one) for one in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGXCPU, signal.SIGSYS)
)
WITH = bounds(artifact_files=2, artifact_bytes=99)
NOTHING = (Status.SANDBOX_ERROR, None, None, None)
LOST = (RefusedArtifact("(all files)", "not_handed_out"),)


def seen(said: bytes = b"", **fields: Any) -> RunObservations:
    """A run that was let go and of which the launcher said this."""
    report = Report(fields.pop("within", BOUNDS))
    report.feed(said)
    return RunObservations(report, **{"let_go": True, **fields})


def end(status: int, cpu: float = 1.0) -> bytes:
    return f"E {status} {round(cpu * 1_000_000)}\n".encode()


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (seen(end(0)), (Status.OK, 0, None, None)),
        (seen(end(3 << 8)), (Status.RUNTIME_ERROR, 3, None, None)),
        (seen(end(1 << 8), stderr=bytearray(b"x\nMemoryError: \n")), (Status.RUNTIME_ERROR, 1, None, "memory")),
        (seen(end(1 << 8), stderr=bytearray(b"MemoryError\nx")), (Status.RUNTIME_ERROR, 1, None, None)),
        (seen(end(SEGV)), (Status.SIGNAL, None, SEGV, None)),
        (seen(end(SYS)), (Status.FORBIDDEN_SYSCALL, None, SYS, None)),
        (seen(end(KILL, CPU - 0.1)), (Status.SIGNAL, None, KILL, None)),
        (seen(end(KILL, CPU)), (Status.TIMEOUT_CPU, None, KILL, "cpu")),
        (seen(end(TERM, CPU + 1)), (Status.SIGNAL, None, TERM, None)),
        (seen(end(XCPU, CPU)), (Status.TIMEOUT_CPU, None, XCPU, "cpu")),
        (seen(end(XCPU, CPU / 2)), (Status.TIMEOUT_CPU, None, XCPU, "cpu")),
        (seen(end(XCPU, CPU / 2 - 0.1)), (Status.SIGNAL, None, XCPU, None)),
        # what was not seen as a whole is no verdict on the program
        (seen(end(0), let_go=False), NOTHING),
        (seen(end(0), undead=True), NOTHING),
        (seen(end(0) + b"more"), NOTHING),
        (seen(end(0), within=WITH), NOTHING),
        (seen(end(0), let_go=False, killed="wall"), NOTHING),
        *(
            (seen(end(other)), NOTHING) for other in (127, int(signal.SIGSTOP) << 8 | 127, 0xFFFF)
        ),  # stopped and continued are no end
        (seen(b""), NOTHING),
        (seen(b"", exit_line=0), NOTHING),
        (seen(b"", exit_line=1), NOTHING),
        (seen(b"", exit_line=128 + TERM), NOTHING),
        (seen(b"", exit_line=128 + SYS), NOTHING),
        *((seen(b"", exit_line=128 + one), (Status.SIGNAL, None, one, None)) for one in (KILL, 32, 33)),
        # where the program is the first process, its signal is in the exit code
        (seen(b"", single=True), NOTHING),
        *((seen(b"", single=True, exit_line=one), NOTHING) for one in (0, 1, 128)),
        *((seen(b"", single=True, exit_line=128 + one), (Status.SIGNAL, None, one, None)) for one in (1, KILL, TERM)),
        (seen(b"", single=True, exit_line=128 + SYS), (Status.FORBIDDEN_SYSCALL, None, SYS, None)),
        (seen(b"", single=True, exit_line=128 + XCPU), (Status.TIMEOUT_CPU, None, XCPU, "cpu")),
        # what the engine ended was ended by it, whatever the launcher said
        *(
            (seen(said, killed=bound), (status, None, KILL, bound))
            for said in (b"", end(0), end(3 << 8))
            for bound, status in (
                ("stdout", Status.OUTPUT_LIMIT),
                ("stderr", Status.OUTPUT_LIMIT),
                ("wall", Status.TIMEOUT_WALL),
                ("cpu", Status.TIMEOUT_CPU),
                ("cancelled", Status.CANCELLED),
                ("memory", Status.OOM),
                ("artifacts", Status.SANDBOX_ERROR),
            )
        ),
    ],
)
def test_the_verdict_of_a_run_follows_from_its_observations(run: RunObservations, verdict: tuple[Any, ...]) -> None:
    found = ended(run, BOUNDS)
    assert (found.status, found.exit_code, found.signal, found.limit) == verdict


@pytest.mark.parametrize(
    ("said", "fields", "kept"),
    [
        (end(0), {}, ["a"]),
        (end(3 << 8), {}, ["a"]),
        (end(SEGV), {}, ["a"]),
        (end(XCPU, CPU), {}, []),
        (end(SYS), {}, []),
        (end(0), {"killed": "wall"}, []),
        (end(0), {"killed": "stdout"}, []),
        (end(0), {"undead": True}, []),
    ],
)
def test_only_a_program_that_ended_by_itself_returns_artifacts(
    said: bytes, fields: dict[str, Any], kept: list[str]
) -> None:
    found = ended(seen(said + b"F 1 2\nahiX 1 kind\nxZ\n", within=WITH, **fields), WITH)
    assert [one.path for one in found.artifacts] == kept
    assert all(isinstance(one, Artifact) for one in found.artifacts)
    assert found.refused_artifacts == ((RefusedArtifact("x", "not_a_regular_file"),) if kept else LOST)


@pytest.mark.parametrize("within", [BOUNDS, WITH])
def test_lost_artifacts_are_reported_only_if_artifacts_were_permitted(within: Any) -> None:
    found = ended(seen(b"", within=within, killed="wall"), within)
    assert (found.artifacts, found.refused_artifacts) == ((), LOST if within is WITH else ())


@pytest.mark.parametrize(("said", "cpu"), [(end(0, 0.0), 0.0), (end(0, 1.5), 1.5), (b"", 7.0)])
def test_cpu_time_is_taken_from_the_launcher_report_if_present(said: bytes, cpu: float) -> None:
    assert ended(seen(said, cpu_seconds=7.0), BOUNDS).cpu_seconds == cpu

"""The hand of a command: no permit, no proof, no exact argument array: nothing runs (B11, H05)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.command import Command, digest_of, run_command
from adapters.sandbox.granted import Shown
from adapters.sandbox.model import Bounds, Ended, Program, Status
from engine.errors import WorkError
from engine.facts.boundaries import BOUNDARIES, Required
from engine.model import Boundary, Permit, Probe
from engine.points.sandbox import Executable, NoCommand, SandboxLimits

DIGEST = "sha256:" + "0" * 64
WORDS = ("wc", "-c", "$(id)", "; id", "&& id", "-n")
SHOWN = Shown(
    [Boundary(backend="bubblewrap", boundary=one, kind="kernel", enforced=True, evidence=DIGEST) for one in BOUNDARIES],
    [Probe(id="bubblewrap", subject=DIGEST, machine=DIGEST, probed_at=0, authentic=True)],
)


@dataclass
class Recorder:
    """A backend that only writes down what it was told to run."""

    name: str = "bubblewrap"
    lacking: str | None = None
    ran: list[tuple[Program, Bounds]] = field(default_factory=list)

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> Ended:
        assert cancel is None
        self.ran.append((program, bounds))
        return Ended(Status.OK, 0, None, 0.25, None, b"out", b"", 3, 0)

    def available(self) -> str | None:
        return self.lacking

    def machine(self) -> str:
        return DIGEST


def limits(words: tuple[str, ...] | None = WORDS) -> SandboxLimits:
    command = NoCommand(kind="none") if words is None else _executable(words)
    held: dict[str, Any] = dict.fromkeys(BOUNDARIES, ("kernel",))
    return SandboxLimits(
        command=command, profile="standard", backend="bubblewrap", isolation="restricted_process",
        required=Required(**held), network="none", redact=True, wall_seconds=5.0, cpu_seconds=5,
        memory_bytes=1 << 28, processes=16, open_files=64, file_bytes=1 << 20, disk_bytes=1 << 22, stdout_bytes=4096,
        stderr_bytes=4096, artifact_files=0, artifact_bytes=0,
    )  # fmt: skip


def _executable(words: tuple[str, ...]) -> Executable:
    return Executable(kind="argv", path="/usr/bin/wc", digest=digest_of(words))


def sealed(granted: SandboxLimits, point: str = "sandbox") -> Permit:
    return Permit.seal(decision_id="d", point=point, input_digest=DIGEST, limits=granted)


def work(backend: Recorder, permit: Permit, words: tuple[str, ...] = WORDS, shown: Shown = SHOWN) -> tuple[Any, Ended]:
    return run_command(permit, DIGEST, SandboxLimits, Command(words, b"in"), lambda _: backend, shown)


# covers: B11
def test_the_words_are_those_of_the_program_and_no_shell_takes_part() -> None:
    backend = Recorder()
    result, ended = work(backend, sealed(limits()))
    ((program, bounds),) = backend.ran
    assert program.command == ("/usr/bin/wc", *WORDS[1:])
    assert (program.stdin, program.code, dict(program.environment)) == (b"in", "", {})
    assert (bounds.wall_seconds, bounds.processes, bounds.artifact_files) == (5.0, 16, 0)
    assert (result.status, ended.stdout) == ("ok", b"out")
    assert (result.facts["network"], result.facts["exit_code"], result.facts["exec_ms"]) == ("enforced", 0, 250)


def _without(name: str) -> Shown:
    return Shown([one for one in SHOWN.boundaries if one.boundary != name], SHOWN.probes)


def _probe(**change: Any) -> Shown:
    return Shown(SHOWN.boundaries, [one.model_copy(update=change) for one in SHOWN.probes])


def _open(name: str, **change: Any) -> Shown:
    rows = [one.model_copy(update=change) if one.boundary == name else one for one in SHOWN.boundaries]
    return Shown(rows, SHOWN.probes)


# covers: B11, H05, A94
@pytest.mark.parametrize(
    ("attempt", "code"),
    [
        (lambda b: work(b, sealed(limits()), ("wc", "-c")), "engine.permit_missing"),
        (lambda b: work(b, sealed(limits(None))), "engine.permit_missing"),
        (lambda b: work(b, sealed(limits(), "code_execution")), "engine.permit_missing"),
        (lambda b: work(b, sealed(limits()), shown=Shown((), ())), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=Shown(SHOWN.boundaries, ())), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_without("syscalls")), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_open("network", enforced=False)), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_open("files", kind="bounded")), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_open("cpu", backend="gvisor")), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_probe(authentic=False)), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_probe(machine="sha256:" + "1" * 64)), "engine.limit_unenforceable"),
        (lambda b: work(b, sealed(limits()), shown=_probe(id="gvisor")), "engine.limit_unenforceable"),
        (lambda b: work(_named(b), sealed(limits())), "engine.limit_unenforceable"),
        (lambda b: work(_lacking(b), sealed(limits())), "engine.limit_unenforceable"),
    ],
)
def test_nothing_runs_without_permit_and_proof(attempt: Callable[[Recorder], Any], code: str) -> None:
    backend = Recorder()
    with pytest.raises(WorkError) as caught:
        attempt(backend)
    assert caught.value.code == code
    assert backend.ran == []


def _named(backend: Recorder) -> Recorder:
    backend.name = "gvisor"
    return backend


def _lacking(backend: Recorder) -> Recorder:
    backend.lacking = "bubblewrap is not installed"
    return backend


# covers: B11
@pytest.mark.skipif(Bubblewrap().available() is not None, reason=f"no sandbox here: {Bubblewrap().available()}")
def test_a_command_in_a_real_sandbox_reads_its_input_and_no_shell_its_words() -> None:
    words = ("wc", "-c")
    ran = run_command(
        sealed(limits(words)), DIGEST, SandboxLimits, Command(words, b"12345"), lambda _: Bubblewrap(), SHOWN
    )
    assert (ran[1].status, ran[1].stdout) == (Status.OK, b"5\n")
    said = run_command(sealed(limits()), DIGEST, SandboxLimits, Command(WORDS, b""), lambda _: Bubblewrap(), SHOWN)[1]
    assert said.status is Status.RUNTIME_ERROR  # four files that are not there
    assert b"uid=" not in said.stdout + said.stderr

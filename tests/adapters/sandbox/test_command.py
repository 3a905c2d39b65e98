"""The hand of a command: no permit, no proof, no exact argument array: nothing runs (B11, H05)."""

from __future__ import annotations

import threading
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
from tests.facilities import needs

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


PERMITS: dict[str, tuple[Permit, tuple[str, ...]]] = {
    "another command": (sealed(limits()), ("wc", "-c")),
    "no command": (sealed(limits(None)), WORDS),
    "another point": (sealed(limits(), "code_execution"), WORDS),
}
UNPROVEN = {
    "nothing shown": Shown((), ()),
    "no probe": Shown(SHOWN.boundaries, ()),
    "boundary not shown": _without("syscalls"),
    "boundary open": _open("network", enforced=False),
    "boundary only bounded": _open("files", kind="bounded"),
    "boundary of another": _open("cpu", backend="gvisor"),
    "probe forged": _probe(authentic=False),
    "probe of another machine": _probe(machine="sha256:" + "1" * 64),
    "probe of another backend": _probe(id="gvisor"),
}
BACKENDS = {"another backend": Recorder(name="gvisor"), "backend lacking": Recorder(lacking="bubblewrap is missing")}


def refused(backend: Recorder, *how: Any) -> str:
    with pytest.raises(WorkError) as caught:
        work(backend, *how)
    assert backend.ran == []
    return caught.value.code


# covers: B11.1
@pytest.mark.parametrize("name", PERMITS)
def test_nothing_runs_without_a_permit_for_exactly_this_command(name: str) -> None:
    permit, words = PERMITS[name]
    assert refused(Recorder(), permit, words) == "engine.permit_missing"


# covers: A94 H05
@pytest.mark.parametrize("name", UNPROVEN)
def test_nothing_runs_where_a_boundary_is_not_shown(name: str) -> None:
    assert refused(Recorder(), sealed(limits()), WORDS, UNPROVEN[name]) == "engine.limit_unenforceable"


# covers: A94
@pytest.mark.parametrize("name", BACKENDS)
def test_nothing_runs_on_another_backend_or_without_it(name: str) -> None:
    assert refused(BACKENDS[name], sealed(limits())) == "engine.limit_unenforceable"


def test_nothing_runs_on_another_backend_that_was_shown_to_hold_as_much() -> None:
    boundaries = [one.model_copy(update={"backend": "gvisor"}) for one in SHOWN.boundaries]
    probes = [one.model_copy(update={"id": "gvisor"}) for one in SHOWN.probes]
    shown = Shown([*SHOWN.boundaries, *boundaries], [*SHOWN.probes, *probes])
    assert refused(Recorder(name="gvisor"), sealed(limits()), WORDS, shown) == "engine.limit_unenforceable"


# covers: B11.2
@needs("bubblewrap")
def test_a_command_in_a_real_sandbox_reads_its_input_and_no_shell_its_words() -> None:
    words = ("wc", "-c")
    ran = run_command(
        sealed(limits(words)), DIGEST, SandboxLimits, Command(words, b"12345"), lambda _: Bubblewrap(), SHOWN
    )
    assert (ran[1].status, ran[1].stdout) == (Status.OK, b"5\n")
    said = run_command(sealed(limits()), DIGEST, SandboxLimits, Command(WORDS, b""), lambda _: Bubblewrap(), SHOWN)[1]
    assert said.status is Status.RUNTIME_ERROR  # four files that are not there
    assert b"uid=" not in said.stdout + said.stderr

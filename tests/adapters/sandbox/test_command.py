"""The executor of a command: no permit, no proof, no exact argument array: nothing runs (B11, H05)."""

from __future__ import annotations

from typing import Any

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.command import Command, digest_of, run_command
from admission_adapters.sandbox.model import RunResult, Status
from engine.errors import WorkError
from engine.facts.code.boundaries import BOUNDARIES
from engine.model import Permit, SandboxFacts
from engine.points.sandbox import Executable, NoCommand, SandboxLimits
from tests.adapters.sandbox.recorder import Recorder, shown
from tests.facilities import needs

DIGEST = "sha256:" + "0" * 64
WORDS = ("wc", "-c", "$(id)", "; id", "&& id", "-n")
SHOWN = shown()


def limits(words: tuple[str, ...] | None = WORDS) -> SandboxLimits:
    command = NoCommand(kind="none") if words is None else _executable(words)
    held: Any = dict.fromkeys(BOUNDARIES, ("kernel",))
    return SandboxLimits(
        command=command, profile="standard", backend="bubblewrap", isolation="restricted_process",
        required=held, network="none", redact=True, wall_seconds=5.0, cpu_seconds=5,
        memory_bytes=1 << 28, processes=16, open_files=64, file_bytes=1 << 20, disk_bytes=1 << 22, stdout_bytes=4096,
        stderr_bytes=4096, artifact_files=0, artifact_bytes=0,
    )  # fmt: skip


def _executable(words: tuple[str, ...]) -> Executable:
    return Executable(kind="argv", path="/usr/bin/wc", digest=digest_of(words))


def sealed(granted: SandboxLimits, point: str = "sandbox") -> Permit:
    return Permit.seal(decision_id="d", point=point, input_digest=DIGEST, limits=granted)


def work(
    backend: Recorder, permit: Permit, words: tuple[str, ...] = WORDS, shown: SandboxFacts = SHOWN
) -> tuple[Any, RunResult]:
    return run_command(permit, DIGEST, SandboxLimits, Command(words, b"in"), lambda _: backend, shown)


# covers: B11
def test_the_words_are_those_of_the_program_and_no_shell_takes_part() -> None:
    backend = Recorder()
    result, ended = work(backend, sealed(limits()))
    ((program, bounds),) = backend.ran
    assert program.command == ("/usr/bin/wc", *WORDS[1:])
    assert (program.stdin, program.code, dict(program.environment)) == (b"in", "", {})
    assert (bounds.wall_seconds, bounds.processes, bounds.artifact_files) == (5.0, 16, 0)
    assert (result.status, ended.stdout) == ("ok", b"1\n")
    assert (result.facts["network"], result.facts["exit_code"], result.facts["exec_ms"]) == ("enforced", 0, 25)


PERMITS: dict[str, tuple[Permit, tuple[str, ...]]] = {
    "another command": (sealed(limits()), ("wc", "-c")),
    "no command": (sealed(limits(None)), WORDS),
    "another point": (sealed(limits(), "code_execution"), WORDS),
}
UNPROVEN = {
    "nothing shown": SandboxFacts((), ()),
    "no probe": SandboxFacts(SHOWN.boundaries, ()),
    "boundary not shown": SandboxFacts(
        tuple(one for one in SHOWN.boundaries if one.boundary != "syscalls"), SHOWN.probes
    ),
    "boundary open": shown("network", enforced=False),
    "boundary only bounded": shown("files", kind="bounded"),
    "boundary of another": shown("cpu", backend="gvisor"),
    "probe forged": shown(of_probe={"authentic": False}),
    "probe of another machine": shown(of_probe={"machine": DIGEST}),
    "probe of another backend": shown(of_probe={"id": "gvisor"}),
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
    shown = SandboxFacts((*SHOWN.boundaries, *boundaries), (*SHOWN.probes, *probes))
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

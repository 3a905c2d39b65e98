"""The executors of code and of a command: no permit, no run; and they believe no decision about the machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.command import Command, digest_of, run_command
from admission_adapters.sandbox.executor import Code, enforced, result_facts, run_code
from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from engine.errors import WorkError
from engine.facts.code.boundaries import BOUNDARIES
from engine.model import Limits, Permit, Result, SandboxFacts
from engine.points.code_execution import CodeExecutionLimits
from engine.points.sandbox import CommandFileLimit, Executable, NoCommand, SandboxLimits
from tests.adapters.permits import DIGEST, MISUSED, misused, sealed
from tests.adapters.sandbox.recorder import Recorder, shown
from tests.facilities import needs

TEXT = "print(1)"
WORDS = ("wc", "-c", "$(id)", "; id", "&& id", "-n")
SHOWN = shown()
BOUNDED: dict[str, Any] = {
    "profile": "standard",
    "backend": "bubblewrap",
    "isolation": "restricted_process",
    "required": dict.fromkeys(BOUNDARIES, ("kernel",)),
    "network": "none",
    "redact": True,
    "wall_seconds": 5.0,
    "cpu_seconds": 5,
    "memory_bytes": 1 << 28,
    "processes": 16,
    "open_files": 64,
    "file_bytes": 1 << 20,
    "disk_bytes": 1 << 22,
    "stdout_bytes": 4096,
    "stderr_bytes": 4096,
    "artifact_files": 0,
    "artifact_bytes": 0,
}
OF_CODE = {
    "action_id": "c1",
    "language": "python",
    "entrypoint": "main.py",
    "code_sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
    "role": "solution",
    "seed": 7,
    "environment": {"PYTHONHASHSEED": "7"},
    "retention_days": 90,
    "files": (),
    "live": False,
    "scan": "binding",
    "packages": (),
}


def to_run_code(**changes: Any) -> Permit:
    return sealed("code_execution", CodeExecutionLimits.model_validate(BOUNDED | OF_CODE | changes))


def to_run_command(words: tuple[str, ...] | None = WORDS, files: tuple[CommandFileLimit, ...] = ()) -> Permit:
    command: Any = NoCommand(kind="none")
    if words is not None:
        command = Executable(kind="argv", path="/usr/bin/wc", digest=digest_of(words))
    return sealed("sandbox", SandboxLimits(**BOUNDED, command=command, files=files, egress=None))


def code(
    backend: Recorder,
    permit: Permit | None = None,
    facts: SandboxFacts = SHOWN,
    *,
    given: tuple[str, str] = (TEXT, "main.py"),
    cancel: threading.Event | None = None,
) -> tuple[Result, RunResult]:
    of = Code(*given, b"{}\n")
    return run_code(permit or to_run_code(), DIGEST, of, backend, facts, cancel)[:2]


def command(
    backend: Any, permit: Permit | None = None, facts: SandboxFacts = SHOWN, *, words: tuple[str, ...] = WORDS
) -> tuple[Result, RunResult]:
    of = Command(words, b"in")
    return run_command(permit or to_run_command(words), DIGEST, of, lambda _: backend, facts)


Executor = Callable[..., tuple[Result, RunResult]]
both = pytest.mark.parametrize(
    ("run", "own"), [(code, to_run_code()), (command, to_run_command())], ids=["code", "command"]
)


def refused(wanted: str, run: Executor, backend: Recorder, *how: Any, **more: Any) -> str:
    """What is said of work that is refused, and for which nothing ran."""
    with pytest.raises(WorkError) as caught:
        run(backend, *how, **more)
    assert (caught.value.code, backend.ran) == (wanted, [])
    return str(caught.value)


# covers: A86.1 C01.1 C30
def test_exactly_what_was_permitted_runs_within_exactly_its_limits() -> None:
    backend = Recorder()
    result, ended = code(backend)
    ((program, bounds),) = backend.ran
    assert (program.code, program.stdin, program.language, program.seed) == (TEXT, b"{}\n", "python", 7)
    assert program.environment == {"PYTHONHASHSEED": "7"}
    assert program.folder.startswith("code_exec_agent_")
    assert program.command == ()
    assert bounds == Bounds(**{name: BOUNDED[name] for name in Bounds.__slots__})
    assert ended.status is Status.OK
    assert (result.status, result.facts["exec_ms"], result.facts["network"]) == ("ok", 25, "enforced")
    code(backend)
    assert backend.ran[1][0].folder != program.folder


def test_the_grant_states_the_artifact_retention() -> None:
    *_, grant = run_code(to_run_code(), DIGEST, Code(TEXT, "main.py", b""), Recorder(), SHOWN)
    assert grant.retention_days == 90


# covers: B11
def test_a_command_runs_with_its_exact_arguments_and_without_a_shell() -> None:
    backend = Recorder()
    result, ended = command(backend)
    ((program, bounds),) = backend.ran
    assert program.command == ("/usr/bin/wc", *WORDS[1:])
    assert (program.stdin, program.code, dict(program.environment)) == (b"in", "", {})
    assert (bounds.wall_seconds, bounds.processes, bounds.artifact_files) == (5.0, 16, 0)
    assert (result.status, ended.stdout) == ("ok", b"1\n")
    assert (result.facts["network"], result.facts["exit_code"], result.facts["exec_ms"]) == ("enforced", 0, 25)


def test_the_files_of_a_command_are_exactly_those_that_were_permitted() -> None:
    words = ("wc", "inputs/a")
    permit = to_run_command(words, (CommandFileLimit(path="src/a", sha256=hashlib.sha256(b"x").hexdigest()),))

    def given(backend: Recorder, inputs: Mapping[str, bytes]) -> tuple[Result, RunResult]:
        of = Command(words, inputs=inputs, files={"/work/ca": b"c"})
        return run_command(permit, DIGEST, of, lambda _: backend, SHOWN)

    backend = Recorder()
    given(backend, {"src/a": b"x"})
    assert backend.ran[0][0].files == {"/work/ca": b"c", "inputs/src/a": b"x"}
    others: list[dict[str, bytes]] = [{}, {"src/a": b"y"}, {"src/b": b"x"}, {"src/a": b"x", "b": b""}]
    for wrong in others:
        refused("engine.permit_missing", given, Recorder(), wrong)


# covers: B11.1 C01.1 H05
@both
@pytest.mark.parametrize("wrong", MISUSED)
def test_nothing_runs_under_a_misused_permit(run: Executor, own: Permit, wrong: str) -> None:
    refused("engine.permit_missing", run, Recorder(), misused(own)[wrong])


# covers: B11.1 C01.1 H05
@pytest.mark.parametrize(
    ("run", "wrong", "wanted"),
    [
        (code, {"permit": sealed("code_execution", Limits())}, "engine.limit_unenforceable"),
        (command, {"permit": sealed("sandbox", Limits())}, "engine.limit_unenforceable"),
        (code, {"given": ("print(2)", "main.py")}, "engine.permit_missing"),
        (code, {"given": (TEXT, "x.py")}, "engine.permit_missing"),
        (code, {"permit": to_run_code(backend="gvisor")}, "engine.permit_missing"),
        (command, {"permit": to_run_command(), "words": ("wc", "-c")}, "engine.permit_missing"),
        (command, {"permit": to_run_command(None)}, "engine.permit_missing"),
    ],
    ids=[
        *("no limits of code", "no limits of a command", "other code", "another entry point", "another sandbox"),
        *("another command", "no command"),
    ],
)
def test_a_mismatch_with_the_permit_starts_nothing(run: Executor, wrong: Mapping[str, Any], wanted: str) -> None:
    refused(wanted, run, Recorder(), **wrong)


UNPROVEN = {
    "nothing shown": SandboxFacts((), ()),
    "no probe": SandboxFacts(SHOWN.boundaries, ()),
    "boundary not shown": SandboxFacts(
        tuple(one for one in SHOWN.boundaries if one.boundary != "syscalls"), SHOWN.probes
    ),
    "boundary only bounded": shown("files", kind="bounded"),
    "probe forged": shown(of_probe={"authentic": False}),
    "probe of another machine": shown(of_probe={"machine": DIGEST}),
    "probe of another backend": shown(of_probe={"id": "gvisor"}),
}


# covers: A94 C01.1 H05
@both
@pytest.mark.parametrize("name", UNPROVEN)
def test_an_unproven_sandbox_starts_nothing(run: Executor, own: Permit, name: str) -> None:
    refused("engine.limit_unenforceable", run, Recorder(), own, UNPROVEN[name])


# covers: A94 D19 H05
@both
@pytest.mark.parametrize("name", sorted(BOUNDARIES))
@pytest.mark.parametrize("changes", [{"enforced": False}, {"kind": "unsupported"}, {"backend": "gvisor"}], ids=str)
def test_a_boundary_that_is_no_longer_enforced_blocks_the_run(
    run: Executor, own: Permit, name: str, changes: dict[str, Any]
) -> None:
    assert f"`{name}`" in refused("engine.limit_unenforceable", run, Recorder(), own, shown(name, **changes))


# covers: A94
@both
def test_a_sandbox_that_the_machine_lacks_starts_nothing(run: Executor, own: Permit) -> None:
    lacking = Recorder(lacking="bubblewrap is not installed")
    assert "not installed" in refused("engine.limit_unenforceable", run, lacking, own)


# covers: A94
@pytest.mark.parametrize("held", [False, True])
def test_a_command_is_refused_on_another_backend_proven_or_not(held: bool) -> None:  # noqa: FBT001
    boundaries = [one.model_copy(update={"backend": "gvisor"}) for one in SHOWN.boundaries]
    probes = [one.model_copy(update={"id": "gvisor"}) for one in SHOWN.probes]
    both_shown = SandboxFacts((*SHOWN.boundaries, *boundaries), (*SHOWN.probes, *probes))
    refused("engine.limit_unenforceable", command, Recorder(name="gvisor"), None, both_shown if held else SHOWN)


def test_a_run_cancelled_before_its_start_runs_nothing() -> None:
    backend, cancel = Recorder(), threading.Event()
    cancel.set()
    result, ended = code(backend, cancel=cancel)
    assert (result.status, ended.status, backend.ran) == ("cancelled", Status.CANCELLED, [])
    assert result.facts["root_cause"] == "cancelled"


# covers: C81.1
def test_a_backend_without_a_network_boundary_claims_none() -> None:
    every = [one for one in SHOWN.boundaries if one.boundary != "network"]
    assert "network" not in enforced("bubblewrap", every)
    assert enforced("gvisor", SHOWN.boundaries) == {}
    grant: Any = to_run_code().limits
    ended = Recorder().run(Program("python", TEXT), Bounds(**grant.bounds()))
    told = [result_facts(grant, ended, SandboxFacts(tuple(rows), ()))["network"] for rows in (every, SHOWN.boundaries)]
    assert told == ["not_enforced", "enforced"]


# covers: B11.2
@needs("bubblewrap")
def test_a_command_in_a_real_sandbox_reads_its_input_and_no_shell_its_words() -> None:
    ended = command(Bubblewrap(), words=("wc", "-c"))[1]
    assert (ended.status, ended.stdout) == (Status.OK, b"2\n")
    said = command(Bubblewrap())[1]
    assert said.status is Status.RUNTIME_ERROR  # four files that are not there
    assert b"uid=" not in said.stdout + said.stderr


_TREE = "sha256:" + "7" * 64
_FILES = {"a.csv": b"1,2\n"}
_MATERIAL = {
    "files": ({"name": "a.csv", "sha256": hashlib.sha256(_FILES["a.csv"]).hexdigest()},),
    "packages": ({"name": "science", "tree": _TREE},),
}


def test_files_and_packages_are_those_of_the_permit() -> None:
    backend, permit = Recorder(), to_run_code(**_MATERIAL)
    right = Code(TEXT, "main.py", b"", _FILES, ("/tree", _TREE))
    result, *_ = run_code(permit, DIGEST, right, backend, SHOWN)
    ((program, _),) = backend.ran
    assert (program.files, program.packages) == ({"inputs/a.csv": b"1,2\n"}, "/tree")
    assert result.facts["packages"] == {"name": "science", "tree": _TREE}
    assert result.facts["files"] == [_MATERIAL["files"][0]["sha256"]]
    other = "sha256:" + "8" * 64
    for wrong in (
        Code(TEXT, "main.py", b"", {"a.csv": b"1,3\n"}, ("/tree", _TREE)),
        Code(TEXT, "main.py", b"", {"b.csv": b"1,2\n"}, ("/tree", _TREE)),
        Code(TEXT, "main.py", b"", {**_FILES, "b.csv": b""}, ("/tree", _TREE)),
        Code(TEXT, "main.py", b"", {}, ("/tree", _TREE)),
        Code(TEXT, "main.py", b"", _FILES, ("/tree", other)),
        Code(TEXT, "main.py", b"", _FILES),
    ):
        idle = Recorder()
        with pytest.raises(WorkError) as caught:
            run_code(to_run_code(**_MATERIAL), DIGEST, wrong, idle, SHOWN)
        assert (caught.value.code, idle.ran) == ("engine.permit_missing", [])


@pytest.mark.parametrize("live", [True, False])
def test_live_output_needs_a_permit_that_allows_it(*, live: bool) -> None:
    backend = Recorder()
    of = Code(TEXT, "main.py", b"", on_output=lambda *_: None)
    run_code(to_run_code(live=live), DIGEST, of, backend, SHOWN)
    assert (backend.ran[0][0].on_output is not None) == live

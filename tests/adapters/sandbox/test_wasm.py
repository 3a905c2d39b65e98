"""WebAssembly: WASI without folders and sockets, in a process that can open, connect and start nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from admission_adapters.sandbox.bubblewrap import seccomp
from admission_adapters.sandbox.bubblewrap.syscalls import numbers
from admission_adapters.sandbox.model import Bounds, Program, RunResult, Status
from admission_adapters.sandbox.probe.watch import observed
from admission_adapters.sandbox.run.process import NOTHING, run_in, run_once
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from admission_adapters.sandbox.run.user import sandbox_user
from admission_adapters.sandbox.wasm import backend as wasm
from admission_adapters.sandbox.wasm import modules
from admission_adapters.sandbox.wasm.backend import Wasmtime, packages
from engine.errors import WorkError
from tests.adapters.sandbox.bpf import answer, checked
from tests.adapters.sandbox.programs import bounds
from tests.adapters.sandbox.test_root_and_user import ORDINARY, elsewhere
from tests.expect import refused, there
from tests.facilities import needs
from tests.processes import alive, gone, soon

WASMTIME = Wasmtime()
BOUNDS = bounds(memory_bytes=32 << 20)

EMPTY = '(module (func (export "_start")))'


def program(code: str, stdin: bytes = b"", seed: int = 0, **environment: str) -> Program:
    return Program("wasm", code, stdin, environment, seed, "code_exec_agent_0")


def ran(
    code: str,
    *,
    within: Bounds = BOUNDS,
    recipe: Wasmtime | None = None,
    without: frozenset[str] = NOTHING,
    **fields: object,
) -> RunResult:
    given = program(code, **fields)  # type: ignore[arg-type]
    return run_once(given, within, None, without, recipe=recipe or Wasmtime())


@needs("wasmtime")
def test_a_module_reads_and_writes_its_streams() -> None:
    ended = ran(modules.echo(), stdin=b"in and out")

    assert (ended.status, ended.stdout, ended.stderr) == (Status.OK, b"in and out", b"")


@needs("wasmtime")
def test_a_module_sees_only_the_given_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_SECRET", "canary")

    assert ran(modules.environment(), GIVEN="1").stdout == b"GIVEN=1\0"
    assert ran(modules.environment()).stdout == b""


# covers: A86.1
@needs("wasmtime")
def test_two_runs_draw_the_same_random_numbers() -> None:
    one, two, other = (ran(modules.draw(64), seed=seed).stdout for seed in (1, 1, 2))

    assert len(one) == 64
    assert one == two != other


# covers: E09.1
@needs("wasmtime")
@pytest.mark.parametrize("make", [modules.read, modules.write], ids=["read", "write"])
def test_it_cannot_reach_the_files_of_the_host(make: object, tmp_path: Path) -> None:
    """With its positive control: the same module does it where the folder is opened to it."""
    (tmp_path / "secret").write_text("canary", encoding="utf-8")
    tmp_path.chmod(0o777)
    assert callable(make)
    closed = ran(make("secret"))
    opened = ran(
        make("secret"),
        recipe=Wasmtime(preopened=str(tmp_path)),
        without=frozenset({"seccomp", "namespaces", "drop_uid"}),
    )

    assert (closed.status, closed.exit_code, closed.stdout) == (Status.RUNTIME_ERROR, 8, b"")  # EBADF of WASI
    assert opened.status is Status.OK
    assert make is modules.write or opened.stdout == b"canary"


@needs("wasmtime")
def test_the_filter_blocks_a_mistakenly_preopened_folder(tmp_path: Path) -> None:
    """Each layer holds alone: WASI would let it, the process may not."""
    (tmp_path / "secret").write_text("canary", encoding="utf-8")
    ended = ran(modules.read("secret"), recipe=Wasmtime(preopened=str(tmp_path)))

    assert b"canary" not in ended.stdout
    assert ended.status is not Status.OK


# covers: E09.2
@needs("wasmtime")
def test_it_cannot_reach_the_network() -> None:
    ended = ran(modules.connect())

    assert ended.status is Status.RUNTIME_ERROR
    assert b"sock_connect` has not been defined" in ended.stderr


@needs("wasmtime")
@pytest.mark.parametrize(
    ("code", "within", "status", "number", "limit"),
    [
        (EMPTY, {}, Status.OK, None, None),
        ('(module (func (export "_start") unreachable))', {}, Status.RUNTIME_ERROR, None, None),
        ('(module (func $f (export "_start") (call $f)))', {}, Status.RUNTIME_ERROR, None, None),
        ("(module (memory 10000))", {}, Status.RUNTIME_ERROR, None, "memory"),
        (modules.grow(40 << 20), {}, Status.RUNTIME_ERROR, None, None),
        (modules.grow(16 << 20), {}, Status.OK, None, None),
        (modules.spin(1 << 62), {"cpu_seconds": 1, "wall_seconds": 600.0}, Status.TIMEOUT_CPU, 24, "cpu"),
        (modules.sleep(60), {"wall_seconds": 0.5}, Status.TIMEOUT_WALL, 9, "wall"),
        (modules.flood(1, 1 << 30), {}, Status.OUTPUT_LIMIT, 9, "stdout"),
        (modules.flood(2, 1 << 30), {}, Status.OUTPUT_LIMIT, 9, "stderr"),
        ("(module (", {}, Status.RUNTIME_ERROR, None, None),
        ("(module)", {}, Status.RUNTIME_ERROR, None, None),
        ('(module (func (export "_start") (param i32)))', {}, Status.RUNTIME_ERROR, None, None),
        ('(module (memory (export "_start") 1))', {}, Status.RUNTIME_ERROR, None, None),
        ('(module (import "host" "call" (func)))', {}, Status.RUNTIME_ERROR, None, None),
    ],
    ids=[
        *("empty", "trap", "stack", "memory", "grow", "within", "cpu", "wall", "stdout", "stderr"),
        *("syntax", "no_start", "arguments", "no_function", "import"),
    ],
)
def test_each_kind_of_end_has_its_status(
    code: str, within: dict[str, float], status: Status, number: int | None, limit: str | None
) -> None:
    ended = ran(code, within=bounds(memory_bytes=32 << 20, **within))

    assert (ended.status, ended.signal, ended.limit) == (status, number, limit), ended
    assert len(ended.stdout) <= BOUNDS.stdout_bytes
    assert len(ended.stderr) <= BOUNDS.stderr_bytes
    if status is Status.RUNTIME_ERROR and number is None:
        assert ended.exit_code
        assert ended.stderr or code == modules.grow(40 << 20)


@needs("wasmtime")
def test_the_kernel_enforces_cpu_time_if_the_runtime_does_not() -> None:
    within = bounds(cpu_seconds=1, wall_seconds=600.0)
    ended = ran(modules.spin(1 << 62), within=within, without=frozenset({"epoch"}))

    assert (ended.status, ended.signal) == (Status.TIMEOUT_CPU, 24)


@needs("wasmtime")
def test_a_module_that_is_costly_to_compile_is_ended_too() -> None:
    body = "(drop (i32.add (i32.const 1) (i32.const 2)))" * 400_000
    ended = ran(f'(module (func (export "_start") {body}))', within=bounds(wall_seconds=0.1))

    assert ended.status is Status.TIMEOUT_WALL


@needs("wasmtime")
def test_a_cancelled_run_ends_at_once() -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()

    assert WASMTIME.run(program(modules.sleep(600)), BOUNDS, cancel).status is Status.CANCELLED


@needs("wasmtime")
def test_no_process_outlives_the_answer() -> None:
    for seconds in (0.0, 60.0):
        sandbox = start(Setup(bounds(wall_seconds=0.3), {}), Wasmtime())
        run_in(sandbox, program(modules.sleep(seconds)))

        assert not alive(sandbox.child)


@needs("wasmtime", "root")
def test_root_runs_a_module_as_an_unprivileged_user() -> None:
    sandbox, cancel = start(Setup(bounds(wall_seconds=60.0), {}), Wasmtime()), threading.Event()
    running = threading.Thread(target=run_in, args=(sandbox, program(modules.sleep(600)), cancel))
    running.start()
    wanted = {"outside_user": "unprivileged", "outside_groups": "unprivileged", "outside_capabilities": "none"}
    try:
        assert soon(lambda: wanted.items() <= observed(sandbox.child).items()), observed(sandbox.child)
    finally:
        cancel.set()
        running.join()


@needs("wasmtime", "root")
def test_an_ordinary_user_can_run_a_module() -> None:
    def look() -> None:
        there(packages()).stat()

    def work() -> None:
        sys.executable = sys.executable if os.access(sys.executable, os.X_OK) else "/usr/bin/python3"
        ended = WASMTIME.run(program(modules.echo(), b"in"), BOUNDS)
        assert (ended.status, ended.stdout) == (Status.OK, b"in"), ended

    if elsewhere(look, as_user=ORDINARY):
        pytest.skip("NOT TRIED, other users cannot read the packages of this checkout")
    assert elsewhere(work, as_user=ORDINARY) == ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Program("python", "print(1)", b"", {}, 0, ""), "runs only WebAssembly"),
        (Program("", "", b"", {}, 0, "", ("/usr/bin/cat",)), "runs only WebAssembly"),
        (program("print(1)"), "is not WebAssembly"),
        (program(""), "is not WebAssembly"),
        (program("AGFzbQ=="), "is not WebAssembly"),
        (program("(module) \ud800"), "cannot be encoded"),
    ],
    ids=["python", "command", "no_module", "nothing", "no_magic", "surrogate"],
)
def test_a_program_that_is_not_a_webassembly_module_is_refused(given: Program, says: str) -> None:
    with pytest.raises(WorkError, match=says):
        WASMTIME.run(given, BOUNDS)


# covers: A94
def test_a_missing_package_is_reported_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    assert "extra `wasm`" in (WASMTIME.available() or "")
    with refused(WorkError, "engine.limit_unenforceable"):
        WASMTIME.run(program(EMPTY), BOUNDS)
    assert WASMTIME.machine().startswith("sha256:")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_it_names_and_nothing_else(machine: str) -> None:
    filter_ = seccomp.assemble(machine, wasm.ANSWER)
    checked(filter_)
    table = numbers(seccomp.ARCHITECTURES[machine].column)
    word = seccomp.ARCHITECTURES[machine].word
    allowed = {name for name, number in table.items() if answer(filter_, word, number) == seccomp.ALLOW}

    assert allowed <= wasm.ALLOWED | {"clone", "prctl", "ioctl"}
    assert allowed >= wasm.ALLOWED & table.keys()
    assert not allowed & {"open", "openat", "socket", "connect", "execve", "fork", "vfork", "kill", "ptrace", "unshare"}


# covers: A94 E09
_ENGINE = """
import sys
sys.path.insert(0, {root!r})
from admission_adapters.sandbox.run.process import run_in
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from admission_adapters.sandbox.wasm import modules
from admission_adapters.sandbox.wasm.backend import Wasmtime
from tests.adapters.sandbox.test_wasm import BOUNDS, program
sandbox = start(Setup(BOUNDS, {{}}), Wasmtime())
print(sandbox.child, flush=True)
run_in(sandbox, program(modules.sleep(600)))
"""


@pytest.mark.full(after=1)
@needs("wasmtime")
@pytest.mark.parametrize("delay", [0.0, 0.02, 1.0])
def test_an_engine_that_is_killed_takes_its_module_along(delay: float) -> None:
    text = _ENGINE.format(root=str(Path(__file__).parents[3]))
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as engine:
        child = int(there(engine.stdout).readline())
        time.sleep(delay)
        engine.kill()
    assert gone(child)


@pytest.mark.parametrize(
    ("function", "answer"), [("system", "Darwin"), ("machine", "riscv64")], ids=["system", "architecture"]
)
def test_an_unsupported_platform_is_reported(monkeypatch: pytest.MonkeyPatch, function: str, answer: str) -> None:
    monkeypatch.setattr(platform, function, lambda: answer)

    assert "on Linux on x86_64 or aarch64 only" in (WASMTIME.available() or "")


def test_a_namespace_package_does_not_count_as_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None, is_package=True))

    assert packages() is None


def test_the_result_of_a_probe_depends_on_the_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "wasmtime"
    package.mkdir()
    origin = str(package / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None, origin=origin))
    assert "extra `wasm`" not in (WASMTIME.available() or "")
    found = {WASMTIME.machine()}
    for content in (b"one", b"another"):
        (package / "_libwasmtime.so").write_bytes(content)
        found.add(WASMTIME.machine())

    assert len(found) == 3


def test_an_exit_status_is_the_module_s_own() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        assert Wasmtime().exit_code(process, b"") is None
        process.kill()
        process.wait()
        assert Wasmtime().exit_code(process, b"") == 128 + 9
    for code in (0, 3):
        done = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
        done.wait()
        assert Wasmtime().exit_code(done, b"") == code


def test_a_job_has_its_user_and_its_filter_unless_they_are_left_out() -> None:
    uids, filters = [], []
    for without in (NOTHING, {"drop_uid"}, {"seccomp"}):
        job = json.loads(Wasmtime().work(program(EMPTY), BOUNDS, frozenset(without)))
        uids.append(job["uid"])
        filters.append(job["filter"])
    assert uids == [sandbox_user().other, None, sandbox_user().other]
    assert filters == [wasm.call_filter().hex()] * 2 + [""]

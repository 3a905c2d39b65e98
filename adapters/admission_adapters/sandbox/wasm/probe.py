"""The probe of `wasmtime`: both layers, each with its positive control.

What WASI lets a module do is tried by modules, and once more with a folder of canaries opened to them. What the
process around it may do is tried by acts in its place, and once more with every protection left out.
"""

from __future__ import annotations

import json
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from admission_adapters.sandbox.bubblewrap.seccomp import ARCHITECTURES
from admission_adapters.sandbox.bubblewrap.syscalls import numbers
from admission_adapters.sandbox.model import Bounds, NotStartedError, Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import FILES, Canaries
from admission_adapters.sandbox.probe.checks import DID, SUPERVISED, Check, own, same_facts
from admission_adapters.sandbox.probe.rows import REQUESTED, Row, row
from admission_adapters.sandbox.probe.trial import BOUNDS, Trial, last_line, run_all
from admission_adapters.sandbox.probe.watch import Watcher, observed
from admission_adapters.sandbox.run.outcome import not_started
from admission_adapters.sandbox.run.process import run_in, run_once
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from admission_adapters.sandbox.run.user import sandbox_user
from admission_adapters.sandbox.wasm import modules
from admission_adapters.sandbox.wasm.backend import LANGUAGE, PROTECTIONS, Wasmtime
from engine.errors import UnenforceableError, WorkError

_FILE = "file_secret"
_CALLS = ("add_key", "kcmp", "name_to_handle_at", "open_tree", "personality", "process_vm_readv", "ptrace", "setns")
_EPERM = ("refused:EPERM",)
_LOOKED = ("did", "refused:E2BIG", "refused:EBADF", "refused:EFAULT", "refused:EINVAL", "refused:EIO", "refused:ESRCH")
"""The kernel's errors for wrong arguments: they prove that the call reached the kernel."""

_BOUNDS = replace(BOUNDS, memory_bytes=32 << 20)
_CAPPED = replace(_BOUNDS, stdout_bytes=64 << 10, stderr_bytes=64 << 10)
_ONE_SECOND = replace(_BOUNDS, cpu_seconds=1)
_TURNS = 8_000_000_000  # more than any processor counts in the second that it has
_NOTHING: frozenset[str] = frozenset()
_ALL = frozenset(PROTECTIONS) - {"output_cap", "wall_clock"}
_LOOKS = (0.5, 5.0)
"""Seconds of wall time that a waiting module has; a busy machine may not let us look at it in the shorter."""
_PLACE = {"stdout": 1, "stderr": 2}


def _refused(*acts: str) -> tuple[Check, ...]:
    return tuple(Check(act, _EPERM) for act in acts)


_MEMORY = (Check("wasi_memory", ("refused:48",)), Check("memory", ("refused:ENOMEM",)))
_NO_PROCESS = _refused("process_started", "program_started")
_NO_FILE = (*_refused("file_written"), Check("wasi_write", ("refused:",)))

KERNEL: Mapping[str, tuple[Check, ...]] = {
    "files": (
        *_refused("file_read", "file_described", "folder_listed"),
        *(*_NO_FILE, Check("wasi_read", ("refused:",)), *own("mnt")),
    ),
    "network": (*_refused("tcp", "unix"), Check("wasi_connect", ("refused:unlinked",), ()), *own("net")),
    "processes": (*_NO_PROCESS, *_refused("process_signaled"), *own("ipc")),
    "environment": (Check("secret_variable", ("value:none",)), Check("wasi_environment", ("none",))),
    "descriptors": (Check("descriptors", ("none",)),),
    "capabilities": same_facts(
        user="unprivileged", groups="unprivileged", capabilities="none", new_privileges="refused", session="own"
    ),
    "namespaces": (Check("namespace_made", _EPERM, needed=False), *own("user", "uts", "cgroup")),
    "syscalls": (*(Check(f"call_{name}", _EPERM, _LOOKED) for name in _CALLS), *same_facts(filter="refused")),
    "memory": (*_MEMORY, *_NO_PROCESS),
    "memory_process": _MEMORY,
    "process_count": _NO_PROCESS,
    "open_files": (Check("files_opened", ("refused:EMFILE",)),),
    "file_size": _NO_FILE,
    "disk": _NO_FILE,
    "inodes": _NO_FILE,
    "cpu": (Check("cpu", ("timeout_cpu",)), Check("cpu_kernel", ("timeout_cpu",))),
    "survivors": (*_NO_PROCESS, Check("left", ("none",), ())),
}
"""A module has one process, and nothing to write to or leave behind."""


WORK = (Check("echo", DID, ()), Check("variable", DID, ()))
"""What a module must be able to do, or nothing is claimed at all."""


def probe_wasmtime(without: frozenset[str] = _NOTHING, known: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Try every boundary.

    `without` leaves protections out, to show that the probe notices; `known` are words of controls that were run
    already. Raises OSError, and WorkError when no module can be run.
    """
    with Canaries(sandbox_user().other) as canaries:
        probe = _Probe(canaries, without)
        run_all([*probe.inside(), *(probe.outside() if known is None else ())])
    probe.trial.outside |= known or {}
    works = all(check.verdict(probe.trial.inside.get(check.act, "missing"), "") for check in WORK)
    found = {name: row(name, "kernel", checks, probe.trial, works) for name, checks in KERNEL.items()}
    found |= {name: row(name, "supervised", checks, probe.trial, works) for name, checks in SUPERVISED.items()}
    return tuple(found[name] for name in REQUESTED)


class _Probe:
    """The parts of a trial; each writes its own words."""

    def __init__(self, canaries: Canaries, without: frozenset[str]) -> None:
        self.trial = Trial()
        self._canaries = canaries
        self._without = without

    def inside(self) -> Iterator[Callable[[], None]]:
        """What is tried under every protection, the longest first."""
        yield from (self._spinner, self._sleeper, self._work)
        yield from self._both(self.trial.inside, self._without)
        yield from (partial(self._flood, self.trial.inside, self._without, stream) for stream in _PLACE)

    def outside(self) -> Iterator[Callable[[], None]]:
        """The positive controls."""
        yield from (self._spinner_outside, self._sleeper_outside)
        yield from self._both(self.trial.outside, _ALL)
        yield from (partial(self._flood, self.trial.outside, frozenset({"output_cap"}), stream) for stream in _PLACE)

    def _both(self, words: dict[str, str], without: frozenset[str]) -> Iterator[Callable[[], None]]:
        yield from (partial(part, words, without) for part in (self._acts, self._folders, self._memory))

    def _acts(self, words: dict[str, str], without: frozenset[str]) -> None:
        known, places = numbers(ARCHITECTURES[platform.machine()].column), self._canaries.places
        world = {
            "file": places[_FILE],
            "new_file": f"{places['folder']}/{secrets.token_hex(8)}",
            "folder": places["folder"],
            "tcp": places["tcp"],
            "unix": places["unix"],
            "descriptor": self._canaries.descriptor,
            "program": "/usr/bin/true",
            "secret_name": self._canaries.secret_name,
            "calls": {name: known[name] for name in _CALLS},
            "memory_bytes": _BOUNDS.memory_bytes + (256 << 20),
            "open_files": _BOUNDS.open_files,
        }
        run_result = _run(modules.echo(), without, Wasmtime(acts=world))
        try:
            found = {str(act): str(word) for act, word in json.loads(run_result.stdout).items()}
        except (ValueError, AttributeError):
            raise _broken(run_result) from None
        secret = self._canaries.secret
        found["file_read"] = "did" if found.get("file_read") == f"read:{secret}" else found.get("file_read", "missing")
        found["secret_variable"] = "did" if found.get("secret_variable") == f"value:{secret}" else "value:none"
        found["descriptors"] = "none" if found.get("descriptors") == "fds:" else "did"
        words |= found

    def _folders(self, words: dict[str, str], without: frozenset[str]) -> None:
        """Files, variables and sockets of WASI; the control gets a folder and a variable."""
        outside = words is self.trial.outside
        recipe = Wasmtime(preopened=str(self._canaries.folder)) if outside else Wasmtime()
        read = _run(modules.read(FILES[_FILE]), without, recipe)
        words["wasi_read"] = "did" if read.stdout.decode("latin-1") == self._canaries.secret else _code(read)
        name = secrets.token_hex(8)
        made = _run(modules.write(f"open/{name}"), without, recipe)
        words["wasi_write"] = "did" if self._canaries.wrote(name) else _code(made)
        variables = {self._canaries.secret_name: self._canaries.secret} if outside else {}
        output = _run(modules.environment(), without, recipe, environment=variables)
        words["wasi_environment"] = "did" if self._canaries.secret.encode() in output.stdout else _none(output)
        connected = _run(modules.connect(), without, recipe)
        unlinked = b"sock_connect` has not been defined" in connected.stderr
        words["wasi_connect"] = "refused:unlinked" if unlinked else "did"

    def _memory(self, words: dict[str, str], without: frozenset[str]) -> None:
        words["wasi_memory"] = _code(_run(modules.grow(_BOUNDS.memory_bytes + (1 << 20)), without))

    def _flood(self, words: dict[str, str], without: frozenset[str], stream: str) -> None:
        run_result = _run(modules.flood(_PLACE[stream], 1 << 20), without, bounds=_CAPPED)
        words[stream] = _cut(run_result, stream)

    def _spinner(self) -> None:
        """Ended by the runtime, and where that does not, by the kernel."""
        for act, without in (("cpu", self._without), ("cpu_kernel", self._without | {"epoch"})):
            self.trial.inside[act] = _run(modules.spin(_TURNS), without, bounds=_ONE_SECOND).status

    def _spinner_outside(self) -> None:
        run_result = _run(modules.spin(_TURNS), frozenset({"rlimit_cpu", "epoch"}), bounds=_ONE_SECOND)
        self.trial.outside |= dict.fromkeys(("cpu", "cpu_kernel"), _spun(run_result))

    def _sleeper(self) -> None:
        for wall_seconds in _LOOKS:
            run_result, facts, left = _slept(6 * wall_seconds, self._without, wall_seconds)
            if facts.get("outside_filter") == "refused":  # put on last
                break
        self.trial.inside |= {**facts, "sleep": run_result.status, "left": left}

    def _sleeper_outside(self) -> None:
        run_result, facts, _ = _slept(1.0, _ALL | {"wall_clock"}, 0.5)
        self.trial.outside |= {
            **facts,
            "sleep": "did" if run_result.status is Status.OK else f"failed:{run_result.status}",
        }

    def _work(self) -> None:
        echoed = _run(modules.echo(), self._without, stdin=b"echo")
        self.trial.inside["echo"] = "did" if echoed.stdout == b"echo" else f"failed:{echoed.status}"
        listed = _run(modules.environment(), self._without, environment={"GIVEN": "1"})
        self.trial.inside["variable"] = "did" if listed.stdout == b"GIVEN=1\0" else f"failed:{listed.status}"


def _slept(seconds: float, without: frozenset[str], wall_seconds: float) -> tuple[RunResult, dict[str, str], str]:
    """A module that waits: its end, what the host saw of its process, and whether that is alive still."""
    try:
        sandbox = start(Setup(replace(_BOUNDS, wall_seconds=wall_seconds), {}, without), Wasmtime())
    except NotStartedError as error:
        raise _broken(not_started(str(error))) from error
    with _Look(sandbox.child) as watch:
        run_result = run_in(sandbox, Program(LANGUAGE, modules.sleep(seconds)))
    try:
        observed(sandbox.child)
    except (OSError, KeyError, ValueError):
        return run_result, watch.facts, "none"
    return run_result, watch.facts, "did"


class _Look(Watcher):
    """Watches one process: the facts are of its last moment."""

    def __init__(self, process: int) -> None:
        super().__init__()
        self._process = process

    def look(self) -> None:
        """Look once."""
        with suppress(OSError, KeyError, ValueError):
            self.facts = observed(self._process)


def _run(
    module: str, without: frozenset[str], recipe: Wasmtime | None = None, bounds: Bounds = _BOUNDS, **options: Any
) -> RunResult:
    """Run a module; `options` are fields of its program."""
    return run_once(Program(LANGUAGE, module, **options), bounds, None, without, recipe=recipe or Wasmtime())


def _code(run_result: RunResult) -> str:
    """The word of a module that ends with what was refused."""
    return "did" if run_result.status is Status.OK else f"refused:{run_result.exit_code}"


def _cut(run_result: RunResult, stream: str) -> str:
    """The word of a module that wrote too much: the kept output is exactly as long as the limit."""
    if run_result.status is Status.OK:
        return "did"
    return run_result.status if len(getattr(run_result, stream)) == _CAPPED.stdout_bytes else "failed:cut"


def _spun(run_result: RunResult) -> str:
    """The word of a control that was to use more than its second."""
    return "did" if (run_result.cpu_seconds or 0.0) > _ONE_SECOND.cpu_seconds else f"failed:{run_result.status}"


def _none(run_result: RunResult) -> str:
    return "none" if run_result.status is Status.OK and not run_result.stdout else f"failed:{run_result.status}"


def _broken(run_result: RunResult) -> WorkError:
    return UnenforceableError(
        f"no module runs in the sandbox: {last_line(run_result.stderr) or run_result.status}",
        remedy="check that user namespaces are available, and reinstall the engine's extra `wasm`",
    )

"""The probe of `wasmtime`: both layers, each with its positive control.

What WASI lets a module do is tried by modules, and once more with a folder of canaries opened to them. What the
process around it may do is tried by acts in its place, and once more with every protection left out.
"""

from __future__ import annotations

import json
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event, Thread

from adapters.sandbox import wasm_modules as modules
from adapters.sandbox.model import Bounds, Ended, NotStartedError, Program, Status
from adapters.sandbox.outcome import not_started
from adapters.sandbox.probe import REQUESTED, Row, Trial
from adapters.sandbox.probe.canaries import FILES, Canaries
from adapters.sandbox.probe.checks import DID, Check
from adapters.sandbox.probe.rows import row
from adapters.sandbox.probe.trial import BOUNDS
from adapters.sandbox.probe.watch import observed
from adapters.sandbox.process import Sandbox, run_once
from adapters.sandbox.seccomp import ARCHITECTURES
from adapters.sandbox.syscalls import numbers
from adapters.sandbox.user import sandbox_user
from adapters.sandbox.wasm import LANGUAGE, PROTECTIONS, InWasmtime
from engine.errors import WorkError

_FILE = "file_secret"
_CALLS = ("add_key", "kcmp", "name_to_handle_at", "open_tree", "personality", "process_vm_readv", "ptrace", "setns")
_EPERM = ("refused:EPERM",)
_LOOKED = ("did", "refused:E2BIG", "refused:EBADF", "refused:EFAULT", "refused:EINVAL", "refused:EIO", "refused:ESRCH")
"""What the kernel says of wrong arguments, so that it was the kernel that was reached."""

_BOUNDS = replace(BOUNDS, memory_bytes=32 << 20)
_CAPPED = replace(_BOUNDS, stdout_bytes=64 << 10, stderr_bytes=64 << 10)
_ONE_SECOND = replace(_BOUNDS, cpu_seconds=1)
_TURNS = 8_000_000_000  # more than any processor counts in the second that it has
_NOTHING: frozenset[str] = frozenset()
_NO_VARIABLES: Mapping[str, str] = {}
_ALL = frozenset(PROTECTIONS) - {"output_cap", "wall_clock"}
_PARTS = 4
_POLL_SECONDS = 0.01
_LOOKS = (0.5, 5.0)
"""Seconds of wall time that a waiting module has; a busy machine may not let us look at it in the shorter."""
_PLACE = {"stdout": 1, "stderr": 2}


def _refused(*acts: str) -> tuple[Check, ...]:
    return tuple(Check(act, _EPERM) for act in acts)


def _own(*namespaces: str) -> tuple[Check, ...]:
    return tuple(Check(f"namespace_{name}", ("own",), ("shared",)) for name in namespaces)


def _told(**facts: str) -> tuple[Check, ...]:
    return tuple(Check(f"outside_{name}", (word,), ()) for name, word in facts.items())


_MEMORY = (Check("wasi_memory", ("refused:48",)), Check("memory", ("refused:ENOMEM",)))
_NO_PROCESS = _refused("process_started", "program_started")
_NO_FILE = (*_refused("file_written"), Check("wasi_write", ("refused:",)))

KERNEL: Mapping[str, tuple[Check, ...]] = {
    "files": (
        *_refused("file_read", "file_described", "folder_listed"),
        *(*_NO_FILE, Check("wasi_read", ("refused:",)), *_own("mnt")),
    ),
    "network": (*_refused("tcp", "unix"), Check("wasi_connect", ("refused:unlinked",), ()), *_own("net")),
    "processes": (*_NO_PROCESS, *_refused("process_signaled"), *_own("ipc")),
    "environment": (Check("secret_variable", ("value:none",)), Check("wasi_environment", ("none",))),
    "descriptors": (Check("descriptors", ("none",)),),
    "capabilities": _told(
        user="unprivileged", groups="unprivileged", capabilities="none", new_privileges="refused", session="own"
    ),
    "namespaces": (Check("namespace_made", _EPERM, needed=False), *_own("user", "uts", "cgroup")),
    "syscalls": (*(Check(f"call_{name}", _EPERM, _LOOKED) for name in _CALLS), *_told(filter="refused")),
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
"""A module has one process, and nothing that it could write to or leave behind."""

SUPERVISED: Mapping[str, tuple[Check, ...]] = {
    "output": (Check("stdout", ("output_limit",)), Check("stderr", ("output_limit",))),
    "time": (Check("sleep", ("timeout_wall",)),),
}

WORK = (Check("echo", DID, ()), Check("variable", DID, ()))
"""What a module must be able to do, or nothing is claimed at all."""


def probe_wasmtime(without: frozenset[str] = _NOTHING, known: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Try every boundary.

    `without` leaves protections out, to show that the probe notices; `known` are words of controls that were run
    already. Raises OSError, and WorkError when no module can be run.
    """
    user = sandbox_user()
    with Canaries(None if user.own else user.uid) as canaries:
        probe = _Probe(canaries, without)
        with ThreadPoolExecutor(_PARTS, thread_name_prefix="sandbox-probe") as pool:
            parts = [*probe.inside(), *(probe.outside() if known is None else ())]
            for done in [pool.submit(part) for part in parts]:
                done.result()
    probe.trial.outside |= known or {}
    works = all(check.verdict(probe.trial.inside.get(check.act, "missing"), "") for check in WORK)
    found = {name: row(name, "kernel", checks, probe.trial, works) for name, checks in KERNEL.items()}
    found |= {name: row(name, "supervised", checks, probe.trial, works) for name, checks in SUPERVISED.items()}
    return tuple(found[name] for name in REQUESTED)


class _Probe:
    """The parts of a trial; each writes words of its own."""

    def __init__(self, canaries: Canaries, without: frozenset[str]) -> None:
        self.trial = Trial()
        self._canaries = canaries
        self._without = without

    def inside(self) -> Iterator[Callable[[], None]]:
        """What is tried under every protection, the longest first."""
        yield from (self._spinner, self._sleeper, self._work)
        yield from self._both(self.trial.inside, self._without)
        yield from (partial(self._flood, stream) for stream in _PLACE)

    def outside(self) -> Iterator[Callable[[], None]]:
        """The positive controls."""
        yield from (self._spinner_outside, self._sleeper_outside)
        yield from self._both(self.trial.outside, _ALL)
        yield from (partial(self._flood_outside, stream) for stream in _PLACE)

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
        ended = _run(modules.echo(), without, InWasmtime(acts=world))
        try:
            said = {str(act): str(word) for act, word in json.loads(ended.stdout).items()}
        except (ValueError, AttributeError):
            raise _broken(ended) from None
        secret = self._canaries.secret
        said["file_read"] = "did" if said.get("file_read") == f"read:{secret}" else said.get("file_read", "missing")
        said["secret_variable"] = "did" if said.get("secret_variable") == f"value:{secret}" else "value:none"
        said["descriptors"] = "none" if said.get("descriptors") == "fds:" else "did"
        words |= said

    def _folders(self, words: dict[str, str], without: frozenset[str]) -> None:
        """Files, variables and sockets as WASI has them; the control has a folder and a variable given to it."""
        outside = words is self.trial.outside
        recipe = InWasmtime(preopened=str(self._canaries.folder)) if outside else InWasmtime()
        read = _run(modules.read(FILES[_FILE]), without, recipe)
        words["wasi_read"] = "did" if read.stdout.decode("latin-1") == self._canaries.secret else _code(read)
        name = secrets.token_hex(8)
        made = _run(modules.write(f"open/{name}"), without, recipe)
        words["wasi_write"] = "did" if self._canaries.wrote(name) else _code(made)
        given = {self._canaries.secret_name: self._canaries.secret} if outside else {}
        told = _run(modules.environment(), without, recipe, environment=given)
        words["wasi_environment"] = "did" if self._canaries.secret.encode() in told.stdout else _none(told)
        connected = _run(modules.connect(), without, recipe)
        unlinked = b"sock_connect` has not been defined" in connected.stderr
        words["wasi_connect"] = "refused:unlinked" if unlinked else "did"

    def _memory(self, words: dict[str, str], without: frozenset[str]) -> None:
        words["wasi_memory"] = _code(_run(modules.grow(_BOUNDS.memory_bytes + (1 << 20)), without))

    def _flood(self, stream: str) -> None:
        ended = _run(modules.flood(_PLACE[stream], 1 << 20), self._without, bounds=_CAPPED)
        self.trial.inside[stream] = _cut(ended, stream)

    def _flood_outside(self, stream: str) -> None:
        ended = _run(modules.flood(_PLACE[stream], 1 << 20), frozenset({"output_cap"}), bounds=_CAPPED)
        self.trial.outside[stream] = _done(ended)

    def _spinner(self) -> None:
        """Ended by the runtime, and where that does not, by the kernel."""
        for act, without in (("cpu", self._without), ("cpu_kernel", self._without | {"epoch"})):
            self.trial.inside[act] = _run(modules.spin(_TURNS), without, bounds=_ONE_SECOND).status

    def _spinner_outside(self) -> None:
        ended = _run(modules.spin(_TURNS), frozenset({"rlimit_cpu", "epoch"}), bounds=_ONE_SECOND)
        self.trial.outside |= dict.fromkeys(("cpu", "cpu_kernel"), _spun(ended))

    def _sleeper(self) -> None:
        for wall_seconds in _LOOKS:
            ended, facts, left = _slept(6 * wall_seconds, self._without, wall_seconds)
            if facts.get("outside_filter") == "refused":  # put on last
                break
        self.trial.inside |= {**facts, "sleep": ended.status, "left": left}

    def _sleeper_outside(self) -> None:
        ended, facts, _ = _slept(1.0, _ALL | {"wall_clock"}, 0.5)
        self.trial.outside |= {**facts, "sleep": _done(ended)}

    def _work(self) -> None:
        said = _run(modules.echo(), self._without, stdin=b"echo")
        self.trial.inside["echo"] = "did" if said.stdout == b"echo" else f"failed:{said.status}"
        told = _run(modules.environment(), self._without, environment={"GIVEN": "1"})
        self.trial.inside["variable"] = "did" if told.stdout == b"GIVEN=1\0" else f"failed:{told.status}"


def _slept(seconds: float, without: frozenset[str], wall_seconds: float) -> tuple[Ended, dict[str, str], str]:
    """A module that waits: its end, what the host saw of its process, and whether that is alive still."""
    try:
        sandbox = Sandbox.ready(replace(_BOUNDS, wall_seconds=wall_seconds), {}, without, recipe=InWasmtime())
    except NotStartedError as error:
        raise _broken(not_started(str(error))) from error
    first, over = sandbox.child, Event()
    facts: dict[str, str] = {}

    def look() -> None:
        while not over.wait(_POLL_SECONDS):
            with suppress(OSError, KeyError, ValueError):
                facts.update(observed(first))

    watcher = Thread(target=look, name="sandbox-watch", daemon=True)
    watcher.start()
    try:
        ended = sandbox.run(_program(modules.sleep(seconds)))
    finally:
        over.set()
        watcher.join()
    try:
        observed(first)
    except (OSError, KeyError, ValueError):
        return ended, facts, "none"
    return ended, facts, "did"


def _run(
    module: str,
    without: frozenset[str],
    recipe: InWasmtime | None = None,
    bounds: Bounds = _BOUNDS,
    stdin: bytes = b"",
    environment: Mapping[str, str] = _NO_VARIABLES,
) -> Ended:
    return run_once(_program(module, stdin, environment), bounds, None, without, recipe=recipe or InWasmtime())


def _program(module: str, stdin: bytes = b"", environment: Mapping[str, str] = _NO_VARIABLES) -> Program:
    return Program(LANGUAGE, module, stdin, environment, 0, f"code_exec_agent_{secrets.token_hex(8)}")


def _code(ended: Ended) -> str:
    """The word of a module that ends with what was refused."""
    return "did" if ended.status is Status.OK else f"refused:{ended.exit_code}"


def _done(ended: Ended) -> str:
    """The word of a control."""
    return "did" if ended.status is Status.OK else f"failed:{ended.status}"


def _cut(ended: Ended, stream: str) -> str:
    """The word of a module that wrote too much: what was kept is as long as the bound."""
    if ended.status is Status.OK:
        return "did"
    return ended.status if len(getattr(ended, stream)) == _CAPPED.stdout_bytes else "failed:cut"


def _spun(ended: Ended) -> str:
    """The word of a control that was to use more than its second."""
    return "did" if (ended.cpu_seconds or 0.0) > _ONE_SECOND.cpu_seconds else f"failed:{ended.status}"


def _none(ended: Ended) -> str:
    return "none" if ended.status is Status.OK and not ended.stdout else f"failed:{ended.status}"


def _broken(ended: Ended) -> WorkError:
    said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return WorkError(
        f"no module runs in the sandbox: {said[-1][:200] if said else ended.status}",
        remedy="see whether user namespaces are available, and install the engine's extra `wasm` again",
        code="engine.limit_unenforceable",
    )

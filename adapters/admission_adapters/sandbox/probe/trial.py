"""One trial: runs every probe program in the sandbox and as a plain subprocess, and collects the result of each act."""

from __future__ import annotations

import json
import os
import platform
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from admission_adapters.sandbox.bubblewrap.seccomp import ARCHITECTURES, KILLED
from admission_adapters.sandbox.bubblewrap.syscalls import numbers
from admission_adapters.sandbox.model import LISTENER, Bounds, Program, RunResult, Status
from admission_adapters.sandbox.probe.canaries import ALLOWED, Canaries, Victim, compared, words_of
from admission_adapters.sandbox.probe.checks import MACHINE_CALLS, acts_of
from admission_adapters.sandbox.probe.control import Control
from admission_adapters.sandbox.probe.watch import ProcessWatcher, named
from engine.errors import WorkError

Runner = Callable[[Program, Bounds], RunResult]
"""Runs a program by the launcher of a backend: the one that real work goes through."""

BOUNDS = Bounds(
    wall_seconds=60.0,
    cpu_seconds=10,
    memory_bytes=192 << 20,
    processes=24,
    open_files=64,
    file_bytes=256 << 10,
    disk_bytes=1 << 20,
    stdout_bytes=256 << 10,
    stderr_bytes=64 << 10,
    artifact_files=0,
    artifact_bytes=0,
)
"""What the probe runs within: as small as its acts can be done in, so that going past it costs little."""

_HERE = Path(__file__).parent
_DAEMONS = 3
_WAITS = (0.3, 1.2, 5.0, 20.0)
"""Seconds until the wall clock ends a sleeper; longer when it was not up in time on a loaded machine."""

_UNLISTED = {"x86_64": 294, "aarch64": 26}
"""inotify_init1: a call that is harmless, allowed outside, and on no list of the filter."""


@dataclass(frozen=True, slots=True)
class _Flood:
    """One act of the second program: its request and its limits."""

    ask: Mapping[str, int | float]
    bounds: Bounds
    began: bytes = b""  # what it writes before it goes past the limit


_FLOODS = {
    "cpu": _Flood({"seconds": 1.2}, replace(BOUNDS, cpu_seconds=1)),
    "inode_flood": _Flood({"count": 20_000, "bytes": 28 << 20}, replace(BOUNDS, memory_bytes=64 << 20), b"flood"),
    "memory_tree": _Flood({"count": 6, "bytes": 24 << 20}, replace(BOUNDS, memory_bytes=96 << 20)),
    "stdout": _Flood({"bytes": 1 << 20}, replace(BOUNDS, stdout_bytes=64 << 10)),
    "stderr": _Flood({"bytes": 1 << 20}, BOUNDS),
}


@dataclass(slots=True)
class Trial:
    """The observations: a word for each act inside and outside."""

    inside: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


def tried(run: Runner, user: int | None, known: Mapping[str, str] | None = None, *, watched: bool = True) -> Trial:
    """Run all of it, a few at a time; takes somewhat more than the second of CPU that the smallest limit has.

    `user` is the user of sandboxes as seen from outside, None for this process; `known` are words of
    controls that already ran on this machine. Without `watched`, the host's view of a program's
    processes is left to the caller. Raises OSError, and WorkError when the sandbox did not run.
    """
    with Canaries(user) as canaries:
        control = Control(user, {canaries.secret_name: canaries.secret}, canaries.descriptor)
        probe = _Probe(run, control, canaries)
        run_all([*probe.inside(watched=watched), *(probe.outside() if known is None else ())])
    probe.trial.outside |= known or {}
    return probe.trial


def run_all(parts: list[Callable[[], None]]) -> None:
    """Run the parts of a trial, a few at a time. Raises what one of them does."""
    with ThreadPoolExecutor(4, thread_name_prefix="sandbox-probe") as pool:
        for done in [pool.submit(part) for part in parts]:
            done.result()


class _Probe:
    """The parts of a trial; each writes its own words."""

    def __init__(self, run: Runner, control: Control, canaries: Canaries) -> None:
        self.trial = Trial()
        self._run, self._control, self._canaries = run, control, canaries
        self._acts_code = (_HERE / "acts.py").read_text(encoding="utf-8")
        self._floods_code = (_HERE / "floods.py").read_text(encoding="utf-8")

    def inside(self, *, watched: bool) -> Iterator[Callable[[], None]]:
        """What the real launcher runs, the longest first."""
        words = self.trial.inside
        yield from (partial(self._flood, name, words, self._run) for name in _FLOODS)
        yield self.acts_inside
        if watched:
            yield partial(self._sleeper, words, self._run, Status.TIMEOUT_WALL)

    def outside(self) -> Iterator[Callable[[], None]]:
        """The positive controls."""
        words, run = self.trial.outside, self._control.run
        yield from (partial(self._flood, name, words, run) for name in _FLOODS)
        yield from (self.acts_outside, partial(self._sleeper, words, run, "did"))

    def acts_inside(self) -> None:
        """Every act of the first program, in the sandbox. Raises WorkError where that does not run it."""
        result = self._acts(self.trial.inside, self._run)
        if result.status is not Status.OK:
            reason = last_line(result.stderr) or "it printed nothing"
            raise WorkError(
                f"the sandbox did not run the probe: {result.status}: {reason}",
                remedy="run `engine doctor` to see what is missing",
            )

    def acts_outside(self) -> None:
        """The same acts without a sandbox."""
        self._acts(self.trial.outside, self._control.run)

    def _acts(self, words: dict[str, str], run: Runner) -> RunResult:
        token, victim = _token(), self._canaries.victim()
        try:
            result = run(self._act_program(token, victim), BOUNDS)
            words |= compared(words_of(result.stdout), token, self._canaries, victim)
        finally:
            victim.end()
        return result

    def _act_program(self, token: str, victim: Victim) -> Program:
        machine = platform.machine()
        calls = numbers(ARCHITECTURES[machine].column)
        world = {
            **self._canaries.places,
            "token": token,
            "process": victim.process.pid,
            "descriptor": self._canaries.descriptor,
            "secret_name": self._canaries.secret_name,
            "listener": LISTENER[1],
            "allowed_name": ALLOWED,
            "calls": {name: number for name, number in calls.items() if name in {*KILLED, "clone", "clone3"}}
            | {"inotify_init1": _UNLISTED[machine]},
            "foreign": " ".join(acts_of(MACHINE_CALLS.get(machine, ()))),
            **{name: getattr(BOUNDS, name) for name in ("memory_bytes", "processes", "open_files")},
            "disk_bytes": BOUNDS.disk_bytes,
            "largest_bytes": BOUNDS.file_bytes,
        }
        return _program(self._acts_code, world, {ALLOWED: self._canaries.secret[::-1]})

    def _flood(self, name: str, words: dict[str, str], run: Runner) -> None:
        flood = _FLOODS[name]
        words[name] = _word(run(_program(self._floods_code, {"act": name, **flood.ask}), flood.bounds), flood)

    def _sleeper(self, words: dict[str, str], run: Runner, ended: str) -> None:
        """Something that would sleep on with daemons beside it: ended by the wall clock, then ended by itself.

        `ended` is the word of what the wall clock ended.
        """
        for seconds in _WAITS:
            result, watch, left = self._slept(run, 4 * seconds, replace(BOUNDS, wall_seconds=seconds))
            word = ended if result.status is Status.TIMEOUT_WALL else result.status
            words["sleep"] = word if result.wall_seconds >= seconds else "failed:early"
            words |= {**watch.facts, "left_at_kill": left}
            if watch.complete:
                break
        for seconds in _WAITS:
            result, watch, left = self._slept(run, seconds / 3, BOUNDS)
            words["left_at_exit"] = left if result.status is Status.OK else result.status
            if watch.complete:
                break

    def _slept(self, run: Runner, seconds: float, bounds: Bounds) -> tuple[RunResult, ProcessWatcher, str]:
        """How a sleeper ended, what was seen of it, and whether anything of it lived on."""
        token, main = _token(), _token()
        ask = {"act": "sleep", "token": token, "main": main, "count": _DAEMONS, "seconds": seconds}
        with ProcessWatcher(main, token, _DAEMONS) as watch:
            result = run(_program(self._floods_code, ask), bounds)
        return result, watch, _left(token, watch)


def _program(code: str, ask: Mapping[str, object], environment: Mapping[str, str] | None = None) -> Program:
    stdin = json.dumps(ask).encode("utf-8")
    return Program("python", code, stdin, {"PYTHONHASHSEED": "0", **(environment or {})})


def _token() -> str:
    """Long enough to be unique, short enough for the name of a process."""
    return f"ap{secrets.token_hex(6)}"


def _word(result: RunResult, flood: _Flood) -> str:
    if result.status is Status.OK:
        return "did" if result.stdout.endswith(b"did") else "failed:answer"
    if result.status is Status.TIMEOUT_CPU and result.signal == signal.SIGXCPU:
        return f"signal:{result.signal}"  # the kernel's own, before the engine looked
    if result.limit in {"stdout", "stderr"}:
        size, most = getattr(result, result.limit), getattr(flood.bounds, f"{result.limit}_bytes")
        return result.status if len(size) == most else f"failed:{len(size)}"
    return result.status if result.stdout.startswith(flood.began) else f"failed:{result.status}"


def _left(token: str, watch: ProcessWatcher) -> str:
    """Whether anything that was alive is so still; it is ended then."""
    if watch.most < _DAEMONS:
        return "failed:unseen"
    left = named(token)
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return "did" if left else "none"


def last_line(text: bytes) -> str:
    """The last line that a program printed."""
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""

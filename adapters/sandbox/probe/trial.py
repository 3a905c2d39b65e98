"""One probe: every program run by the real launcher and as a plain subprocess, and what each act came to."""

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

from adapters.sandbox.model import Bounds, Ended, Program, Status
from adapters.sandbox.probe.canaries import Canaries, Victim
from adapters.sandbox.probe.checks import MACHINE_CALLS, acts_of
from adapters.sandbox.probe.control import Control
from adapters.sandbox.probe.watch import Watch, named
from adapters.sandbox.probe.words import ALLOWED, compared, said
from adapters.sandbox.seccomp import ARCHITECTURES, KILLED
from adapters.sandbox.syscalls import numbers
from engine.errors import WorkError

Runner = Callable[[Program, Bounds], Ended]
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
_WAITS = (0.3, 1.2, 5.0)
"""Seconds until the wall clock ends a sleeper; longer when it was not up in time on a loaded machine."""

_CONTROL_SECONDS = 60.0
_UNLISTED = {"x86_64": 294, "aarch64": 26}
"""inotify_init1: a call that is harmless, allowed outside, and on no list of the filter."""


@dataclass(frozen=True, slots=True)
class _Flood:
    """One act of the second program: what it is asked, within what, and how long a control gets."""

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
    """What was seen: a word for each act inside and outside."""

    inside: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


def tried(run: Runner, user: int | None, known: Mapping[str, str] | None = None, *, watched: bool = True) -> Trial:
    """Run all of it, a few at a time; takes somewhat more than the second of CPU that the smallest limit has.

    `user` is who sandboxes are outside of themselves, None for this process itself; `known` are words of
    controls that were run on this machine already. Without `watched`, what the host sees of a program's
    processes is left to the caller. Raises OSError, and WorkError when the sandbox did not run.
    """
    with Canaries(user) as canaries:
        control = Control(user, {canaries.secret_name: canaries.secret}, canaries.descriptor)
        probe = _Probe(run, control, canaries, watched=watched)
        with ThreadPoolExecutor(4, thread_name_prefix="sandbox-probe") as pool:
            parts = [*probe.inside(), *(probe.outside() if known is None else ())]
            for done in [pool.submit(part) for part in parts]:
                done.result()
    probe.trial.outside |= known or {}
    return probe.trial


class _Probe:
    """The parts of a trial; each writes words of its own."""

    def __init__(self, run: Runner, control: Control, canaries: Canaries, *, watched: bool) -> None:
        self.trial = Trial()
        self._run, self._control, self._canaries = run, control, canaries
        self._watched = watched
        self._acts = (_HERE / "acts.py").read_text(encoding="utf-8")
        self._floods = (_HERE / "floods.py").read_text(encoding="utf-8")

    def inside(self) -> Iterator[Callable[[], None]]:
        """What the real launcher runs, the longest first."""
        yield from (partial(self._flood, name) for name in _FLOODS)
        yield self._acts_inside
        if self._watched:
            yield self._sleeper

    def outside(self) -> Iterator[Callable[[], None]]:
        """The positive controls."""
        yield from (partial(self._flood_outside, name) for name in _FLOODS)
        yield from (self._acts_outside, self._sleeper_outside)

    def _acts_inside(self) -> None:
        token, victim = _token(), self._canaries.victim()
        try:
            ended = self._run(self._act_program(token, victim), BOUNDS)
            words = compared(said(ended.stdout), token, self._canaries, victim)
        finally:
            victim.end()
        if ended.status is not Status.OK:
            raise WorkError(
                f"the sandbox did not run the probe: {ended.status}: {_last_line(ended.stderr)}",
                remedy="`engine doctor` says what sandboxes need of this machine",
            )
        self.trial.inside |= words

    def _acts_outside(self) -> None:
        token, victim = _token(), self._canaries.victim()
        try:
            plain = self._control.run(self._act_program(token, victim), _CONTROL_SECONDS)
            self.trial.outside |= compared(said(plain.stdout), token, self._canaries, victim)
        finally:
            victim.end()

    def _act_program(self, token: str, victim: Victim) -> Program:
        machine = platform.machine()
        calls = numbers(ARCHITECTURES[machine].column)
        world = {
            **self._canaries.places,
            "token": token,
            "process": victim.process.pid,
            "descriptor": self._canaries.descriptor,
            "secret_name": self._canaries.secret_name,
            "allowed_name": ALLOWED,
            "calls": {name: number for name, number in calls.items() if name in {*KILLED, "clone", "clone3"}}
            | {"inotify_init1": _UNLISTED[machine]},
            "foreign": " ".join(acts_of(MACHINE_CALLS.get(machine, ()))),
            **{name: getattr(BOUNDS, name) for name in ("memory_bytes", "processes", "open_files")},
            "disk_bytes": BOUNDS.disk_bytes,
            "largest_bytes": BOUNDS.file_bytes,
        }
        return _program(self._acts, world, {ALLOWED: self._canaries.secret[::-1]})

    def _flood(self, name: str) -> None:
        flood = _FLOODS[name]
        ended = self._run(_program(self._floods, {"act": name, **flood.ask}), flood.bounds)
        self.trial.inside[name] = _word(ended, flood)

    def _flood_outside(self, name: str) -> None:
        flood = _FLOODS[name]
        plain = self._control.run(_program(self._floods, {"act": name, **flood.ask}), _CONTROL_SECONDS)
        self.trial.outside[name] = "did" if plain.stdout.endswith(b"did") else "failed:ended"

    def _sleeper(self) -> None:
        """Something that would sleep on with daemons beside it: ended by the wall clock, then ended by itself."""
        for seconds in _WAITS:
            token, main = _token(), _token()
            bounds = replace(BOUNDS, wall_seconds=seconds)
            with Watch(main, token, _DAEMONS) as watch:
                ended = self._run(_sleep(self._floods, token, main, 4 * seconds), bounds)
            self.trial.inside["sleep"] = ended.status if ended.wall_seconds >= seconds else "failed:early"
            self.trial.inside["left_at_kill"] = _left(token, watch)
            self.trial.inside |= watch.facts
            if watch.complete:
                break
        for seconds in _WAITS:
            token, main = _token(), _token()
            with Watch(main, token, _DAEMONS) as watch:
                ended = self._run(_sleep(self._floods, token, main, seconds / 3), BOUNDS)
            self.trial.inside["left_at_exit"] = _left(token, watch) if ended.status is Status.OK else ended.status
            if watch.complete:
                break

    def _sleeper_outside(self) -> None:
        for seconds in _WAITS:
            killed = self._left_outside("left_at_kill", 10 * seconds, seconds)
            ended = self._left_outside("left_at_exit", seconds / 3, _CONTROL_SECONDS)
            if killed and ended:
                break

    def _left_outside(self, act: str, seconds: float, most: float) -> bool:
        token, main = _token(), _token()
        with Watch(main, token, _DAEMONS) as watch:
            plain = self._control.run(_sleep(self._floods, token, main, seconds), most)
        self.trial.outside[act] = _left(token, watch)
        if plain.killed:
            self.trial.outside["sleep"] = "did"
            self.trial.outside |= watch.facts
        return watch.complete


def _program(code: str, ask: Mapping[str, object], environment: Mapping[str, str] | None = None) -> Program:
    return Program(
        language="python",
        code=code,
        stdin=json.dumps(ask).encode("utf-8"),
        environment={"PYTHONHASHSEED": "0", **(environment or {})},
        seed=0,
        folder=f"code_exec_agent_{secrets.token_hex(8)}",
    )


def _sleep(code: str, token: str, main: str, seconds: float) -> Program:
    return _program(code, {"act": "sleep", "token": token, "main": main, "count": _DAEMONS, "seconds": seconds})


def _token() -> str:
    """Long enough to be nobody else's, short enough to be the name of a process."""
    return f"ap{secrets.token_hex(6)}"


def _word(ended: Ended, flood: _Flood) -> str:
    if ended.status is Status.OK:
        return "did" if ended.stdout.endswith(b"did") else "failed:answer"
    if ended.status is Status.TIMEOUT_CPU and ended.signal == signal.SIGXCPU:
        return f"signal:{ended.signal}"  # the kernel's own, before the engine looked
    if ended.limit in {"stdout", "stderr"}:
        kept, most = getattr(ended, ended.limit), getattr(flood.bounds, f"{ended.limit}_bytes")
        return ended.status if len(kept) == most else f"failed:{len(kept)}"
    return ended.status if ended.stdout.startswith(flood.began) else f"failed:{ended.status}"


def _left(token: str, watch: Watch) -> str:
    """Whether anything that was alive is so still; it is ended then."""
    if watch.most < _DAEMONS:
        return "failed:unseen"
    left = named(token)
    for pid in left:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return "did" if left else "none"


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"

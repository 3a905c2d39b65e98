"""The probe of gVisor: the same acts and controls as for bubblewrap, and what the host sees of its processes.

A program's own processes have no names outside, since the kernel that they see is gVisor's. So the host looks at
every process below the sandbox's first one, and takes what it is told of those that carry out the program's calls.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from adapters.sandbox.gvisor import InGvisor
from adapters.sandbox.model import Bounds, Ended, Program
from adapters.sandbox.probe import Row, rows, tried
from adapters.sandbox.probe.checks import KERNEL, REFUSED, Check
from adapters.sandbox.probe.trial import BOUNDS
from adapters.sandbox.probe.watch import observed
from adapters.sandbox.process import Sandbox, run_once
from adapters.sandbox.user import sandbox_user

_DAEMONS = 3
_WALL_SECONDS = 2.0  # enough for its daemons to be up on a loaded machine
_POLL_SECONDS = 0.02
_KERNEL_NAME = b"runsc-sandbox"
_PROC = Path("/proc")
_HARM = {"root", "some", "did", "shared"}

CHECKS: Mapping[str, tuple[Check, ...]] = {
    **KERNEL,
    "files": (
        *(check for check in KERNEL["files"] if not check.act.endswith("_write") or check.act == "outside_write"),
        *(Check(f"{place}_write", REFUSED, ("did", "refused:EACCES")) for place in ("usr", "root", "dev")),
    ),
    "capabilities": (
        *(check for check in KERNEL["capabilities"] if check.act != "outside_capabilities"),
        Check("namespace_user", ("own",), ("shared",)),
    ),
}
"""As for bubblewrap, but that a folder may be refused as another user's too, and that gVisor's kernel has
capabilities over the user namespace of its own that it stands in."""


def probe_gvisor(folder: Path) -> tuple[Row, ...]:
    """Try every boundary with the runsc in `folder`. Raises OSError, or WorkError where it cannot be started."""
    recipe, user = InGvisor(folder), sandbox_user()

    def run(program: Program, bounds: Bounds) -> Ended:
        return run_once(program, bounds, recipe=recipe)

    trial = tried(run, None if user.own else user.uid, watched=False)
    for act, seconds in (("left_at_kill", 10 * _WALL_SECONDS), ("left_at_exit", _WALL_SECONDS / 4)):
        ended, below = _slept(recipe, seconds)
        trial.inside[act] = _word(below)
        if act == "left_at_kill":
            trial.inside |= below.facts
            trial.inside["sleep"] = ended.status
    return rows(trial, CHECKS)


def _word(below: Below) -> str:
    """Nothing is said of a program that was not seen with all its daemons."""
    return below.left() if below.most > _DAEMONS else "failed:unseen"


def _slept(recipe: InGvisor, seconds: float) -> tuple[Ended, Below]:
    """A program that sleeps beside its daemons, in the end or past the wall clock."""
    bounds = replace(BOUNDS, wall_seconds=_WALL_SECONDS)
    ask = {"act": "sleep", "token": "daemon", "main": "main", "count": _DAEMONS, "seconds": seconds}
    program = Program(
        language="python",
        code=Path(__file__).with_name("probe").joinpath("floods.py").read_text(encoding="utf-8"),
        stdin=json.dumps(ask).encode(),
        environment={},
        seed=0,
        folder=f"code_exec_agent_{secrets.token_hex(8)}",
    )
    sandbox = Sandbox.ready(bounds, {}, recipe=recipe)
    with Below(sandbox.child) as below:
        return sandbox.run(program), below


class Below:
    """Watches everything below a process while a program runs. `most` is how many carried out calls at once."""

    def __init__(self, first: int) -> None:
        self.facts: dict[str, str] = {}
        self.most = 0
        self._first = first
        self._seen: set[tuple[int, str]] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="sandbox-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def left(self) -> str:
        """Whether anything that was seen is alive still."""
        return "did" if any(_life(pid) == life for pid, life in self._seen) else "none"

    def _look(self) -> None:
        while not self._over.is_set():
            children = _children()
            everything = _below(self._first, children)
            self._seen |= {(pid, life) for pid in everything if (life := _life(pid)) is not None}
            kernels = [pid for pid in everything if _command(pid).startswith(_KERNEL_NAME)]
            carriers = [one for kernel in kernels for one in _below(kernel, children)]
            self.most = max(self.most, len(carriers))
            for pid in carriers:
                with suppress(OSError, KeyError, ValueError):
                    for fact, word in observed(pid).items():
                        self.facts[fact] = word if word in _HARM else self.facts.get(fact, word)
            self._over.wait(_POLL_SECONDS)


def _below(first: int, children: Mapping[int, list[int]]) -> list[int]:
    """A process and all that descend from it."""
    return [first, *(pid for child in children.get(first, ()) for pid in _below(child, children))]


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                found.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
    return found


def _life(pid: int) -> str | None:
    """When a living process began, which with its number names it; None for a dead one."""
    try:
        fields = _stat(pid)
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else fields[19]


def _stat(pid: int) -> list[str]:
    """The fields of proc(5) from the state on."""
    return (_PROC / str(pid) / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""

"""The probe of gVisor: the same acts and controls as for bubblewrap, plus its processes as the host sees them.

A program's own processes have no names outside, since the kernel that they see is gVisor's. So the host looks at
every process below the sandbox's first one, and uses the report of those that execute the program's calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from admission_adapters.sandbox.gvisor.backend import Gvisor
from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.probe.checks import KERNEL, REFUSED, Check
from admission_adapters.sandbox.probe.rows import Row, rows
from admission_adapters.sandbox.probe.trial import BOUNDS, tried
from admission_adapters.sandbox.probe.watch import Watcher, observed
from admission_adapters.sandbox.run.proc import stat_of, tree
from admission_adapters.sandbox.run.process import run_in, run_once
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from admission_adapters.sandbox.run.user import sandbox_user

_DAEMONS = 3
_WALL_SECONDS = 2.0  # enough for its daemons to be up on a loaded machine
_KERNEL_NAME = b"runsc-sandbox"
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
capabilities over the user namespace of its own in which it runs."""


def probe_gvisor(folder: Path) -> tuple[Row, ...]:
    """Try every boundary with the runsc in `folder`. Raises OSError, or WorkError where it cannot be started."""
    recipe = Gvisor(folder)

    def run(program: Program, bounds: Bounds) -> RunResult:
        return run_once(program, bounds, recipe=recipe)

    trial = tried(run, sandbox_user().other, watched=False)
    for act, seconds in (("left_at_kill", 10 * _WALL_SECONDS), ("left_at_exit", _WALL_SECONDS / 4)):
        run_result, below = _slept(recipe, seconds)
        trial.inside[act] = _word(below)
        if act == "left_at_kill":
            trial.inside |= below.facts
            trial.inside["sleep"] = run_result.status
    return rows(trial, CHECKS)


def _word(below: Below) -> str:
    """A program counts as observed only together with all its daemons."""
    return below.left() if below.most > _DAEMONS else "failed:unseen"


def _slept(recipe: Gvisor, seconds: float) -> tuple[RunResult, Below]:
    """A program that sleeps beside its daemons, in the end or past the wall clock."""
    bounds = replace(BOUNDS, wall_seconds=_WALL_SECONDS)
    ask = {"act": "sleep", "token": "daemon", "main": "main", "count": _DAEMONS, "seconds": seconds}
    code = Path(__file__).parents[1].joinpath("probe", "floods.py").read_text(encoding="utf-8")
    program = Program("python", code, json.dumps(ask).encode())
    sandbox = start(Setup(bounds, {}), recipe)
    with Below(sandbox.child) as below:
        return run_in(sandbox, program), below


class Below(Watcher):
    """Watches all descendants of a process while a program runs; what counts are those that execute its calls."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self._first = first
        self._seen: set[tuple[int, str]] = set()

    def left(self) -> str:
        """Whether any observed process is still alive."""
        return "did" if any(_life(pid) == life for pid, life in self._seen) else "none"

    def look(self) -> None:
        """Look once."""
        everything = list(tree(self._first))
        self._seen |= {(pid, life) for pid in everything if (life := _life(pid)) is not None}
        carriers = [carrier for pid in everything if _is_kernel(pid) for carrier in tree(pid)]
        self.most = max(self.most, len(carriers))
        for pid in carriers:
            with suppress(OSError, KeyError, ValueError):
                for fact, word in observed(pid).items():
                    self.facts[fact] = word if word in _HARM else self.facts.get(fact, word)


def _life(pid: int) -> str | None:
    """The start time of a live process, which identifies it together with its pid; None for a dead one."""
    try:
        fields = stat_of(pid)
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else fields[19]


def _is_kernel(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(_KERNEL_NAME)
    return False

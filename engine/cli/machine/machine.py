"""What the kernel and the sandbox tools of this machine offer, found out by trying."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.errors import reason_of

_PROBE_SECONDS = 5.0  # a probe of the sandbox needs some hundredths
_OUTPUT_BYTES = 4096  # read from the output of a probe
_NOBODY = 65534


class State(StrEnum):
    """How a check ended: there and working, not there, or there and not working."""

    OK = "ok"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of this machine. `needed`: `engine check` does not work without it."""

    name: str
    state: State
    detail: str
    remedy: str = ""
    needed: bool = False


def judged(name: str, problem: str, remedy: str, detail: str) -> Check:
    """A check that failed where there is a problem, else one that is in order."""
    return Check(name, State.FAILED, problem, remedy) if problem else Check(name, State.OK, detail)


def bubblewrap() -> Iterator[Check]:
    """Whether sandboxes can use the bubblewrap of this machine, and namespaces can be made. Raises OSError."""
    from admission_adapters.sandbox.bubblewrap.arguments import BWRAP
    from admission_adapters.sandbox.machine import without_bubblewrap

    if (lacks := without_bubblewrap()) is not None:
        problem, _, remedy = lacks.partition(": ")
        remedy += "; without it no generated code is run"
        yield Check("bwrap", State.FAILED if Path(BWRAP).exists() else State.MISSING, problem, remedy)
        yield Check("user namespaces", State.MISSING, "cannot be tested without bwrap", remedy)
        return
    _, output = tried([BWRAP, "--version"], _PROBE_SECONDS)
    yield Check("bwrap", State.OK, f"{BWRAP}, {output.strip()}")
    yield _namespaces(BWRAP)


def _namespaces(bwrap: str) -> Check:
    """Root may always make one, so the probe runs as an ordinary user then."""
    root = os.geteuid() == 0
    who = f"tried as uid {_NOBODY}, because this is root" if root else f"tried as uid {os.geteuid()}"
    argv = [bwrap, "--unshare-user", "--ro-bind", "/", "/", "true"]
    code, output = tried(argv, _PROBE_SECONDS, _NOBODY if root else None)
    if code == 0:
        return Check("user namespaces", State.OK, f"an unprivileged process can create one ({who})")
    why = "no answer in time" if code is None else " ".join(output.split())[:200] or f"it ended with {code}"
    remedy = (
        "allow unprivileged user namespaces (sysctl, AppArmor or the container's settings); until then no code is run"
    )
    return Check("user namespaces", State.FAILED, f"{why} ({who})", remedy)


def cgroups() -> Iterator[Check]:
    """Whether sandboxes of this process can bound the memory of all their processes together. Raises OSError."""
    from admission_adapters.sandbox.run.cgroup import memory_place

    if (place := memory_place()) is not None:
        yield Check("memory cgroup", State.OK, f"version {place.version}: {display_path(place.folder)}")
        return
    remedy = "run below a delegated cgroup v2 (systemd: Delegate=yes); "
    remedy += "until then memory is limited per process, not per process tree"
    yield Check("memory cgroup", State.MISSING, "this process may make none", remedy)


def tried(argv: Sequence[str], seconds: float, uid: int | None = None) -> tuple[int | None, str]:
    """Exit code (None: killed after a timeout) and the start of its output. Raises OSError."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv,
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return code, output.read(_OUTPUT_BYTES).decode("utf-8", "replace")


def display_path(path: Path) -> str:
    """The path with the home folder as `~`, which keeps user names out of what people paste."""
    try:
        home = Path.home()
    except RuntimeError:
        return str(path)
    if home.parent == home or not path.is_relative_to(home):
        return str(path)
    return str(Path("~") / path.relative_to(home))


def reason(error: Exception) -> str:
    """Why something failed in a few words, without content."""
    return reason_of(error) if isinstance(error, OSError) else type(error).__name__

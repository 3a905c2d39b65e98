"""`engine doctor`: what this machine has, what it lacks, and what to do about it.

Every answer comes from trying, not from reading a setting, and nothing stays behind. It needs
little of the engine itself, so that it can still speak when the rest does not work.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.machine import Check, State, bubblewrap, cgroups, landlock, reason, shown, tried
from engine.errors import EngineError, Exit

if TYPE_CHECKING:
    from engine.opa.binary import Binary
    from engine.settings import Settings

_PROBE_BYTES = 64 << 10  # written to a folder; more than any block size


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class _Machine:
    settings: Settings
    find_opa: Callable[[], Binary]
    find_tool: Callable[[str], str | None]


def doctor(
    format_: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Probe every sandbox boundary on this machine.")] = False,
    state: options.State = None,
) -> None:
    """Say what this machine has: OPA, writable state, sandbox tools. Ends with 4 when `engine check` cannot work.

    With --sandbox, try every boundary of every sandbox; ends with 4 when none holds them all.
    """
    if sandbox:
        from engine.cli import doctor_sandbox

        raise typer.Exit(doctor_sandbox.run(format_))
    raise typer.Exit(run(options.settings(state), format_))


def run(
    settings: Settings,
    format: str = Format.TEXT,  # noqa: A002 (what the option is called)
    find_opa: Callable[[], Binary] | None = None,
    find_tool: Callable[[str], str | None] = shutil.which,
) -> Exit:
    """Print what was found; ALLOW when all that `engine check` needs is there, else FAILED_CLOSED.

    `find_opa` gives the verified OPA or raises EngineError, `find_tool` the path of a program.
    """
    checks = examine(settings, find_opa, find_tool)
    code = Exit.FAILED_CLOSED if _broken(checks) else Exit.ALLOW
    typer.echo(_json(checks, code) if format == Format.JSON else _text(checks, code))
    return code


def examine(
    settings: Settings,
    find_opa: Callable[[], Binary] | None = None,
    find_tool: Callable[[str], str | None] = shutil.which,
) -> list[Check]:
    """Every check, in the order in which they are told. Raises nothing."""
    machine = _Machine(settings, find_opa or _bundled_opa, find_tool)
    checks: list[Check] = []
    for name, (needed, check) in _CHECKS.items():
        try:
            checks.extend(check(machine))
        except Exception as error:  # noqa: BLE001 (a check that breaks is a finding, not the end of the others)
            detail = f"cannot be determined: {reason(error)}"
            checks.append(
                Check(name, State.FAILED, detail, "fix the problems above first; report this if it remains", needed)
            )
    return checks


def _python(_: _Machine) -> Iterator[Check]:
    from engine import __version__

    yield Check("python", State.OK, f"{platform.python_implementation()} {platform.python_version()}")
    yield Check("engine", State.OK, f"{__version__} in {shown(_package())}")
    yield Check("platform", State.OK, f"{platform.system()} {platform.release()} {platform.machine()}")


def _opa(machine: _Machine) -> Iterator[Check]:
    try:
        binary = machine.find_opa()
    except EngineError as error:
        yield Check("opa", State.FAILED, error.message, error.remedy, needed=True)
        return
    path, root = binary.path, _package().parent
    place = str(path.relative_to(root)) if path.is_relative_to(root) else shown(path)
    yield Check("opa", State.OK, f"{place}, version {binary.version}, sha256 {binary.sha256} as built", needed=True)
    yield _opa_answers(binary, machine.settings.opa.start_seconds)


def _opa_answers(binary: Binary, seconds: float) -> Check:
    again = "reinstall the package; if that does not help, check that this machine may execute it"
    try:
        code, said = tried([str(binary.path), "version"], seconds)
    except OSError as error:
        return Check("opa answers", State.FAILED, f"cannot be started: {reason(error)}", again, needed=True)
    if code is None:
        return Check("opa answers", State.FAILED, f"says nothing for {seconds:g} seconds", again, needed=True)
    if code != 0 or f"Version: {binary.version}" not in said.splitlines():
        detail = f"ends with {code} and does not report version {binary.version}"
        return Check("opa answers", State.FAILED, detail, again, needed=True)
    return Check(
        "opa answers", State.OK, f"starts with an empty environment and is version {binary.version}", needed=True
    )


def _state(machine: _Machine) -> Iterator[Check]:
    folder = machine.settings.state
    yield _folder("state", folder, "name another folder with --state or ENGINE_STATE_DIR", needed=True)
    records = folder / "records"
    if records.is_dir():
        yield _folder("records", records, "let this user write to it; records are never moved or removed", needed=True)
    room = os.statvfs(_nearest(folder))
    yield Check("disk", State.OK, f"{room.f_bavail * room.f_frsize:,} bytes free where the state is")


def _lock(machine: _Machine) -> Iterator[Check]:
    from engine.record.layout import LOCK
    from engine.record.storage import DiskStorage

    storage, seconds = DiskStorage(machine.settings.state), machine.settings.record_lock_seconds
    deadline = time.monotonic() + seconds
    while held := storage.locked(LOCK):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    if held:
        detail = f"another engine has held it for {seconds:g} seconds; a record has one writer"
        do = "end the other engine, ask it instead, or give this one a folder of its own with --state"
        yield Check("record lock", State.FAILED, detail, do, needed=True)
    else:
        yield Check("record lock", State.OK, "free", needed=True)


def _cache(machine: _Machine) -> Iterator[Check]:
    do = "set XDG_CACHE_HOME to a folder that can be written; until then policy bundles are built each time"
    yield _folder("cache", machine.settings.cache, do, needed=False)


def _sockets(_: _Machine) -> Iterator[Check]:
    from engine.opa.server import LONGEST_BASE, base_folder, private

    temp = Path(tempfile.gettempdir())
    base = base_folder()
    do = "set TMPDIR to a short path of a folder that only this user can write"
    problem = ""
    if len(os.fsencode(base)) > LONGEST_BASE:
        problem = f"{shown(temp)} is too long for the path of a socket"
    elif os.path.lexists(base) and not private(base):
        problem = f"{shown(base)} exists and is not a private folder of this user"
    else:
        try:
            with (
                tempfile.TemporaryDirectory(prefix="doctor-", dir=temp) as trial,
                socket.socket(socket.AF_UNIX) as probe,
            ):
                probe.bind(f"{trial}/opa.sock")
        except OSError as error:
            problem = f"no socket can be made in {shown(temp)}: {reason(error)}"
    if problem:
        yield Check("temp folder", State.FAILED, problem, do, needed=True)
    else:
        yield Check("temp folder", State.OK, f"{shown(temp)}, sockets can be made in it", needed=True)


def _sandbox(machine: _Machine) -> Iterator[Check]:
    return bubblewrap(machine.find_tool("bwrap"))


def _landlock(_: _Machine) -> Iterator[Check]:
    yield landlock()


def _cgroups(_: _Machine) -> Iterator[Check]:
    yield cgroups()


_CHECKS: dict[str, tuple[bool, Callable[[_Machine], Iterator[Check]]]] = {
    "python": (False, _python),
    "opa": (True, _opa),
    "state": (True, _state),
    "record lock": (True, _lock),
    "temp folder": (True, _sockets),
    "cache": (False, _cache),
    "bwrap": (False, _sandbox),
    "landlock": (False, _landlock),
    "cgroup v2": (False, _cgroups),
}
"""The checks, whether `engine check` needs them, and who makes them."""


def _folder(name: str, folder: Path, do: str, *, needed: bool) -> Check:
    """Make, sync and remove a file in the folder, or a folder with one where it would be made."""
    try:
        there = folder.is_dir()
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder if there else _nearest(folder)) as trial:
            with (Path(trial) / "probe").open("wb") as file:
                file.write(bytes(_PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
            _sync(trial)
    except OSError as error:
        return Check(name, State.FAILED, f"{shown(folder)} cannot be written: {reason(error)}", do, needed)
    return Check(
        name, State.OK, f"{shown(folder)}, {'writable' if there else 'will be created at first use'}", "", needed
    )


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next(above for above in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(above))


def _bundled_opa() -> Binary:
    from engine.opa.binary import find_binary

    return find_binary()


def _package() -> Path:
    import engine

    return Path(engine.__file__).parent


def _broken(checks: Sequence[Check]) -> list[str]:
    return [check.name for check in checks if check.needed and check.state is not State.OK]


def _json(checks: Sequence[Check], code: Exit) -> str:
    told = [
        {"name": check.name, "state": check.state.value, "needed": check.needed, "detail": check.detail, "do": check.do}
        for check in checks
    ]
    return json.dumps({"format": 1, "checks": told, "exit": int(code)}, indent=2)


def _text(checks: Sequence[Check], code: Exit) -> str:
    from engine.cli.formats.show import clean

    lines = []
    for check in checks:
        lines.append(f"{check.state.value:8} {check.name:16} {clean(check.detail)}")
        if check.do and check.state is not State.OK:
            lines.append(f"{'':25} fix: {clean(check.do)}")
    broken = ", ".join(_broken(checks))
    end = (
        f"`engine check` cannot work until this is fixed: {broken}"
        if broken
        else "everything `engine check` needs is available"
    )
    return "\n".join([*lines, f"{end}; exit {int(code)}"])

"""`engine doctor`: what this machine has, what it lacks, and what to do about it.

Every result comes from a test, not from a setting, and nothing is left behind. It needs
little of the engine itself, so that it works when the rest does not.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from engine.binaries import Binary, find_binary
from engine.cli import options
from engine.cli.machine.machine import Check, State, bubblewrap, cgroups, display_path, judged, reason, tried
from engine.cli.outputs import painted, print_text
from engine.cli.serve import RunnerCertificate, RunnerKey, RunnerToken, runner_access
from engine.documents.files import opened_folder
from engine.errors import EngineError, Exit
from engine.record.storage import Storage
from engine.settings import Settings
from engine.state import has_state, open_shared, open_state
from engine.state.location import require_private
from engine.version import __version__

_PACKAGE = Path(__file__).parents[2]
_PROBE_BYTES = 64 << 10  # written to a folder; more than any block size


def doctor(
    format_: options.Output = "text",
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Probe every sandbox boundary on this machine.")] = False,
    runner: Annotated[
        str | None, typer.Option("--runner", metavar="URL", help="Test whether this runner can be reached from here.")
    ] = None,
    ca_file: options.CaFile = None,
    runner_token_file: RunnerToken = None,
    runner_cert: RunnerCertificate = None,
    runner_key: RunnerKey = None,
    state: options.State = None,
) -> None:
    """Report what this machine has: OPA, writable state, sandbox tools. Exits with 4 if `engine check` cannot work.

    With --sandbox, probe every boundary of every sandbox; exits with 4 if no sandbox enforces all of them.
    With --runner, test from here whether a runner can be reached, whether it demands a client certificate, and whether
    it accepts the credentials of the other options; exits with 4 if a caller on this machine cannot use it.
    """
    access = runner_access(runner_token_file, runner_cert, runner_key, ca_file)
    if runner is not None:
        from engine.cli.machine import doctor_runner

        headlines = ("the runner can be used from here", "the runner cannot be used from here")
        raise typer.Exit(_report(doctor_runner.examine(runner, access), format_, *headlines))
    if sandbox:
        from engine.cli.machine import doctor_sandbox

        raise typer.Exit(doctor_sandbox.run(format_))
    raise typer.Exit(run(options.Sources(state=state).settings(), format_))


def run(
    settings: Settings,
    format: str = "text",  # noqa: A002 (what the option is called)
    find_opa: Callable[[], Binary] = find_binary,
) -> Exit:
    """Print the checks; ALLOW if everything that `engine check` needs is available, else FAILED_CLOSED.

    `find_opa` returns the verified OPA or raises EngineError.
    """
    checks = examine(settings, find_opa)
    return _report(checks, format, "everything `engine check` needs is available", "`engine check` cannot work")


def examine(settings: Settings, find_opa: Callable[[], Binary] = find_binary) -> list[Check]:
    """Every check, in the order of the report. Raises nothing."""
    makers: dict[str, tuple[bool, Callable[[], Iterator[Check]]]] = {
        "python": (False, _python),
        "opa": (True, lambda: _opa(find_opa, settings.opa.start_seconds)),
        "state": (True, lambda: _state(settings)),
        "shared state": (True, lambda: _shared(settings.database)),
        "disk": (False, lambda: _disk(settings.state)),
        "record lock": (True, lambda: _lock(settings)),
        "temp folder": (True, _sockets),
        "cache": (False, lambda: _cache(settings.cache)),
        "bwrap": (False, bubblewrap),
        "memory cgroup": (False, cgroups),
    }
    checks: list[Check] = []
    for name, (needed, made) in makers.items():
        try:
            checks += [replace(check, needed=needed) for check in made()]
        except EngineError as error:
            checks.append(Check(name, State.FAILED, error.message, error.remedy, needed))
        except Exception as error:  # noqa: BLE001 (a check that breaks is a finding, not the end of the others)
            detail = f"cannot be determined: {reason(error)}"
            checks.append(
                Check(name, State.FAILED, detail, "fix the problems above first; report this if it remains", needed)
            )
    return checks


def _python() -> Iterator[Check]:
    yield Check("python", State.OK, f"{platform.python_implementation()} {platform.python_version()}")
    yield Check("engine", State.OK, f"{__version__} in {display_path(_PACKAGE)}")
    yield Check("platform", State.OK, f"{platform.system()} {platform.release()} {platform.machine()}")


def _opa(find: Callable[[], Binary], seconds: float) -> Iterator[Check]:
    binary = find()
    path, root = binary.path, _PACKAGE.parent
    place = str(path.relative_to(root)) if path.is_relative_to(root) else display_path(path)
    yield Check("opa", State.OK, f"{place}, version {binary.version}, sha256 {binary.sha256} as built")
    problem = _problem_of_opa(binary, seconds)
    again = "reinstall the package; if that does not help, check that this machine may execute it"
    yield judged("opa answers", problem, again, f"starts with an empty environment; version {binary.version}")


def _problem_of_opa(binary: Binary, seconds: float) -> str:
    try:
        code, output = tried([str(binary.path), "version"], seconds)
    except OSError as error:
        return f"cannot be started: {reason(error)}"
    if code is None:
        return f"gives no answer within {seconds:g} seconds"
    if code != 0 or f"Version: {binary.version}" not in output.splitlines():
        return f"ends with {code} and does not report version {binary.version}"
    return ""


def _state(settings: Settings) -> Iterator[Check]:
    folder = settings.state
    if folder.is_dir():
        try:
            require_private(folder)
        except EngineError as error:
            yield Check("state", State.FAILED, f"{error.where}: {error.message}", error.remedy)
            return
    yield _folder("state", folder, "name another folder with --state or ENGINE_STATE_DIR")
    yield from _state_file(settings)
    records = folder / "records"
    if records.is_dir():
        yield _folder("records", records, "let this user write to it; records are never moved or removed")
        yield _record(folder)


def _state_file(settings: Settings) -> Iterator[Check]:
    """What is in the folder beside the record, opened as engines open it."""
    if settings.database is not None or not has_state(settings):
        return
    try:
        open_state(settings).close()
    except EngineError as error:
        yield Check("state file", State.FAILED, error.message, error.remedy)
        return
    yield Check("state file", State.OK, "intact, and of this version")


def _record(folder: Path) -> Check:
    """Key, checkpoint and end of each chain, as the start of an engine demands them."""
    from engine.record.chains import chain_folders
    from engine.record.layout import BrokenError
    from engine.record.log import broken_error
    from engine.record.recovery import require_ends

    try:
        for chain in chain_folders(folder).values():
            try:
                require_ends(Storage(chain))
            except BrokenError as error:
                raise broken_error(error, str(chain)) from None
    except EngineError as error:
        return Check("record", State.FAILED, f"{error.where}: {error.message}", error.remedy)
    return Check("record", State.OK, "ends as signed; `engine record verify` reads all of it")


def _shared(database: str | None) -> Iterator[Check]:
    if database is None:
        return

    with closing(open_shared(database)) as store:
        problem = "" if store.writable() else "its rows cannot be written"
    yield judged("shared state", problem, "run `engine state grant ROLE` as the owner of the tables", "can be written")


def _disk(folder: Path) -> Iterator[Check]:
    room = os.statvfs(_nearest(folder))
    yield Check("disk", State.OK, f"{room.f_bavail * room.f_frsize:,} bytes free where the state is")


def _lock(settings: Settings) -> Iterator[Check]:
    from engine.record.chains import MOST_CHAINS, held_chains

    held = len(held_chains(settings.state))
    problem = f"{held} engines use all chains" if held == MOST_CHAINS else ""
    remedy = "stop some of the engines, or use another state folder (`--state`)"
    yield judged("record lock", problem, remedy, f"{held} of {MOST_CHAINS} chains in use" if held else "free")


def _cache(folder: Path) -> Iterator[Check]:
    remedy = "set XDG_CACHE_HOME to a folder that can be written; until then policy bundles are built each time"
    yield _folder("cache", folder, remedy)


def _sockets() -> Iterator[Check]:
    temp = Path(tempfile.gettempdir())
    remedy = "set TMPDIR to a short path of a folder that only this user can write"
    yield judged(
        "temp folder", _problem_of_sockets(temp), remedy, f"{display_path(temp)}, sockets can be created in it"
    )


def _problem_of_sockets(temp: Path) -> str:
    from engine.opa.server import LONGEST_BASE, base_folder, private

    base = base_folder()
    if len(os.fsencode(base)) > LONGEST_BASE:
        return f"{display_path(temp)} is too long for the path of a socket"
    if os.path.lexists(base) and not private(base):
        return f"{display_path(base)} exists and is not a private folder of this user"
    try:
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=temp) as trial, socket.socket(socket.AF_UNIX) as probe:
            probe.bind(f"{trial}/opa.sock")
    except OSError as error:
        return f"no socket can be made in {display_path(temp)}: {reason(error)}"
    return ""


def _folder(name: str, folder: Path, remedy: str) -> Check:
    """Make, sync and remove a file in the folder, or a folder with one where it would be made."""
    try:
        there = folder.is_dir()
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder if there else _nearest(folder)) as trial:
            with (Path(trial) / "probe").open("wb") as file:
                file.write(bytes(_PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with opened_folder(Path(trial)) as handle:
                os.fsync(handle)
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        detail = f"{display_path(folder)} cannot be written: {reason(error)}"
        return Check(name, State.FAILED, detail, "free disk space" if full else remedy)
    return Check(name, State.OK, f"{display_path(folder)}, {'writable' if there else 'will be created at first use'}")


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next(above for above in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(above))


def _json(checks: Sequence[Check], code: Exit) -> str:
    return json.dumps({"format": 1, "checks": [asdict(check) for check in checks], "exit": int(code)}, indent=2)


def _report(checks: Sequence[Check], format: str, good: str, bad: str) -> Exit:  # noqa: A002
    """Print the checks and what they amount to: ALLOW with nothing that is needed broken, else FAILED_CLOSED."""
    broken = ", ".join(check.name for check in checks if check.needed and check.state is not State.OK)
    code, end = (Exit.FAILED_CLOSED, f"{bad} until this is fixed: {broken}") if broken else (Exit.ALLOW, good)
    text = _json(checks, code) if format == "json" else _text(checks, code, end)
    print_text(text)
    return code


def _text(checks: Sequence[Check], code: Exit, end: str) -> str:
    from engine.cli.formats.show import clean

    lines = []
    for check in checks:
        lines.append(f"{painted(check.state.value, 8)} {check.name:16} {clean(check.detail)}")
        if check.remedy and check.state is not State.OK:
            lines.append(f"{'':25} fix: {clean(check.remedy)}")
    return "\n".join([*lines, f"{end}; exit {int(code)}"])

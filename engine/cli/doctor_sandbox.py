"""`engine doctor --sandbox`: what each sandbox of this machine was just shown to hold, what it lacks, how to get it.

Everything is tried now, by the launcher of real runs, and nothing is kept. Ends with 0 when the baseline, the first
backend, holds every boundary (E33), else with 4: which of them a policy asks for, and by whom each must be held, is
the policy's matter.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from adapters.sandbox.probe import REQUESTED, WORDING, Row
from engine.cli.formats.show import clean
from engine.cli.machine import cgroups, reason
from engine.errors import EngineError, Exit
from engine.sandboxes.registry import Registered, registered

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_NODE = "/usr/bin/node"
_NOTE = f"the plain subprocess beside each probe is {WORDING}: it is the positive control, and no code is run in it"


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be said of one backend. `problem` says in words why it claims nothing, `do` what may help."""

    backend: str
    probed_at: int
    seconds: float
    rows: tuple[Row, ...] = ()
    problem: str | None = None
    do: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every boundary is held."""
        return bool(self.rows) and all(row.enforced for row in self.rows)


def run(
    format: str,  # noqa: A002 (what the option is called)
    backends: Callable[[], Mapping[str, Registered]] = registered,
    clock: Callable[[], float] = time.time,
) -> Exit:
    """Try every backend and print what was seen. ALLOW when the first holds every boundary, else FAILED_CLOSED."""
    told = [_tried(name, entry, clock) for name, entry in backends().items()]
    code = Exit.ALLOW if told and told[0].holds else Exit.FAILED_CLOSED
    languages = _languages()
    typer.echo(_json(told, languages, code) if format == "json" else _text(told, languages, code))
    return code


def _tried(name: str, entry: Registered, clock: Callable[[], float]) -> Told:
    now, started = int(clock()), time.monotonic()
    try:
        missing = entry.backend.available()
        rows = () if missing is not None else entry.probe()
    except (EngineError, OSError) as error:
        missing, rows = f"it cannot be tried: {_words(error)}", ()
    return Told(name, now, time.monotonic() - started, rows, missing, _remedies(rows))


def _remedies(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """What a person can do about what is missing or only bounded."""
    found = []
    if any(row.kind == "bounded" for row in rows) and (do := _memory_cgroup()):
        found.append(do)
    if not any(row.enforced for row in rows) and _one_line(_APPARMOR) == "1":
        found.append(
            "AppArmor keeps user namespaces from programs without a profile: add one for /usr/bin/bwrap that says "
            "`userns,`, or set kernel.apparmor_restrict_unprivileged_userns to 0 with sysctl"
        )
    return tuple(found)


def _memory_cgroup() -> str:
    """How to get one; nothing where it is there."""
    try:
        return cgroups().do
    except OSError:
        return ""


def _languages() -> dict[str, str]:
    node = "ok" if os.access(_NODE, os.X_OK) else f"missing: install the package `nodejs` as {_NODE}"
    return {
        "python": "ok" if shutil.which("python3", path="/usr/bin") else "missing: install python3",
        "javascript": node,
    }


def _json(told: list[Told], languages: Mapping[str, str], code: Exit) -> str:
    backends = [
        {
            "backend": one.backend,
            "probed_at": _time(one.probed_at),
            "missing": one.problem,
            "do": list(one.do),
            "boundaries": [_boundary(row, one) for row in one.rows],
        }
        for one in told
    ]
    document = {"format": 1, "backends": backends, "languages": languages, "control": WORDING, "exit": int(code)}
    return json.dumps(document, indent=2)


def _boundary(row: Row, one: Told) -> dict[str, object]:
    return {
        "boundary": row.boundary,
        "requested": REQUESTED.get(row.boundary, ""),
        "class": row.kind,
        "enforced": row.enforced,
        "evidence": row.evidence,
        "probed_at": _time(one.probed_at),
        "acts": [asdict(act) for act in row.acts],
    }


def _text(told: list[Told], languages: Mapping[str, str], code: Exit) -> str:
    lines: list[str] = []
    for one in told:
        lines += _backend(one)
    lines += [f"{name}: {state}" for name, state in languages.items()]
    held = ", ".join(one.backend for one in told if one.holds)
    end = (
        f"every boundary is enforced by {held}"
        if held
        else "no backend enforces every boundary: code that requires them is refused"
    )
    return "\n".join([*lines, _NOTE, f"{end}; exit {int(code)}"])


def _backend(one: Told) -> list[str]:
    if one.problem is not None:
        return [f"{one.backend}: claims nothing", f"  missing: {clean(one.problem)}", *_do(one), ""]
    head = f"{one.backend}: tried {_time(one.probed_at)} in {one.seconds:.1f} s"
    lines = [head, f"  {'boundary':15} {'class':12} seen"]
    for row in one.rows:
        lines.append(f"  {row.boundary:15} {row.kind:12} {_seen(row)}")
        lines += [
            f"  {'':28} open: {clean(act.name)}: {clean(act.inside)} inside, {clean(act.outside)} outside"
            for act in row.red
        ]
    return [*lines, *_do(one), ""]


def _do(one: Told) -> list[str]:
    return [f"  fix: {remedy}" for remedy in one.do]


def _seen(row: Row) -> str:
    """How many tries were held, how many of these were done outside; or what bounds it. Then the digest's beginning."""
    evidence = row.evidence.removeprefix("sha256:")[:12]
    held = [act for act in row.acts if act.held]
    if row.kind == "bounded":
        return f"bounded by {', '.join(act.name for act in held)}; {evidence}"
    done = sum(act.outside == "did" for act in held)
    return f"{len(held)} of {len(row.acts)} held, {done} done outside; {evidence}"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _one_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _words(error: Exception) -> str:
    return f"{error.message}: {error.remedy}" if isinstance(error, EngineError) else reason(error)

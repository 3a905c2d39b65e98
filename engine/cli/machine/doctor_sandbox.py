"""`engine doctor --sandbox`: the boundaries that each sandbox of this machine enforces, and how to fix missing ones.

Everything is tested now, by the launcher of real runs, and nothing is stored. Exits with 0 if the first
backend, the baseline, enforces every boundary (E33), else with 4. Which boundaries are required, and by which
mechanism, is policy.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from admission_adapters.sandbox.probe.control import WORDING
from admission_adapters.sandbox.probe.rows import REQUESTED, Row
from engine.cli.formats.show import clean
from engine.cli.machine.machine import cgroups, reason
from engine.cli.outputs import print_text
from engine.cli.waiting import during
from engine.errors import EngineError, Exit
from engine.sandboxes.registry import Registered, registered
from engine.times import time_text

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_NODE = "/usr/bin/node"
_NOTE = f"the positive control of each probe is {WORDING}; no code is run in it"


@dataclass(frozen=True, slots=True)
class BackendReport:
    """The report on one backend. `problem` is the reason why it claims nothing, `remedies` are ways to fix it."""

    backend: str
    probed_at: int
    seconds: float
    rows: tuple[Row, ...] = ()
    problem: str | None = None
    remedies: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every boundary is enforced."""
        return bool(self.rows) and all(row.enforced for row in self.rows)


def run(
    format: str,  # noqa: A002 (what the option is called)
    backends: Callable[[], Mapping[str, Registered]] = registered,
    clock: Callable[[], float] = time.time,
) -> Exit:
    """Test every backend and print the results. ALLOW if the first enforces every boundary, else FAILED_CLOSED."""
    with during("probing the sandboxes"):
        tried = [_tried(name, entry, clock) for name, entry in backends().items()]
    code = Exit.ALLOW if tried and tried[0].holds else Exit.FAILED_CLOSED
    languages = _languages()
    print_text(_json(tried, languages, code) if format == "json" else _text(tried, languages, code))
    return code


def _tried(name: str, entry: Registered, clock: Callable[[], float]) -> BackendReport:
    now, started = int(clock()), time.monotonic()
    try:
        missing = entry.backend.available()
        rows = () if missing is not None else entry.probe()
    except (EngineError, OSError) as error:
        words = f"{error.message}: {error.remedy}" if isinstance(error, EngineError) else reason(error)
        missing, rows = f"it cannot be probed: {words}", ()
    return BackendReport(name, now, time.monotonic() - started, rows, missing, _remedies(rows))


def _remedies(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """What a person can do about what is missing or only bounded."""
    found = []
    if any(row.kind == "bounded" for row in rows) and (remedy := _memory_cgroup()):
        found.append(remedy)
    if not any(row.enforced for row in rows) and _one_line(_APPARMOR) == "1":
        found.append(
            "AppArmor denies user namespaces to programs without a profile: add a profile with `userns,` for "
            "/usr/bin/bwrap, or set kernel.apparmor_restrict_unprivileged_userns to 0 with sysctl"
        )
    return tuple(found)


def _memory_cgroup() -> str:
    """How to get a memory cgroup; empty if there is one."""
    try:
        return next(cgroups()).remedy
    except OSError:
        return ""


def _languages() -> dict[str, str]:
    node = "ok" if os.access(_NODE, os.X_OK) else f"missing: install the package `nodejs` as {_NODE}"
    return {
        "python": "ok" if shutil.which("python3", path="/usr/bin") else "missing: install python3",
        "javascript": node,
    }


def _json(tried: list[BackendReport], languages: Mapping[str, str], code: Exit) -> str:
    backends = [
        {
            "backend": one.backend,
            "probed_at": time_text(one.probed_at),
            "missing": one.problem,
            "remedies": list(one.remedies),
            "boundaries": [_boundary(row, time_text(one.probed_at)) for row in one.rows],
        }
        for one in tried
    ]
    document = {"format": 1, "backends": backends, "languages": languages, "control": WORDING, "exit": int(code)}
    return json.dumps(document, indent=2)


def _boundary(row: Row, probed_at: str) -> dict[str, object]:
    document = asdict(row)
    kind, requested = document.pop("kind"), REQUESTED.get(row.boundary, "")
    return {**document, "class": kind, "requested": requested, "probed_at": probed_at}


def _text(tried: list[BackendReport], languages: Mapping[str, str], code: Exit) -> str:
    lines: list[str] = []
    for one in tried:
        lines += _backend(one)
    lines += [f"{name}: {state}" for name, state in languages.items()]
    end = "no backend enforces every boundary: code that requires them is refused"
    if held := ", ".join(one.backend for one in tried if one.holds):
        end = f"every boundary is enforced by {held}"
    return "\n".join([*lines, _NOTE, f"{end}; exit {int(code)}"])


def _backend(one: BackendReport) -> list[str]:
    if one.problem is not None:
        return [f"{one.backend}: cannot be used", f"  missing: {clean(one.problem)}", *_do(one), ""]
    head = f"{one.backend}: probed {time_text(one.probed_at)} in {one.seconds:.1f} s"
    lines = [head, f"  {'boundary':15} {'class':12} evidence"]
    for row in one.rows:
        lines.append(f"  {row.boundary:15} {row.kind:12} {_observation(row)}")
        lines += [
            f"  {'':28} open: {clean(act.name)}: {clean(act.inside)} inside, {clean(act.outside)} outside"
            for act in row.red
        ]
    return [*lines, *_do(one), ""]


def _do(one: BackendReport) -> list[str]:
    return [f"  fix: {remedy}" for remedy in one.remedies]


def _observation(row: Row) -> str:
    """How many acts were blocked, how many of these are possible outside, and how many show nothing; and the digest."""
    evidence = row.evidence.removeprefix("sha256:")[:12]
    enforced = [act for act in row.acts if act.enforced]
    if row.kind == "bounded":
        return f"bounded by {', '.join(act.name for act in enforced)}; {evidence}"
    done = sum(act.outside == "did" for act in enforced)
    shown = sum(act.enforced is not None for act in row.acts)
    rest = f", {len(row.acts) - shown} not possible either way" if shown < len(row.acts) else ""
    return f"{len(enforced)} of {shown} enforced, {done} possible outside{rest}; {evidence}"


def _one_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""

"""Derives the verdict on each boundary, with its evidence, from the results of a trial."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from admission_adapters.digests import json_digest
from admission_adapters.sandbox.probe.checks import (
    BOUNDED,
    CPU,
    INODES,
    KERNEL,
    MACHINE_CALLS,
    MEMORY,
    SUPERVISED,
    SURVIVORS,
    WORK,
    Check,
)
from admission_adapters.sandbox.probe.trial import Trial

REQUESTED = {
    "files": "no file of the host but the read-only runtime, nothing written outside the working folder",
    "network": "no connection of any kind: TCP, UDP, names, Unix sockets; with a way out, only to its listener",
    "processes": "no access to processes or shared memory of the host",
    "environment": "no variable but those that the program is given",
    "descriptors": "no descriptor but the three standard ones",
    "capabilities": "an ordinary user without capabilities, in a session of its own",
    "namespaces": "namespaces of its own, and no new ones",
    "syscalls": "no system call that an honest program does not need",
    "memory": "no more memory for everything together than the limit",
    "memory_process": "no more memory for one process than the limit",
    "process_count": "no more processes and threads than the limit",
    "open_files": "no more open files than the limit",
    "file_size": "no file larger than the limit",
    "disk": "no more bytes written than the limit",
    "inodes": "no unlimited number of files",
    "cpu": "no more processor time for one process than the limit",
    "output": "no more output than the limit, cut while it streams",
    "time": "no longer than the wall clock allows",
    "survivors": "no process outlives the answer",
}
"""What each boundary requires, for people."""


@dataclass(frozen=True, slots=True)
class Act:
    """One act: its results inside and outside. `enforced` is None if it proves nothing."""

    name: str
    inside: str
    outside: str
    enforced: bool | None


@dataclass(frozen=True, slots=True)
class Row:
    """One boundary: its kind, whether it is enforced, and the acts that show it; `evidence` is the digest of these."""

    boundary: str
    kind: str
    enforced: bool
    acts: tuple[Act, ...]
    evidence: str

    @property
    def red(self) -> tuple[Act, ...]:
        """The boundaries that were not enforced."""
        return tuple(act for act in self.acts if act.enforced is False)


def rows(trial: Trial, kernel: Mapping[str, Iterable[Check]] = KERNEL) -> tuple[Row, ...]:
    """A row for every boundary; all unsupported when the sandbox did not do what a program must be able to do."""
    works = all(act.enforced for act in _acts(_work(trial), trial))
    found: dict[str, Row] = {}
    for boundary, checks in kernel.items():
        more = MACHINE_CALLS.get(platform.machine(), ()) if boundary == "syscalls" else ()
        found[boundary] = row(boundary, "kernel", (*checks, *more), trial, works)
    for boundary, checks in SUPERVISED.items():
        found[boundary] = row(boundary, "supervised", checks, trial, works)
    alone = "kernel" if trial.inside.get("namespace_pid") == "own" else "supervised"
    found["survivors"] = row("survivors", alone, SURVIVORS, trial, works)
    by = next((kind for kind, words in CPU.items() if trial.inside.get("cpu") in words), "kernel")
    found["cpu"] = row("cpu", by, (Check("cpu", CPU[by]),), trial, works)
    for boundary, checks in (("memory", MEMORY), ("inodes", INODES)):
        found[boundary] = _limited(boundary, checks, trial, found, works)
    return tuple(found[boundary] for boundary in REQUESTED)


def _work(trial: Trial) -> tuple[Check, ...]:
    seed = trial.outside.get("work_hash_seed", "missing")
    return (*WORK, Check("work_hash_seed", (seed,) if seed.startswith("value:") else (), ()))


def row(boundary: str, kind: str, checks: Iterable[Check], trial: Trial, works: bool) -> Row:  # noqa: FBT001
    """One boundary by its checks; unsupported unless every one is enforced, and all of them unless it `works`."""
    acts = _acts(checks, trial)
    enforced = works and all(act.enforced is not False for act in acts) and any(act.enforced for act in acts)
    return _made(boundary, kind if enforced else "unsupported", acts)


def _limited(boundary: str, checks: Iterable[Check], trial: Trial, found: Mapping[str, Row], works: bool) -> Row:  # noqa: FBT001
    """By the kernel where it ended the flood; otherwise bounded, as far as what bounds it is enforced."""
    by_kernel = row(boundary, "kernel", checks, trial, works)
    if by_kernel.enforced:
        return by_kernel
    bounds = BOUNDED[boundary]
    enforced = works and all(found[name].enforced for name in bounds)
    acts = tuple(Act(name, found[name].kind, "", found[name].enforced) for name in bounds)
    past = tuple(Act(act.name, act.inside, act.outside, None) for act in by_kernel.acts)
    return _made(boundary, "bounded" if enforced else "unsupported", (*acts, *past))


def _acts(checks: Iterable[Check], trial: Trial) -> tuple[Act, ...]:
    made = []
    for check in checks:
        inside, outside = trial.inside.get(check.act, "missing"), trial.outside.get(check.act, "missing")
        made.append(Act(check.act, inside, outside, check.verdict(inside, outside)))
    return tuple(made)


def _made(boundary: str, kind: str, acts: tuple[Act, ...]) -> Row:
    results = [[act.name, act.inside, act.outside, act.enforced] for act in acts]
    return Row(boundary, kind, kind != "unsupported", acts, json_digest([boundary, kind, results]))

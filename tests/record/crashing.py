"""Sessions on a simulated disk, every disk that a crash may leave meanwhile, and what an engine finds on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.errors import RecordError
from engine.record.chain import Entry, parse
from engine.record.layout import EVENTS, segment_file, segment_numbers
from engine.record.model import DecisionRecord, RetentionRecord
from engine.record.verify import verify_storage
from tests.record.disk import SimulatedDisk, Tree
from tests.record.samples import open_log


@dataclass
class Session:
    """Decisions made on one disk, what callers were told, and whether retention may have begun.

    `before_close` is the number of operations before the log was closed: of the checkpoint that follows, no failure is
    told, because every line is durable without it.
    """

    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    acknowledged: list[str] = field(default_factory=list)
    made: int = 0
    errors: list[RecordError] = field(default_factory=list)
    removing: bool = False
    before_close: int = 0

    def crash(self) -> Crash:
        """The disk as programs see it now."""
        return Crash(self.disk.tree(), tuple(self.acknowledged), self.removing)


@dataclass(frozen=True)
class Crash:
    """A disk after a crash, what callers were told before it, and whether retention may have begun."""

    tree: Tree
    told: tuple[str, ...]
    removing: bool = False

    @property
    def key(self) -> object:
        """Equal for equal disks of which callers were told the same."""
        return (*sorted(self.tree.items()), *self.told)

    def fault(self) -> str | None:
        """What is wrong when an engine starts on this disk; None when everything acknowledged is there or told of."""
        disk = SimulatedDisk(self.tree)
        before = verify_storage(disk)
        if not before.ok and not before.repairable:
            return f"a crash looks like tampering: {before.breaks}"
        try:
            open_log(disk).close()
        except RecordError as error:
            return f"refused: {error}"
        if (wrong := _wrong(disk, self.told, removing=self.removing)) is not None:
            return wrong
        same = disk.tree()
        open_log(disk).close()
        return None if disk.tree() == same else "starting again changes the disk"


def _wrong(disk: SimulatedDisk, told: tuple[str, ...], *, removing: bool) -> str | None:
    found, entries = verify_storage(disk), read(disk)
    if not found.ok:
        return f"does not verify: {found.breaks}"
    if found.removed and not removing:
        return "something was removed"
    if [entry.seq for entry in entries] != list(range(found.removed + 1, found.removed + len(entries) + 1)):
        return "lines are missing"
    bodies = [entry.body for entry in entries]
    if found.removed > max((body.last_seq for body in bodies if isinstance(body, RetentionRecord)), default=0):
        return "lines were removed and the record does not tell"
    decisions = [body for body in bodies if isinstance(body, DecisionRecord)]
    there = [body.decision_id for body in decisions]
    if len(set(told) - set(there)) > found.removed or len(there) != len(set(there)):
        return "an acknowledged decision is lost or doubled"
    claimed = sum(body.source_events.bytes for body in decisions if body.source_events)
    before_anchor = 0 if found.anchor is None else found.anchor.source_events.size
    return None if claimed + before_anchor == disk.size(EVENTS) else "source events are lost or left over"


def read(disk: SimulatedDisk) -> list[Entry]:
    """Every line of the record, in its order."""
    tree = disk.tree()
    numbers = segment_numbers(path.rpartition("/")[2] for path in tree)
    return [parse(line) for number in numbers for line in (tree[segment_file(number)] or b"").splitlines()]


def crashes(session: Session, run: Callable[[], object], stride: int) -> list[Crash]:
    """Every crash state before each step of `run`, and at its end, with what was acknowledged by then."""
    found: dict[object, Crash] = {}

    def collect(disk: SimulatedDisk) -> None:
        for tree in disk.crash_states(stride):
            crash = Crash(tree, tuple(session.acknowledged), session.removing)
            found.setdefault(crash.key, crash)

    session.disk.step = collect
    run()
    collect(session.disk)
    session.disk.step = lambda _: None
    return list(found.values())


def faults(found: list[Crash]) -> list[str]:
    """What is wrong with any of them."""
    return [reason for crash in found if (reason := crash.fault()) is not None]


class NoSync(SimulatedDisk):
    """Acknowledges before anything is durable."""

    def sync(self, path: str) -> None:  # noqa: ARG002 (does nothing)
        self._step()


class NoSyncOfEvents(SimulatedDisk):
    def sync(self, path: str) -> None:
        if path != EVENTS:
            super().sync(path)


class NoFolderSync(SimulatedDisk):
    def sync_folder(self, path: str) -> None:  # noqa: ARG002 (does nothing)
        self._step()

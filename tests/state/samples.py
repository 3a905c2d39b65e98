"""What the tests of the state share: a moment, an approval, threads and processes that start together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.state import open_shared, open_store
from engine.state.rows import ActivationRow, ApprovalRow, PrefixRow, StateLimits
from engine.state.store import Store

NOW = 1_800_000_000
LONG_AGO = NOW - 10**8
"""Passed on every clock: what is as old as that may be removed."""
DIGEST = "sha256:" + "c" * 64
SECONDS = 120.0
"""Far more than any of these processes needs."""

PATIENT = StateLimits(connect_seconds=60, wait_seconds=60, lock_seconds=60, statement_seconds=60, answer_seconds=60)
"""For operations that must succeed, however slow this machine is."""


def address_file(folder: Path) -> Path:
    """Where the address of a database is written that stands for a state folder, also for other processes."""
    return folder.with_name(f"{folder.name}.address")


def opened(folder: Path, limits: StateLimits | None = None) -> closing[Store]:
    """The state of a folder; in PostgreSQL if it has an address."""
    file = address_file(folder)
    if file.exists():
        return closing(open_shared(file.read_text("utf-8"), limits or PATIENT))
    return closing(open_store(folder, limits))


def asked(**changes: Any) -> ApprovalRow:
    """A request for approval at NOW that expires an hour later."""
    new = ApprovalRow(
        point="source",
        input_digest=DIGEST,
        rules="sha256:" + "1" * 64,
        values="sha256:" + "2" * 64,
        requester="pipeline",
        codes=("license_review_required", "second"),
        created_at=NOW,
        expires_at=NOW + 3600,
    )
    return replace(new, **changes)


def approved(**changes: Any) -> PrefixRow:
    """A prefix that is approved at NOW and expires an hour later."""
    new = PrefixRow("pipeline", "/work", "shell", ("git", "status"), "user:lee", NOW, NOW + 3600)
    return replace(new, **changes)


def release(number: int, **changes: Any) -> ActivationRow:
    """A release that is to be activated."""
    digest = f"sha256:{number:064x}"
    new = ActivationRow("house", number, digest, "author", "approver", "user:lee", "as decided", NOW)
    return replace(new, **changes)


def activate(store: Store, row: ActivationRow) -> ActivationRow:
    """Activate a release without engines."""
    assert store.propose(row, lambda _: None).next == row
    switching = store.move(row, "switching", NOW + 1)
    assert switching is not None
    active = store.move(switching, "active", NOW + 2)
    assert active is not None
    return active


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What `count` threads give that start at the same moment, in any order; an error in one is raised here."""
    barrier, results, errors = threading.Barrier(count), [], []

    def run(number: int) -> None:
        try:
            barrier.wait(SECONDS)
            results.append(work(number))
        except BaseException as error:  # noqa: BLE001  (raised again below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return results

"""What runs have touched: exact between processes, kept after a crash, and bounded."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

from engine.state.rows import StateLimits
from engine.state.store import Store
from tests.state.samples import opened

KINDS = ("untrusted", "private", "outward")


def test_of_concurrent_touches_exactly_one_sees_all_others(tmp_path: Path) -> None:
    """Two stores are two processes: the last to reserve sees what the others have reserved."""
    seen: list[int] = []
    closing = ExitStack()
    stores = [closing.enter_context(opened(tmp_path / "state")) for _ in range(3)]
    begin = threading.Barrier(3)

    def take(number: int) -> None:
        begin.wait()
        seen.append(len(stores[number].touch("run", [KINDS[number]], f"hold-{number}", 10)))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [0, 1, 2]
    closing.close()


def test_released_touches_are_removed_and_kept_ones_stay(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as store:
        _touch_and_give_back(store)
    with opened(tmp_path / "state") as store:
        assert store.touched("run") == ("outward", "private")
        store.end_run("run")
        assert store.touched("run") == ()


def _touch_and_give_back(store: Store) -> None:
    assert store.touch("run", ["private"], "refused", 10) == ()
    store.give_back_touches("refused")
    assert store.touched("run") == ()
    assert store.touch("run", ["private"], "one", 10) == ()
    assert store.touch("run", ["private"], "one", 10) == ()  # a retry of the same decision
    store.keep_touches("one")
    store.give_back_touches("one")
    assert store.touch("run", ["private", "outward"], "two", 10) == ("private",)
    assert store.touched("run") == ("outward", "private")  # not kept yet: counts as well
    assert store.touched("another") == ()


def test_rows_are_few_and_end_with_a_run_that_is_not_used(tmp_path: Path) -> None:
    limits = StateLimits(run_seconds=100)
    with opened(tmp_path / "state", limits) as store:
        for number in range(50):
            store.touch("run", KINDS, f"hold-{number}", number * 10)
            store.keep_touches(f"hold-{number}")
        count = "SELECT count(*) FROM touches"
        assert store._database.read(lambda connection: connection.execute(count).fetchone()) == (3,)
        assert store.touch("run", ["private"], "late", 590) == tuple(sorted(KINDS))
        assert store.touch("other", ["private"], "much later", 691) == ()
        assert store.touched("run") == ()

"""Segments and retention: what begins a new one, what removes old ones, and that nobody else may do either."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.errors import RecordError
from engine.record import writer as writer_module
from engine.record.chain import Position, encode, head, parse
from engine.record.checkpoint import read_anchor, read_identity, write_checkpoint
from engine.record.layout import ANCHOR, CHECKPOINT, DECISIONS, EVENTS, INSTALLATION, BreakKind, segment_file
from engine.record.log import RecordLog
from engine.record.model import RetentionRecord
from engine.record.reader import Filter, select
from engine.record.retention import Retained, _remove, begin, retain
from engine.record.storage import Storage
from engine.record.verify import Verification, open_segments, verify, verify_storage
from engine.times import timestamp
from tests.expect import refused, there
from tests.record.disk import SimulatedDisk, Tree, content, flipped, tree_of
from tests.record.samples import clock, decision, event, open_log, order

SEGMENT = 12_000  # bytes, some 17 lines
MADE = 100
YEAR_LATER = datetime(2027, 11, 21, tzinfo=UTC)  # the samples are from a year before
IN_A_LINE = {"bad_json", "bad_keys", "seq_gap", "chain_break", "checkpoint_mismatch", "before_checkpoint"}


def opened(state: Path) -> RecordLog:
    return open_log(state, segment_bytes=SEGMENT)


def write(state: Path, count: int, first: int = 1) -> None:
    with opened(state) as log:
        for number in range(first, first + count):
            log.append(decision(number), (event(number),) * (number % 3 == 0))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    state = tmp_path_factory.mktemp("segments") / "state"
    write(state, MADE)
    return state


@pytest.fixture
def state(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture(scope="module")
def removed(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record from which retention has removed the first segments, and that went on."""
    state = tmp_path_factory.mktemp("removed") / "state"
    shutil.copytree(original, state)
    shortened(state, 200, YEAR_LATER)
    write(state, 40, first=500)
    return state


def shortened(state: Path, keep_days: int, now: datetime) -> Retained | None:
    """What retention removes from a record that nobody writes."""
    with opened(state) as log:
        return retain(log, order(keep_days, now))


def segments(tree: Tree) -> list[str]:
    return sorted(path for path in tree if path.startswith("records/decisions."))


def checked(tree: Tree, changes: dict[str, bytes | None]) -> Verification:
    """Verify with some files changed; None takes a file away."""
    changed = {path: data for path, data in (tree | changes).items() if data is not None or tree.get(path) is None}
    return verify_storage(SimulatedDisk(changed))


def test_a_full_segment_is_followed_by_the_next_and_the_chain_goes_on(original: Path) -> None:
    tree = tree_of(original)
    files = segments(tree)
    assert files == [segment_file(number) for number in range(1, len(files) + 1)]
    assert len(files) > 5
    entries = [parse(line) for path in files for line in content(tree, path).splitlines()]
    assert [entry.seq for entry in entries] == list(range(1, MADE + 1))
    assert all(SEGMENT <= len(content(tree, path)) < SEGMENT + 1_000 for path in files[:-1])
    found = verify(original)
    assert (found.ok, found.records, found.segments) == (True, MADE, len(files))
    assert found.size == sum(len(content(tree, path)) for path in files)
    assert found.checkpoint is not None
    assert found.checkpoint.segment == len(files)
    assert oct((original / files[-1]).stat().st_mode & 0o777) == "0o600"


def test_the_record_goes_on_in_its_last_segment(state: Path) -> None:
    before = verify(state).segments
    write(state, 1, first=200)
    found = verify(state)
    assert (found.ok, found.records, found.segments) == (True, MADE + 1, before)


def test_every_flipped_byte_of_every_segment_is_found_in_its_line(original: Path) -> None:
    tree = tree_of(original)
    for number, path in enumerate(segments(tree)):
        data = content(tree, path)
        for index, changed in flipped(data, 120, seed=number):
            found = checked(tree, {path: changed})
            (broken,) = found.breaks
            assert (broken.file, broken.line) == (path, data[:index].count(b"\n") + 1), (path, index)
            assert broken.kind in IN_A_LINE
            assert not found.repairable


def test_every_deletion_duplicate_and_swap_is_found(original: Path) -> None:
    tree = tree_of(original)
    files = segments(tree)
    for number, path in enumerate(files):
        lines = content(tree, path).splitlines(keepends=True)
        for index in range(len(lines)):
            without = checked(tree, {path: b"".join(lines[:index] + lines[index + 1 :])})
            twice = checked(tree, {path: b"".join(lines[: index + 1] + lines[index:])})
            assert not without.ok
            assert not twice.ok
            assert without.breaks[0].line == (index + 1 if index < len(lines) - 1 or path == files[-1] else 1)
        if path != files[-1]:  # the last line of one and the first of the next
            after = content(tree, files[number + 1]).splitlines(keepends=True)
            changes: dict[str, bytes | None] = {
                path: b"".join([*lines[:-1], after[0]]),
                files[number + 1]: b"".join([lines[-1], *after[1:]]),
            }
            found = checked(tree, changes)
            assert (found.breaks[0].file, found.breaks[0].kind) == (path, BreakKind.SEQ_GAP)


def test_every_truncated_segment_is_found_and_not_taken_for_a_torn_tail(original: Path) -> None:
    tree = tree_of(original)
    for path in segments(tree):
        data = content(tree, path)
        ends = [index + 1 for index, byte in enumerate(data) if byte == 10][:-1]
        for size in (0, *ends, *(end + 5 for end in ends), len(data) - 1):
            found = checked(tree, {path: data[:size]})
            assert not found.ok
            assert not found.repairable


def test_a_missing_swapped_or_extra_segment_is_found(original: Path) -> None:
    tree = tree_of(original)
    files = segments(tree)
    for path in files:
        found = checked(tree, {path: None})
        assert [(broken.file, broken.kind) for broken in found.breaks] == [(path, BreakKind.MISSING_SEGMENT)]
    for one, other in pairwise(files):
        swapped = checked(tree, {one: content(tree, other), other: content(tree, one)})
        assert (swapped.breaks[0].file, swapped.breaks[0].line) == (one, 1)
    following = segment_file(len(files) + 1)
    for extra in (content(tree, files[0]), content(tree, files[-1]), b"{}\n"):
        assert not checked(tree, {following: extra}).ok
    beyond = checked(tree, {segment_file(len(files) + 2): b""})
    assert [broken.kind for broken in beyond.breaks] == [BreakKind.UNKNOWN_SEGMENT]


def test_a_segment_after_a_missing_stretch_of_the_one_before_is_found(original: Path) -> None:
    """A checkpoint comes before every new segment, so nothing between them can be added either."""
    tree = tree_of(original)
    last = segments(tree)[-1]
    end = parse(content(tree, last).splitlines()[-1])
    line = encode(MADE + 1, verify(original).head or "", end.body)
    found = checked(tree, {last: content(tree, last) + line + b"\n", segment_file(len(segments(tree)) + 1): b""})
    assert [broken.kind for broken in found.breaks] == [BreakKind.CHECKPOINT_MISMATCH]


def test_a_verifier_that_skips_segments_does_not_report_an_intact_record(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of(original)
    assert checked(tree, {}).ok
    lazy = lambda storage, start, last: open_segments(storage, start, min(last, 1))  # noqa: E731 (used once)
    monkeypatch.setattr(sys.modules["engine.record.verify"], "open_segments", lazy)
    assert [broken.kind for broken in checked(tree, {}).breaks] == [BreakKind.BEFORE_CHECKPOINT]


def test_retention_removes_whole_old_segments_and_records_it(state: Path) -> None:
    before = segments(tree_of(state))
    told = shortened(state, 200, YEAR_LATER)
    assert told == Retained(1, len(before), MADE, told.size if told else 0)
    found = verify(state)
    assert (found.ok, found.removed, found.records) == (True, MADE, 1)
    assert found.source_events == MADE // 3
    (entry,) = select(state, Filter(), 10).entries
    assert isinstance(entry.body, RetentionRecord)
    assert (entry.body.first_segment, entry.body.last_segment, entry.body.last_seq) == (1, len(before), MADE)
    assert (entry.body.keep_days, entry.body.decision_id) == (200, "d-1")
    write(state, 50, first=300)
    again = verify(state)
    assert (again.ok, again.records) == (True, 51)


def test_retention_keeps_what_is_not_old_enough(state: Path) -> None:
    before = tree_of(state)
    assert shortened(state, 366, YEAR_LATER) is None
    assert tree_of(state) == before
    assert shortened(state, 364, YEAR_LATER) is not None


def test_a_recent_line_keeps_its_segment(state: Path) -> None:
    with opened(state) as log:
        log.append(decision(200).model_copy(update={"time": "2027-11-20T00:00:00.000000Z"}))
        for number in range(201, 230):
            log.append(decision(number))
    young = segments(tree_of(state))
    told = there(shortened(state, 200, YEAR_LATER))
    assert told.last < len(young) - 1
    assert "2027-11-20" in (state / segment_file(told.last + 1)).read_text()
    assert verify(state).ok


def test_retention_removes_nothing_from_a_broken_record(state: Path) -> None:
    path = state / segment_file(2)
    path.write_bytes(path.read_bytes().replace(b"contacts", b"kontacts", 1))
    before = segments(tree_of(state))
    with refused(RecordError, "engine.record_broken"):
        shortened(state, 200, YEAR_LATER)
    assert set(before) <= set(segments(tree_of(state)))


def test_retention_of_a_record_in_use_goes_through_its_own_log(state: Path) -> None:
    with opened(state) as log:
        log.append(decision(200))
        assert retain(log, order(200, YEAR_LATER)) is not None
        log.append(decision(201))
    assert verify(state).ok


def test_a_removal_without_retention_is_reported_as_tampering(original: Path, removed: Path) -> None:
    assert verify(removed).ok
    tree, whole = tree_of(removed), tree_of(original)
    first = segments(tree)[0]
    further = checked(tree, {first: None})
    assert [(broken.file, broken.kind) for broken in further.breaks] == [(first, BreakKind.MISSING_SEGMENT)]
    unsigned = checked(whole, {segment_file(1): None, segment_file(2): None})
    assert [broken.kind for broken in unsigned.breaks] == [BreakKind.MISSING_SEGMENT]
    assert checked(tree, {ANCHOR: None}).breaks[0].kind is BreakKind.MISSING_SEGMENT
    assert [one.kind for one in checked(tree, {CHECKPOINT: None}).breaks] == [BreakKind.CHECKPOINT_MISSING]
    assert (
        checked(whole, {ANCHOR: content(tree, ANCHOR)}).breaks[0].kind is BreakKind.BAD_SIGNATURE
        or not checked(whole, {ANCHOR: content(tree, ANCHOR)}).ok
    )
    assert not checked(tree, {CHECKPOINT: content(whole, CHECKPOINT)}).ok


def test_every_flipped_byte_of_the_anchor_is_found(removed: Path) -> None:
    tree = tree_of(removed)
    data = content(tree, ANCHOR)
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1
        found = checked(tree, {ANCHOR: bytes(changed)})
        assert [broken.kind for broken in found.breaks] == [BreakKind.BAD_SIGNATURE]


def test_every_flipped_byte_after_a_removal_is_found(removed: Path) -> None:
    tree = tree_of(removed)
    for number, path in enumerate((*segments(tree), EVENTS)):
        for index, changed in flipped(content(tree, path), 250, seed=number):
            found = checked(tree, {path: changed})
            assert [broken.file for broken in found.breaks] == [path], (path, index)
            assert not found.repairable


def test_an_older_anchor_put_back_is_found(removed: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(removed, state)
    before = (state / ANCHOR).read_bytes()
    assert shortened(state, 200, datetime(2029, 1, 1, tzinfo=UTC)) is not None
    assert verify(state).ok
    (state / ANCHOR).write_bytes(before)
    assert verify(state).breaks[0].kind is BreakKind.MISSING_SEGMENT


def test_a_segment_left_by_a_crash_is_removed_by_the_next_start(removed: Path, original: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(removed, state)
    shutil.copy(original / segment_file(1), state / segment_file(1))
    found = verify(state)
    assert [(broken.kind, broken.repairable) for broken in found.breaks] == [(BreakKind.LEFT_SEGMENT, True)]
    opened(state).close()
    assert not (state / segment_file(1)).exists()
    assert verify(state).ok


def test_a_record_written_to_seldom_ends_its_segment_when_it_is_old(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_log(state) as log:
        log.append(decision(1))
    assert shortened(state, 200, YEAR_LATER) is not None
    assert json.loads((state / segment_file(2)).read_bytes().splitlines()[0])["kind"] == "retention"
    assert verify(state).ok


def ends_of(tree: Tree) -> list[Position]:
    """Where each segment begins, and where its first and last line end."""
    found = [] if ANCHOR in tree else [Position(1, 0, 0, 0, parse(content(tree, DECISIONS).splitlines()[0]).prev)]
    for path in segments(tree):
        number = int(path.split(".")[1])
        data = content(tree, path)
        lines = data.splitlines(keepends=True)
        if number > 1:
            first = parse(lines[0][:-1])
            found.append(Position(number, 0, 0, first.seq - 1, first.prev))
        for count, size in ((1, len(lines[0])), (len(lines), len(data))):
            line = lines[count - 1][:-1]
            found.append(Position(number, count, size, parse(line).seq, sha256(line).hexdigest()))
    return found


def compared(tree: Tree, end: Position) -> list[str]:
    """The breaks of a record that is compared with this end."""
    found = verify_storage(SimulatedDisk(tree), {installation(tree): end})
    assert found.contained == (() if found.breaks else (end.seq,))
    return [one.kind for one in found.breaks]


def installation(tree: Tree) -> str:
    return str(json.loads(content(tree, INSTALLATION))["id"])


def test_only_real_earlier_heads_match_the_record(original: Path, removed: Path) -> None:
    whole, shorter = tree_of(original), tree_of(removed)
    anchor = there(read_anchor(SimulatedDisk(shorter), None))
    before, after = ends_of(whole), ends_of(shorter)
    assert before[-1].seq == anchor.seq  # the last one that was removed
    for tree, ends in ((whole, before), (shorter, [*before, *after])):
        removed_up_to = anchor.seq if tree is shorter else -1
        for end in ends:
            assert compared(tree, end) == []
            other = [] if end.seq <= removed_up_to else ["rolled_back"]
            assert compared(tree, replace(end, hash="e" * 64)) == other
    last = after[-1]
    for gone in (
        replace(last, size=last.size + 500, lines=last.lines + 1, seq=last.seq + 1),
        replace(last, segment=last.segment + 1, seq=last.seq + 1),
        replace(last, segment=last.segment + 2, lines=0, size=0, seq=last.seq + 1),
    ):
        assert compared(shorter, gone) == ["rolled_back"]


def test_the_command_says_how_much_of_the_record_is_gone(original: Path) -> None:
    tree = tree_of(original)
    last = ends_of(tree)[-1]
    longer = replace(last, size=last.size + 500, lines=last.lines + 1, seq=MADE + 1)
    further = replace(longer, segment=last.segment + 1)
    for end, found, offset in (
        (longer, f"{last.size} bytes", last.size),
        (further, "no file", 0),
        (replace(last, hash="e" * 64), last.hash, last.size),
    ):
        (broken,) = verify_storage(SimulatedDisk(tree), {installation(tree): end}).breaks
        assert (broken.file, broken.line, broken.offset) == (end.file, end.lines, offset)
        assert (broken.seq, broken.found) == (end.seq, found)


def test_a_missing_or_foreign_record_is_reported_as_rolled_back(original: Path) -> None:
    tree = tree_of(original)
    end, own = ends_of(tree)[-1], installation(tree)
    for tried, heads, found in (
        (tree, {"f" * 32: end}, own),
        ({}, {"f" * 32: end}, "none"),
        (tree, {"f" * 32: end, own: end}, None),
        (tree, {}, None),
        ({}, {}, None),
    ):
        breaks = verify_storage(SimulatedDisk(tried), heads).breaks
        assert [(one.file, one.kind, one.found) for one in breaks] == (
            [] if found is None else [(INSTALLATION, BreakKind.ROLLED_BACK, found)]
        )


def test_a_checkpoint_that_was_kept_elsewhere_is_compared(original: Path, removed: Path) -> None:
    whole, shorter = tree_of(original), tree_of(removed)
    old, new = content(whole, CHECKPOINT), content(shorter, CHECKPOINT)
    for tree, against, kinds in (
        (whole, old, []),
        (shorter, old, []),
        (shorter, new, []),
        (whole, new, ["rolled_back"]),
        (whole, old.replace(b'"seq":', b'"seq":1'), ["bad_signature"]),
        ({}, old, ["rolled_back"]),
    ):
        found = verify_storage(SimulatedDisk(tree), None, against)
        assert [one.kind for one in found.breaks] == kinds
        assert len(found.contained) == (not kinds)


def test_only_a_state_that_was_never_used_may_have_no_installation(original: Path, removed: Path) -> None:
    used, shorter = tree_of(original), tree_of(removed)
    fresh = SimulatedDisk()
    open_log(fresh).close()
    begun: Tree = {path: data for path, data in fresh.tree().items() if path != INSTALLATION}
    assert {CHECKPOINT, DECISIONS, EVENTS} <= begun.keys()
    changes: list[tuple[Tree, bool]] = [
        ({}, True),
        ({DECISIONS: content(used, DECISIONS)}, False),
        ({segment_file(2): b"{"}, False),
        ({EVENTS: b"{"}, False),
        ({ANCHOR: content(shorter, ANCHOR)}, False),
        ({CHECKPOINT: content(used, CHECKPOINT)}, False),
    ]
    for change, may in changes:
        for tree in (begun | change, dict(change)):
            disk = SimulatedDisk(tree)
            kinds = [one.kind for one in verify_storage(disk).breaks]
            assert kinds == ([] if may else [BreakKind.INSTALLATION_MISSING])
            if may:
                open_log(disk).close()
                assert verify_storage(disk).ok
            else:
                with pytest.raises(RecordError):
                    open_log(disk)


def test_an_anchor_that_contradicts_its_retention_line_is_found(state: Path) -> None:
    (last,) = [one.end for one in verify(state).ends[-1:]]
    true: dict[str, Any] = {"last_segment": last.segment, "last_seq": last.seq, "last_hash": last.hash}
    before = tree_of(state)
    for change in ({}, {"last_segment": last.segment - 1}, {"last_seq": last.seq - 1}, {"last_hash": "e" * 64}):
        disk = SimulatedDisk(before)
        log = open_log(disk, segment_bytes=SEGMENT)
        told = log.append(
            RetentionRecord(
                time=timestamp(YEAR_LATER),
                keep_days=200,
                decision_id="d-1",
                before=timestamp(YEAR_LATER),
                first_segment=1,
                principal=None,
                reason=None,
                **(true | change),
            )
        )
        other = log.append(decision(900))
        old = list(verify_storage(disk).ends)
        log.between_batches(lambda writer: _remove(writer, old, told, timestamp(YEAR_LATER)))  # noqa: B023 (used at once)
        found = verify_storage(disk)
        assert [one.kind for one in found.breaks] == ([BreakKind.RETENTION_MISMATCH] if change else [])
        if change:
            assert (found.breaks[0].file, found.breaks[0].seq) == (ANCHOR, told)
        log.between_batches(lambda writer: _remove(writer, old, other, timestamp(YEAR_LATER)))  # noqa: B023 (used at once)
        log.close()
        (broken,) = verify_storage(disk).breaks  # no line that tells of a removal
        assert (broken.kind, broken.seq) == (BreakKind.RETENTION_MISMATCH, other)


def vouched(state: Path) -> int:
    return int(json.loads((state / CHECKPOINT).read_bytes())["seq"])


def test_a_segment_ends_and_a_checkpoint_is_due_at_exactly_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(tmp_path / "one") as log:
        log.append(decision(1))
    length = (tmp_path / "one" / DECISIONS).stat().st_size
    for segment, checkpoint, ends, seqs in (
        (1 << 20, 2 * length, [1] * 7, [0, 0, 2, 2, 4, 4, 6]),
        (1 << 20, 2 * length + 1, [1] * 7, [0, 0, 0, 3, 3, 3, 6]),
        (3 * length, 2 * length, [1, 1, 1, 2, 2, 2, 3], [0, 0, 2, 3, 3, 5, 6]),
        (3 * length + 1, 1 << 20, [1, 1, 1, 1, 2, 2, 2], [0, 0, 0, 0, 4, 4, 4]),
    ):
        monkeypatch.setattr(writer_module, "CHECKPOINT_BYTES", checkpoint)
        state = tmp_path / f"{segment}-{checkpoint}"
        found = []
        with open_log(state, segment_bytes=segment) as log:
            for number in range(1, 8):
                log.append(decision(number))
                found.append((len(segments(tree_of(state))), vouched(state)))
        assert found == list(zip(ends, seqs, strict=True))
        assert verify(state).ok


def test_a_checkpoint_is_due_after_exactly_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "CHECKPOINT_RECORDS", 3)
    found = []
    with open_log(tmp_path / "state") as log:
        for number in range(1, 8):
            log.append(decision(number))
            found.append(vouched(tmp_path / "state"))
    assert found == [0, 0, 0, 3, 3, 3, 6]


def test_no_checkpoint_is_written_without_new_lines(state: Path) -> None:
    with opened(state) as log:
        log.append(decision(200))
        log.vouch()
        before = (state / CHECKPOINT).stat()
        log.vouch()
        after = (state / CHECKPOINT).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_an_anchor_or_an_old_segment_that_goes_while_the_record_is_written_is_noticed(
    removed: Path, tmp_path: Path
) -> None:
    for name in (ANCHOR, segments(tree_of(removed))[0]):
        state = tmp_path / name.replace("/", "-")
        shutil.copytree(removed, state)
        with opened(state) as log:
            log.append(decision(900))
            log.vouch()
            (state / name).rename(tmp_path / "aside")
            log.append(decision(901))
            with pytest.raises(RecordError, match="removed, renamed"):
                log.vouch()
        (tmp_path / "aside").rename(state / name)
        assert verify(state).ok


def test_a_line_is_old_when_it_is_older_than_so_many_days_and_not_before(state: Path) -> None:
    exactly = clock() + timedelta(days=200)
    before = tree_of(state)
    assert shortened(state, 200, exactly) is None
    assert tree_of(state) == before
    assert shortened(state, 200, exactly + timedelta(seconds=1)) is not None
    assert verify(state).ok


def test_a_restored_removed_segment_does_not_replace_a_missing_one(original: Path, removed: Path) -> None:
    tree = {path: data for path, data in tree_of(removed).items() if path not in {*segments(tree_of(removed))}}
    tree[segment_file(1)] = content(tree_of(original), segment_file(1))
    (first, *_) = segments(tree_of(removed))
    for checkpoint, kinds in ((True, []), (False, [BreakKind.CHECKPOINT_MISSING])):
        tried = tree if checkpoint else {path: data for path, data in tree.items() if path != CHECKPOINT}
        breaks = verify_storage(SimulatedDisk(tried)).breaks
        assert [one.kind for one in breaks] == [*kinds, BreakKind.MISSING_SEGMENT]
        assert breaks[-1].file == first


@pytest.mark.parametrize("closed", [True, False])
def test_a_retention_line_without_its_removal_changes_nothing(state: Path, *, closed: bool) -> None:
    """As a crash between the line and the anchor leaves it, whether a checkpoint vouches for it or not."""
    log = opened(state)
    assert retain(log, order(200, YEAR_LATER)) is not None
    told = (state / segments(tree_of(state))[-1]).read_bytes().splitlines()
    (retained,) = [body for body in (parse(line).body for line in told) if isinstance(body, RetentionRecord)]
    log.append(decision(300))
    log.append(retained.model_copy(update={"last_segment": 99, "last_seq": 999}))
    log.append(decision(301))
    if closed:
        log.close()
    else:
        log.storage.close()
    found = verify(state)
    assert (found.breaks, found.removed, found.records) == ((), MADE, 4)
    opened(state).close()


def test_lines_covered_by_a_checkpoint_are_verified_by_digest_only(state: Path) -> None:
    """Also in the segments before its own, however long they are: another version may have written them."""
    storage = Storage(state)
    identity, checkpoint = read_identity(storage), verify(state).checkpoint
    assert identity is not None
    assert checkpoint is not None
    before, at = identity.genesis, identity.start
    for path in segments(tree_of(state)):
        lines: list[bytes] = []
        for line in (state / path).read_bytes().splitlines():
            seq = at.seq + len(lines) + 1
            lines.append(head(seq, before) + b'"other":1,' + line.split(b",", 2)[2])
            before = sha256(lines[-1]).hexdigest()
        data = b"".join(line + b"\n" for line in lines)
        (state / path).write_bytes(data)
        at = Position(int(path.split(".")[1]), 0, 0, at.seq, "").after(lines=len(lines), size=len(data), hash=before)
    write_checkpoint(storage, identity, at, checkpoint.source_events, timestamp(YEAR_LATER))
    assert verify(state).breaks == ()
    write_checkpoint(storage, identity, identity.start, checkpoint.source_events, timestamp(YEAR_LATER))
    assert not verify(state).ok  # the control: read strictly, they are no records


def test_retention_of_a_record_whose_last_segment_is_empty_removes_the_ones_before(state: Path) -> None:
    before = verify(state).segments
    with opened(state) as log:
        for _ in range(2):
            begin(log, 200, YEAR_LATER)
        assert verify(state).segments == before + 1
        done = retain(log, order(200, YEAR_LATER))
    assert done is not None
    assert (done.first, done.last, done.lines) == (1, before, MADE)
    assert verify(state).ok

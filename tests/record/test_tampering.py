"""Every single change to a record of more than a hundred lines is found, and found where it is."""

from __future__ import annotations

import shutil
import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest

from engine.documents.canonical import canonical
from engine.errors import RecordError
from engine.record.chain import LineError, encode, head, parse
from engine.record.checkpoint import Events, read_identity, write_checkpoint
from engine.record.layout import CHECKPOINT, CUT, DECISIONS, EVENTS, INSTALLATION, KEY, BreakKind
from engine.record.model import DecisionRecord
from engine.record.storage import Storage
from engine.record.verify import Verification, verify, verify_storage
from tests.expect import refused, there
from tests.record.disk import SimulatedDisk, Tree, content, flipped, tree_of
from tests.record.samples import TIME, decision, event, open_log, write

DECISIONS_MADE = 100
NOWHERE = {"bad_json", "bad_keys", "seq_gap", "chain_break", "checkpoint_mismatch"}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    state = tmp_path_factory.mktemp("tampering") / "state"
    write(state, DECISIONS_MADE)
    return state


@pytest.fixture(scope="module")
def tree(original: Path) -> Tree:
    return tree_of(original)


@pytest.fixture
def state(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "state")
    return tmp_path / "state"


def checked(tree: Tree, **changes: bytes | None) -> Verification:
    """Verify a record with some of its files changed."""
    names = {"decisions": DECISIONS, "events": EVENTS, "checkpoint": CHECKPOINT}
    return verify_storage(SimulatedDisk(tree | {names[name]: content for name, content in changes.items()}))


def test_an_unmodified_record_is_intact(original: Path, tree: Tree) -> None:
    found = verify(original)
    assert found.ok
    assert found.records == 120
    assert found.source_events == 66
    assert checked(tree) == found


@pytest.mark.full
def test_every_flipped_byte_is_found_in_its_line(tree: Tree) -> None:
    data = content(tree, DECISIONS)
    tried = 0
    for index, changed in flipped(data, 3000, 7):
        found = checked(tree, decisions=changed)
        line = data[:index].count(b"\n") + 1
        assert [(broken.file, broken.line) for broken in found.breaks] == [(DECISIONS, line)], index
        assert found.breaks[0].kind in NOWHERE
        assert found.breaks[0].offset == data.rfind(b"\n", 0, index) + 1
        assert not found.repairable
        tried += 1
    assert tried > 3000


@pytest.mark.full
def test_every_flipped_byte_of_a_source_event_is_found(tree: Tree) -> None:
    data = content(tree, EVENTS)
    for index, changed in flipped(data, 1500, 7):
        found = checked(tree, events=changed)
        (broken,) = found.breaks
        assert (broken.file, broken.kind) == (EVENTS, BreakKind.EVENTS_MISMATCH)
        line = data[:index].count(b"\n") + 1
        assert broken.line in {line, line - 1}  # in its block of two; the line itself where it is no event any more
        assert not found.repairable


def test_every_deletion_duplicate_and_swap_is_found_in_its_place(tree: Tree) -> None:
    lines = content(tree, DECISIONS).splitlines(keepends=True)
    for index in range(len(lines)):
        last = index == len(lines) - 1
        without = checked(tree, decisions=b"".join(lines[:index] + lines[index + 1 :]))
        assert without.breaks[0].kind is (BreakKind.BEFORE_CHECKPOINT if last else BreakKind.SEQ_GAP)
        assert without.breaks[0].line == index + 1
        twice = checked(tree, decisions=b"".join(lines[: index + 1] + lines[index:]))
        assert (twice.breaks[0].kind, twice.breaks[0].line) == (BreakKind.SEQ_GAP, index + 2)
        if not last:
            swapped = [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]
            found = checked(tree, decisions=b"".join(swapped))
            assert (found.breaks[0].kind, found.breaks[0].line) == (BreakKind.SEQ_GAP, index + 1)
    assert [broken.line for broken in without.breaks] == [len(lines)]


def test_every_truncation_is_found_and_not_taken_for_a_torn_tail(tree: Tree) -> None:
    data = content(tree, DECISIONS)
    ends = [index + 1 for index, byte in enumerate(data) if byte == 10][:-1]
    for size in [0, *ends, *(end - 1 for end in ends), *(end + 5 for end in ends), len(data) - 1]:
        found = checked(tree, decisions=data[:size])
        assert found.breaks[0].kind is BreakKind.BEFORE_CHECKPOINT, size
        assert not found.repairable
        assert found.breaks[0].line == data[:size].count(b"\n") + 1


def test_a_rewritten_record_is_found_by_its_checkpoint(tree: Tree) -> None:
    """A chain alone finds no full rewrite: without the checkpoint this one has no break but its absence."""
    entries = [parse(line) for line in content(tree, DECISIONS).splitlines()]
    first, lines = entries[0].prev, []
    for seq, entry in enumerate(entries[:60], start=1):
        lines.append(encode(seq, first, entry.body))
        first = sha256(lines[-1]).hexdigest()
    shorter = b"".join(line + b"\n" for line in lines)
    assert checked(tree, decisions=shorter).breaks[0].kind is BreakKind.BEFORE_CHECKPOINT
    changed = [*lines[:-1], encode(60, entries[59].prev, decision(99))]
    longer = b"".join(line + b"\n" for line in changed) + b"\n".join(content(tree, DECISIONS).splitlines()[60:]) + b"\n"
    assert checked(tree, decisions=longer).breaks[0].line == 60
    without = SimulatedDisk({path: data for path, data in tree.items() if path != CHECKPOINT})
    assert [broken.kind for broken in verify_storage(without).breaks] == [BreakKind.CHECKPOINT_MISSING]


@pytest.mark.full
def test_every_flipped_byte_of_the_checkpoint_is_found(tree: Tree) -> None:
    for _, changed in flipped(content(tree, CHECKPOINT), 150, 7):
        found = checked(tree, checkpoint=changed)
        assert [broken.kind for broken in found.breaks] == [BreakKind.BAD_SIGNATURE]


@pytest.mark.parametrize("form", [b"%b ", b" %b", b"%b\n", b'{"seq":0,%b'])
def test_a_checkpoint_in_another_form_is_found(tree: Tree, form: bytes) -> None:
    """Its meaning and its signature are the same."""
    written = content(tree, CHECKPOINT)
    found = checked(tree, checkpoint=form % (written[1:] if form.startswith(b"{") else written))
    assert [broken.kind for broken in found.breaks] == [BreakKind.BAD_SIGNATURE]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (DECISIONS, BreakKind.MISSING_SEGMENT),
        (EVENTS, BreakKind.MISSING_SEGMENT),
        (CHECKPOINT, BreakKind.CHECKPOINT_MISSING),
        (KEY, BreakKind.BAD_SIGNATURE),
        (INSTALLATION, BreakKind.INSTALLATION_MISSING),
    ],
)
def test_every_deleted_file_is_found_and_nothing_opens(state: Path, path: str, kind: BreakKind) -> None:
    (state / path).unlink()
    found = verify(state)
    assert ([broken.kind for broken in found.breaks], found.passing) == ([kind], path == INSTALLATION)
    before = {item: item.read_bytes() for item in state.rglob("*") if item.is_file()}
    with refused(RecordError, "engine.record_broken"):
        open_log(state)
    assert {item: item.read_bytes() for item in state.rglob("*") if item.is_file()} == before


def test_all_files_but_the_installation_deleted_is_found(state: Path) -> None:
    shutil.rmtree(state / "records")
    shutil.rmtree(state / "checkpoints")
    assert verify(state).breaks[0].kind is BreakKind.CHECKPOINT_MISSING
    with pytest.raises(RecordError):
        open_log(state)


@pytest.mark.parametrize("path", [DECISIONS, EVENTS])
def test_a_longer_file_is_cut_only_behind_the_last_newline(state: Path, path: str) -> None:
    with (state / path).open("ab") as file:
        file.write(b'{"half')
    found = verify(state)
    assert not found.ok
    assert found.repairable
    with open_log(state) as log:
        (recovered,) = log.opened.recovered
    assert verify(state).ok
    assert (state / "records" / recovered.kept).read_bytes() == b'{"half'
    assert (state / CUT).is_dir()


def test_a_foreign_complete_line_is_reported_and_not_cut(state: Path) -> None:
    before = (state / DECISIONS).read_bytes()
    (state / DECISIONS).write_bytes(before + b'{"half": true}\n')
    assert verify(state).breaks[0].kind is BreakKind.BAD_KEYS
    with pytest.raises(RecordError, match="bad_keys"):
        open_log(state)
    assert (state / DECISIONS).read_bytes() == before + b'{"half": true}\n'


def test_a_forged_line_that_does_not_continue_the_chain_is_found(state: Path) -> None:
    before = (state / DECISIONS).read_bytes()
    (state / DECISIONS).write_bytes(before + encode(121, "f" * 64, decision(500)) + b"\n")
    assert verify(state).breaks[0].kind is BreakKind.CHAIN_BREAK


@pytest.mark.parametrize(
    "name", ["decisions.000003.jsonl", "decisions.0000002.jsonl", "decisions.000000.jsonl", "x.jsonl"]
)
def test_a_file_that_does_not_belong_is_found(state: Path, name: str) -> None:
    (state / "records" / name).write_bytes(b"")
    assert [broken.kind for broken in verify(state).breaks] == [BreakKind.UNKNOWN_SEGMENT]


def test_records_of_two_installations_cannot_be_swapped(state: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", DECISIONS_MADE)
    shutil.copy(tmp_path / "other" / DECISIONS, state / DECISIONS)
    identity = there(read_identity(Storage(state)))
    found = verify(state)
    assert (found.breaks[0].kind, found.breaks[0].line) == (BreakKind.CHAIN_BREAK, 1)
    assert found.breaks[0].expected == identity.genesis


def test_another_key_of_ours_does_not_sign(state: Path) -> None:
    storage = Storage(state)
    (state / KEY).write_bytes(b"k" * 32)
    assert read_identity(storage) is not None
    assert verify(state).breaks[0].kind is BreakKind.BAD_SIGNATURE


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_named_with_its_size(state: Path, size: int) -> None:
    (state / KEY).write_bytes(b"k" * size)
    (broken,) = verify(state).breaks
    assert (broken.file, broken.kind) == (KEY, BreakKind.BAD_SIGNATURE)
    assert (broken.expected, broken.found) == ("32 bytes", f"{size} bytes")
    (state / KEY).unlink()
    assert verify(state).breaks[0].found == "none"


def test_a_checkpoint_signed_for_other_events_is_found(state: Path) -> None:
    storage = Storage(state)
    identity = read_identity(storage)
    checkpoint = verify(state).checkpoint
    assert identity is not None
    assert checkpoint is not None
    known = checkpoint.source_events
    events = Events(size=known.size, lines=known.lines, hash="e" * 64)
    write_checkpoint(storage, identity, checkpoint.position, events, TIME)
    assert [(broken.file, broken.kind) for broken in verify(state).breaks] == [(EVENTS, BreakKind.CHECKPOINT_MISMATCH)]
    with pytest.raises(RecordError):
        open_log(state)


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b"7",
    b'"text"',
    b"{}",
    b'{"seq":1}',
    b'{"seq":true,"prev":"x","kind":"decision"}',
    b'{"seq":121,"prev":null,"kind":["decision"]}',
    b"\xff\xfe\x00",
    b"\xed\xa0\x80",
    b'{"seq":121,"prev":"\\ud800","kind":"recovery"}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"9" * 100_000,
    b'{"seq":' + b"9" * 5_000 + b',"prev":"x","kind":"decision"}',
    b'{"seq":1e999,"prev":"x","kind":"decision"}',
    b'{"seq":NaN}',
    b"{" + b'"a":1,' * 50_000 + b'"b":2}',
    b"\0" * 4096,
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("at", [50, 120], ids=["before the checkpoint", "after it"])
def test_hostile_lines_are_named_and_never_raise(tree: Tree, line: bytes, at: int) -> None:
    lines = content(tree, DECISIONS).splitlines(keepends=True)
    found = checked(tree, decisions=b"".join([*lines[:at], line + b"\n", *lines[at:]]))
    assert (found.breaks[0].line, found.breaks[0].kind in {"bad_json", "bad_keys"}) == (at + 1, True)
    assert len(found.breaks[0].found) <= 80


def line_with(**changes: object) -> bytes:
    """A line whose body has other values; a value of `...` leaves the key out."""
    body = decision(1).model_dump(mode="json") | changes
    written = {key: value for key, value in body.items() if value is not ...}
    return b'{"seq":1,"prev":"%s",' % (b"a" * 64) + canonical(written)[1:]


def test_a_line_with_an_unknown_or_missing_key_is_invalid() -> None:
    parse(line_with())
    for key, value in {"unknown": 1, **dict.fromkeys(DecisionRecord.model_fields, ...)}.items():
        with pytest.raises(LineError) as caught:
            parse(line_with(**{key: value}))
        assert caught.value.kind is BreakKind.BAD_KEYS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seq":1,', b'"seq":true,'),
        (b'"seq":1,', b'"seq":1.0,'),
        (b'"seq":1,', b'"seq":"1",'),
        (b'"seq":1,', b'"seq":null,'),
        (b'"prev":"', b'"previous":"'),
        (b'"kind":"decision"', b'"kind":"decided"'),
        (b'"kind":"decision"', b'"kind":["decision"]'),
    ],
)
def test_a_line_with_a_malformed_seq_prev_or_kind_is_invalid(old: bytes, new: bytes) -> None:
    line = line_with()
    assert parse(line).seq == 1
    with pytest.raises(LineError) as caught:
        parse(line.replace(old, new, 1))
    assert (caught.value.kind, caught.value.found) == (BreakKind.BAD_KEYS, "no valid seq, prev or kind")


@pytest.mark.parametrize("form", [b"%b ", b" %b", b"%b\r"])
def test_a_line_with_extra_whitespace_is_invalid(form: bytes) -> None:
    with pytest.raises(LineError) as caught:
        parse(form % line_with())
    assert caught.value.kind is BreakKind.BAD_JSON


@pytest.mark.parametrize(
    "key", ["time", "mode", "outcome", "findings", "versions", "durations", "policy", "input_digest"]
)
@pytest.mark.parametrize("value", [True, 0, "x", [[]], {"a": 1}])
def test_a_line_with_a_value_of_a_wrong_type_is_invalid(key: str, value: object) -> None:
    with pytest.raises(LineError) as caught:
        parse(line_with(**{key: value}))
    assert caught.value.kind is BreakKind.BAD_KEYS


@pytest.mark.parametrize("value", ["1", 1.0, True])
def test_a_number_of_a_wrong_type_is_invalid(value: object) -> None:
    with pytest.raises(LineError):
        parse(line_with(durations={"gather": value, "decide": 1}))


def test_a_live_record_is_not_called_broken(tmp_path: Path) -> None:
    log = open_log(tmp_path / "state")
    log.append(decision(1), (event(1),))
    with (tmp_path / "state" / EVENTS).open("ab") as file:
        file.write(b"{")
    found = verify(tmp_path / "state")
    assert found.ok
    assert found.writing
    log.close()
    assert not verify(tmp_path / "state").ok


def test_a_live_record_whose_lines_were_changed_is_called_broken(state: Path) -> None:
    with open_log(state) as log:
        log.append(decision(500))
        (state / DECISIONS).write_bytes((state / DECISIONS).read_bytes().replace(b'"deny"', b'"Deny"', 1))
        (broken,) = (found := verify(state)).breaks
        assert (broken.file, broken.line, found.writing, found.repairable) == (DECISIONS, 1, True, False)


def test_memory_does_not_grow_with_the_record(tmp_path: Path) -> None:
    write(tmp_path / "state", 40)
    long = tmp_path / "state" / DECISIONS
    long.write_bytes(long.read_bytes() + b"x" * (40 << 20))
    tracemalloc.start()
    verify(tmp_path / "state")
    one_line = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one_line < (100 << 20)


@pytest.mark.parametrize("at", [50, 120], ids=["before the checkpoint", "after it"])
def test_an_endless_line_is_named_and_not_read_whole(tree: Tree, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.record.lines.LINE_BYTES", 2 << 20)
    lines = content(tree, DECISIONS).splitlines(keepends=True)
    found = checked(tree, decisions=b"".join([*lines[:at], b"x" * (5 << 20), *lines[at:]]))
    assert (found.breaks[0].line, found.breaks[0].kind) == (at + 1, BreakKind.BAD_JSON)
    assert found.breaks[0].offset == sum(map(len, lines[:at]))
    assert "without a newline" in found.breaks[0].found


def test_a_line_with_the_next_digest_and_another_number_is_found(state: Path) -> None:
    found = verify(state)
    for seq in (121, 122, 1):
        (state / DECISIONS).write_bytes(
            (state / DECISIONS).read_bytes()[: found.size] + encode(seq, found.head or "", decision(500)) + b"\n"
        )
        assert [one.kind for one in verify(state).breaks] == ([] if seq == 121 else [BreakKind.SEQ_GAP])


def test_events_and_lines_that_are_broken_at_different_places_are_both_named(tree: Tree) -> None:
    data, events = content(tree, DECISIONS), content(tree, EVENTS)
    lines = data.splitlines(keepends=True)
    changed = b"".join([*lines[:59], lines[59].replace(b'"kind"', b'"kink"', 1), *lines[60:]])
    early, late = b"x" + events[1:], events[:-2] + b"x\n"
    for content_of_events, files in ((early, [EVENTS, DECISIONS]), (late, [DECISIONS]), (events, [DECISIONS])):
        found = checked(tree, decisions=changed, events=content_of_events)
        assert [one.file for one in found.breaks] == files
        assert found.breaks[-1].line == 60
    longer = checked(tree, decisions=data + b"{", events=early + b"{")
    first = next(entry.seq for entry in map(parse, data.splitlines()) if getattr(entry.body, "source_events", None))
    assert [(one.file, one.kind, one.seq) for one in longer.breaks] == [
        (EVENTS, BreakKind.EVENTS_MISMATCH, first),
        (DECISIONS, BreakKind.TORN_TAIL, 121),
    ]


def test_a_checkpoint_of_an_empty_record_vouches_for_its_events_too(tmp_path: Path) -> None:
    state = tmp_path / "state"
    open_log(state).close()
    storage = Storage(state)
    identity, checkpoint = read_identity(storage), verify(state).checkpoint
    assert identity is not None
    assert checkpoint is not None
    for digest, breaks in (("e" * 64, [(EVENTS, BreakKind.CHECKPOINT_MISMATCH)]), (identity.genesis, [])):
        write_checkpoint(storage, identity, checkpoint.position, Events(size=0, lines=0, hash=digest), TIME)
        assert [(one.file, one.kind) for one in verify(state).breaks] == breaks


def test_a_broken_line_is_named_when_the_record_is_opened_too(tmp_path: Path) -> None:
    """Behind the checkpoint, where no signature says which of two lines was changed."""
    state = tmp_path / "state"
    log = open_log(state)
    for number in range(1, 12):
        log.append(decision(number))
    log.storage.close()  # as if killed
    whole = (state / DECISIONS).read_bytes()
    lines = whole.splitlines(keepends=True)
    before = [sum(map(len, lines[:index])) for index in range(len(lines))]
    for changed, kind, index in (
        ([lines[0].replace(b"contacts", b"kontacts"), *lines[1:]], "chain_break", 0),
        ([*lines[:5], lines[5].replace(b"contacts", b"kontacts"), *lines[6:]], "chain_break", 5),
        ([*lines[:5], lines[5].replace(b'"prev":"', b'"prev":"x'), *lines[6:]], "chain_break", 5),
        ([*lines[:5], *lines[6:]], "seq_gap", 5),
        ([*lines[:5], b"{}\n", *lines[6:]], "bad_keys", 5),
        ([b"{}\n", *lines[1:]], "bad_keys", 0),
    ):
        (state / DECISIONS).write_bytes(b"".join(changed))
        (broken,) = verify(state).breaks
        assert (broken.kind, broken.line, broken.offset) == (kind, index + 1, before[index])
        with pytest.raises(RecordError, match=f"{kind} at byte {before[index]}$"):
            open_log(state)


def test_a_rechained_record_is_found_by_a_checkpoint_in_its_middle(tmp_path: Path) -> None:
    state = tmp_path / "state"
    log = open_log(state)
    for number in range(1, 7):
        log.append(decision(number))
        if number == 3:
            log.vouch()
    log.storage.close()  # as if killed: no checkpoint vouches for the last three
    lines = (state / DECISIONS).read_bytes().splitlines()
    for changed, kinds in ((5, []), (2, [BreakKind.CHECKPOINT_MISMATCH])):
        digest, made = parse(lines[0]).prev, []
        for seq, line in enumerate(lines, start=1):
            body = line.split(b",", 2)[2]
            made.append(head(seq, digest) + (body.replace(b"contacts-", b"kontacts-") if seq == changed else body))
            digest = sha256(made[-1]).hexdigest()
        (state / DECISIONS).write_bytes(b"".join(line + b"\n" for line in made))
        breaks = verify(state).breaks
        assert [(one.kind, one.line) for one in breaks] == [(kind, 3) for kind in kinds]

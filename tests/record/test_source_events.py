"""source_events.jsonl holds seven facts and a name, and nothing that anyone could plant in them."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.errors import RecordError
from engine.model import Outcome
from engine.record import lines
from engine.record.checkpoint import Events
from engine.record.layout import DECISIONS, EVENTS, BreakKind, BrokenError
from engine.record.lines import last_line
from engine.record.source_events import EventName, Hashes, SourceEvent, block, line
from engine.record.verify import verify
from engine.record.walk import EventsWalk
from engine.secrets.redaction import redacted
from tests.record.samples import decision, event, open_log, result

FACTS = {
    "event": "source_checked",
    "source_id": "contacts-1",
    "source_kind": "fixture",
    "policy_outcome": "deny",
    "origin_alias": "acme-contacts",
    "hashes": {"declared": "d" * 64, "computed": "d" * 64},
    "license_outcome": "license_unknown",
    "rejection_causes": ["license_unknown"],
}


# covers: A27
def test_the_seven_facts_are_recorded_and_beside_them_only_the_name() -> None:
    assert json.loads(line(event())) == FACTS
    assert set(SourceEvent.model_fields) == set(FACTS)


# covers: A27.7
@pytest.mark.parametrize("name", ["time", "url", "decision_id", "bytes", "path", "message"])
def test_an_unknown_fact_is_refused(name: str) -> None:
    facts: dict[str, Any] = {name: "x"}
    with pytest.raises(ValidationError):
        event(**facts)


# covers: A27
@pytest.mark.parametrize("name", sorted(set(FACTS)))
def test_no_fact_may_be_left_out(name: str) -> None:
    facts: dict[str, Any] = dict(event())
    del facts[name]
    with pytest.raises(ValidationError):
        SourceEvent(**facts)


# covers: A27
@pytest.mark.parametrize(
    "origin",
    [
        "https://acme.example/contacts.json",
        "acme.example",
        "files.acme.example.",
        "192.0.2.7",
        "acme.example:8443",
        "data.acme.example-2026",
        "https-data.acme.example-contacts",
        "mirror_data.acme.example_1",
        "www.acme.example.mirror1",
        "acme.xn--p1ai",
        "mirror-192.0.2.7",
        "contacts/2026/part-1.json",
        "acme contacts",
        "",
        "a" * 129,
        "acme\ncontacts",
    ],
)
def test_an_alias_that_is_not_a_plain_name_is_redacted(origin: str) -> None:
    written = json.loads(line(event(origin_alias=origin, source_id=origin)))
    assert (written["origin_alias"], written["source_id"]) == (redacted(origin), redacted(origin))


# covers: A42.2
@pytest.mark.parametrize("id_", ["data.acme.example.json", "data.acme.example-contacts.json", "192.0.2.7.csv"])
def test_an_id_with_a_host_is_redacted(id_: str) -> None:
    assert json.loads(line(event(source_id=id_)))["source_id"] == redacted(id_)


# covers: A42
@pytest.mark.parametrize(
    "id_",
    [
        *("contacts.json", "part-1.jsonl", "2026.csv.gz", "contacts", "squad.dev.json", "content-a.txt-b.txt"),
        *("v1.2.3-x", "corpus-v1.2.3.tar.gz", "part.2026.01.jsonl"),
    ],
)
def test_an_id_that_is_the_name_of_a_file_stays(id_: str) -> None:
    assert json.loads(line(event(source_id=id_)))["source_id"] == id_


# covers: A27
def test_causes_are_sorted_codes_each_once() -> None:
    causes = ("sha256_mismatch", "license_unknown", "sha256_mismatch", "engine.internal", "Because of Jane")
    assert json.loads(line(event(rejection_causes=causes)))["rejection_causes"] == sorted(
        ["engine.internal", "license_unknown", "sha256_mismatch", redacted("Because of Jane")]
    )


def test_a_written_line_is_read_as_it_is() -> None:
    """What was redacted is not redacted again."""
    odd = event(
        source_id="a b", source_kind="x/y", origin_alias="a.example.org", license_outcome="A B", rejection_causes=("C",)
    )
    assert line(SourceEvent.model_validate_json(line(odd))) == line(odd)
    assert line(odd).count(b'"[redacted:') == 5


def test_unknown_event_names_and_non_hex_hashes_are_refused() -> None:
    assert [name.value for name in EventName] == [
        "source_checked",
        "environment_source_admitted",
        "environment_source_rejected",
        "fetch_attempt",
        "fetch_accepted",
        "fetch_rejected",
    ]
    with pytest.raises(ValidationError):
        event(event="source_seen")
    with pytest.raises(ValidationError):
        event(hashes=Hashes(declared="not a hash", computed=None))


CANARIES = {
    "raw provider payload": '{"object":"chat.completion","choices":[{"text":"canary"}]}',
    "authorization header": "Authorization: Bearer canary-0a1b2c3d4e5f",
    "api key": "sk-proj-CANARY0a1b2c3d4e5f6g7h8i9j0k",
    "source text": "Dear Ms Canary, your order of 3 November has left our house.",
    "private user data": "jane.canary@example.org",
    "another secret": "postgres://canary:hunter2@db.acme.example/contacts",
    "card": "4111 1111 1111 1111",
    "random key": "c4N4ryK7mDENGbPxRfiCYzQ81LwT5vHs2Jd9",
}


# covers: A28
@pytest.mark.parametrize("name", CANARIES)
def test_a_planted_secret_reaches_no_file_of_the_record(name: str, tmp_path: Path) -> None:
    canary = CANARIES[name]
    planted = event(
        source_id=canary,
        source_kind=canary,
        origin_alias=canary,
        license_outcome=canary,
        rejection_causes=(canary,),
    )
    document = {"bundle": {"id": "contacts-1", "records": [{"note": canary, "api_key": canary}], canary: 1}}
    if name in {"raw provider payload", "source text"}:
        document = {
            "bundle": {"id": "contacts-1"}
        }  # gather carries no content; what it would carry is not told from facts
    with open_log(tmp_path / "state") as log:
        log.append(decision(1, document), (planted,))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 5
    for path in files:
        content = path.read_text(encoding="utf-8", errors="replace")
        assert canary not in content
        assert json.dumps(canary)[1:-1] not in content
        assert "canary" not in content.lower()
    assert "contacts-1" in (tmp_path / "state" / DECISIONS).read_text()  # the control: what is no secret is there


# covers: A26.1
def test_two_runs_give_identical_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with open_log(tmp_path / name) as log:
            log.append(decision(1), (event(1), event(2, policy_outcome=Outcome.ALLOW)))
    assert (tmp_path / "one" / EVENTS).read_bytes() == (tmp_path / "two" / EVENTS).read_bytes()


def test_every_line_is_covered_by_its_decision(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_log(state) as log:
        log.append(decision(1), (event(1), event(2)))
        log.append(decision(2))
        log.append(decision(3), (event(3),))
    covered = [json.loads(text)["source_events"] for text in (state / DECISIONS).read_text().splitlines()]
    data = (state / EVENTS).read_bytes()
    first, last = block((event(1), event(2))), block((event(3),))
    assert data == first[0] + last[0]
    assert covered == [first[1] and first[1].model_dump(), None, last[1] and last[1].model_dump()]
    assert verify(state).source_events == 3


def test_events_belong_to_decisions_only(tmp_path: Path) -> None:
    with open_log(tmp_path / "state") as log:
        with pytest.raises(TypeError):
            log.append(result(1), (event(1),))
        log.append(decision(1))
    assert verify(tmp_path / "state").ok


def test_events_without_their_decision_are_cut_and_kept_aside(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_log(state) as log:
        log.append(decision(1), (event(1),))
    orphans = line(event(7)) + line(event(8))
    with (state / EVENTS).open("ab") as file:
        file.write(orphans)
    found = verify(state)
    assert [broken.kind.value for broken in found.breaks] == ["orphan_events"]
    assert (found.breaks[0].line, found.repairable) == (2, True)
    with open_log(state) as log:
        (cut,) = log.opened.recovered
        assert log.seq == 2
    assert (cut.file, cut.bytes) == ("source_events.jsonl", len(orphans))
    assert (state / "records" / cut.kept).read_bytes() == orphans
    assert (state / EVENTS).read_bytes() == line(event(1))
    assert verify(state).ok


def test_changed_events_stop_the_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    log = open_log(state)
    log.append(decision(1), (event(1), event(2)))
    log.storage.close()  # as if killed: no checkpoint vouches for these events
    data = (state / EVENTS).read_bytes()
    (state / EVENTS).write_bytes(data.replace(b"contacts-2", b"contacts-3"))
    with pytest.raises(RecordError, match="events_mismatch"):
        open_log(state)


def test_the_first_event_that_cannot_be_ours_is_named(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_log(state) as log:
        log.append(decision(1), (event(1),))
        log.append(decision(2), (event(2), event(3), event(4)))
    whole = (state / EVENTS).read_bytes()
    for old, new, number in (
        (b"contacts-3", b"contacts-9", 2),  # an event like ours: the block is named by its first line
        (b"contacts-3", b"contacts 3", 3),
        (b'"event":"source_checked"', b'"event":"source_chucked"', 1),
        (b'4"', b"4 ", 4),
    ):
        (state / EVENTS).write_bytes(whole.replace(old, new, 1))
        (broken,) = verify(state).breaks
        assert (broken.kind, broken.line) == (BreakKind.EVENTS_MISMATCH, number)


def test_a_claim_matches_only_its_exact_bytes_and_line_count() -> None:
    data = line(event(1)) + line(event(2))
    sha = sha256(data).hexdigest()
    start = Events(size=0, lines=0, hash="a" * 64)
    EventsWalk(io.BytesIO(data), start).events(len(data), 2, sha, 1)
    for size, count, digest in (
        (len(data), 1, sha),
        (len(data), 2, "e" * 64),
        (len(data) - 1, 2, sha),
        (len(data) + 1, 2, sha),
    ):
        with pytest.raises(BrokenError):
            EventsWalk(io.BytesIO(data), start).events(size, count, digest, 1)


BACK = 1 << 16
"""What is read at a time, from the end backwards."""


@pytest.mark.parametrize("length", [0, 1, BACK - 2, BACK - 1, BACK, BACK + 1, 2 * BACK - 1, 2 * BACK, 3 * BACK])
@pytest.mark.parametrize("before", [b"", b"\n", b"other\n"])
def test_the_last_line_is_found_however_long_it_is(length: int, before: bytes) -> None:
    text = b"x" * length
    data = before + text + b"\n"
    found = last_line(io.BytesIO(data + b"more\n"), len(data), "genesis")
    assert found == (len(before), sha256(text).hexdigest())


def test_a_tail_without_a_complete_line_has_no_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"one\ntwo\n"
    assert last_line(io.BytesIO(data), 0, "genesis") == (0, "genesis")
    for size in (1, 3, 7, 9, 100):
        assert last_line(io.BytesIO(data), size, "genesis") == (size, sha256(b"").hexdigest())
    monkeypatch.setattr(lines, "LINE_BYTES", 2 * BACK)
    longest = b"x" * (2 * BACK)
    assert last_line(io.BytesIO(longest + b"\n"), 2 * BACK + 1, "genesis") == (0, sha256(longest).hexdigest())
    endless = b"x" * (10 * BACK) + b"\n"
    assert last_line(io.BytesIO(endless), len(endless), "genesis")[0] > 0  # it was not read whole

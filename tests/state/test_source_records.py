"""Records of admitted source bundles: what may be done with each, and which texts have blocks of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.state.rows import SourceRecordRow
from engine.state.store import Store

PLAIN = SourceRecordRow("sha256:" + "a" * 64, "mail", "text", "b" * 64, export=True, sensitive=False, terms=None)
SECRET = replace(PLAIN, record="keys", export=False, sensitive=True, terms="{}")


def test_a_source_record_is_found_with_its_permissions(store: Store) -> None:
    assert store.source_record(PLAIN.source, PLAIN.record) is None
    assert store.add_source_record(PLAIN, [1, 2, 2, 3]) == replace(PLAIN, blocks=3)
    assert store.add_source_record(SECRET, []) == SECRET
    assert store.source_record(PLAIN.source, PLAIN.record) == replace(PLAIN, blocks=3)
    assert store.source_record(SECRET.source, SECRET.record) == SECRET
    later = replace(PLAIN, export=False, sensitive=True, terms="{}")
    assert store.add_source_record(later, [1, 2, 3]) == replace(later, blocks=3)
    assert store.source_record(PLAIN.source, PLAIN.record) == replace(later, blocks=3)


def test_records_that_are_not_for_export_come_first_then_those_with_most_blocks_apart(store: Store) -> None:
    """More blocks than one query has marks for."""
    store.add_source_record(PLAIN, range(700))
    store.add_source_record(other := replace(PLAIN, record="other"), range(100, 900))
    store.add_source_record(SECRET, range(650, 1_400))
    plain, other, secret = replace(PLAIN, blocks=700), replace(other, blocks=800), replace(SECRET, blocks=750)
    every = range(1_400)
    assert store.records_with(every, every, 9) == ((secret, 750, 750), (other, 800, 800), (plain, 700, 700))
    assert store.records_with(every, range(100), 9) == ((secret, 750, 0), (plain, 700, 100), (other, 800, 0))
    assert store.records_with((*range(700), *range(700)), (), 1) == ((secret, 50, 0),)
    assert store.records_with(range(5_000, 5_100), [], 9) == store.records_with([], [], 9) == ()


def test_the_blocks_of_named_records_are_found(store: Store) -> None:
    store.add_source_record(PLAIN, range(700))
    store.add_source_record(SECRET, range(650, 1_400))
    named = [(PLAIN.source, PLAIN.record)]
    assert store.blocks_in(named, range(600, 1_400)) == frozenset(range(600, 700))
    assert store.blocks_in([*named, (SECRET.source, SECRET.record)], range(1_500)) == frozenset(range(1_400))
    assert store.blocks_in([(PLAIN.source, "none")], range(9)) == store.blocks_in([], range(9)) == frozenset()


def test_a_record_without_a_name_or_a_digest_is_refused(store: Store) -> None:
    for wrong in (replace(PLAIN, record=""), replace(PLAIN, sha256="b")):
        with pytest.raises(ValueError, match=r"text|SHA-256"):
            store.add_source_record(wrong, [])

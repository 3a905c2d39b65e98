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


def test_the_records_with_most_of_the_blocks_come_first(store: Store) -> None:
    """More blocks than one query has marks for."""
    store.add_source_record(PLAIN, range(700))
    store.add_source_record(SECRET, range(650, 1_400))
    plain, secret = replace(PLAIN, blocks=700), replace(SECRET, blocks=750)
    assert store.records_with(range(1_400), 9) == ((secret, 750), (plain, 700))
    assert store.records_with(range(700), 9) == ((plain, 700), (secret, 50))
    assert store.records_with(range(700), 1) == ((plain, 700),)
    assert store.records_with(range(5_000, 5_100), 9) == store.records_with([], 9) == ()


def test_a_record_without_a_name_or_a_digest_is_refused(store: Store) -> None:
    for wrong in (replace(PLAIN, record=""), replace(PLAIN, sha256="b")):
        with pytest.raises(ValueError, match=r"text|SHA-256"):
            store.add_source_record(wrong, [])

"""`--watch` activates a change once it is whole: neither while it is written nor half of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.api import watch
from engine.api.watch import Changes, content_digest, unfinished
from engine.settings import Settings

OPEN, BROKEN = {Path("a.yaml"): True}, {Path("a.yaml"): False}


def test_a_change_is_activated_once_it_stays_the_same() -> None:
    changes = Changes("a")
    assert [changes.ready(now, {}) for now in "aabbbbcdeeaa"] == [
        *(False, False, False, True, False, False),
        *(False, False, False, True, False, True),
    ]


def test_a_file_open_for_writing_delays_the_activation() -> None:
    changes = Changes("a")
    assert not any(changes.ready("b", OPEN) for _ in range(100))
    assert not changes.ready("c", {})
    assert changes.ready("c", {})


def test_a_document_that_does_not_parse_is_waited_for_and_then_reported() -> None:
    changes = Changes("a")
    looks = [changes.ready("b", BROKEN) for _ in range(20)]
    assert (looks.index(True), sum(looks)) == (6, 1)
    assert not changes.ready("c", BROKEN)
    assert changes.ready("c", {})


def test_a_folder_that_is_removed_while_it_is_read_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: Iterator[str | OSError] = iter([FileNotFoundError(), "b", FileNotFoundError(), "b"])

    def look(_: object) -> str:
        if isinstance(found := next(looks), OSError):
            raise found
        return found

    async def reload(*_: object) -> None:
        raise asyncio.CancelledError

    for name, value in {"content_digest": look, "unfinished": lambda _: {}, "reload": reload, "_SECONDS": 0}.items():
        monkeypatch.setattr(watch, name, value)
    api: Any = None
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watch.watch(api, Settings(), "a"))


def test_files_that_are_open_for_writing_or_no_documents_are_found(tmp_path: Path) -> None:
    values, rules, whole = tmp_path / "values.yaml", tmp_path / "below" / "rules.rego", tmp_path / "whole.yaml"
    rules.parent.mkdir()
    whole.write_text("a: 1\n")
    (tmp_path / "notes.txt").write_text("{")
    with values.open("w") as first, rules.open("w") as second:
        for text, other in (("", ""), ("a: [1,", "package"), (" 2]\n", " a\n")):
            first.write(text)
            second.write(other)
            first.flush()
            assert unfinished((tmp_path,)) == {values: True, rules: True}
    assert unfinished((tmp_path,)) == {}
    for half in ("", "a: [1,", "a: 'x", "a: 1\na: 2\n"):
        values.write_text(half)
        assert unfinished((tmp_path,)) == {values: False}
    before = content_digest((tmp_path,))
    whole.replace(values)
    assert unfinished((tmp_path,)) == {}
    assert content_digest((tmp_path,)) != before

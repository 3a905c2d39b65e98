"""What only a terminal gets: tables, colors of states, progress of work that counts nothing."""

from __future__ import annotations

import sys
import time

import pytest

from engine.cli import outputs, waiting

ROWS = [["contacts_add", "a person is asked"], ["[red]x", "denied"]]


def test_a_pipe_gets_plain_columns() -> None:
    assert outputs.table(("tool", "call"), ROWS) == (
        "tool          call\ncontacts_add  a person is asked\n[red]x        denied"
    )


@pytest.mark.parametrize("variable", ["", "1"], ids=["colors", "NO_COLOR"])
def test_a_terminal_gets_a_table_of_its_width(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in (("NO_COLOR", variable), ("TERM", "xterm"), ("COLUMNS", "30")):
        monkeypatch.setenv(name, value)
    drawn = outputs.table(("tool", "call"), ROWS)
    assert "[red]x" in drawn
    assert ("\x1b[31mdenied" in drawn) is (variable == "")
    if variable:
        assert "\x1b" not in drawn
        assert max(map(len, drawn.splitlines())) <= 30


def test_progress_without_a_count_is_shown_on_a_terminal_and_erased(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "_EVERY", 0.01)
    monkeypatch.setattr(waiting, "_FIRST", 0.0)
    with waiting.during("elsewhere"):
        pass
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said, end = "", time.monotonic() + 60
    with waiting.during("building"):
        while "building" not in said and time.monotonic() < end:
            said += capsys.readouterr().err
            time.sleep(0.001)
    said += capsys.readouterr().err
    assert said.startswith("\r\x1b[Kengine: building (")
    assert said.endswith("\r\x1b[K")

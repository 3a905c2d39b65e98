"""The variables of the remote model: which of them are asked for, and how lines of a file are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission_adapters.llm_provider import BASE_URL, KEY, MODEL, OPENAI_KEY, OPENAI_MODEL, TIMEOUT, Provider
from engine.errors import GatherError

SECRET = "sk-c4nary-0123456789"  # noqa: S105  (looks like one)
OURS = {BASE_URL: "https://models.example/v1", KEY: SECRET, MODEL: "m-1"}


def test_without_openai_variables_the_agent_data_variables_are_required() -> None:
    for nothing in ({}, {OPENAI_MODEL: "m", TIMEOUT: "5"}, {OPENAI_KEY: " "}):
        found = Provider.read(nothing)
        assert (found.settings.missing[:3], found.settings.defaults, found.key) == ((BASE_URL, KEY, MODEL), False, None)
    assert Provider.read(OURS).settings.missing == ()
    assert Provider.read(OURS | {TIMEOUT: "60"}).settings.timeout_seconds == 60


@pytest.mark.parametrize(
    ("name", "text"),
    [(KEY, "short"), (KEY, "with space in it"), (KEY, "x" * 4_097), (MODEL, "a model"), (MODEL, "x" * 129),
     (TIMEOUT, "0"), (TIMEOUT, "soon"), (TIMEOUT, "10000"), (MODEL, SECRET), (BASE_URL, f"https://x/{SECRET}")],
)  # fmt: skip
def test_a_variable_that_cannot_be_used_is_missing(name: str, text: str) -> None:
    found = Provider.read(OURS | {name: text})
    assert found.settings.missing == (name,)
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("M=gpt-x", "gpt-x"),
        ("  export  M = gpt-x  ", "gpt-x"),
        ('M="gpt-x" # mine', "gpt-x"),
        ("M='gpt-x'", "gpt-x"),
        ("M='gpt#x'", "gpt#x"),
        ("M=gpt#x # mine", "gpt#x"),
        ('M="gpt-x', '"gpt-x'),
        ("M=''", None),
        ("M=", None),
        ("# M=gpt-x\n\n", None),
        ("M=a\nM=b", "b"),
    ],
    ids=str,
)
def test_a_line_of_a_file_is_read_as_shells_read_it(line: str, model: str | None, tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(line.replace("M", OPENAI_MODEL), encoding="utf-8")
    assert Provider.read({OPENAI_KEY: SECRET}, file).settings.model == model


def test_a_line_without_a_value_is_named_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(f"OTHER=1\n{SECRET}\n", encoding="utf-8")
    with pytest.raises(GatherError, match="line 2 of the file of variables has no value") as caught:
        Provider.read({}, file)
    assert SECRET not in str(caught.value)

"""What every part of the store takes for a number, a name and a digest: the bounds themselves, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.state import checks
from engine.state.checks import LONGEST_TEXT
from engine.state.part import made

UUID = "0190b5d2-7c1e-7d3a-9b6f-2f4c5d6e7f80"
SHA = "0123456789abcdef" * 4
MAY_BE_EMPTY = partial(checks.text, empty=True)


@pytest.mark.parametrize(
    ("take", "taken", "refused"),
    [
        (checks.whole, (0, 1, MAX_SAFE_INTEGER), (-1, MAX_SAFE_INTEGER + 1, True, 1.0, "1", None)),
        (
            checks.text,
            ("x", "x" * LONGEST_TEXT, "é\ud7ff\ue000🙂"),
            ("", "x" * (LONGEST_TEXT + 1), "x\0", ["x"], b"x", 1, None),
        ),
        (MAY_BE_EMPTY, ("", "x", "x" * LONGEST_TEXT), ("x" * (LONGEST_TEXT + 1), "\0", [], b"", 0, None)),
        (
            checks.encodable,
            ("", "x" * 9 * LONGEST_TEXT, "\ud7ff\ue000"),
            ("\ud800", "x\udfff", "\udabc", ["x"], 1, None),
        ),
        (checks.uuid_text, (UUID,), (UUID.upper(), UUID[:-1], f"{UUID}\n", f" {UUID}", "", UUID.encode(), 1, None)),
        (checks.sha256_text, (SHA,), (SHA.upper(), SHA[:-1], f"{SHA}0", f"{SHA}\n", "", SHA.encode(), 1, None)),
    ],
    ids=["whole", "text", "text that may be empty", "encodable", "uuid", "sha256"],
)
def test_a_value_within_its_bounds_is_taken_and_every_other_one_refused(
    take: Callable[[str, Any], Any], taken: tuple[Any, ...], refused: tuple[Any, ...]
) -> None:
    assert tuple(take("it", value) for value in taken) == taken
    for value in refused:
        with pytest.raises(ValueError, match=r"^it is "):
            take("it", value)


@dataclass(frozen=True)
class Row:
    name: checks.Text
    numbers: tuple[checks.Whole, ...] = ()
    digest: checks.Sha256 | None = None
    anything: object = None
    certain: bool = False


@pytest.mark.parametrize("changes", [{}, {"numbers": (0, 1)}, {"digest": SHA}, {"anything": b""}])
def test_a_row_with_fields_of_its_types_is_stored(changes: dict[str, Any]) -> None:
    checks.demand_storable(Row(**{"name": "it", **changes}))


@pytest.mark.parametrize("changes", [{"name": ""}, {"name": None}, {"numbers": (0, -1)}, {"digest": ""}])
def test_a_row_with_another_field_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(changes))} is "):
        checks.demand_storable(Row(**{"name": "it", **changes}))


def test_a_row_is_read_as_it_was_stored() -> None:
    row = made(Row, "it", "[]", None, "[]", 1)
    assert row == Row("it", (), None, "[]", certain=True)
    assert row.certain is True

"""Numbers of people are private data, and other numbers are not."""

from __future__ import annotations

import pytest

from engine.facts.text.content import private_in, redacted_content
from engine.secrets.patterns import find_private
from engine.secrets.redaction import redact

PRIVATE = [
    "+1 415 555 0132",
    "+49 (0)30 1234567",
    "+44-20-7946-0958",
    "+4915123456789",
    "123-45-6789",
    "DE89370400440532013000",
    "DE89 3704 0044 0532 0130 00",
    "GB29 NWBK 6016 1331 9268 19",
    "john.smith@gmail.com",
    "john.smith\uff20gmail.com",
    "\uff0b\uff11 415 555 0132",
    "+1\xa0415\xa0555\u202f0132",
    "123\u201145\u20116789",
    "4111 1111 1111 1111",
    "4111\xa01111\xa01111\xa01111",
    "4111\u20131111\u20131111\u20131111",
]
ORDINARY = [
    "+1 point, +10000000 in sales, UTC+1 2026-11-03 10:00, x+1234567890",
    "+12 34",
    "000-12-3456, 666-12-3456, 912-34-5678, 123-00-4567, 123-45-0000",
    "2026-11-03, 10.1.123-45-6789-1, A-123-45-6789",
    "DE89370400440532013001",
    "DE8937040044053201300",
    "XY89370400440532013000",
    "ABCD 1234 EFGH 5678",
    "version 1.2.3+20261103",
    "git@github.com:acme/tools.git",
]


# covers: A91.2
@pytest.mark.parametrize("text", PRIVATE)
@pytest.mark.parametrize("around", ["{}", "Call {}.", "a {} TEST", "REF AB12 {}", "{{'n': '{}'}}"])
def test_a_number_of_a_person_is_found_and_redacted(text: str, around: str) -> None:
    whole = around.format(text)
    assert private_in({"content": [whole]}) == 1
    clean = redacted_content(whole)
    assert clean == around.format("[redacted]")
    assert private_in(clean) == 0


@pytest.mark.parametrize("text", ORDINARY)
def test_another_number_is_not(text: str) -> None:
    assert [*find_private(text)] == []
    assert redacted_content(text) == text


@pytest.mark.parametrize("text", ["4111 1111 1111 1111 12/27", "4111-1111-1111-1111 123", "2027 4111 1111 1111 1111"])
def test_a_card_beside_other_digits_is_found(text: str) -> None:
    assert "1111 1111" not in redacted_content(text).replace("-", " ")
    assert private_in(text) == 1
    assert redact({"note": text})[1] == ("note",)

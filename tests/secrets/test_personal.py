"""Numbers of people are private data, and other numbers are not."""

from __future__ import annotations

import time
from collections import deque

import pytest

from engine.facts.text.content import private_in, redacted_content
from engine.secrets.patterns import find_private
from engine.secrets.redaction import redact

PRIVATE = [
    "+1 415 555 0132",
    "+49 (0)30 1234567",
    "+44-20-7946-0958",
    "+4915123456789",
    "+49 30 1234",
    "+4930123456",
    "+491511234567890",
    "123-45-6789",
    "DE89370400440532013000",
    "DE89 3704 0044 0532 0130 00",
    "GB29 NWBK 6016 1331 9268 19",
    "de89370400440532013000",
    "de89 3704 0044 0532 0130 00",
    "De89-3704-0044-0532-0130-00",
    "gb29 nwbk 6016 1331 9268 19",
    "DE89\xa03704\xa00044\xa00532\xa00130\xa000",
    "(415) 555-0132",
    "(415)555-0132",
    "415-555-0132",
    "415.555.0132",
    "1-800-555-0132",
    "020 7946 0958",
    "07700 900123",
    "(020) 7946 0958",
    "030 1234567",
    "0171 2345678",
    "0171/2345678",
    "030 / 123 45 67",
    "01 23 45 67 89",
    "01.23.45.67.89",
    "0049 30 1234567",
    "0049 171 2345678",
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
    "DE5137040044053201300",
    "XY89370400440532013000",
    "ABCD 1234 EFGH 5678",
    "version 1.2.3+20261103",
    "git@github.com:acme/tools.git",
    "use `@app.route`, `${node.name}@${node.spec.version}`, /^git@github.com:/ and *@corp.example.org",
    "de89370400440532013001, be68539007547034a, no15 and the next of them, is12 monkeys 1234567890",
    "ad1200012030200359100101beef, be71096123456769be71096123456769",
    "order 0123-456789, order 123-456-7890, order 113-1234567-1234567, ISBN 0-306-40615-2, ISBN 978-3-16-148410-0",
    "01.02.2026, 01-02-2026, 05/11/2026 10:30, 03 11 2026, 05 11 2026 10 30, 09:30 1130",
    "0930 1130, 0930 1130 1500, 10 000 000, 1 234 567 890, 0.123 456 789, 0,171 2345678, 1.234.567,89",
    "1.2.3.4, 192.168.100.200, 10.115.255.0132, 415.155.0132, 200-300-40005, v2.415.555.0132",
    "0000020 062554 066157 020054 067567 066162 005144",
    "id 01234567890, id 4155550132, 04109 1234, 0815 4711, 007, 00 11 22 33 44, 0001 234 5678",
    "2026-01-02T03:04:05Z 01 02 03 04 05 06",
]
SAID = [
    "Tel. 089/12345",
    "Tel.: 089 123456",
    "phone: 4155550132",
    "phone number is 0412 345 678",
    "Mobile 612 345 678",
    "fax no. 06-1234-5678",
    "WhatsApp 98765 43210",
    "t\u00e9l : 0123456789",
    "phone: 123456789012345",
]
"""Numbers that are those of people by the word before them."""


# covers: A91.2
@pytest.mark.parametrize("text", PRIVATE)
@pytest.mark.parametrize("around", ["{}", "Call {}.", "a {} TEST", "REF AB12 {}", "{{'n': '{}'}}"])
def test_a_number_of_a_person_is_found_and_redacted(text: str, around: str) -> None:
    whole = around.format(text)
    assert private_in({"content": [whole]}) == 1
    clean = redacted_content(whole)
    assert clean == around.format("[redacted]")
    assert private_in(clean) == 0


@pytest.mark.parametrize("text", SAID)
def test_a_number_labelled_as_a_phone_is_found(text: str) -> None:
    assert private_in(text) == 1
    assert not any(map(str.isdigit, redacted_content(text)))


def test_an_account_in_a_name_is_found() -> None:
    assert redacted_content("transfer_DE89370400440532013000.pdf") == "transfer_[redacted].pdf"


NOT_SAID = [
    "phone 2026-11-03 10:00",
    "mobile 12 of 34",
    "fax 1.2.3.4",
    "phone 192.168.100.200",
    "hotel 12345678",
    "tel 123",
]


@pytest.mark.parametrize("text", [*ORDINARY, *NOT_SAID])
def test_an_ordinary_number_is_not_personal(text: str) -> None:
    assert [*find_private(text)] == []
    assert redacted_content(text) == text


@pytest.mark.parametrize("text", ["4111 1111 1111 1111 12/27", "4111-1111-1111-1111 123", "2027 4111 1111 1111 1111"])
def test_a_card_beside_other_digits_is_found(text: str) -> None:
    assert "1111 1111" not in redacted_content(text).replace("-", " ")
    assert private_in(text) == 1
    assert redact({"note": text})[1] == ("note",)


@pytest.mark.parametrize("unit", [" ", "(", "/ ", "(01", "01 ", "0171/", "+49 ", "DE89 ", "tel ", "tel.0."])
def test_hostile_text_costs_linear_time(unit: str) -> None:
    """Sixteen times as much text costs about sixteen times as much; quadratic would be 256 times."""
    spent = {}
    for size in (1 << 12, 1 << 16):
        text = unit * (size // len(unit))
        rounds = []
        for _ in range(3):
            started = time.process_time()
            deque(find_private(text), maxlen=0)
            rounds.append(time.process_time() - started)
        spent[size] = min(rounds)
    assert spent[1 << 16] < 80 * max(spent[1 << 12], 0.0005)

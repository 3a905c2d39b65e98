"""Numbers of people: international phone numbers, IBANs, and United States social security numbers.

Forms: E.164 of the ITU with its usual separators; the registry of ISO 13616 with its lengths and check digits; the
areas, groups and serials that the Social Security Administration assigns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.secrets.forms import Span

_PHONE = re.compile(r"(?<![\w+.])\+[1-9][0-9]{0,2}(?:[ .\-/]?\(?[0-9]{1,4}\)?){2,6}(?!\w)", re.ASCII)
_MOST_DIGITS = 15
_FEWEST_DIGITS, _FEWEST_TOGETHER = 8, 10
"""Of a number with separators, and of one without: shorter ones are amounts."""

_SSN = re.compile(r"(?<![\w\-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w\-])", re.ASCII)
_IBAN = re.compile(r"(?<!\w)(?=(([A-Z]{2})[0-9]{2}(?: ?[A-Z0-9]){11,28}))", re.ASCII)
"""One may begin within what looks like another."""

_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
}
"""By the length of their IBANs."""

_IBAN_LENGTHS = {country: length for length, countries in _COUNTRIES.items() for country in countries.split()}


def find_personal(text: str) -> Iterator[Span]:
    """Spans of these numbers, unordered."""
    if "+" in text:
        for match in _PHONE.finditer(text):
            digits = sum(map(str.isdigit, match[0]))
            if (_FEWEST_TOGETHER if match[0][1:].isdigit() else _FEWEST_DIGITS) <= digits <= _MOST_DIGITS:
                yield match.span()
    if "-" in text:
        yield from (match.span() for match in _SSN.finditer(text))
    for match in _IBAN.finditer(text):
        found, length = match[1], _IBAN_LENGTHS.get(match[2], 0)
        places = [at for at, one in enumerate(found) if one != " "][:length]
        number = "".join(found[at] for at in places)
        if length and len(number) == length and _checks(number):
            yield match.start(), match.start() + places[-1] + 1


def _checks(iban: str) -> bool:
    return int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1
